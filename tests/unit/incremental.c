/* A plan kept while contexts come, change and go: capacities after every single operation, objective and free bytes,
 * and the bound against a fresh solution. */
#include "base/rng.h"
#include "planner/incremental.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { CONTEXTS = 51, CONFIGS = 5, TIERS = 4 };

struct world {
    int pool[TIERS]; // of each tier the first tier of its pool; fill and capacity are counted there
    int n_tiers, ties;
    int64_t capacity[TIERS], max; // bytes of a candidate are below `max`
    int there[CONTEXTS];
    int64_t bytes[CONTEXTS][CONFIGS], held[CONTEXTS]; // held: bytes on its tier, as the operations say
    double utility[CONTEXTS][CONFIGS * TIERS], recompute[CONTEXTS];
    struct plan_placement at[CONTEXTS]; // as the operations say
    int64_t fill[TIERS];
};

static void draw_context(struct world *w, struct rng *r, int i)
{
    w->recompute[i] = w->ties ? 0 : rng_unit(r) - 1;
    for (int v = 0; v < CONFIGS; v++)
        w->bytes[i][v] = rng_below(r, 10) == 0 ? -1 : (int64_t)rng_below(r, (uint64_t)w->max);
    for (int o = 0; o < CONFIGS * w->n_tiers; o++)
        w->utility[i][o] = rng_below(r, 12) == 0 ? (double)NAN : w->ties ? 0.5 : 2 * rng_unit(r) - 1;
}

static void draw_world(struct world *w, struct rng *r)
{
    *w = (struct world){ .n_tiers = 1 + (int)rng_below(r, TIERS), .ties = rng_below(r, 4) == 0 };
    bool pools = rng_below(r, 2);
    w->max = rng_below(r, 2) ? 100 : 3;
    for (int t = 0; t < w->n_tiers; t++)
        w->capacity[t] = rng_below(r, 8) == 0 ? (rng_below(r, 2) ? 0 : INT64_MAX) : (int64_t)rng_below(r, 300);
    for (int t = 0; t < w->n_tiers; t++) {
        w->pool[t] = t > 0 && pools && rng_below(r, 2) ? w->pool[t - 1] : t;
        w->capacity[t] = w->capacity[w->pool[t]];
    }
    int n = (int)rng_below(r, CONTEXTS);
    for (int i = 0; i < n; i++)
        w->there[i] = 1;
    for (int i = 0; i < CONTEXTS; i++)
        draw_context(w, r, i);
}

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct world *w = arg;
    int i = -1;

    for (int k = 0; k <= context; k++)
        do
            i++;
        while (!w->there[i]);
    memcpy(bytes, w->bytes[i], sizeof(w->bytes[i]));
    memcpy(utility, w->utility[i], (size_t)(CONFIGS * w->n_tiers) * sizeof(*utility));
    return w->recompute[i];
}

static struct plan_problem problem_of(const struct world *w)
{
    int n = 0;

    for (int i = 0; i < CONTEXTS; i++)
        n += w->there[i];
    return (struct plan_problem){ n, CONFIGS, w->n_tiers, w->capacity, candidates, w, w->pool };
}

/* Carries the operations out, one by one. */
static void follow(struct world *w, const struct incremental *m)
{
    const struct incremental_state *s = incremental_state(m);

    for (int k = 0; k < s->n_ops; k++) {
        const struct incremental_op *op = &s->op[k];
        struct plan_placement *at = &w->at[op->context];
        cr_assert(at->tier == op->from.tier && at->config == op->from.config);
        cr_assert_eq(w->held[op->context], op->from_bytes);
        if (op->from.tier >= 0)
            w->fill[w->pool[op->from.tier]] -= op->from_bytes;
        if (op->to.tier >= 0)
            w->fill[w->pool[op->to.tier]] += op->to_bytes;
        for (int t = 0; t < w->n_tiers; t++)
            cr_assert(w->fill[t] <= w->capacity[t], "tier %d holds %lld of %lld", t, (long long)w->fill[t],
                      (long long)w->capacity[t]);
        *at = op->to;
        w->held[op->context] = op->to_bytes;
    }
}

static void check_state(const struct world *w, const struct incremental *m)
{
    const struct incremental_state *s = incremental_state(m);
    double total = 0;

    for (int i = 0; i < CONTEXTS; i++) {
        struct plan_placement c = w->at[i];
        if (!w->there[i])
            continue;
        cr_assert(incremental_placement(m, i).tier == c.tier && incremental_placement(m, i).config == c.config);
        total += c.tier < 0 ? w->recompute[i] : w->utility[i][c.config * w->n_tiers + c.tier];
        cr_assert(c.tier < 0 || w->held[i] == w->bytes[i][c.config]);
    }
    cr_assert_float_eq(total, s->objective, 1e-9);
    for (int t = 0; t < w->n_tiers; t++)
        cr_assert(w->capacity[t] == INT64_MAX || s->free[t] == w->capacity[t] - w->fill[w->pool[t]]);
    cr_assert(s->upper_bound >= s->objective - 1e-9);
}

