/* The planner's limits, each reached from below, exactly, and from above: tiers, configs, sizes at which the algorithm
 * changes, cuts of the master LP, lengths of lists of moves, extreme utilities. */
#include "base/rng.h"
#include "planner/master_lp.h"
#include "planner/moves.h"
#include "planner/plan.h"
#include "planner/spread.h"

#include <criterion/criterion.h>
#include <math.h>

/* Contexts of random candidates, made by a formula. */
struct crowd {
    int n_configs, n_tiers;
    int64_t capacity[PLAN_TIERS + 1];
    double scale; // of the utilities
};

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct crowd *c = arg;
    struct rng r = rng_new((uint64_t)context);

    for (int v = 0; v < c->n_configs; v++) {
        bytes[v] = 1 + (int64_t)rng_below(&r, 1000);
        for (int t = 0; t < c->n_tiers; t++)
            utility[v * c->n_tiers + t] = c->scale * (double)bytes[v] * (1 + 0.2 * rng_unit(&r)) / (t + 1);
    }
    return 0;
}

static struct plan_problem problem_of(const struct crowd *c, int n_contexts)
{
    return (struct plan_problem){ n_contexts, c->n_configs, c->n_tiers, c->capacity, candidates, c, NULL };
}

/* n_tiers tiers that hold half of all contexts together. */
static struct crowd crowd_of(int n_contexts, int n_configs, int n_tiers)
{
    struct crowd c = { n_configs, n_tiers, { 0 }, 1 };

    for (int t = 0; t < n_tiers; t++)
        c.capacity[t] = (int64_t)n_contexts * 250 / n_tiers;
    return c;
}

/* L at the plan's prices, from its definition. */
static double bound_of(const struct plan *plan, const struct plan_problem *p)
{
    struct plan_candidates all;
    struct err e;
    double bound = 0;

    cr_assert(!plan_candidates_init(&all, p, &e));
    for (int t = 0; t < p->n_tiers; t++)
        bound += plan->price[t] > 0 && (!p->pool || p->pool[t] == t) ? plan->price[t] * (double)p->capacity[t] : 0;
    for (int i = 0; i < p->n_contexts; i++) {
        plan_candidates_get(&all, p, i);
        double best = all.recompute;
        for (int v = 0; v < p->n_configs; v++)
            for (int t = 0; t < p->n_tiers; t++)
                if (plan_candidate_ok(&all, p, v, t))
                    best = fmax(best, all.utility[v * p->n_tiers + t] - plan->price[t] * (double)all.bytes[v]);
        bound += best;
    }
    plan_candidates_release(&all);
    return bound;
}

/* Solves, checks the account, the capacities and the certificate, and returns the gap. */
static double checked_gap(const struct plan_problem *p, enum plan_solver solver)
{
    struct plan plan, again;
    struct err e;

    cr_assert(!plan_solve(&plan, p, solver, &(struct plan_effort){ 0 }, &e));
    again = plan;
    cr_assert(!plan_total(&again, p, &e));
    cr_assert(fabs(again.objective - plan.objective) <= 1e-11 * fabs(plan.objective));
    for (int t = 0; t < p->n_tiers; t++) {
        cr_assert_eq(again.fill[t], plan.fill[t]);
        cr_assert(plan.fill[t] <= p->capacity[t]);
    }
    cr_assert(plan.upper_bound >= plan.objective);
    cr_assert(fabs(bound_of(&plan, p) - plan.upper_bound) <= 1e-9 * fabs(plan.upper_bound));
    double gap = plan_gap(&plan);
    plan_release(&plan);
    return gap;
}

/* Around a chunk and the small sample (4096), the searches (20,000), the large sample (65,536). */
Test(planner_limits, numbers_of_contexts)
{
    static const int limit[] = { 4096, 20000, 65536 };

    for (size_t k = 0; k < sizeof(limit) / sizeof(*limit); k++) {
        for (int n = limit[k] - 1; n <= limit[k] + 1; n++) {
            struct crowd c = crowd_of(n, 2, 1);
            struct plan_problem p = problem_of(&c, n);
            double gap = checked_gap(&p, PLAN_OPTIMAL);
            cr_assert(gap < 1e-5, "%d contexts: gap %g", n, gap);
        }
    }
}

