/* Forests: plans and bounds against every plan of small ones, valued as forest.h says. */
#include "base/rng.h"
#include "planner/forest_internal.h"

#include <criterion/criterion.h>
#include <math.h>

enum { MAX_NODES = 7, MAX_V = 3, MAX_T = 3, FORESTS = 400 };

struct world {
    int n, n_contexts, n_configs, n_tiers;
    int parent[MAX_NODES], end[MAX_NODES], context[MAX_NODES], node_of[MAX_NODES];
    double frequency[MAX_NODES], part[MAX_NODES * MAX_T];
    int64_t capacity[MAX_T], bytes[MAX_NODES][MAX_V];
    double utility[MAX_NODES][MAX_V * MAX_T], gain[MAX_NODES][MAX_V * MAX_T], recompute[MAX_NODES];
    struct forest f;
};

static double candidates(const void *arg, int c, int64_t *bytes, double *utility)
{
    const struct world *w = arg;

    for (int v = 0; v < w->n_configs; v++)
        bytes[v] = w->bytes[c][v];
    for (int o = 0; o < w->n_configs * w->n_tiers; o++)
        utility[o] = w->utility[c][o];
    return w->recompute[c];
}

static double gain_of(const void *arg, int node, struct plan_placement at)
{
    const struct world *w = arg;

    return w->gain[w->context[node]][at.config * w->n_tiers + at.tier];
}

/* Parents of random nodes, depth first: a node's parent is the one before it or one above that. */
static void draw_shape(struct world *w, struct rng *r)
{
    w->n = 1 + (int)rng_below(r, MAX_NODES);
    for (int v = 0; v < w->n; v++) {
        int up = v - 1;
        while (up >= 0 && rng_below(r, 3) == 0)
            up = w->parent[up];
        w->parent[v] = up;
    }
    for (int v = w->n - 1; v >= 0; v--) {
        w->end[v] = v + 1;
        for (int c = v + 1; c < w->n && w->parent[c] >= v; c++)
            w->end[v] = c + 1;
    }
    w->n_contexts = 0;
    for (int v = 0; v < w->n; v++) {
        bool parts = w->end[v] > v + 1 && rng_below(r, 4) == 0;
        w->context[v] = parts ? FOREST_NONE : w->n_contexts;
        w->frequency[v] = parts ? 0 : rng_below(r, 5) == 0 ? 0 : 10 * rng_unit(r);
        if (!parts)
            w->node_of[w->n_contexts++] = v;
    }
}

static void draw_values(struct world *w, struct rng *r)
{
    w->n_configs = 1 + (int)rng_below(r, MAX_V);
    w->n_tiers = 1 + (int)rng_below(r, MAX_T);
    for (int t = 0; t < w->n_tiers; t++)
        w->capacity[t] = rng_below(r, 8) == 0 ? INT64_MAX : (int64_t)rng_below(r, 200);
    for (int c = 0; c < w->n_contexts; c++) {
        double f = w->frequency[w->node_of[c]];
        w->recompute[c] = -f;
        for (int v = 0; v < w->n_configs; v++)
            w->bytes[c][v] = rng_below(r, 10) == 0 ? -1 : (int64_t)rng_below(r, 100);
        for (int o = 0; o < w->n_configs * w->n_tiers; o++) {
            w->gain[c][o] = 1.2 * rng_unit(r) - 0.2;
            w->utility[c][o] =
                rng_below(r, 12) == 0 ? (double)NAN : w->recompute[c] + f * w->gain[c][o] * (1 + rng_unit(r));
        }
    }
    for (int v = 0; v < w->n; v++)
        for (int t = 0; t < w->n_tiers; t++)
            w->part[v * w->n_tiers + t] = w->end[v] == v + 1 && w->parent[v] < 0 ? (double)NAN : rng_unit(r);
    w->f = (struct forest){
        w->n_tiers, w->n, w->parent, w->end, w->context, w->frequency, rng_below(r, 2) ? w->part : NULL, gain_of, w
    };
}

/* The value of a plan, node by node, straight from the rule. */
static double value_of(const struct world *w, const struct plan_placement *at)
{
    double sum = 0;

    for (int v = 0; v < w->n; v++) {
        int c = w->context[v];
        if (c < 0)
            continue;
        if (at[c].tier != PLAN_RECOMPUTE) {
            sum += w->utility[c][at[c].config * w->n_tiers + at[c].tier];
            continue;
        }
        double gain = 0;
        for (int up = v; up >= 0; up = w->parent[up]) {
            int fastest = w->n_tiers, a = w->context[up];
            if (a >= 0 && at[a].tier != PLAN_RECOMPUTE) {
                gain = w->gain[a][at[a].config * w->n_tiers + at[a].tier];
                break;
            }
            for (int d = up; w->f.part && d < w->end[up]; d++) {
                int b = w->context[d];
                if (b >= 0 && at[b].config == 0 && at[b].tier != PLAN_RECOMPUTE && at[b].tier < fastest)
                    fastest = at[b].tier;
            }
            if (fastest < w->n_tiers && !isnan(w->part[up * w->n_tiers + fastest])) {
                gain = w->part[up * w->n_tiers + fastest];
                break;
            }
        }
        sum += w->recompute[c] + w->frequency[v] * gain;
    }
    return sum;
}

static bool fits(const struct world *w, const struct plan_placement *at)
{
    int64_t used[MAX_T] = { 0 };

    for (int c = 0; c < w->n_contexts; c++)
        if (at[c].tier != PLAN_RECOMPUTE)
            used[at[c].tier] += w->bytes[c][at[c].config];
    for (int t = 0; t < w->n_tiers; t++)
        if (used[t] > w->capacity[t])
            return false;
    return true;
}

