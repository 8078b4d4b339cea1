/* Plans: capacities on random instances, against brute force on tiny ones, and the papers' own counterexample. */
#include "base/rng.h"
#include "planner/plan.h"
#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <string.h>

enum { MAX_C = 12, MAX_V = 6, MAX_T = 4 };

struct instance {
    int n_configs, n_tiers;
    int pool[MAX_T];
    int64_t bytes[MAX_C][MAX_V], capacity[MAX_T];
    double utility[MAX_C][MAX_V * MAX_T], recompute[MAX_C];
};

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct instance *in = arg;

    for (int v = 0; v < in->n_configs; v++)
        bytes[v] = in->bytes[context][v];
    for (int o = 0; o < in->n_configs * in->n_tiers; o++)
        utility[o] = in->utility[context][o];
    return in->recompute[context];
}

static struct plan_problem random_instance(struct instance *in, struct rng *r, int max)
{
    int c = 1 + (int)rng_below(r, (uint64_t)max);
    int ties = rng_below(r, 4) == 0;

    in->n_configs = 1 + (int)rng_below(r, MAX_V);
    in->n_tiers = 1 + (int)rng_below(r, MAX_T);
    for (int t = 0; t < in->n_tiers; t++)
        in->capacity[t] = rng_below(r, 8) == 0 ? (rng_below(r, 2) ? 0 : INT64_MAX) : (int64_t)rng_below(r, 300);
    bool pools = rng_below(r, 2);
    for (int t = 0; t < in->n_tiers; t++) {
        in->pool[t] = t > 0 && pools && rng_below(r, 2) ? in->pool[rng_below(r, (uint64_t)t)] : t;
        in->capacity[t] = in->capacity[in->pool[t]];
    }
    for (int i = 0; i < c; i++) {
        in->recompute[i] = rng_unit(r) - 1;
        for (int v = 0; v < in->n_configs; v++)
            in->bytes[i][v] = rng_below(r, 10) == 0 ? -1 : (int64_t)rng_below(r, 100);
        for (int o = 0; o < in->n_configs * in->n_tiers; o++)
            in->utility[i][o] = rng_below(r, 12) == 0 ? (double)NAN : ties ? 0.5 : 2 * rng_unit(r) - 1;
    }
    return (struct plan_problem){ c, in->n_configs, in->n_tiers, in->capacity, candidates, in, in->pool };
}

static void check_plan(const struct plan *plan, const struct plan_problem *p, const struct instance *in)
{
    int64_t fill[MAX_T] = { 0 }, used[MAX_T] = { 0 }; /* used: of the pool that begins there */
    double total = 0;

    for (int i = 0; i < p->n_contexts; i++) {
        struct plan_placement c = plan->placement[i];
        if (c.tier == PLAN_RECOMPUTE) {
            total += in->recompute[i];
            continue;
        }
        cr_assert(in->bytes[i][c.config] >= 0);
        cr_assert(!isnan(in->utility[i][c.config * p->n_tiers + c.tier]));
        fill[c.tier] += in->bytes[i][c.config];
        total += in->utility[i][c.config * p->n_tiers + c.tier];
    }
    for (int t = 0; t < p->n_tiers; t++) {
        used[in->pool[t]] += fill[t];
        cr_assert_eq(fill[t], plan->fill[t]);
        cr_assert(plan->price[t] <= plan->price[in->pool[t]] && plan->price[t] >= plan->price[in->pool[t]]);
        cr_assert(used[in->pool[t]] <= in->capacity[t], "pool %d holds %lld of %lld", in->pool[t],
                  (long long)used[in->pool[t]], (long long)in->capacity[t]);
    }
    cr_assert(fabs(total - plan->objective) < 1e-9);
}

Test(planner, no_plan_exceeds_a_capacity)
{
    struct rng r = rng_new(4);
    struct err e;

    for (int k = 0; k < 10000; k++) {
        struct instance in;
        struct plan_problem p = random_instance(&in, &r, MAX_C);
        int order[MAX_C];
        for (int i = 0; i < p.n_contexts; i++)
            order[i] = i;
        double before = -(double)INFINITY; /* the last solver, optimal, is never below the others */
        for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++) {
            struct plan plan;
            cr_assert(!plan_solve(&plan, &p, (enum plan_solver)s, &(struct plan_effort){ 0 }, &e));
            check_plan(&plan, &p, &in);
            cr_assert(s != PLAN_OPTIMAL || plan.objective >= before - 1e-12);
            before = plan.objective > before ? plan.objective : before;
            cr_assert(plan.upper_bound >= plan.objective - 1e-9);
            plan_release(&plan);
        }
        struct plan baseline[BASELINE_COUNT];
        int config;
        cr_assert(!plan_baselines(baseline, &p, order, &config, &e));
        for (int b = 0; b < BASELINE_COUNT; b++) {
            check_plan(&baseline[b], &p, &in);
            plan_release(&baseline[b]);
        }
    }
}

