/* problem.c - one context's candidates, the knapsacks among the tiers, and totals over a plan. Shared by every solver;
 * knows no strategy. */
#include "planner/candidate.h"
#include "planner/plan.h"
#include "planner/sum.h"

#include <math.h>
#include <stdlib.h>

int plan_check(const struct plan_problem *problem, struct err *err)
{
    if (problem->n_tiers > PLAN_TIERS)
        return err_set(err, ERR_FAIL, "more than %d tiers", PLAN_TIERS);
    if (problem->n_configs > PLAN_CONFIGS)
        return err_set(err, ERR_FAIL, "more than %d configs", PLAN_CONFIGS);
    for (int t = 0; problem->pool && t < problem->n_tiers; t++) {
        int first = problem->pool[t];
        if (first < 0 || first > t || problem->pool[first] != first || problem->capacity[t] != problem->capacity[first])
            return err_set(err, ERR_FAIL, "tier %d: its pool has another capacity or an invalid first tier", t + 1);
    }
    return 0;
}

int plan_candidates_init(struct plan_candidates *all, const struct plan_problem *problem, struct err *err)
{
    size_t v = (size_t)problem->n_configs, t = (size_t)problem->n_tiers;

    *all = (struct plan_candidates){ .bytes = calloc(v + 1, sizeof(*all->bytes)),
                                     .utility = calloc(v * t + 1, sizeof(*all->utility)) };
    if (all->bytes && all->utility)
        return 0;
    plan_candidates_release(all);
    return err_nomem(err);
}

void plan_candidates_get(struct plan_candidates *all, const struct plan_problem *problem, int context)
{
    all->recompute = problem->candidates(problem->arg, context, all->bytes, all->utility);
}

void plan_candidates_release(struct plan_candidates *all)
{
    free(all->bytes);
    free(all->utility);
    *all = (struct plan_candidates){ 0 };
}

double plan_candidate_utility(const struct plan_candidates *all, const struct plan_problem *problem,
                              struct plan_placement at)
{
    return at.tier == PLAN_RECOMPUTE ? all->recompute : all->utility[plan_cell(problem, at.config, at.tier)];
}

struct knapsacks knapsacks_of(const struct plan_problem *problem)
{
    struct knapsacks k = { 0 };

    k.n_tiers = problem->n_tiers;
    for (int t = 0; t < problem->n_tiers; t++) {
        int first = problem->pool ? problem->pool[t] : t;
        if (problem->capacity[t] == INT64_MAX) {
            k.of[t] = -1;
            continue;
        }
        if (first == t) {
            k.tier[k.n] = t;
            k.capacity[k.n++] = problem->capacity[t];
        }
        k.of[t] = first == t ? k.n - 1 : k.of[first];
        k.size[k.of[t]]++;
    }
    return k;
}

int plan_total(struct plan *plan, const struct plan_problem *problem, struct err *err)
{
    struct plan_candidates all;
    struct sum sum = { 0, 0 };

    if (plan_candidates_init(&all, problem, err))
        return err->code;
    for (int t = 0; t < PLAN_TIERS; t++)
        plan->fill[t] = 0;
    for (int i = 0; i < problem->n_contexts; i++) {
        struct plan_placement at = plan->placement[i];
        plan_candidates_get(&all, problem, i);
        if (at.tier != PLAN_RECOMPUTE)
            plan->fill[at.tier] += all.bytes[at.config];
        sum_add(&sum, plan_candidate_utility(&all, problem, at));
    }
    plan->objective = sum.value;
    plan_candidates_release(&all);
    return 0;
}

double plan_gap(const struct plan *plan)
{
    double top = plan->upper_bound / 4, is = plan->objective / 4; /* quarters, so that the difference is finite */

    return top == is ? 0 : (top - is) / fabs(top != 0 ? top : is);
}

void plan_release(struct plan *plan)
{
    free(plan->placement);
    *plan = (struct plan){ 0 };
}
