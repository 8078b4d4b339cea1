/* reading.c - the planner's heap, of ends in virtual work. */
#include "replay/reading.h"

#include <math.h>

static const double ns_per_s = 1e9, last_ns = 9e18;

/* Bytes per nanosecond that each read gets. */
static double share(const struct reading *r)
{
    size_t n = r->job.n < (size_t)r->n_total ? r->job.n : (size_t)r->n_total;

    return r->total[n - 1] / ns_per_s / (double)r->job.n;
}

double reading_work(const struct reading *r, int64_t now)
{
    return r->job.n > 0 ? r->work + (double)(now - r->now) * share(r) : r->work;
}

static void go_to(struct reading *r, int64_t now)
{
    double ns = (double)(now - r->now);

    r->work = reading_work(r, now);
    if (r->job.n > 0) {
        r->busy_ns += now - r->now;
        r->in_flight_ns += ns * (double)r->job.n;
    }
    r->now = now;
}

int64_t reading_next(const struct reading *r)
{
    if (r->job.n == 0)
        return INT64_MAX;
    double ns = ceil((r->job.at[0].key - r->work) / share(r));
    return ns > 0 ? r->now + (int64_t)fmin(ns, last_ns - (double)r->now) : r->now;
}

int reading_begin(struct reading *r, int64_t now, double bytes, int32_t number, struct err *err)
{
    go_to(r, now);
    if (r->job.n == 0)
        r->work = 0; /* keeps the sum small, and its rounding */
    return heap_push(&r->job, (struct heap_entry){ r->work + bytes, number }) ? err_nomem(err) : 0;
}

int32_t reading_end(struct reading *r)
{
    int32_t number = r->job.at[0].context;

    go_to(r, reading_next(r));
    heap_remove(&r->job, 0);
    return number;
}

void reading_release(struct reading *r)
{
    heap_release(&r->job);
    *r = (struct reading){ 0 };
}
