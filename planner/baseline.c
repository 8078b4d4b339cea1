/* baseline.c - what people do without a planner, for comparison.
 *
 * Storing everything uncompressed is one config for all, with config 0. So all configs are tried in one pass over the
 * contexts, and the candidates of each context are made once. One thread does it: contexts take space in order, and on
 * a busy machine threads would wait for their turn longer than they work.
 */
#include "planner/candidate.h"

#include <math.h>
#include <stdlib.h>

/* All contexts under one config. */
struct trial {
    double utility;
    int64_t fill[PLAN_TIERS]; // of each tier
    int64_t used[PLAN_TIERS]; // of each knapsack
};

struct trials {
    const struct plan_problem *problem;
    struct knapsacks knapsack;
    const int *order;     // (C)
    struct trial *config; // (V)
    int8_t *tier;         // (C, V) by place in the order
    double recompute;     // utility of storing nothing
};

/* Returns the fastest tier that has space for a context under one config and beats recomputing it, and takes the space;
 * PLAN_RECOMPUTE: none. */
static int take_space(struct trials *a, const struct plan_candidates *all, int config)
{
    const struct plan_problem *p = a->problem;
    struct trial *trial = &a->config[config];

    for (int t = 0; t < p->n_tiers; t++) {
        int d = a->knapsack.of[t];
        if (!plan_candidate_ok(all, p, config, t) || (d >= 0 && all->bytes[config] > p->capacity[t] - trial->used[d]) ||
            all->utility[plan_cell(p, config, t)] < all->recompute)
            continue;
        trial->fill[t] += all->bytes[config];
        if (d >= 0)
            trial->used[d] += all->bytes[config];
        return t;
    }
    return PLAN_RECOMPUTE;
}

static void try_all(struct trials *a, struct plan_candidates *all)
{
    const struct plan_problem *p = a->problem;
    int8_t *tier = a->tier;

    for (int k = 0; k < p->n_contexts; k++) {
        plan_candidates_get(all, p, a->order[k]);
        a->recompute += all->recompute;
        for (int v = 0; v < p->n_configs; v++) {
            int t = take_space(a, all, v);
            a->config[v].utility += plan_candidate_utility(all, p, (struct plan_placement){ v, t });
            *tier++ = (int8_t)t;
        }
    }
}

/* The plan of one trial; config -1: nothing is stored. */
static int take_plan(struct plan *plan, const struct trials *a, int config, struct err *err)
{
    const struct plan_problem *p = a->problem;

    *plan = (struct plan){ .n_contexts = p->n_contexts,
                           .objective = config < 0 ? a->recompute : a->config[config].utility,
                           .placement = calloc((size_t)p->n_contexts + 1, sizeof(*plan->placement)) };
    if (!plan->placement)
        return err_nomem(err);
    for (int t = 0; t < PLAN_TIERS && config >= 0; t++)
        plan->fill[t] = a->config[config].fill[t];
    for (int k = 0; k < p->n_contexts; k++) {
        int tier = config < 0 ? PLAN_RECOMPUTE : a->tier[(size_t)k * (size_t)p->n_configs + (size_t)config];
        plan->placement[a->order[k]] = (struct plan_placement){ tier == PLAN_RECOMPUTE ? 0 : config, tier };
    }
    return 0;
}

static int take_plans(struct plan plan[BASELINE_COUNT], const struct trials *a, int *config, struct err *err)
{
    int best = 0, code = 0;

    for (int v = 1; v < a->problem->n_configs; v++)
        if (a->config[v].utility > a->config[best].utility)
            best = v;
    const int used[] = { [BASELINE_RECOMPUTE] = -1, [BASELINE_PLAIN] = 0, [BASELINE_SINGLE] = best };
    for (int b = 0; b < BASELINE_COUNT && !code; b++)
        code = take_plan(&plan[b], a, used[b], err);
    for (int b = 0; b < BASELINE_COUNT && code; b++)
        plan_release(&plan[b]);
    *config = best;
    return code;
}

int plan_baselines(struct plan plan[BASELINE_COUNT], const struct plan_problem *problem, const int *order, int *config,
                   struct err *err)
{
    size_t c = (size_t)problem->n_contexts, v = (size_t)problem->n_configs;
    struct plan_candidates all;
    struct trials a = { .problem = problem, .order = order };

    for (int b = 0; b < BASELINE_COUNT; b++)
        plan[b] = (struct plan){ 0 };
    if (plan_check(problem, err) || plan_candidates_init(&all, problem, err))
        return err->code;
    a.knapsack = knapsacks_of(problem);
    a.config = calloc(v + 1, sizeof(*a.config));
    a.tier = calloc(c * v + 1, sizeof(*a.tier));
    int code = a.config && a.tier ? 0 : err_nomem(err);
    if (!code) {
        try_all(&a, &all);
        code = take_plans(plan, &a, config, err);
    }
    free(a.config);
    free(a.tier);
    plan_candidates_release(&all);
    return code;
}
