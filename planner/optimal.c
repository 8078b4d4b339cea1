/* optimal.c - the certified solver: hulls, prices, rounding, repair, polishing; or a greedy plan where that is better.
 *
 * Where the instance is large its gap is far below anything a greedy could gain, so the greedies are asked only where
 * they could matter: below GREEDY_MOST contexts, or when the gap is not small.
 */
#include "planner/draft.h"
#include "planner/dual.h"
#include "planner/hull.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GREEDY_MOST = 50000, USUAL_WORK = 49152 };
static const double greedy_gap = 1e-7;

/* Keeps the better of two drafts in `best` and releases the other. */
static void keep_better(struct draft *best, struct draft *other)
{
    if (draft_total(other) > draft_total(best)) {
        struct draft t = *best;
        *best = *other;
        *other = t;
    }
    draft_release(other);
}

/* A draft from a greedy's plan, with what room it left filled. Nothing to release on failure. */
static int greedy_draft(struct draft *d, const struct draft *like, const struct plan_problem *problem,
                        enum plan_solver solver, struct err *err)
{
    struct plan greedy;

    if (plan_greedy(&greedy, problem, solver, err))
        return err->code;
    int code = draft_init(d, like->h, like->dual, err);
    if (!code)
        code = draft_from_plan(d, problem, greedy.choice, err);
    if (!code)
        code = draft_repair(d, err);
    plan_release(&greedy);
    if (code)
        draft_release(d);
    return code;
}

static int try_greedies(struct draft *best, const struct plan_problem *problem, struct err *err)
{
    static const enum plan_solver solver[] = { PLAN_EVICPRESS, PLAN_ADAPTCACHE };
    struct draft d[2] = { { 0 } };
    struct err mine[2];
    int code[2];

#pragma omp parallel for schedule(static, 1) if (best->h->n_chunks > 1)
    for (int k = 0; k < 2; k++)
        code[k] = greedy_draft(&d[k], best, problem, solver[k], &mine[k]);
    for (int k = 0; k < 2; k++) {
        if (code[k])
            *err = mine[k];
        else
            keep_better(best, &d[k]);
    }
    return code[0] ? code[0] : code[1];
}

static void take_draft(struct plan *plan, const struct draft *d)
{
    for (int i = 0; i < d->h->n_contexts; i++) {
        const struct spot *s = &d->spot[i];
        plan->choice[i] = s->choice;
        if (s->choice.tier != PLAN_RECOMPUTE)
            plan->fill[s->choice.tier] += (int64_t)s->size;
    }
    plan->objective = draft_total(d);
}

static int solve_optimal(struct plan *plan, const struct plan_problem *problem, const struct hull *h,
                         const struct dual *dual, int64_t work, struct err *err)
{
    struct draft d;

    *plan = (struct plan){ .n_contexts = problem->n_contexts,
                           .choice = calloc((size_t)problem->n_contexts + 1, sizeof(*plan->choice)) };
    if (!plan->choice)
        return err_nomem(err);
    if (draft_init(&d, h, dual, err))
        return err->code;
    draft_round(&d);
    int code = draft_repair(&d, err);
    double gap = (dual->bound - draft_total(&d)) / fabs(dual->bound);
    if (!code && (problem->n_contexts <= GREEDY_MOST || gap > greedy_gap))
        code = try_greedies(&d, problem, err);
    if (!code && problem->n_contexts <= POLISH_MOST && !draft_is_close(&d))
        code = draft_polish(&d, problem, err);
    if (!code && problem->n_contexts <= POLISH_MOST)
        code = draft_meet(&d, problem, USUAL_WORK + work, err);
    if (!code)
        take_draft(plan, &d);
    draft_release(&d);
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