/* Branch and bound goes up to 200 contexts, and further when more work than usual is asked for. */
Test(planner_limits, two_hundred_contexts_are_solved_exactly)
{
    struct err e;

    for (int n = 199; n <= 201; n++) {
        for (int64_t work = 0; work <= 200000; work += 200000) {
            struct crowd c = crowd_of(n, 2, 1);
            struct plan_problem p = problem_of(&c, n);
            struct plan plan;
            cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ .work = work }, &e));
            cr_assert_eq(plan.optimal, n <= 200 || work > 0, "%d contexts, work %d", n, (int)work);
            plan_release(&plan);
        }
    }
}

/* All candidates are alike but for their context: every plan that fills as much is as good, and there are too many. */
static double alike(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct crowd *c = arg;

    for (int v = 0; v < c->n_configs; v++) {
        bytes[v] = 1000 + 13 * (context * 7 % 11) + 37 * v;
        utility[v] = (double)bytes[v] + 100;
    }
    return 0;
}

/* The work ends before the proof: the plan is not called optimal, the bound holds, and so does the account. */
Test(planner_limits, a_search_that_is_cut_short_claims_nothing)
{
    struct crowd c = { 8, 1, { 99991 }, 1 };
    struct plan_problem p = { 190, 8, 1, c.capacity, alike, &c, NULL };
    struct plan plan;
    struct err e;

    cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
    cr_assert(plan.upper_bound >= plan.objective);
    cr_assert(!plan.optimal);
    checked_gap(&p, PLAN_OPTIMAL);
    plan_release(&plan);
}

/* Contexts of the first and the last chunk are told apart: each has a candidate of its own. */
static double numbered(const void *arg, int context, int64_t *bytes, double *utility)
{
    (void)arg;
    bytes[0] = 1;
    utility[0] = context + 1;
    return 0;
}

Test(planner_limits, no_context_is_taken_for_another)
{
    for (int n = 4095; n <= 4097; n++) {
        int64_t capacity = 10;
        struct plan_problem p = { n, 1, 1, &capacity, numbered, NULL, NULL };
        for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++) {
            struct plan plan;
            struct err e;
            cr_assert(!plan_solve(&plan, &p, (enum plan_solver)s, &(struct plan_effort){ 0 }, &e));
            for (int i = 0; i < n; i++)
                cr_assert_eq(plan.placement[i].tier, i >= n - 10 ? 0 : PLAN_RECOMPUTE);
            plan_release(&plan);
        }
    }
}

/* ---- tiers and configs --------------------------------------------------------- */

static void assert_refused(const struct plan_problem *p, const char *why)
{
    struct plan plan = { 0 }, baseline[BASELINE_COUNT];
    int order[] = { 0 }, config;
    struct err e;

    cr_assert_eq(plan_solve(&plan, p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e), ERR_FAIL);
    cr_assert_str_eq(e.msg, why);
    cr_assert_eq(plan_greedy(&plan, p, PLAN_EVICPRESS, &e), ERR_FAIL);
    cr_assert_eq(plan_baselines(baseline, p, order, &config, &e), ERR_FAIL);
}

Test(planner_limits, sixty_four_tiers)
{
    for (int t = PLAN_TIERS - 1; t <= PLAN_TIERS; t++) {
        struct crowd c = crowd_of(40, 3, t);
        struct plan_problem p = problem_of(&c, 40);
        double gap = checked_gap(&p, PLAN_OPTIMAL);
        cr_assert(gap < 0.1, "%d tiers: gap %g", t, gap);
    }
    struct crowd c = crowd_of(1, 3, PLAN_TIERS + 1);
    struct plan_problem p = problem_of(&c, 1);
    assert_refused(&p, "more than 64 tiers");
}

#define POOL(t) "tier " t ": its pool has another capacity or an invalid first tier"

Test(planner_limits, pools)
{
    static const struct {
        int pool[3];
        int64_t capacity[3];
        const char *refused;
    } c[] = {
        { { 0, 0, 0 }, { 9, 9, 9 }, NULL },      { { 0, 1, 0 }, { 9, 5, 9 }, NULL },
        { { 0, 0, 2 }, { 9, 8, 9 }, POOL("2") }, { { 1, 1, 2 }, { 9, 9, 9 }, POOL("1") },
        { { 0, 0, 1 }, { 9, 9, 9 }, POOL("3") }, { { -1, 1, 2 }, { 9, 9, 9 }, POOL("1") },
    };
    for (size_t k = 0; k < sizeof(c) / sizeof(*c); k++) {
        struct crowd crowd = crowd_of(6, 3, 3);
        struct plan_problem p = problem_of(&crowd, 6);
        memcpy(crowd.capacity, c[k].capacity, sizeof(c[k].capacity));
        p.pool = c[k].pool;
        if (c[k].refused)
            assert_refused(&p, c[k].refused);
        else
            checked_gap(&p, PLAN_OPTIMAL);
    }
}

