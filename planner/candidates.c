/* candidates.c - one context's candidates, and totals over all. Shared by every solver; knows no strategy. */
#include "planner/plan.h"
#include "planner/sum.h"

#include <math.h>
#include <stdlib.h>

int plan_candidates_init(struct plan_candidates *o, const struct plan_problem *problem, struct err *err)
{
    size_t v = (size_t)problem->n_configs, t = (size_t)problem->n_tiers;

    *o = (struct plan_candidates){ .bytes = calloc(v + 1, sizeof(*o->bytes)),
                                   .utility = calloc(v * t + 1, sizeof(*o->utility)) };
    if (o->bytes && o->utility)
        return 0;
    plan_candidates_release(o);
    return err_nomem(err);
}

void plan_candidates_get(struct plan_candidates *o, const struct plan_problem *problem, int context)
{
    o->recompute = problem->candidates(problem->arg, context, o->bytes, o->utility);
}

void plan_candidates_release(struct plan_candidates *o)
{
    free(o->bytes);
    free(o->utility);
    *o = (struct plan_candidates){ 0 };
}

double plan_candidate_utility(const struct plan_candidates *o, const struct plan_problem *problem,
                              struct plan_placement c)
{
    return c.tier == PLAN_RECOMPUTE ? o->recompute : o->utility[c.config * problem->n_tiers + c.tier];
}

int plan_total(struct plan *plan, const struct plan_problem *problem, struct err *err)
{
    struct plan_candidates o;
    struct sum sum = { 0, 0 };

    if (plan_candidates_init(&o, problem, err))
        return err->code;
    for (int t = 0; t < PLAN_TIERS; t++)
        plan->fill[t] = 0;
    for (int i = 0; i < problem->n_contexts; i++) {
        struct plan_placement c = plan->placement[i];
        plan_candidates_get(&o, problem, i);
        if (c.tier != PLAN_RECOMPUTE)
            plan->fill[c.tier] += o.bytes[c.config];
        sum_add(&sum, plan_candidate_utility(&o, problem, c));
    }
    plan->objective = sum.value;
    plan_candidates_release(&o);
    return 0;
}

double plan_gap(const struct plan *plan)
{
    double difference = plan->upper_bound - plan->objective;

    return difference == 0 ? 0 : difference / fabs(plan->upper_bound);
}

void plan_release(struct plan *plan)
{
    free(plan->placement);
    *plan = (struct plan){ 0 };
}
