/* clock.h - time spent. */
#ifndef EVP_CLOCK_H
#define EVP_CLOCK_H

/* Seconds on a clock that only goes forward; differences mean something, values do not. */
double clock_now(void);

#endif