/* ---- Algorithm 1, one context after the other: a model that looks at everything each time ---- */

static double worth(const struct instance *in, const struct plan_problem *p, int i, struct plan_placement at)
{
    return at.tier < 0 ? in->recompute[i] : in->utility[i][at.config * p->n_tiers + at.tier];
}

/* The best candidate of a context on tiers from `first`. */
static struct plan_placement best_of(const struct instance *in, const struct plan_problem *p, int i, int first)
{
    struct plan_placement best = { 0, PLAN_RECOMPUTE };

    for (int v = 0; v < p->n_configs; v++)
        for (int t = first; t < p->n_tiers; t++)
            if (in->bytes[i][v] >= 0 && in->bytes[i][v] <= in->capacity[t] &&
                in->utility[i][v * p->n_tiers + t] > worth(in, p, i, best))
                best = (struct plan_placement){ v, t };
    return best;
}

static double filled(const struct instance *in, const struct plan_problem *p, const struct plan_placement *at, int t)
{
    double sum = 0;

    for (int i = 0; i < p->n_contexts; i++)
        sum += at[i].tier == t ? (double)in->bytes[i][at[i].config] : 0;
    return sum;
}

/* The cheapest step off a tier or to a smaller variant on it. */
static void make_space(const struct instance *in, const struct plan_problem *p, struct plan_placement *at, int t,
                       enum plan_solver solver)
{
    struct plan_placement to = { 0, 0 };
    double least = HUGE_VAL;
    int who = -1;

    for (int i = 0; i < p->n_contexts; i++) {
        int64_t bytes = at[i].tier == t ? in->bytes[i][at[i].config] : 0;
        struct plan_placement down = best_of(in, p, i, t + 1);
        for (int v = -1; v < p->n_configs && bytes > 0; v++) {
            struct plan_placement c = v < 0 ? down : (struct plan_placement){ v, t };
            int64_t freed = bytes - (v < 0 ? 0 : in->bytes[i][v]);
            if (v >= 0 && (in->bytes[i][v] < 0 || freed <= 0 || isnan(worth(in, p, i, c))))
                continue;
            double cost =
                (worth(in, p, i, at[i]) - worth(in, p, i, c)) / (solver == PLAN_EVICPRESS ? 1 : (double)freed);
            if (!(cost < least))
                continue;
            least = cost;
            to = c;
            who = i;
        }
    }
    cr_assert(who >= 0);
    at[who] = to;
}

Test(planner, greedy_contexts_come_one_after_the_other)
{
    struct rng r = rng_new(9);
    struct err e;
    int moved = 0;

    for (int k = 0; k < 3000; k++) {
        struct instance in;
        struct plan_problem p = random_instance(&in, &r, MAX_C);
        enum plan_solver solver = k % 2 ? PLAN_EVICPRESS : PLAN_ADAPTCACHE;
        p.pool = NULL;
        struct plan_greedy *g = plan_greedy_open(&p, solver, &e);
        const struct plan_greedy_moves *moves;
        struct plan_placement at[MAX_C], was[MAX_C];

        cr_assert_not_null(g);
        for (int i = 0; i < p.n_contexts; i++)
            at[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        for (int use = 0; use < 3 * p.n_contexts; use++) {
            int i = (int)rng_below(&r, (uint64_t)p.n_contexts);
            memcpy(was, at, sizeof(at));
            in.recompute[i] *= 1.5;
            for (int o = 0; o < p.n_configs * p.n_tiers; o++)
                in.utility[i][o] *= 1.5;
            if (at[i].tier == PLAN_RECOMPUTE) {
                at[i] = best_of(&in, &p, i, 0);
                for (int t = 0; t < p.n_tiers; t++)
                    while (in.capacity[t] < INT64_MAX && filled(&in, &p, at, t) > (double)in.capacity[t])
                        make_space(&in, &p, at, t, solver);
            }
            cr_assert(!plan_greedy_used(g, i, &moves, &e));
            for (int c = 0; c < p.n_contexts; c++)
                cr_assert(plan_greedy_at(g, c).tier == at[c].tier && plan_greedy_at(g, c).config == at[c].config);
            for (int m = 0; m < moves->n; m++) {
                const struct plan_placement from = was[moves->at[m].context];
                cr_assert(moves->at[m].from.tier == from.tier && moves->at[m].from.config == from.config);
            }
            moved += moves->n;
        }
        plan_greedy_close(g);
    }
    cr_assert(moved > 10000);
}

/* Enough contexts for several threads, and sums that are exact. */
enum { MANY = 20001, MANY_CONFIGS = 3, MANY_TIERS = 2 };
static const int64_t many_capacity[MANY_TIERS] = { 30000, 20000 };

static double many_candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    (void)arg;
    for (int v = 0; v < MANY_CONFIGS; v++)
        bytes[v] = 1 + (context * 7 + v * 3) % 11;
    for (int o = 0; o < MANY_CONFIGS * MANY_TIERS; o++)
        utility[o] = (context * 13 + o * 5) % 17 / 8.;
    return 0.5;
}

