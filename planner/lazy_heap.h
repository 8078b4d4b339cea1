/* lazy_heap.h - a large heap of which only the lowest few entries are taken.
 *
 * The lowest entries are in a heap small enough to stay in the processor's cache, all others unordered in a bag. When
 * the heap is empty, the lowest entries of the bag move into it.
 */
#ifndef EVP_LAZY_HEAP_H
#define EVP_LAZY_HEAP_H

#include "planner/heap.h"

struct lazy_heap {
    struct heap low; // all entries with a key up to `limit`
    struct {
        struct heap_entry *at;
        size_t n, cap;
    } bag; // all others
    double limit;
};

void lazy_heap_init(struct lazy_heap *q);
void lazy_heap_release(struct lazy_heap *q);

/* -1 without memory. */
int lazy_heap_push(struct lazy_heap *q, struct heap_entry e) MUST_CHECK;

/* Moves entries into q->low until it has n, or all. -1 without memory. */
int lazy_heap_fill(struct lazy_heap *q, size_t n) MUST_CHECK;

static inline size_t lazy_heap_size(const struct lazy_heap *q)
{
    return q->low.n + q->bag.n;
}

/* Keeps the entries for which keep() is true. */
void lazy_heap_filter(struct lazy_heap *q, int (*keep)(const void *arg, const struct heap_entry *e), const void *arg);

#endif
