/* lazy_heap.h - contexts by a key of which only the lowest are looked at. They lie in a heap that stays in the cache;
 * all others lie in a bag in no order, until the heap has run out. */
#ifndef EVP_LAZY_HEAP_H
#define EVP_LAZY_HEAP_H

#include "planner/heap.h"

struct lazy_heap {
    struct heap low;          // all entries with a key up to `limit`
    struct heap_entry *other; // (n_other) the rest
    size_t n_other, room;
    double limit;
};

void lazy_heap_init(struct lazy_heap *q);
void lazy_heap_release(struct lazy_heap *q);

/* -1 without memory. */
int lazy_heap_push(struct lazy_heap *q, struct heap_entry e) MUST_CHECK;

/* Has at least `n` entries in q->low, or all there are. -1 without memory. */
int lazy_heap_want(struct lazy_heap *q, size_t n) MUST_CHECK;

static inline size_t lazy_heap_size(const struct lazy_heap *q)
{
    return q->low.n + q->n_other;
}

/* Keeps the entries for which keep() is true. */
void lazy_heap_filter(struct lazy_heap *q, int (*keep)(const void *arg, const struct heap_entry *e), const void *arg);

#endif
