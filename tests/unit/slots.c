/* Slots of a store: taken lowest first, given back in any order, never twice. */
#include "engine/transformer/slots.h"

#include "base/rng.h"

#include <criterion/criterion.h>

static void give(struct slots *s, int first, int n)
{
    struct err err;

    cr_assert_eq(slots_give(s, (struct slot_range){ first, n }, &err), 0, "%s", err.msg);
}

Test(slots, are_taken_from_the_lowest)
{
    struct slots s;
    struct err err;

    cr_assert_eq(slots_init(&s, 10, &err), 0);
    cr_assert_eq(slots_take(&s, 4), 0);
    cr_assert_eq(slots_take(&s, 4), 4);
    cr_assert_eq(slots_take(&s, 3), -1, "two are left");
    cr_assert_eq(slots_take(&s, 2), 8);
    cr_assert_eq(slots_take(&s, 1), -1);
    give(&s, 4, 4);
    cr_assert_eq(slots_take(&s, 5), -1);
    cr_assert_eq(slots_take(&s, 3), 4);
    give(&s, 8, 2);
    give(&s, 0, 4);
    cr_assert_eq(s.n, 2, "0 to 3, and 7 to 9");
    give(&s, 4, 3);
    cr_assert_eq(s.n, 1, "ranges that touch become one");
    cr_assert_eq(slots_take(&s, 10), 0);
    slots_release(&s);
}

/* A thousand ranges in random order: no slot is in two of them, and all are free at the end. */
Test(slots, are_in_one_range_at_a_time)
{
    enum { N = 500, LIVE = 40 };
    struct slots s;
    struct err err;
    struct rng rng = rng_new(5);
    struct slot_range live[LIVE] = { 0 };
    bool used[N] = { false };

    cr_assert_eq(slots_init(&s, N, &err), 0);
    for (int step = 0; step < 1000; step++) {
        struct slot_range *r = &live[rng_below(&rng, LIVE)];
        bool taken = r->n > 0;
        if (!taken) {
            int n = 1 + (int)rng_below(&rng, 30), first = slots_take(&s, n);
            if (first < 0)
                continue;
            *r = (struct slot_range){ first, n };
        }
        cr_assert(r->first >= 0 && r->first + r->n <= N);
        for (int i = r->first; i < r->first + r->n; i++) {
            cr_assert_eq(used[i], taken, "slot %d", i);
            used[i] = !taken;
        }
        if (taken) {
            give(&s, r->first, r->n);
            r->n = 0;
        }
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i].n)
            give(&s, live[i].first, live[i].n);
    cr_assert_eq(s.n, 1);
    cr_assert_eq(slots_take(&s, N), 0);
    slots_release(&s);
}