/* Stores under one config whatever finds space, in order; compares with a plan when it is given. Returns the utility.
 */
static double store_in_order(const int *order, int v, const struct plan *plan)
{
    int64_t bytes[MANY_CONFIGS], left[MANY_TIERS];
    double utility[MANY_CONFIGS * MANY_TIERS], total = 0;

    memcpy(left, many_capacity, sizeof(left));
    for (int k = 0; k < MANY; k++) {
        double now = many_candidates(NULL, order[k], bytes, utility);
        int tier = PLAN_RECOMPUTE;
        for (int t = MANY_TIERS - 1; t >= 0; t--)
            if (bytes[v] <= left[t] && utility[v * MANY_TIERS + t] >= 0.5)
                tier = t;
        if (tier != PLAN_RECOMPUTE) {
            left[tier] -= bytes[v];
            now = utility[v * MANY_TIERS + tier];
        }
        total += now;
        cr_assert(!plan || plan->placement[order[k]].tier == tier, "context %d is elsewhere", order[k]);
    }
    return total;
}

Test(planner, baselines_of_many_contexts_take_space_in_order)
{
    struct plan_problem p = { MANY, MANY_CONFIGS, MANY_TIERS, many_capacity, many_candidates, NULL, NULL };
    struct plan plan[BASELINE_COUNT];
    int order[MANY], config;
    struct err e;

    for (int k = 0; k < MANY; k++)
        order[k] = (int)((int64_t)k * 7919 % MANY);
    cr_assert(!plan_baselines(plan, &p, order, &config, &e));
    cr_assert_eq(plan[BASELINE_RECOMPUTE].objective, MANY / 2.);
    cr_assert_eq(plan[BASELINE_PLAIN].objective, store_in_order(order, 0, &plan[BASELINE_PLAIN]));
    cr_assert_eq(plan[BASELINE_SINGLE].objective, store_in_order(order, config, &plan[BASELINE_SINGLE]));
    for (int v = 0; v < MANY_CONFIGS; v++)
        cr_assert(store_in_order(order, v, NULL) <= plan[BASELINE_SINGLE].objective);
    for (int b = 0; b < BASELINE_COUNT; b++)
        plan_release(&plan[b]);
}

/* The best of all plans, by trying them. */
static double brute_force(const struct plan_problem *p, const struct instance *in, int i, int64_t *left)
{
    if (i == p->n_contexts)
        return 0;
    double best = in->recompute[i] + brute_force(p, in, i + 1, left);
    for (int v = 0; v < p->n_configs; v++) {
        for (int t = 0; t < p->n_tiers; t++) {
            double u = in->utility[i][v * p->n_tiers + t];
            int64_t *free_bytes = &left[in->pool[t]];
            if (in->bytes[i][v] < 0 || in->bytes[i][v] > *free_bytes || isnan(u))
                continue;
            *free_bytes -= in->bytes[i][v];
            double value = u + brute_force(p, in, i + 1, left);
            *free_bytes += in->bytes[i][v];
            best = value > best ? value : best;
        }
    }
    return best;
}

