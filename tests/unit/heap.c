/* The planner's heap is one after every push and every removal, wherever that was, also of keys that repeat. */
#include "planner/heap.h"

#include "base/rng.h"

#include <criterion/criterion.h>

enum { CONTEXTS = 200 };

static void expect_heap(const struct heap *h, const double *key, const bool *there)
{
    size_t n = 0;

    for (int c = 0; c < CONTEXTS; c++)
        n += there[c];
    cr_assert_eq(h->n, n);
    for (size_t i = 0; i < h->n; i++) {
        const struct heap_entry *e = &h->at[i], *up = &h->at[i > 0 ? (i - 1) / 2 : 0];
        cr_assert(there[e->context] && e->key == key[e->context]);
        cr_assert(up->key < e->key || (up->key == e->key && up->context <= e->context), "entry %zu of %zu", i, n);
    }
}

Test(heap, stays_one_whatever_is_removed)
{
    struct rng rng = rng_new(1);
    struct heap h = { 0 };
    double key[CONTEXTS];
    bool there[CONTEXTS] = { 0 };

    for (int step = 0; step < 20000; step++) {
        int c = (int)rng_below(&rng, CONTEXTS);
        if (there[c]) {
            size_t i = (size_t)rng_below(&rng, h.n);
            there[h.at[i].context] = false;
            heap_remove(&h, i);
        } else {
            key[c] = (double)rng_below(&rng, 50);
            cr_assert_eq(heap_push(&h, (struct heap_entry){ key[c], c }), 0);
            there[c] = true;
        }
        expect_heap(&h, key, there);
    }
    heap_release(&h);
    cr_assert(!h.at && !h.n);
}
