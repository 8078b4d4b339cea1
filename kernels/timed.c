/* timed.c - hooks for around.h that read the clock; one row per op name. */
#include "kernels/timed.h"

#include "kernels/around.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct timer {
    struct backend *inner;
    double started;
    struct op_time op[TIMED_OPS];
    int n;
};

static void start(void *arg)
{
    struct timer *t = arg;

    t->started = t->inner->clock(t->inner);
}

static void stop(void *arg, const struct op_done *done)
{
    struct timer *t = arg;
    double seconds = t->inner->clock(t->inner) - t->started;
    int i = 0;

    while (i < t->n && strcmp(t->op[i].name, done->name) != 0)
        i++;
    if (i == t->n) {
        assert(t->n < TIMED_OPS);
        t->op[t->n++].name = done->name;
    }
    t->op[i].calls++;
    t->op[i].seconds += seconds;
    t->op[i].flop += done->flop;
    t->op[i].bytes += done->bytes;
}

struct backend *timed_open(struct backend *inner, struct err *err)
{
    struct timer *t = calloc(1, sizeof(*t));

    if (!t) {
        err_nomem(err);
        return NULL;
    }
    t->inner = inner;
    struct backend *be = around_open(inner, &(struct around_hooks){ start, stop, t, free }, err);
    if (!be)
        free(t);
    return be;
}

static int compare_seconds(const void *a, const void *b)
{
    const struct op_time *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

int timed_list(const struct backend *timed, struct op_time out[TIMED_OPS])
{
    const struct timer *t = around_arg(timed);

    memcpy(out, t->op, sizeof(t->op));
    qsort(out, (size_t)t->n, sizeof(*out), compare_seconds);
    return t->n;
}
