/* batches.c - times of batches: a clock that counts whole seconds or minutes, or a log that is written at intervals. */
#include "replay/trace.h"

#include "base/parse.h"

#include <stdlib.h>

static const int64_t second = 1000000000;

static int rising(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The number of requests from i on that have its time. */
static int batch_of(const struct trace *t, int i)
{
    int n = 1;

    while (i + n < t->n && t->request[i + n].at == t->request[i].at)
        n++;
    return n;
}

/* The time between two times: the whole seconds of which all are multiples, or the median. gap is (n). */
static int64_t interval_of(int64_t *gap, int n)
{
    int64_t common = 0;

    for (int i = 0; i < n; i++)
        common = divisor(gap[i], common);
    qsort(gap, (size_t)n, sizeof(*gap), rising);
    return common >= second || n == 0 ? common : gap[n / 2];
}

static void spread(struct trace *t)
{
    for (int i = 0, n; i < t->n; i += n) {
        n = batch_of(t, i);
        int64_t at = t->request[i].at, room = t->interval;
        if (i + n < t->n && t->request[i + n].at - at < room)
            room = t->request[i + n].at - at;
        for (int k = 1; k < n; k++)
            t->request[i + k].at = at + (int64_t)((double)room * k / n);
    }
}

int trace_spread(struct trace *t, struct err *err)
{
    int64_t *gap = malloc(((size_t)t->n + 1) * sizeof(*gap));
    int n_gaps = 0, shared = 0;

    if (!gap)
        return err_nomem(err);
    for (int i = 0, n; i < t->n; i += n) {
        n = batch_of(t, i);
        shared += n > 1 ? n : 0;
        if (i + n < t->n)
            gap[n_gaps++] = t->request[i + n].at - t->request[i].at;
    }
    int64_t interval = interval_of(gap, n_gaps);
    bool whole = interval > 0 && interval % second == 0; // a clock of seconds or minutes
    if (t->timed && shared > (whole ? t->n / 10 : t->n / 2)) {
        t->n_spread = shared;
        t->interval = interval;
        spread(t);
    }
    free(gap);
    return 0;
}

bool trace_was_spread(const struct trace *t, struct buf *out)
{
    char interval[TEXT_SHORT];

    if (t->n_spread && t->interval == 0)
        buf_printf(out, "all %d requests have one time: they come at once", t->n);
    else if (t->n_spread)
        buf_printf(out,
                   "%d of %d requests share their times with others: they are spread over %s, the time between two",
                   t->n_spread, t->n, text_seconds(interval, (double)t->interval / 1e9));
    return t->n_spread > 0;
}
