/* clock.h - time spent, and the time of day. */
#ifndef EVP_CLOCK_H
#define EVP_CLOCK_H

/* Seconds on a monotonic clock; only differences are meaningful. */
double clock_now(void);

/* Whole seconds since 1970, UTC; or the environment variable SOURCE_DATE_EPOCH, if it is a number, for reproducible
 * output. */
double clock_utc(void);

#endif
