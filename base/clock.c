/* clock.c - CLOCK_MONOTONIC, CLOCK_REALTIME and the scheduler's counts as seconds. */
#include "base/clock.h"

#include "base/parse.h"

#include <stdio.h>
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

struct clock_wait clock_wait(void)
{
    unsigned long long ran = 0, waited = 0; // nanoseconds
    FILE *f = fopen("/proc/self/schedstat", "r");
    bool both = f && fscanf(f, "%llu %llu", &ran, &waited) == 2;

    if (f)
        fclose(f);
    return both ? (struct clock_wait){ 1e-9 * (double)ran, 1e-9 * (double)waited } : (struct clock_wait){ 0 };
}

bool clock_is_busy(struct clock_wait before)
{
    struct clock_wait now = clock_wait();
    double ran = now.ran - before.ran, waited = now.waited - before.waited;

    return waited > CLOCK_BUSY * (ran + waited);
}
