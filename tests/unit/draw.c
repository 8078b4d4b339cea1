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

static int count(const bool *sampled)
{
    int n = 0;

    for (int i = 0; i < N; i++)
        n += sampled[i];
    return n;
}

/* A sample, which has n contexts. */
static bool *sample(const struct contexts *c, const struct questions *q, const char *size, int seed, int n)
{
    struct err err;
    bool *sampled;

    cr_assert_eq(draw_contexts(&sampled, &(struct draw){ c, q, size, seed }, &err), 0);
    cr_assert_eq(count(sampled), n);
    return sampled;
}

Test(draw, sizes)
{
    static const char *const bad[] = { "", "0", "-1", "1.5", "0%", "101%", "%", "x", "12%%", " 3" };
    struct contexts c;
    struct questions q;
    struct err err;
    bool *sampled;

    make(&c, &q);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(draw_contexts(&sampled, &(struct draw){ &c, &q, bad[i], 1 }, &err), ERR_USAGE, "'%s'", bad[i]);
        cr_assert_null(sampled);
    }
    free(sample(&c, &q, "12.5%", 1, 5));
    free(sample(&c, &q, "12%", 1, 5)); /* of 40, rounded up */
    free(sample(&c, &q, "100%", 1, 26));
    free(sample(&c, &q, "1000000000000", 1, 26));
    map_release(&c.ids);
}

Test(draw, larger_ones_hold_smaller_ones)
{
    struct contexts c;
    struct questions q;
    bool *last = NULL, differs = false;

    make(&c, &q);
    for (int n = 1; n <= N; n++) {
        char size[16];
        snprintf(size, sizeof(size), "%d", n);
        bool *now = sample(&c, &q, size, 1, n < 26 ? n : 26), *other = sample(&c, &q, size, 2, n < 26 ? n : 26);
        for (int i = 0; i < N; i++) {
            cr_assert(!now[i] || i % 3);
            cr_assert(!last || !last[i] || now[i]);
            differs |= now[i] != other[i];
        }
        free(last);
        free(other);
        last = now;
    }
    free(last);
    cr_assert(differs);
    map_release(&c.ids);
}