Test(planner, the_bound_is_above_the_optimum_and_the_plan_below)
{
    struct rng r = rng_new(7);
    struct err e;

    for (int k = 0; k < 2000; k++) {
        struct instance in;
        struct plan plan;
        struct plan_problem p = random_instance(&in, &r, 4);
        int64_t left[MAX_T];
        for (int t = 0; t < p.n_tiers; t++)
            left[t] = in.capacity[t];
        double best = brute_force(&p, &in, 0, left);
        for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++) {
            cr_assert(!plan_solve(&plan, &p, (enum plan_solver)s, &(struct plan_effort){ 0 }, &e));
            cr_assert(plan.objective <= best + 1e-9);
            cr_assert(plan.upper_bound >= best - 1e-9, "bound %.9f, optimum %.9f", plan.upper_bound, best);
            cr_assert(s != PLAN_OPTIMAL || (plan.optimal && plan.objective >= best - 1e-9),
                      "problem %d: %.9f, optimum %.9f", k, plan.objective, best);
            plan_release(&plan);
        }
    }
}

/* A tier to be filled with more items than single moves and pairs of moves can get right. */
enum { ITEMS = 30, ITEM_BYTES = 2000, ITEMS_CAPACITY = ITEMS * ITEM_BYTES / 4 };

static double item_candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    bytes[0] = ((const int64_t *)arg)[context];
    utility[0] = (double)bytes[0] + 10;
    return 0;
}

/* The classic table: the most utility in so many bytes. */
static double best_filling(const int64_t *bytes)
{
    static double best[ITEMS_CAPACITY + 1];

    for (int left = 0; left <= ITEMS_CAPACITY; left++)
        best[left] = 0;
    for (int i = 0; i < ITEMS; i++)
        for (int64_t left = ITEMS_CAPACITY; left >= bytes[i]; left--)
            best[left] = fmax(best[left], best[left - bytes[i]] + (double)bytes[i] + 10);
    return best[ITEMS_CAPACITY];
}

Test(planner, a_tier_is_filled_to_the_last_byte)
{
    struct rng r = rng_new(21);
    struct err e;
    int n_best = 0;

    for (int k = 0; k < 40; k++) {
        int64_t bytes[ITEMS], capacity = ITEMS_CAPACITY;
        struct plan plan;
        for (int i = 0; i < ITEMS; i++)
            bytes[i] = 1 + (int64_t)rng_below(&r, ITEM_BYTES);
        struct plan_problem p = { ITEMS, 1, 1, &capacity, item_candidates, bytes, NULL };
        cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
        n_best += plan.objective > best_filling(bytes) - 1e-9;
        plan_release(&plan);
    }
    cr_assert(n_best >= 36, "%d of 40 are best", n_best); /* none by single moves and pairs alone */
}

/* One context of size 10 that loses 1.0 against ten of size 1 that lose 0.99 each, on a tier of 10: the least loss
 * evicts the small ones one by one, the least loss per byte the large one. */
Test(planner, the_two_greedies_differ_as_their_papers_say)
{
    struct instance in = { .n_configs = 1, .n_tiers = 1, .capacity = { 10 } };
    struct plan_problem p = { 11, 1, 1, in.capacity, candidates, &in, NULL };
    struct plan plan;
    struct err e;

    for (int i = 0; i < 11; i++) {
        in.bytes[i][0] = i == 0 ? 10 : 1;
        in.utility[i][0] = i == 0 ? 1.0 : 0.99;
    }
    cr_assert(!plan_solve(&plan, &p, PLAN_EVICPRESS, &(struct plan_effort){ 0 }, &e));
    cr_assert_float_eq(plan.objective, 1.0, 1e-12);
    plan_release(&plan);
    cr_assert(!plan_solve(&plan, &p, PLAN_ADAPTCACHE, &(struct plan_effort){ 0 }, &e));
    cr_assert_float_eq(plan.objective, 9.9, 1e-12);
    cr_assert_float_eq(plan.upper_bound, 9.9, 0.011); /* the large one fills what is left over */
    plan_release(&plan);
}

Test(planner, ttft_and_utility_are_the_documented_sums)
{
    cr_assert_float_eq(ttft_stored(0.51, 0.1, 0.2), 0.81, 1e-12);
    cr_assert_float_eq(ttft_stored(0.01, (double)NAN, 0.2), 0.21, 1e-12);
    cr_assert_float_eq(ttft_recomputed(3, 0.2), 3.2, 1e-12);
    cr_assert_float_eq(utility(&(struct plan_goal){ .alpha = 2 }, 0.9, 0.81, 0.1, 3), 2.97, 1e-12);
    cr_assert_float_eq(utility(&(struct plan_goal){ 2, 0.5, 10 }, 0.9, 0.81, 0, 3), 2.97 - 3 * 10 * 0.31, 1e-12);
    cr_assert_float_eq(utility(&(struct plan_goal){ 2, 0.81, 10 }, 0.9, 0.81, 0.1, 3), 2.97 - 3 * 0.3989422804014327,
                       1e-12);
    cr_assert_float_eq(utility_recomputed(&(struct plan_goal){ 2, 1, 10 }, 3.2, 0, 3), 3 * (2 - 3.2 - 22), 1e-12);
}

