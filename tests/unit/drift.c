/* evp-drift's test: its wealth against the authors' own code (tests/data/drift.py), its false alarms under several null
 * distributions, and a year of nights with 100 contexts of which 10 drift. */
#include "drift/drift.h"
#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arithmetic ------------------------------------------------------------------ */

static int read_line(FILE *f, double *at, int cap)
{
    char line[2048], *rest = line;
    int n = 0;

    if (!fgets(line, sizeof(line), f))
        return 0;
    for (char *end; n < cap && (at[n] = strtod(rest, &end), end != rest); rest = end)
        n++;
    return n;
}

Test(drift, wealth_as_confseq)
{
    FILE *f = fopen("tests/data/drift.txt", "r");
    double floor, x[64], want[64];
    int n_cases = 0;

    cr_assert_not_null(f);
    for (; read_line(f, &floor, 1); n_cases++) {
        struct drift_test t = { 0 };
        int n = read_line(f, x, 64);
        cr_assert(n > 0 && read_line(f, want, 64) == n);
        drift_test_night(&t);
        for (int i = 0; i < n; i++) {
            drift_test_see(&t, floor, x[i]);
            cr_assert_lt(fabs(drift_test_wealth(&t) - want[i]), 1e-12 * fmax(want[i], 1), "case %d, answer %d", n_cases,
                         i);
        }
    }
    cr_assert_eq(n_cases, 6);
    fclose(f);
}

Test(drift, floors_and_nights)
{
    struct drift_test t = { .wealth = { 0.5, 0.4, 0.1 } }, rich = { .wealth = { 0.1, 0.2, 4 } };

    cr_assert_float_eq(drift_floor(0.9, 0.02), 0.86, 1e-15);
    cr_assert_eq(drift_floor(1, 0), 0.999);
    drift_test_night(&t);
    drift_test_night(&rich);
    cr_assert_eq(drift_test_wealth(&t), 1);
    cr_assert(rich.wealth[0] < 0.2 && rich.wealth[2] > 3, "wealth above 1 stays as it is");
    for (int i = 0; i < 100; i++)
        drift_test_see(&t, -0.5, 0); /* nothing is below a floor below 0 */
    cr_assert_lt(drift_test_wealth(&t), 1);
}

/* ---- contexts that do not drift ----------------------------------------------------- */

/* Beta(a, 5 - a), with mean a / 5: the a-th smallest of four uniform numbers. */
static double draw_beta(struct rng *r, int a)
{
    double u[4];

    for (int i = 0; i < 4; i++) {
        double v = rng_unit(r);
        int k = i;
        for (; k > 0 && u[k - 1] > v; k--)
            u[k] = u[k - 1];
        u[k] = v;
    }
    return u[a - 1];
}

static double draw_null(struct rng *r, int kind)
{
    switch (kind) {
    case 0: return draw_beta(r, 4);            /* mean .8 */
    case 1: return rng_unit(r) < 0.05 ? 0 : 1; /* .95, rarely 0 */
    case 2: return 0.31;
    default: return rng_unit(r) < 0.5 ? 0.2 : 0.8; /* .5 */
    }
}

/* A false alarm in at most one night of 20, with means exactly at the floor and 1, 4 or 16 answers a night; flagged
 * contexts begin anew. */
Test(drift, false_alarms)
{
    static const double mean[] = { 0.8, 0.95, 0.31, 0.5 };
    enum { NIGHTS = 100000 };

    for (int kind = 0; kind < 4; kind++)
        for (int n = 1; n <= 16; n *= 4) {
            const struct drift d = { .n_compressed = 1, .false_alarms = 0.05 };
            struct drift_context c = { .floor = mean[kind] };
            struct rng r = rng_new((uint64_t)(100 * kind + n));
            int alarms = 0;
            for (int night = 0; night < NIGHTS; night++) {
                drift_test_night(&c.test);
                for (int i = 0; i < n; i++)
                    drift_take(&d, &c, (struct drift_answer){ draw_null(&r, kind), 0 });
                alarms += c.moved;
                if (c.moved)
                    c = (struct drift_context){ .floor = mean[kind] };
            }
            cr_assert_leq(alarms, NIGHTS / 20, "distribution %d, %d answers a night: %d alarms", kind, n, alarms);
            cr_assert(kind == 2 ? alarms == 0 : alarms > NIGHTS / 2000, "distribution %d: %d alarms", kind, alarms);
        }
}

