/* clock.h - time spent, and the time of day. */
#ifndef EVP_CLOCK_H
#define EVP_CLOCK_H

#include <stdbool.h>

/* Seconds on a monotonic clock; only differences are meaningful. */
double clock_now(void);

/* Whole seconds since 1970, UTC; or the environment variable SOURCE_DATE_EPOCH, if it is a number, for reproducible
 * output. */
double clock_utc(void);

/* The main thread's time since it began, in seconds: on a core, and waiting for one that other work has. Both are 0
 * where Linux does not count them (/proc/self/schedstat). */
struct clock_wait {
    double ran, waited;
};
struct clock_wait clock_wait(void);

/* Did it wait for more than CLOCK_BUSY of the time since `before`? Then measured times and forecasts are doubtful. */
#define CLOCK_BUSY 0.2
bool clock_is_busy(struct clock_wait before);

#endif
