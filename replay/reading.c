/* reading.c - a heap of ends in virtual work. */
#include "replay/reading.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

static const double ns_per_s = 1e9;

/* Bytes per nanosecond that each read gets. */
static double share(const struct reading *r)
{
    int n = r->job.n < r->n_total ? r->job.n : r->n_total;

    return r->total[n - 1] / ns_per_s / r->job.n;
}

static void go_to(struct reading *r, int64_t now)
{
    double ns = (double)(now - r->now);

    if (r->job.n > 0) {
        r->work += ns * share(r);
        r->busy_ns += now - r->now;
        r->in_flight_ns += ns * r->job.n;
    }
    r->now = now;
}

int64_t reading_next(const struct reading *r)
{
    if (r->job.n == 0)
        return INT64_MAX;
    double ns = ceil((r->job.at[0].end - r->work) / share(r));
    return ns > 0 ? r->now + (int64_t)ns : r->now;
}

static int before(const struct reading_job *a, const struct reading_job *b)
{
    return a->end < b->end || (a->end == b->end && a->number < b->number);
}

int reading_begin(struct reading *r, int64_t now, double bytes, int64_t number, struct err *err)
{
    go_to(r, now);
    if (r->job.n == 0)
        r->work = 0; /* keeps the sum small, and its rounding */
    const struct reading_job job = { r->work + bytes, number };
    int at = r->job.n;
    if (ARRAY_PUSH(&r->job, job))
        return err_nomem(err);
    for (int up = (at - 1) / 2; at > 0 && before(&job, &r->job.at[up]); up = (at - 1) / 2) {
        r->job.at[at] = r->job.at[up];
        at = up;
    }
    r->job.at[at] = job;
    return 0;
}

int64_t reading_end(struct reading *r)
{
    struct reading_job *heap = r->job.at;
    int64_t number = heap[0].number;
    int at = 0;

    go_to(r, reading_next(r));
    const struct reading_job last = heap[--r->job.n];
    for (int child = 1; child < r->job.n; child = 2 * at + 1) {
        child += child + 1 < r->job.n && before(&heap[child + 1], &heap[child]);
        if (!before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return number;
}

void reading_release(struct reading *r)
{
    free(r->job.at);
    *r = (struct reading){ 0 };
}