/* ---- a year of a plan ------------------------------------------------------------------ */

enum { CONTEXTS = 100, DRIFTING = 10, CONFIGS = 8, FIRST = 4, MOST = 16 };

struct year {
    struct drift d;
    struct drift_context at[CONTEXTS];
    int drifts_at[CONTEXTS]; // night; 366: never
    struct rng r;
    int64_t n_answers, n_all;
};

/* Half of the contexts have quality .8, half .6, known to .02. */
static void year_begin(struct year *y)
{
    *y = (struct year){ .d = { .n_compressed = CONTEXTS, .false_alarms = 0.01 }, .r = rng_new(7) };
    for (int i = 0; i < CONTEXTS; i++) {
        double promised = i % 2 ? 0.6 : 0.8;
        y->at[i] = (struct drift_context){ .promised = promised, .floor = drift_floor(promised, 0.02) };
        y->drifts_at[i] = i < DRIFTING ? 20 + 30 * i : 366;
    }
    y->d.at = y->at;
    y->d.n = CONTEXTS;
}

/* A drift of .4. */
static double year_answer(struct year *y, int i, int night)
{
    int fifths = i % 2 ? 3 : 4;

    return draw_beta(&y->r, night >= y->drifts_at[i] ? fifths - 2 : fifths);
}

/* Asks as cmd/drift_ask.c does: a few questions, then all of the undecided; a reference and a variant each. */
static void year_ask(struct year *y, int i, int night)
{
    struct drift_context *c = &y->at[i];

    drift_test_night(&c->test);
    y->n_all += MOST * CONFIGS;
    for (int k = 0; k < MOST && (k != FIRST || drift_undecided(c)); k++) {
        double x = year_answer(y, i, night);
        y->n_answers += 2;
        drift_take(&y->d, c, (struct drift_answer){ x, 0 });
    }
}

Test(drift, a_year_with_the_test)
{
    struct year y;
    int n_wrong = 0, n_found = 0, n_late = 0;

    year_begin(&y);
    for (int night = 1; night <= 365; night++)
        for (int i = 0; i < CONTEXTS; i++) {
            year_ask(&y, i, night);
            if (!y.at[i].moved)
                continue;
            n_wrong += night < y.drifts_at[i];
            n_found += night >= y.drifts_at[i];
            n_late += night > y.drifts_at[i] + 1;
            /* profiled again: what it has now is what is promised */
            y.at[i] = (struct drift_context){ .promised = y.at[i].promised, .floor = y.at[i].floor };
            if (night >= y.drifts_at[i])
                y.at[i].floor = y.at[i].promised - 0.44;
        }
    cr_log_info("%d wrong, %d found, %d late, %.1f %% of the answers", n_wrong, n_found, n_late,
                100 * (double)y.n_answers / (double)y.n_all);
    cr_assert_leq(n_wrong, 4);
    cr_assert_eq(n_found, DRIFTING);
    cr_assert_eq(n_late, 0, "each is found within two nights");
    cr_assert_leq(y.n_answers, y.n_all / 4);
}

/* ---- a budget ------------------------------------------------------------------------ */

Test(drift, budgets_take_the_most_used_first)
{
    struct drift_context at[] = { { .id = "a", .frequency = 1, .prefill_s = 1, .n_ask = 4 },
                                  { .id = "b", .frequency = 9, .prefill_s = 2, .n_ask = 4 },
                                  { .id = "c", .frequency = 9, .prefill_s = 1, .n_ask = 4 },
                                  { .id = "d", .frequency = 10, .prefill_s = 5, .n_ask = 0 } };
    struct drift d = { .at = at, .n = 4 };
    struct err err;

    cr_assert_eq(drift_budget(&d, 3.5, &err), 0);
    cr_assert(at[0].n_ask == 0 && at[1].n_ask == 4 && at[2].n_ask == 4 && at[3].n_ask == 0);
    cr_assert_eq(d.n_over_budget, 1);
}
