/* The lazy heap of live plans gives what a sorted list would. */
#include "planner/lazy_heap.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ENTRIES = 120000 }; /* several times what its heap holds */

static int compare(const void *a, const void *b)
{
    const struct heap_entry *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->context - y->context;
}

/* Many keys come more than once. */
static struct heap_entry random_entry(struct rng *r, int context)
{
    return (struct heap_entry){ .key = (double)rng_below(r, ENTRIES / 4), .context = context };
}

static struct heap_entry take_lowest(struct lazy_heap *q)
{
    cr_assert(!lazy_heap_fill(q, 1));
    cr_assert(q->low.n > 0);
    struct heap_entry e = q->low.at[0];
    heap_remove(&q->low, 0);
    return e;
}

static void check_order(int n)
{
    static struct heap_entry sorted[ENTRIES];
    struct rng r = rng_new(3);
    struct lazy_heap q;

    lazy_heap_init(&q);
    for (int i = 0; i < n; i++) {
        sorted[i] = random_entry(&r, i);
        cr_assert(!lazy_heap_push(&q, sorted[i]));
    }
    qsort(sorted, (size_t)n, sizeof(*sorted), compare);
    for (int i = 0; i < n; i++) {
        struct heap_entry e = take_lowest(&q);
        cr_assert(e.context == sorted[i].context, "entry %d of %d", i, n);
    }
    cr_assert_eq(lazy_heap_size(&q), 0);
    lazy_heap_release(&q);
}

/* Also around the sample (1024) and the entries that move at a time (32,768). */
Test(lazy_heap, gives_the_lowest_first)
{
    static const int n[] = { 1, 1023, 1024, 1025, 32767, 32768, 32769, ENTRIES };

    for (size_t k = 0; k < sizeof(n) / sizeof(*n); k++)
        check_order(n[k]);
}

Test(lazy_heap, what_comes_later_takes_its_place)
{
    struct rng r = rng_new(4);
    struct lazy_heap q;
    double last = -1;

    lazy_heap_init(&q);
    for (int i = 0; i < ENTRIES; i++) {
        struct heap_entry e = random_entry(&r, i);
        e.key += last; /* never below what was taken */
        cr_assert(!lazy_heap_push(&q, e));
        if (i % 2 == 0)
            continue;
        e = take_lowest(&q);
        cr_assert(e.key >= last);
        last = e.key;
    }
    cr_assert_eq(lazy_heap_size(&q), ENTRIES / 2);
    lazy_heap_release(&q);
}

static int is_even(const void *arg, const struct heap_entry *e)
{
    (void)arg;
    return e->context % 2 == 0;
}

Test(lazy_heap, a_filter_reaches_heap_and_bag)
{
    struct rng r = rng_new(5);
    struct lazy_heap q;

    lazy_heap_init(&q);
    for (int i = 0; i < ENTRIES; i++)
        cr_assert(!lazy_heap_push(&q, random_entry(&r, i)));
    take_lowest(&q); /* fills the heap */
    size_t before = lazy_heap_size(&q);
    lazy_heap_filter(&q, is_even, NULL);
    cr_assert(lazy_heap_size(&q) >= before / 2 && lazy_heap_size(&q) <= before / 2 + 1);
    double last = -1;
    while (lazy_heap_size(&q) > 0) {
        struct heap_entry e = take_lowest(&q);
        cr_assert(e.context % 2 == 0 && e.key >= last);
        last = e.key;
    }
    lazy_heap_release(&q);
}
