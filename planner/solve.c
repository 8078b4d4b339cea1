/* solve.c - the certified solver: hulls, dual, rounding, repair, local search, branch and bound.
 *
 * Local search runs for up to SEARCH_MAX contexts, branch and bound for up to EXACT_MAX, or SEARCH_MAX with extra work.
 */
#include "planner/branch.h"
#include "planner/dual.h"
#include "planner/hull.h"
#include "planner/incumbent.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

enum { SEARCH_MAX = 20000, EXACT_MAX = 200 };
enum { EXACT_WORK = 250000 };
enum { SEARCH_PLACES = 4 * SEARCH_MAX }; // largest number of contexts * tiers for them

static void give_plan(struct plan *plan, const struct incumbent *x)
{
    for (int i = 0; i < x->h->n_contexts; i++) {
        plan->placement[i] = candidate_placement(&x->at[i]);
        if (x->at[i].tier != PLAN_RECOMPUTE)
            plan->fill[x->at[i].tier] += x->at[i].bytes;
    }
    plan->objective = incumbent_objective(x);
}

/* Improves an incumbent, with `more` extra work. *optimal: no plan is better. */
static int improve(struct incumbent *x, const struct plan_problem *problem, int64_t more, bool *optimal,
                   struct err *err)
{
    int n = problem->n_contexts, code = 0;
    bool small = n <= SEARCH_MAX && (int64_t)n * problem->n_tiers <= SEARCH_PLACES;
    bool exact = n <= EXACT_MAX || (more > 0 && small);
    int64_t usual = n <= EXACT_MAX ? EXACT_WORK : 0;

    *optimal = incumbent_gap(x) <= incumbent_rounding(x);
    if (!*optimal && small && !incumbent_is_close(x))
        code = incumbent_local_search(x, problem, err);
    if (!code && !*optimal && exact)
        code = incumbent_branch(x, problem, usual + more, optimal, err);
    return code;
}

static int solve_optimal(struct plan *plan, const struct plan_problem *problem, const struct dual *dual,
                         const struct plan_effort *effort, struct err *err)
{
    struct incumbent x;

    *plan = (struct plan){ .n_contexts = problem->n_contexts,
                           .placement = calloc((size_t)problem->n_contexts + 1, sizeof(*plan->placement)) };
    if (!plan->placement)
        return err_nomem(err);
    if (incumbent_init(&x, dual, err))
        return err->code;
    incumbent_round(&x);
    int code = effort->rough ? 0 : incumbent_repair(&x, err);
    if (!code && !effort->rough && !effort->brief)
        code = improve(&x, problem, effort->work, &plan->optimal, err);
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
        code = solver == PLAN_OPTIMAL ? solve_optimal(plan, problem, &dual, effort, err)
                                      : plan_greedy(plan, problem, solver, err);
    for (int t = 0; t < problem->n_tiers; t++)
        plan->price[t] = h.knapsack.of[t] < 0 ? 0 : dual.price[h.knapsack.of[t]];
    /* The bound comes from compensated sums, whose rounding error is far below this margin. */
    plan->upper_bound = dual.bound + 64 * 0x1p-52 * fabs(dual.bound);
    dual_release(&dual);
    hull_release(&h);
    if (code)
        plan_release(plan);
    return code;
}
