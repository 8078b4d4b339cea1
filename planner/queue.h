/* queue.h - contexts by a key of which only the lowest are looked at. They lie in a heap that stays in the cache; all
 * others lie in a bag in no order, until the heap has run out. */
#ifndef EVP_QUEUE_H
#define EVP_QUEUE_H

#include "planner/heap.h"

struct queue {
    struct heap low;          // all entries with a key up to `limit`
    struct heap_entry *other; // (n_other) the rest
    size_t n_other, room;
    double limit;
};

void queue_init(struct queue *q);
void queue_release(struct queue *q);

/* -1 without memory. */
int queue_push(struct queue *q, struct heap_entry e) MUST_CHECK;

/* Has at least `n` entries in q->low, or all there are. -1 without memory. */
int queue_want(struct queue *q, size_t n) MUST_CHECK;

static inline size_t queue_size(const struct queue *q)
{
    return q->low.n + q->n_other;
}

/* Keeps the entries for which keep() is true. */
void queue_filter(struct queue *q, int (*keep)(const void *arg, const struct heap_entry *e), const void *arg);

#endif
