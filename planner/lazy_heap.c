/* lazy_heap.c - when the heap is empty, about the LOW lowest entries of the bag move into it: those up to a key that is
 * estimated from a sample. */
#include "planner/lazy_heap.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

enum { LOW = 1 << 15, SAMPLE = 1024 };

void lazy_heap_init(struct lazy_heap *q)
{
    *q = (struct lazy_heap){ .limit = -HUGE_VAL };
}

void lazy_heap_release(struct lazy_heap *q)
{
    heap_release(&q->low);
    free(q->bag.at);
    lazy_heap_init(q);
}

int lazy_heap_push(struct lazy_heap *q, struct heap_entry e)
{
    return e.key <= q->limit ? heap_push(&q->low, e) : ARRAY_PUSH(&q->bag, e);
}

static int compare_keys(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The key of rank LOW in the bag, estimated from a sample of its entries. */
static double find_limit(const struct lazy_heap *q)
{
    double key[SAMPLE];
    size_t all = q->bag.n, n = all < SAMPLE ? all : SAMPLE, rank = LOW < all ? LOW * n / all : n - 1;

    for (size_t i = 0; i < n; i++)
        key[i] = q->bag.at[all / n * i].key;
    qsort(key, n, sizeof(*key), compare_keys);
    return key[rank];
}

int lazy_heap_fill(struct lazy_heap *q, size_t n)
{
    while (q->low.n < n && q->bag.n > 0) {
        size_t kept = 0;
        q->limit = find_limit(q);
        for (size_t i = 0; i < q->bag.n; i++) {
            struct heap_entry e = q->bag.at[i];
            if (e.key > q->limit)
                q->bag.at[kept++] = e;
            else if (heap_push(&q->low, e))
                return -1;
        }
        q->bag.n = kept;
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
    for (size_t i = 0; i < q->bag.n; i++)
        if (keep(arg, &q->bag.at[i]))
            q->bag.at[n++] = q->bag.at[i];
    q->bag.n = n;
}
