/* events.h - what many short events took. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdlib.h>

/* Microseconds. */
struct events {
    double mean, p50, p99, max;
};

static inline int events_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of n events; sorts their seconds. */
static inline struct events events_sum_up(double *seconds, int n)
{
    double sum = 0;

    for (int k = 0; k < n; k++)
        sum += seconds[k];
    qsort(seconds, (size_t)n, sizeof(*seconds), events_compare);
    return (struct events){ sum / n * 1e6, seconds[n / 2] * 1e6, seconds[n * 99 / 100] * 1e6, seconds[n - 1] * 1e6 };
}

#endif
