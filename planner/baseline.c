/* baseline.c - what people do without a planner, for comparison. */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

/* Contexts in the given order, all under one config, each on the fastest tier that still has room, if that beats
 * recomputing it. */
static void fill_in_order(struct plan *plan, const struct plan_problem *p, struct plan_options *o, const int *order,
                          int config)
{
    for (int t = 0; t < PLAN_TIERS; t++)
        plan->fill[t] = 0;
    for (int k = 0; k < p->n_contexts; k++) {
        struct plan_choice *c = &plan->choice[order[k]];
        *c = (struct plan_choice){ 0, PLAN_RECOMPUTE };
        plan_options_get(o, p, order[k]);
        for (int t = 0; t < p->n_tiers && c->tier == PLAN_RECOMPUTE; t++) {
            if (!plan_option_ok(o, p, config, t) || o->bytes[config] > p->capacity[t] - plan->fill[t] ||
                o->utility[config * p->n_tiers + t] < o->recompute)
                continue;
            *c = (struct plan_choice){ config, t };
            plan->fill[t] += o->bytes[config];
        }
    }
}

static int best_config(struct plan *plan, const struct plan_problem *p, struct plan_options *o, const int *order,
                       int *config, struct err *err)
{
    double best = -INFINITY;

    for (int v = 0; v < p->n_configs; v++) {
        fill_in_order(plan, p, o, order, v);
        if (plan_total(plan, p, err))
            return err->code;
        if (plan->objective > best) {
            best = plan->objective;
            *config = v;
        }
    }
    return 0;
}

int plan_baseline(struct plan *plan, const struct plan_problem *problem, enum plan_baseline baseline, const int *order,
                  int *config, struct err *err)
{
    struct plan_options o;
    int used = 0, code = 0;

    *plan = (struct plan){ .n_contexts = problem->n_contexts,
                           .choice = calloc((size_t)problem->n_contexts + 1, sizeof(*plan->choice)) };
    if (!plan->choice)
        return err_nomem(err);
    if (plan_options_init(&o, problem, err)) {
        plan_release(plan);
        return err->code;
    }
    for (int i = 0; i < problem->n_contexts; i++)
        plan->choice[i] = (struct plan_choice){ 0, PLAN_RECOMPUTE };
    if (baseline == BASELINE_SINGLE)
        code = best_config(plan, problem, &o, order, &used, err);
    if (baseline != BASELINE_RECOMPUTE)
        fill_in_order(plan, problem, &o, order, used);
    plan_options_release(&o);
    if (!code)
        code = plan_total(plan, problem, err);
    if (code)
        plan_release(plan);
    if (config)
        *config = used;
    return code;
}