/* Two kinds of tiers, three of each; the second tier of the first kind is where context 0 wishes to be, and worth more
 * to it. */
struct alike {
    int n_tiers, kind[6];
    int64_t capacity[6];
};

static double alike_candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct alike *a = arg;

    for (int v = 0; v < 2; v++) {
        bytes[v] = (1 + context % 7) * (2 - v);
        for (int t = 0; t < a->n_tiers; t++) {
            bool wished = context == 0 && (a->n_tiers == 2 ? t == 0 : t == 1);
            utility[v * a->n_tiers + t] = (double)(3 + context % 5 - v) * (a->kind[t] == 0 ? 2 : 1) + wished;
        }
    }
    return 0;
}

Test(planner_limits, kinds_of_tiers_are_divided)
{
    enum { N = 400 };
    struct alike all = { 6, { 0, 0, 0, 1, 1, 1 }, { 100, 120, 90, 200, 150, 150 } };
    struct alike two = { 2, { 0, 1 }, { 310, 500 } };
    struct plan_problem p = { N, 2, 6, all.capacity, alike_candidates, &all, NULL };
    struct plan_problem kinds = { N, 2, 2, two.capacity, alike_candidates, &two, NULL };
    struct plan plan, total;
    struct err e;
    int wish[N];

    for (int i = 0; i < N; i++)
        wish[i] = i == 0 ? 1 : -1;
    cr_assert(!plan_solve(&plan, &kinds, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
    double promised = plan.objective, bound = plan.upper_bound;
    cr_assert(!plan_spread(&plan, &(struct spread){ &p, &kinds, all.kind, wish }, &e));
    total = plan;
    cr_assert(!plan_total(&total, &p, &e));
    cr_assert_float_eq(total.objective, plan.objective, 1e-9);
    for (int t = 0; t < 6; t++) {
        cr_assert_eq(total.fill[t], plan.fill[t]);
        cr_assert(plan.fill[t] <= all.capacity[t]);
    }
    cr_assert(plan.placement[0].tier == 1 && !plan.optimal);
    cr_assert(plan.objective <= promised + 1e-9 && plan.objective > 0.99 * promised, "%g of %g", plan.objective,
              promised);
    cr_assert(plan.upper_bound <= bound && fabs(bound_of(&plan, &p) - bound) <= 1e-9 * bound);
    plan_release(&plan);
}

/* The last config is the best. */
static double rising(const void *arg, int context, int64_t *bytes, double *utility)
{
    int n = *(const int *)arg;

    (void)context;
    for (int v = 0; v < n; v++) {
        bytes[v] = 1 + v;
        utility[v] = v;
    }
    return -1;
}

Test(planner_limits, sixty_five_thousand_configs)
{
    int64_t capacity = INT32_MAX;
    struct err e;

    for (int n = PLAN_CONFIGS - 1; n <= PLAN_CONFIGS; n++) {
        struct plan_problem p = { 1, n, 1, &capacity, rising, &n, NULL };
        for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++) {
            struct plan plan;
            cr_assert(!plan_solve(&plan, &p, (enum plan_solver)s, &(struct plan_effort){ 0 }, &e));
            cr_assert_eq(plan.placement[0].config, n - 1);
            plan_release(&plan);
        }
    }
    int n = PLAN_CONFIGS + 1;
    struct plan_problem p = { 1, n, 1, &capacity, rising, &n, NULL };
    assert_refused(&p, "more than 65535 configs");
}

/* ---- the master LP ----------------------------------------------------------------- */

/* Two lines that cross at (2/3, 5/3). */
Test(planner_limits, master_lp_mixes_two_cuts)
{
    static struct master_lp m;
    double width = 5, down = -2, up = 1;

    master_lp_init(&m, 1, &width);
    cr_assert(!master_lp_add(&m, 3, &down));
    cr_assert(!master_lp_add(&m, 1, &up));
    cr_assert_float_eq(m.theta, 5. / 3, 1e-12);
    cr_assert_float_eq(m.at[0], 2. / 3, 1e-12);
    cr_assert_float_eq(m.weight[0], 1. / 3, 1e-12);
    cr_assert_float_eq(m.weight[1], 2. / 3, 1e-12);
}

/* Tangents of (x - 1)^2 + (y - 1)^2 at random points. */
static int add_tangent(struct master_lp *m, struct rng *r)
{
    double value = 0, slope[2];

    for (int d = 0; d < 2; d++) {
        double at = 2 * rng_unit(r);
        value += 1 - at * at;
        slope[d] = 2 * (at - 1);
    }
    return master_lp_add(m, value, slope);
}

/* Without the limit the last call would not come back. */
Test(planner_limits, master_lp_holds_256_cuts, .timeout = 60)
{
    static struct master_lp m;
    struct rng r = rng_new(5);
    double width[] = { 2, 2 };

    master_lp_init(&m, 2, width);
    for (int k = 0; k < MASTER_LP_CUTS; k++) {
        double before = m.theta;
        cr_assert(!add_tangent(&m, &r));
        cr_assert(k == 0 || m.theta >= before - 1e-9);
    }
    cr_assert(m.theta <= 0 && m.theta > -0.05, "theta %g", m.theta);
    double theta = m.theta;
    cr_assert_eq(add_tangent(&m, &r), -1);
    cr_assert(m.n_cuts == MASTER_LP_CUTS && m.theta >= theta && m.theta <= theta);
}

/* ---- lists of moves -------------------------------------------------------------- */

Test(planner_limits, a_list_keeps_the_best_moves)
{
    for (int n = MOVES_MAX - 1; n <= MOVES_MAX + 1; n++) {
        static struct move move[MOVES_MAX + 1];
        struct moves l = { move, n, n };
        for (int k = 0; k < n; k++)
            move[k] = (struct move){ .context = k, .loss = n - 1 - k };
        moves_sort(&l, MOVES_MAX);
        cr_assert_eq(l.n, n < MOVES_MAX ? n : MOVES_MAX);
        for (int k = 0; k < l.n; k++)
            cr_assert_eq(move[k].context, n - 1 - k);
    }
}

/* ---- numbers ------------------------------------------------------------------------ */

/* Losses below and above what repair's buckets tell apart. */
Test(planner_limits, extreme_utilities)
{
    static const double scale[] = { 1e-60, 1e-30, 1e30, 1e60 };

    for (size_t k = 0; k < sizeof(scale) / sizeof(*scale); k++) {
        struct crowd c = crowd_of(60, 3, 3);
        struct plan_problem p = problem_of(&c, 60);
        c.scale = scale[k];
        for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++)
            checked_gap(&p, (enum plan_solver)s);
    }
}