/* By its definition: the integral over the density, summed in small steps. */
Test(planner, lateness_is_the_expected_time_beyond_the_promise)
{
    for (double slo = 0; slo < 3; slo += 0.25) {
        const double mean = 1.2, sd = 0.3, step = 1e-4;
        double sum = 0;
        for (double x = slo + step / 2; x < mean + 12 * sd; x += step)
            sum += (x - slo) * exp(-0.5 * (x - mean) * (x - mean) / (sd * sd)) / (sd * sqrt(2 * M_PI)) * step;
        cr_assert_float_eq(lateness(mean, sd, slo), sum, 1e-8, "%g", slo);
        cr_assert_float_eq(lateness(mean, 0, slo), fmax(0, mean - slo), 1e-15);
    }
    double last = 0;
    for (double mean = 0; mean < 4; mean += 0.01) { /* never negative, never falling, and no step where far begins */
        double late = lateness(mean, 0.1, 2);
        cr_assert(late >= last && late >= mean - 2 && late <= fmax(0, mean - 2) + 0.04, "%g: %g", mean, late);
        last = late;
    }
}

/* ---- where prototypes failed --------------------------------------------------- */

/* Contexts made by a formula: the smaller the variant and the slower the tier, the less it is worth. */
struct crowd {
    int n_tiers;
    int64_t capacity[MAX_T], bytes; // bytes of the largest variant
    int ties;                       // all variants of all contexts have the same utility
};

enum { CROWD_CONFIGS = 8 };

static double crowd_candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct crowd *c = arg;
    struct rng r = rng_new((uint64_t)context);
    double best = .5 + rng_unit(&r);
    int64_t full = c->ties ? c->bytes : c->bytes / 2 + (int64_t)rng_below(&r, (uint64_t)c->bytes / 2 + 1);

    for (int v = 0; v < CROWD_CONFIGS; v++) {
        double keep = 1 - v / (double)CROWD_CONFIGS;
        bytes[v] = (int64_t)((double)full * keep);
        for (int t = 0; t < c->n_tiers; t++)
            utility[v * c->n_tiers + t] = c->ties ? 1 : best * sqrt(keep) * (1 - .1 * t) + 1e-3 * rng_unit(&r);
    }
    return 0;
}

/* Returns the gap of optimal for n contexts. Checks that no solver exceeds a capacity, and that optimal is never below
 * the greedies. */
static double crowd_gap(const struct crowd *c, int n)
{
    struct plan_problem p = { n, CROWD_CONFIGS, c->n_tiers, c->capacity, crowd_candidates, c, NULL };
    double best = -(double)INFINITY, gap = (double)INFINITY;
    struct err e;

    for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++) {
        struct plan plan, again;
        cr_assert(!plan_solve(&plan, &p, (enum plan_solver)s, &(struct plan_effort){ 0 }, &e));
        again = plan;
        cr_assert(!plan_total(&again, &p, &e));
        cr_assert_float_eq(again.objective, plan.objective, 1e-9 * n);
        for (int t = 0; t < p.n_tiers; t++) {
            cr_assert_eq(again.fill[t], plan.fill[t]);
            cr_assert(plan.fill[t] <= c->capacity[t]);
        }
        cr_assert(plan.upper_bound >= plan.objective);
        cr_assert(s != PLAN_OPTIMAL || plan.objective >= best - 1e-12 * n);
        best = fmax(best, plan.objective);
        gap = plan_gap(&plan);
        plan_release(&plan);
    }
    return gap;
}

Test(planner, a_tier_of_a_few_contexts_beside_large_ones)
{
    struct crowd c = { 3, { 2500, 60000, 200000 }, 1000, 0 };

    cr_assert(crowd_gap(&c, 2000) < 1e-3);
}

Test(planner, mass_ties)
{
    struct crowd c = { 3, { 100000, 200000, 300000 }, 1000, 1 };

    cr_assert(crowd_gap(&c, 5000) < 1e-3);
}