/* The best plan that fits, and the best of all, less the price of its bytes. */
struct best {
    double price[MAX_T], fitting, reduced;
};

/* Tries the placements of contexts c and later. */
static void try_all(const struct world *w, struct plan_placement *at, int c, struct best *best)
{
    if (c == w->n_contexts) {
        double value = value_of(w, at), paid = value;
        for (int i = 0; i < c; i++)
            if (at[i].tier != PLAN_RECOMPUTE && w->capacity[at[i].tier] < INT64_MAX)
                paid -= best->price[at[i].tier] * (double)w->bytes[i][at[i].config];
        best->reduced = fmax(best->reduced, paid);
        if (value > best->fitting && fits(w, at))
            best->fitting = value;
        return;
    }
    at[c] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    try_all(w, at, c + 1, best);
    for (int v = 0; v < w->n_configs; v++)
        for (int t = 0; t < w->n_tiers; t++) {
            if (w->bytes[c][v] < 0 || w->bytes[c][v] > w->capacity[t] || isnan(w->utility[c][v * w->n_tiers + t]))
                continue;
            at[c] = (struct plan_placement){ v, t };
            try_all(w, at, c + 1, best);
        }
}

static struct plan_problem problem_of(const struct world *w)
{
    return (struct plan_problem){ w->n_contexts, w->n_configs, w->n_tiers, w->capacity, candidates, w, NULL };
}

static struct world draw_world(struct rng *r)
{
    struct world w = { .n = 0 };

    do {
        draw_shape(&w, r);
        draw_values(&w, r);
    } while (w.n_contexts == 0 || pow(w.n_configs * w.n_tiers + 1, w.n_contexts) > 2e5);
    return w;
}

/* The pointers of a copied world. */
static void own(struct world *w)
{
    w->f.parent = w->parent;
    w->f.end = w->end;
    w->f.context = w->context;
    w->f.frequency = w->frequency;
    w->f.part = w->f.part ? w->part : NULL;
    w->f.arg = w;
}

static bool is_less(double a, double b)
{
    return a < b - 1e-9 * (1 + fabs(b));
}

Test(forest, plans_and_bounds_against_every_plan)
{
    struct rng r = rng_new(31);
    struct err err;
    double lost = 0;
    int best_found = 0;

    for (int i = 0; i < FORESTS; i++) {
        struct world w = draw_world(&r);
        own(&w);
        struct plan_problem p = problem_of(&w);
        struct plan_placement at[MAX_NODES];
        struct best best = { { 0 }, -HUGE_VAL, -HUGE_VAL };
        struct plan plan;
        double nothing = 0;
        try_all(&w, at, 0, &best);
        cr_assert_eq(forest_solve(&plan, &p, &w.f, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        cr_assert(fits(&w, plan.placement), "forest %d", i);
        double value = value_of(&w, plan.placement);
        cr_assert(fabs(value - plan.objective) < 1e-9 * (1 + fabs(value)), "forest %d: %g is %g", i, plan.objective,
                  value);
        cr_assert(!is_less(plan.upper_bound, best.fitting), "forest %d: bound %g, best %g", i, plan.upper_bound,
                  best.fitting);
        cr_assert(!is_less(best.fitting, value), "forest %d", i);
        for (int c = 0; c < w.n_contexts; c++)
            nothing += w.recompute[c];
        lost += best.fitting > nothing ? (best.fitting - value) / (best.fitting - nothing) : 0;
        best_found += !is_less(value, best.fitting);
        plan_release(&plan);
    }
    cr_assert(lost < 0.001 * FORESTS && best_found >= FORESTS - 4, "lost %g, best %d", lost / FORESTS, best_found);
}

/* Exact without chunks. With chunks the best that F allows may be served worse by the fastest tier. */
Test(forest, the_best_at_any_prices)
{
    struct rng r = rng_new(32);
    struct err err;
    int loose = 0;

    for (int i = 0; i < FORESTS; i++) {
        struct world w = draw_world(&r);
        own(&w);
        struct plan_problem p = problem_of(&w);
        struct plan_placement at[MAX_NODES];
        struct trees t;
        struct best best = { { 0 }, -HUGE_VAL, -HUGE_VAL };
        double value, price[MAX_T] = { 0 }, demand[MAX_T];
        for (int d = 0; d < w.n_tiers; d++)
            best.price[d] = rng_below(&r, 4) ? 0.2 * rng_unit(&r) : 0;
        try_all(&w, at, 0, &best);
        cr_assert_eq(trees_init(&t, &w.f, &p, &err), 0);
        for (int d = 0; d < t.knapsack.n; d++)
            price[d] = best.price[t.knapsack.tier[d]];
        cr_assert_eq(trees_evaluate(&t, price, &value, &err), 0);
        cr_assert(!is_less(value, best.reduced), "forest %d: %.9g, but a plan has %.9g", i, value, best.reduced);
        bool exact = !is_less(best.reduced, value);
        cr_assert(exact || w.f.part, "forest %d: %.9g, but no plan has more than %.9g", i, value, best.reduced);
        loose += !exact;
        cr_assert_eq(trees_placements(&t, at, demand, &err), 0);
        double got = value_of(&w, at);
        for (int d = 0; d < t.knapsack.n; d++)
            got -= price[d] * demand[d];
        cr_assert(!exact || fabs(got - value) < 1e-9 * (1 + fabs(value)), "forest %d: %.9g is %.9g", i, value, got);
        trees_release(&t);
    }
    cr_assert(loose < 0.05 * FORESTS, "%d", loose);
}