/* Solves again. Checks that the bound is above that plan; returns the share of its gain that the live plan misses. */
static double check_bound(const struct world *w, const struct incremental *m)
{
    struct plan_problem p = problem_of(w);
    struct plan plan;
    struct err e;

    cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
    cr_assert(incremental_state(m)->upper_bound >= plan.objective - 1e-9, "bound %.9f, there is %.9f",
              incremental_state(m)->upper_bound, plan.objective);
    double gain = plan.objective, missed = plan.objective - incremental_state(m)->objective;
    for (int i = 0; i < CONTEXTS; i++)
        gain -= w->there[i] ? w->recompute[i] : 0;
    plan_release(&plan);
    return gain > 1e-9 ? missed / gain : 0;
}

static void one_event(struct world *w, struct incremental *m, struct rng *r)
{
    int i = (int)rng_below(r, CONTEXTS), got, added = !w->there[i];
    struct plan_candidates o = { w->bytes[i], w->utility[i], 0 };
    struct err e;

    if (added) { /* the number is any that is not in use */
        draw_context(w, r, i);
        o.recompute = w->recompute[i];
        cr_assert(!incremental_add(m, &o, &got, &e));
        cr_assert(got < CONTEXTS && !w->there[got]);
        memcpy(w->bytes[got], w->bytes[i], sizeof(w->bytes[i]));
        memcpy(w->utility[got], w->utility[i], sizeof(w->utility[i]));
        w->recompute[got] = w->recompute[i];
        w->at[got] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        w->held[got] = 0;
        w->there[got] = 1;
    } else if (rng_below(r, 2)) {
        draw_context(w, r, i);
        o.recompute = w->recompute[i];
        cr_assert(!incremental_update(m, i, &o, &e));
    } else {
        w->there[i] = 0;
        cr_assert(!incremental_remove(m, i, &e));
    }
    follow(w, m);
}

/* One random world, and what happens to it. Returns the mean share of the gain that the live plan missed. */
static double live(struct rng *r, enum plan_solver solver, int n_events, int check_every)
{
    struct world w;
    struct plan plan;
    struct err e;
    double missed = 0;

    draw_world(&w, r);
    struct plan_problem p = problem_of(&w);
    cr_assert(!plan_solve(&plan, &p, solver, &(struct plan_effort){ 0 }, &e));
    struct incremental *m = incremental_new(&p, &plan, 0, &e);
    cr_assert(m);
    cr_assert_float_eq(incremental_state(m)->objective, plan.objective, 1e-9);
    for (int i = 0; i < p.n_contexts; i++) {
        w.at[i] = plan.placement[i];
        w.held[i] = plan.placement[i].tier < 0 ? 0 : w.bytes[i][plan.placement[i].config];
        if (plan.placement[i].tier >= 0)
            w.fill[w.pool[plan.placement[i].tier]] += w.held[i];
    }
    plan_release(&plan);
    for (int event = 0; event < n_events; event++) {
        one_event(&w, m, r);
        check_state(&w, m);
        if (event % check_every == 0)
            missed += check_bound(&w, m);
    }
    incremental_free(m);
    return missed * check_every / n_events;
}

Test(incremental, events_keep_capacities_accounts_and_bound)
{
    struct rng r = rng_new(11);

    for (int k = 0; k < 200; k++)
        live(&r, (enum plan_solver)(k % 3), 100, 10);
}

/* The live plan stays near a fresh one, after any number of events. */
Test(incremental, long_lives_stay_good)
{
    struct rng r = rng_new(12);
    double missed = 0;

    for (int k = 0; k < 8; k++)
        missed += live(&r, PLAN_OPTIMAL, 20000, 200) / 8;
    cr_assert(missed < 0.02, "%.4f of the gain is missing", missed);
}

/* Two contexts on a tier of 10; when one goes, the other takes its larger variant. */
Test(incremental, freed_bytes_are_used)
{
    struct world w = { .n_tiers = 1, .capacity = { 10 }, .there = { 1, 1 } };
    struct plan_problem p = problem_of(&w);
    struct plan plan;
    struct err e;

    for (int i = 0; i < 2; i++) {
        for (int v = 0; v < CONFIGS; v++)
            w.bytes[i][v] = v == 0 ? 8 : v == 1 ? 2 : -1;
        w.utility[i][0] = 4 + i;
        w.utility[i][1] = 2;
    }
    cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
    cr_assert_float_eq(plan.objective, 7, 1e-12);
    struct incremental *m = incremental_new(&p, &plan, 0, &e);
    cr_assert(m && !incremental_remove(m, 1, &e));
    cr_assert_eq(incremental_state(m)->n_ops, 2);
    cr_assert_eq(incremental_state(m)->op[0].context, 1);
    cr_assert_eq(incremental_placement(m, 0).config, 0);
    cr_assert_float_eq(incremental_state(m)->objective, 4, 1e-12);
    incremental_free(m);
    plan_release(&plan);
}

