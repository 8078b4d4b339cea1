#include "planner/lazy_heap.h"

#include <math.h>
#include <stdlib.h>

enum { LOW = 1 << 15, SAMPLE = 1024, FIRST_ROOM = 64 };

void lazy_heap_init(struct lazy_heap *q)
{
    *q = (struct lazy_heap){ .limit = -HUGE_VAL };
}

void lazy_heap_release(struct lazy_heap *q)
{
    heap_release(&q->low);
    free(q->other);
    lazy_heap_init(q);
}

int lazy_heap_push(struct lazy_heap *q, struct heap_entry e)
{
    if (e.key <= q->limit)
        return heap_push(&q->low, e);
    if (q->n_other == q->room) {
        size_t room = q->room ? 2 * q->room : FIRST_ROOM;
        struct heap_entry *at = realloc(q->other, room * sizeof(*at));
        if (!at)
            return -1;
        q->other = at;
        q->room = room;
    }
    q->other[q->n_other++] = e;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A key that about LOW of the entries in the bag are not above, judged by a sample of them. */
static double find_limit(const struct lazy_heap *q)
{
    double key[SAMPLE];
    size_t n = q->n_other < SAMPLE ? q->n_other : SAMPLE, rank = LOW < q->n_other ? LOW * n / q->n_other : n - 1;

    for (size_t i = 0; i < n; i++)
        key[i] = q->other[q->n_other / n * i].key;
    qsort(key, n, sizeof(*key), compare_keys);
    return key[rank];
}

int lazy_heap_want(struct lazy_heap *q, size_t n)
{
    while (q->low.n < n && q->n_other > 0) {
        size_t kept = 0;
        q->limit = find_limit(q);
        for (size_t i = 0; i < q->n_other; i++) {
            struct heap_entry e = q->other[i];
            if (e.key > q->limit)
                q->other[kept++] = e;
            else if (heap_push(&q->low, e))
                return -1;
        }
        q->n_other = kept;
    }
    return 0;
}

void lazy_heap_filter(struct lazy_heap *q, int (*keep)(const void *arg, const struct heap_entry *e), const void *arg)
{
    size_t n = 0;

    for (size_t i = 0; i < q->low.n; i++)
        if (keep(arg, &q->low.at[i]))
            q->low.at[n++] = q->low.at[i];
    q->low.n = n;
    heap_order(&q->low);
    n = 0;
    for (size_t i = 0; i < q->n_other; i++)
        if (keep(arg, &q->other[i]))
            q->other[n++] = q->other[i];
    q->n_other = n;
}