Test(planner_limits, no_contexts)
{
    struct crowd c = crowd_of(1, 3, 3);
    struct plan_problem p = problem_of(&c, 0);

    for (int s = PLAN_EVICPRESS; s <= PLAN_OPTIMAL; s++)
        checked_gap(&p, (enum plan_solver)s);
}

/* ---- samples that mislead ---- */

/* One context in 500 has ten thousand times the bytes of the others, and alone decides the price: the 4,096 contexts
 * that prices are first sought on have a few of them. arg: the seed. */
static double heavy_tail(const void *arg, int context, int64_t *bytes, double *utility)
{
    struct rng r = rng_new(*(const uint64_t *)arg * 1000003 + (uint64_t)context);
    bool heavy = rng_below(&r, 500) == 0;

    bytes[0] = heavy ? 10000 : 1;
    utility[0] = (double)bytes[0] * (heavy ? 5 + 10 * rng_unit(&r) : rng_unit(&r));
    return 0;
}

/* L of one tier at a price, from its definition. */
static double dual_at(const struct plan_problem *p, double price)
{
    double bound = price * (double)p->capacity[0];

    for (int i = 0; i < p->n_contexts; i++) {
        int64_t bytes;
        double utility, recompute = p->candidates(p->arg, i, &bytes, &utility);
        bound += fmax(recompute, utility - price * (double)bytes);
    }
    return bound;
}

Test(planner_limits, the_bound_is_minimal_when_the_sample_misleads)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        int64_t capacity = 200000; // half of the heavy ones
        struct plan_problem p = { 20000, 1, 1, &capacity, heavy_tail, &seed, NULL };
        struct plan plan;
        struct err e;
        double low = 0, high = 20;

        cr_assert(!plan_solve(&plan, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &e));
        for (int k = 0; k < 60; k++) { // L is convex: thirds that cannot hold its minimum are cut off
            double a = low + (high - low) / 3, b = high - (high - low) / 3;
            if (dual_at(&p, a) < dual_at(&p, b))
                high = b;
            else
                low = a;
        }
        double min = dual_at(&p, (low + high) / 2);
        cr_assert(plan.upper_bound <= min * (1 + 1e-9), "seed %d: bound %.12g, L falls to %.12g", (int)seed,
                  plan.upper_bound, min);
        plan_release(&plan);
    }
}