/* ---- never worse than refusing -------------------------------------------------- */

/* A plan of n contexts, whichever of them is there; the next one is admitted. */
struct admission {
    struct world w;
    double move_cost;
    struct incremental *m;
};

static void open_admission(struct admission *a, struct rng *r, int n)
{
    struct plan plan;
    struct err e;

    draw_world(&a->w, r);
    for (int i = 0; i < CONTEXTS; i++)
        a->w.there[i] = i < n;
    a->move_cost = rng_below(r, 2) ? 0 : 0.01 * rng_unit(r);
    struct plan_problem p = problem_of(&a->w);
    cr_assert(!plan_solve(&plan, &p, (enum plan_solver)rng_below(r, 3), &(struct plan_effort){ 0 }, &e));
    cr_assert_not_null(a->m = incremental_new(&p, &plan, a->move_cost, &e));
    for (int i = 0; i < n; i++) {
        a->w.at[i] = plan.placement[i];
        a->w.held[i] = plan.placement[i].tier < 0 ? 0 : a->w.bytes[i][plan.placement[i].config];
        if (plan.placement[i].tier >= 0)
            a->w.fill[a->w.pool[plan.placement[i].tier]] += a->w.held[i];
    }
    plan_release(&plan);
}

/* What refusing context i is worth: the best of recomputing it and of the places that take nothing from others. */
static double refused(const struct admission *a, int i)
{
    const struct world *w = &a->w;
    double best = w->recompute[i];

    for (int v = 0; v < CONFIGS; v++)
        for (int t = 0; t < w->n_tiers; t++) {
            double u = w->utility[i][v * w->n_tiers + t] - a->move_cost * (double)w->bytes[i][v];
            bool nothing_taken = w->bytes[i][v] == 0 || w->capacity[t] == INT64_MAX;
            if (w->bytes[i][v] >= 0 && w->bytes[i][v] <= w->capacity[t] && !isnan(u) && nothing_taken)
                best = fmax(best, u);
        }
    return best;
}

/* What the operations of the last event write. A context that comes twice is dropped and stored again. */
static double written(const struct incremental *m)
{
    const struct incremental_state *s = incremental_state(m);
    double bytes = 0;

    for (int k = 0; k < s->n_ops; k++)
        bytes += s->op[k].to.tier < 0 ? 0 : (double)s->op[k].to_bytes;
    return bytes;
}

static bool comes_twice(const struct incremental *m)
{
    const struct incremental_state *s = incremental_state(m);

    for (int k = 0; k < s->n_ops; k++)
        for (int j = 0; j < k; j++)
            if (s->op[j].context == s->op[k].context)
                return true;
    return false;
}

/* Context i comes, or changes when it is there: accepting it is never worth less than refusing it. */
static void admit_or_update(struct admission *a, struct rng *r, int i)
{
    struct world *w = &a->w;
    struct plan_candidates o = { w->bytes[i], w->utility[i], 0 };
    struct err e;
    int got = i;
    double before = incremental_state(a->m)->objective;

    bool there = w->there[i];
    if (there)
        before -= w->at[i].tier < 0 ? w->recompute[i] : w->utility[i][w->at[i].config * w->n_tiers + w->at[i].tier];
    else
        w->at[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    draw_context(w, r, i);
    o.recompute = w->recompute[i];
    cr_assert(!(there ? incremental_update(a->m, i, &o, &e) : incremental_add(a->m, &o, &got, &e)));
    cr_assert_eq(got, i);
    w->there[i] = 1;
    double now = incremental_state(a->m)->objective - a->move_cost * written(a->m);
    bool exact =
        a->move_cost <= 0 || !comes_twice(a->m); /* what is dropped on the way is written twice, but paid once */
    cr_assert(!exact || now >= before + refused(a, i) - 1e-9, "%.9f where refusing gives %.9f", now,
              before + refused(a, i));
    follow(w, a->m);
    check_state(w, a->m);
}

Test(incremental, admitting_is_never_worse_than_refusing)
{
    struct rng r = rng_new(14);

    for (int k = 0; k < 10000; k++) {
        struct admission a;
        int n = 1 + k % (CONTEXTS - 1);
        open_admission(&a, &r, n);
        admit_or_update(&a, &r, n);
        admit_or_update(&a, &r, (int)rng_below(&r, (uint64_t)n + 1));
        incremental_free(a.m);
    }
}
