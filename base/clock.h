/* clock.h - time spent, and the time of day. */
#ifndef EVP_CLOCK_H
#define EVP_CLOCK_H

/* Seconds on a clock that only goes forward; differences mean something, values do not. */
double clock_now(void);

/* Whole seconds since 1970, UTC. Where the variable SOURCE_DATE_EPOCH is set to a number, that number: who wants the
 * same bytes from the same inputs sets it. */
double clock_utc(void);

#endif
