/* clock.c - CLOCK_MONOTONIC and CLOCK_REALTIME as seconds. */
#include "base/clock.h"

#include "base/parse.h"

#include <stdlib.h>
#include <time.h>

double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_utc(void)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    double seconds;

    return given && parse_real(given, &seconds) && seconds >= 0 ? seconds : (double)time(NULL);
}
