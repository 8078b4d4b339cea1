/* Samples of contexts: their sizes as text, and that a larger sample of a seed holds the smaller one. */
#include "profiler/run/draw.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 40 };

/* Every third context has no questions, the others two. */
static void make(struct contexts *c, struct questions *q)
{
    static struct context context[N];
    static struct question question[2 * N];
    static char id[N][16];

    *c = (struct contexts){ .at = context, .n = N };
    *q = (struct questions){ .at = question };
    for (int i = 0; i < N; i++) {
        snprintf(id[i], sizeof(id[i]), "c%d", i);
        context[i].id = id[i];
        cr_assert_geq(map_add(&c->ids, id[i], strlen(id[i]), NULL), 0);
        for (int k = 0; k < 2 && i % 3; k++)
            question[q->n++].context = id[i];
    }
}

/* A sample of n contexts. */
static struct context_sample sample(const struct contexts *c, const struct questions *q, const char *size, int seed,
                                    int n)
{
    struct err err;
    struct context_sample sample;

    cr_assert_eq(sample_draw(&sample, &(struct draw){ c, q, size, seed }, &err), 0);
    cr_assert_eq(sample.n, n);
    return sample;
}

/* The same, forgotten at once; a time of 0 is none. */
static void has(const struct contexts *c, const struct questions *q, const char *size, int n, double seconds)
{
    struct context_sample is = sample(c, q, size, 1, n);

    cr_assert_eq(is.seconds, seconds);
    sample_release(&is);
}

Test(draw, sizes)
{
    static const char *const bad[] = { "", "0", "-1", "1.5", "0%", "101%", "%", "12%%", " 3", "hours", "0s", "-2h" };
    struct contexts c;
    struct questions q;
    struct err err;
    struct context_sample none;

    make(&c, &q);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(sample_draw(&none, &(struct draw){ &c, &q, bad[i], 1 }, &err), ERR_USAGE, "'%s'", bad[i]);
        cr_assert_null(none.order);
    }
    has(&c, &q, "12.5%", 5, 0);
    has(&c, &q, "12%", 5, 0); /* of 40, rounded up */
    has(&c, &q, "100%", 26, 0);
    has(&c, &q, "1000000000000", 26, 0);
    has(&c, &q, "1.5h", 26, 5400);
    map_release(&c.ids);
}

/* Every context has one place, those with questions come first; another seed has another order. */
Test(draw, larger_ones_hold_smaller_ones)
{
    struct contexts c;
    struct questions q;
    bool seen[N] = { false }, differs = false;

    make(&c, &q);
    struct context_sample all = sample(&c, &q, "100%", 1, 26), few = sample(&c, &q, "3", 1, 3),
                          other = sample(&c, &q, "3", 2, 3);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(all.order[i] % 3 != 0, i < 26);
        cr_assert_eq(all.order[i], few.order[i]);
        cr_assert(!seen[all.order[i]]);
        seen[all.order[i]] = true;
        differs |= all.order[i] != other.order[i];
    }
    cr_assert(differs);
    sample_release(&all);
    sample_release(&few);
    sample_release(&other);
    map_release(&c.ids);
}
