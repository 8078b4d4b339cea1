/* baseline.c - what people do without a planner, for comparison. */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

/* The fastest tier that has room for a context under one config, if that beats recomputing it; and takes the room. */
static int take_room(const struct plan_options *o, const struct plan_problem *p, int config, int64_t *fill)
{
    for (int t = 0; t < p->n_tiers; t++) {
        if (!plan_option_ok(o, p, config, t) || o->bytes[config] > p->capacity[t] - fill[t] ||
            o->utility[config * p->n_tiers + t] < o->recompute)
            continue;
        fill[t] += o->bytes[config];
        return t;
    }
    return PLAN_RECOMPUTE;
}

/* Contexts in the given order, all under one config. */
static void fill_in_order(struct plan *plan, const struct plan_problem *p, struct plan_options *o, const int *order,
                          int config)
{
    for (int k = 0; k < p->n_contexts; k++) {
        plan_options_get(o, p, order[k]);
        int tier = take_room(o, p, config, plan->fill);
        plan->choice[order[k]] = (struct plan_choice){ tier == PLAN_RECOMPUTE ? 0 : config, tier };
    }
}

/* All configs are tried side by side, so that each context's options are asked for once. */
static int best_config(const struct plan_problem *p, struct plan_options *o, const int *order, int *config,
                       struct err *err)
{
    size_t n = (size_t)p->n_configs;
    int64_t *fill = calloc(n * (size_t)p->n_tiers + 1, sizeof(*fill)); // (V, T)
    double *total = calloc(n + 1, sizeof(*total));                     // (V)

    for (int k = 0; fill && total && k < p->n_contexts; k++) {
        plan_options_get(o, p, order[k]);
        for (int v = 0; v < p->n_configs; v++) {
            int tier = take_room(o, p, v, fill + (size_t)v * (size_t)p->n_tiers);
            total[v] += plan_option_utility(o, p, (struct plan_choice){ v, tier });
        }
    }
    int code = fill && total ? 0 : err_nomem(err);
    for (int v = 1; !code && v < p->n_configs; v++)
        if (total[v] > total[*config])
            *config = v;
    free(fill);
    free(total);
    return code;
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
        code = best_config(problem, &o, order, &used, err);
    if (!code && baseline != BASELINE_RECOMPUTE)
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