Test(planner, tiers_of_nothing_and_of_more_than_enough)
{
    struct crowd none = { 3, { 0, 0, 0 }, 1000, 0 }, first = { 3, { 0, 50000, INT64_MAX }, 1000, 0 };
    struct crowd huge = { 3, { INT64_MAX - 1, INT64_MAX - 1, INT64_MAX - 1 }, 1000, 0 };
    struct crowd endless = { 3, { INT64_MAX, INT64_MAX, INT64_MAX }, 1000, 0 };

    cr_assert(crowd_gap(&none, 300) < 1e-10);
    cr_assert(crowd_gap(&first, 300) < 1e-2);
    cr_assert(crowd_gap(&huge, 300) < 1e-10);
    cr_assert(crowd_gap(&endless, 300) < 1e-10);
}

Test(planner, one_context_and_three)
{
    for (int n = 1; n <= 3; n += 2) {
        struct crowd fits = { 2, { 1000, 3000 }, 1000, 0 }, tight = { 2, { 400, 700 }, 1000, 0 };
        cr_assert(crowd_gap(&fits, n) < 1);
        cr_assert(crowd_gap(&tight, n) < 1);
    }
}

/* The smallest variant has 1/8 of at least 500 bytes. */
Test(planner, contexts_larger_than_every_tier)
{
    struct crowd c = { 4, { 10, 20, 50, 62 }, 1000, 0 };

    cr_assert(crowd_gap(&c, 100) < 1e-10);
}

Test(planner, a_finite_remote_tier)
{
    struct crowd c = { 4, { 20000, 60000, 100000, 200000 }, 1000, 0 };

    cr_assert(crowd_gap(&c, 3000) < 1e-4);
}

/* Optimal does not run the greedies: it is at least as good on its own. Tiers of a few contexts up to half of them,
 * with utilities that differ and with ties, below and above what the searches look at (20,000 contexts). */
Test(planner, optimal_is_never_below_a_greedy)
{
    static const int contexts[] = { 2, 5, 12, 30, 400, 1000, 21000 };
    static const double share[][3] = { { .01, .02, .04 }, { .05, .1, .15 }, { .2, .1, .2 }, { .0005, .3, .001 } };

    for (size_t k = 0; k < sizeof(contexts) / sizeof(*contexts); k++)
        for (size_t s = contexts[k] < 20000 ? 0 : 3; s < sizeof(share) / sizeof(*share); s++)
            for (int ties = 0; ties < 2; ties++) {
                struct crowd c = { 1 + (int)(k + s) % 3, { 0 }, 1000, ties };
                for (int t = 0; t < c.n_tiers; t++)
                    c.capacity[t] = (int64_t)(share[s][t] * 600 * contexts[k]);
                crowd_gap(&c, contexts[k]);
            }
}

/* One processor and all make the same plan, and the same baselines, bit for bit: more contexts than a thread takes at
 * once, on which the searches run. */
Test(planner, threads_do_not_change_a_plan)
{
    enum { N = 16500 };
    struct crowd c = { 3, { 300000, 600000, 900000 }, 1000, 0 };
    struct plan_problem p = { N, CROWD_CONFIGS, c.n_tiers, c.capacity, crowd_candidates, &c, NULL };
    static int order[N];
    struct plan plan[2][1 + BASELINE_COUNT];
    cpu_set_t cpus, one;
    struct err e;

    for (int i = 0; i < N; i++)
        order[i] = i;
    cr_assert_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            CPU_SET(cpu, &one);
    for (int k = 0; k < 2; k++) {
        int config;
        cr_assert_eq(sched_setaffinity(0, sizeof(cpus), k ? &cpus : &one), 0);
        cr_assert(!plan_solve(&plan[k][0], &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
        cr_assert(!plan_baselines(&plan[k][1], &p, order, &config, &e));
    }
    for (int b = 0; b <= BASELINE_COUNT; b++) {
        cr_assert_arr_eq(plan[0][b].placement, plan[1][b].placement, N * sizeof(*plan[0][b].placement));
        cr_assert_eq(memcmp(&plan[0][b].objective, &plan[1][b].objective, 2 * sizeof(double)), 0);
        cr_assert_arr_eq(plan[0][b].price, plan[1][b].price, sizeof(plan[0][b].price));
        plan_release(&plan[0][b]);
        plan_release(&plan[1][b]);
    }
}
