/* solve.c - the certified solver: hulls, prices, rounding, repair, polishing; or a greedy plan where that is better.
 *
 * Where the instance is large its gap is far below anything a greedy could gain, so the greedies are asked only where
 * they could matter: below GREEDY_MOST contexts, or when the gap is not small.
 */
#include "planner/incumbent.h"
#include "planner/dual.h"
#include "planner/hull.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GREEDY_MOST = 50000, USUAL_WORK = 49152 };
static const double greedy_gap = 1e-7;

/* Keeps the better of two drafts in `best` and releases the other. */
static void keep_better(struct incumbent *best, struct incumbent *other)
{
    if (incumbent_total(other) > incumbent_total(best)) {
        struct incumbent t = *best;
        *best = *other;
        *other = t;
    }
    incumbent_release(other);
}

/* A incumbent from a greedy's plan, with what room it left filled. Nothing to release on failure. */
static int greedy_incumbent(struct incumbent *d, const struct incumbent *like, const struct plan_problem *problem,
                            enum plan_solver solver, struct err *err)
{
    struct plan greedy;

    if (plan_greedy(&greedy, problem, solver, err))
        return err->code;
    int code = incumbent_init(d, like->h, like->dual, err);
    if (!code)
        code = incumbent_from_plan(d, problem, greedy.placement, err);
    if (!code)
        code = incumbent_repair(d, err);
    plan_release(&greedy);
    if (code)
        incumbent_release(d);
    return code;
}

static int try_greedies(struct incumbent *best, const struct plan_problem *problem, struct err *err)
{
    static const enum plan_solver solver[] = { PLAN_EVICPRESS, PLAN_ADAPTCACHE };
    struct incumbent d[2] = { { 0 } };
    struct err mine[2];
    int code[2];

#pragma omp parallel for schedule(static, 1) if (best->h->n_chunks > 1)
    for (int k = 0; k < 2; k++)
        code[k] = greedy_incumbent(&d[k], best, problem, solver[k], &mine[k]);
    for (int k = 0; k < 2; k++) {
        if (code[k])
            *err = mine[k];
        else
            keep_better(best, &d[k]);
    }
    return code[0] ? code[0] : code[1];
}

static void take_incumbent(struct plan *plan, const struct incumbent *d)
{
    for (int i = 0; i < d->h->n_contexts; i++) {
        const struct spot *s = &d->spot[i];
        plan->placement[i] = s->placement;
        if (s->placement.tier != PLAN_RECOMPUTE)
            plan->fill[s->placement.tier] += (int64_t)s->size;
    }
    plan->objective = incumbent_total(d);
}

static int solve_optimal(struct plan *plan, const struct plan_problem *problem, const struct hull *h,
                         const struct dual *dual, int64_t work, struct err *err)
{
    struct incumbent d;

    *plan = (struct plan){ .n_contexts = problem->n_contexts,
                           .placement = calloc((size_t)problem->n_contexts + 1, sizeof(*plan->placement)) };
    if (!plan->placement)
        return err_nomem(err);
    if (incumbent_init(&d, h, dual, err))
        return err->code;
    incumbent_round(&d);
    int code = incumbent_repair(&d, err);
    double gap = (dual->bound - incumbent_total(&d)) / fabs(dual->bound);
    if (!code && (problem->n_contexts <= GREEDY_MOST || gap > greedy_gap))
        code = try_greedies(&d, problem, err);
    if (!code && problem->n_contexts <= POLISH_MOST && !incumbent_is_close(&d))
        code = incumbent_local_search(&d, problem, err);
    if (!code && problem->n_contexts <= POLISH_MOST)
        code = incumbent_pair_search(&d, problem, USUAL_WORK + work, err);
    if (!code)
        take_incumbent(plan, &d);
    incumbent_release(&d);
    return code;
}

int plan_solve(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
               const struct plan_effort *effort, struct err *err)
{
    struct hull h;
    struct dual dual;
    double start[PLAN_TIERS];

    *plan = (struct plan){ 0 };
    if (hull_build(&h, problem, err))
        return err->code;
    for (int t = 0; effort->start && t < h.n_tiers; t++)
        start[t] = effort->start[h.tier[t]];
    int code = dual_solve(&dual, &h, effort->start ? start : NULL, err);
    if (!code)
        code = solver == PLAN_OPTIMAL ? solve_optimal(plan, problem, &h, &dual, effort->work, err)
                                      : plan_greedy(plan, problem, solver, err);
    for (int t = 0; t < h.n_tiers; t++)
        plan->price[h.tier[t]] = dual.price[t];
    /* The sums behind it are compensated; what rounding is left in them is far below this. */
    plan->upper_bound = dual.bound + 64 * 0x1p-52 * fabs(dual.bound);
    dual_release(&dual);
    hull_release(&h);
    if (code)
        plan_release(plan);
    return code;
}
