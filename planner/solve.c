/* solve.c - the certified solver: hulls, dual, rounding, repair, the greedies, local search, pair search.
 *
 * The gap of a large instance is far below anything a greedy could gain, so the greedies run only where they could
 * matter: up to GREEDY_MAX contexts, or when the gap is not small. The searches run up to SEARCH_MAX contexts.
 */
#include "planner/dual.h"
#include "planner/hull.h"
#include "planner/incumbent.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

enum { GREEDY_MAX = 50000, SEARCH_MAX = 20000, USUAL_WORK = 49152 };
static const double greedy_gap = 1e-7;

/* Keeps the better of two incumbents in `best` and releases the other. */
static void keep_better(struct incumbent *best, struct incumbent *other)
{
    if (incumbent_objective(other) > incumbent_objective(best)) {
        struct incumbent t = *best;
        *best = *other;
        *other = t;
    }
    incumbent_release(other);
}

/* Makes an incumbent from a greedy's plan; repair uses what that left free. On failure *x needs no release. */
static int greedy_incumbent(struct incumbent *x, const struct incumbent *like, const struct plan_problem *problem,
                            enum plan_solver solver, struct err *err)
{
    struct plan greedy;

    if (plan_greedy(&greedy, problem, solver, err))
        return err->code;
    int code = incumbent_init(x, like->dual, err);
    if (!code)
        code = incumbent_take(x, problem, greedy.placement, err);
    if (!code)
        code = incumbent_repair(x, err);
    plan_release(&greedy);
    if (code)
        incumbent_release(x);
    return code;
}

static int try_greedies(struct incumbent *best, const struct plan_problem *problem, struct err *err)
{
    static const enum plan_solver solver[] = { PLAN_EVICPRESS, PLAN_ADAPTCACHE };
    struct incumbent x[2] = { { 0 } };
    struct err mine[2];
    int code[2];

#pragma omp parallel for schedule(static, 1) if (best->h->n_chunks > 1)
    for (int k = 0; k < 2; k++)
        code[k] = greedy_incumbent(&x[k], best, problem, solver[k], &mine[k]);
    for (int k = 0; k < 2; k++) {
        if (code[k])
            *err = mine[k];
        else
            keep_better(best, &x[k]);
    }
    return code[0] ? code[0] : code[1];
}

static void give_plan(struct plan *plan, const struct incumbent *x)
{
    for (int i = 0; i < x->h->n_contexts; i++) {
        plan->placement[i] = candidate_placement(&x->at[i]);
        if (x->at[i].tier != PLAN_RECOMPUTE)
            plan->fill[x->at[i].tier] += x->at[i].bytes;
    }
    plan->objective = incumbent_objective(x);
}

static int solve_optimal(struct plan *plan, const struct plan_problem *problem, const struct dual *dual, int64_t work,
                         struct err *err)
{
    struct incumbent x;

    *plan = (struct plan){ .n_contexts = problem->n_contexts,
                           .placement = calloc((size_t)problem->n_contexts + 1, sizeof(*plan->placement)) };
    if (!plan->placement)
        return err_nomem(err);
    if (incumbent_init(&x, dual, err))
        return err->code;
    incumbent_round(&x);
    int code = incumbent_repair(&x, err);
    if (!code && (problem->n_contexts <= GREEDY_MAX || incumbent_gap(&x) / fabs(dual->bound) > greedy_gap))
        code = try_greedies(&x, problem, err);
    if (!code && problem->n_contexts <= SEARCH_MAX && !incumbent_is_close(&x))
        code = incumbent_local_search(&x, problem, err);
    if (!code && problem->n_contexts <= SEARCH_MAX)
        code = incumbent_pair_search(&x, problem, USUAL_WORK + work, err);
    if (!code)
        give_plan(plan, &x);
    incumbent_release(&x);
    return code;
}

int plan_solve(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
               const struct plan_effort *effort, struct err *err)
{
    struct hull h;
    struct dual dual;
    double start[PLAN_TIERS];

    *plan = (struct plan){ 0 };
    if (plan_check(problem, err) || hull_build(&h, problem, err))
        return err->code;
    for (int d = 0; effort->start && d < h.knapsack.n; d++)
        start[d] = effort->start[h.knapsack.tier[d]];
    int code = dual_solve(&dual, &h, effort->start ? start : NULL, err);
    if (!code)
        code = solver == PLAN_OPTIMAL ? solve_optimal(plan, problem, &dual, effort->work, err)
                                      : plan_greedy(plan, problem, solver, err);
    for (int d = 0; d < h.knapsack.n; d++)
        plan->price[h.knapsack.tier[d]] = dual.price[d];
    /* The sums that make the bound are compensated; the rounding error left in them is far below this. */
    plan->upper_bound = dual.bound + 64 * 0x1p-52 * fabs(dual.bound);
    dual_release(&dual);
    hull_release(&h);
    if (code)
        plan_release(plan);
    return code;
}
