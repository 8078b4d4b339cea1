/* baseline.c - the plans that people make without a planner, for comparison.
 *
 * "Everything uncompressed" is "one config for all" with config 0. So one pass over the contexts tries all configs, and
 * makes the candidates of each context once, a block of contexts at a time. Threads share the contexts of a block, then
 * the configs; under one config contexts take space in order.
 */
#include "base/parallel.h"
#include "planner/candidate.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 2048, SHARE = 64, THREADS_FROM = 1 << 14 }; /* contexts; fewer do not pay for threads */

/* All contexts under one config. */
struct trial {
    double utility;
    int64_t fill[PLAN_TIERS]; // of each tier
    int64_t used[PLAN_TIERS]; // of each knapsack
};

struct trials {
    const struct plan_problem *problem;
    struct knapsacks knapsack;
    const int *order;            // (C)
    struct trial *config;        // (V)
    int8_t *tier;                // (V, C) by position in the order
    double recompute;            // utility of storing nothing
    struct plan_candidates *all; // (BLOCK) of the current block
    int first, n;                // the current block: n contexts from position `first` of the order
};

/* Takes space for a context under one config on the fastest tier that has it and is not worse than recomputing. Returns
 * the tier; PLAN_RECOMPUTE: none. */
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

static void make_candidates(void *arg, int k)
{
    struct trials *a = arg;

    for (int i = k * SHARE; i < (k + 1) * SHARE && i < a->n; i++)
        plan_candidates_get(&a->all[i], a->problem, a->order[a->first + i]);
}

/* Places the current block under one config. */
static void try_config(void *arg, int config)
{
    struct trials *a = arg;
    int8_t *tier = a->tier + (size_t)config * (size_t)a->problem->n_contexts + a->first;

    for (int k = 0; k < a->n; k++) {
        int t = take_space(a, &a->all[k], config);
        a->config[config].utility +=
            plan_candidate_utility(&a->all[k], a->problem, (struct plan_placement){ config, t });
        tier[k] = (int8_t)t;
    }
}

static void try_all(struct trials *a)
{
    const struct plan_problem *p = a->problem;
    int threads = p->n_contexts < THREADS_FROM ? 1 : parallel_threads();

    for (a->first = 0; a->first < p->n_contexts; a->first += BLOCK) {
        a->n = p->n_contexts - a->first < BLOCK ? p->n_contexts - a->first : BLOCK;
        parallel_do(threads, (a->n + SHARE - 1) / SHARE, make_candidates, a);
        parallel_do(threads, p->n_configs, try_config, a);
        for (int k = 0; k < a->n; k++)
            a->recompute += a->all[k].recompute;
    }
}

/* Makes the plan of one trial; config -1: nothing is stored. */
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
        int tier = config < 0 ? PLAN_RECOMPUTE : a->tier[(size_t)config * (size_t)p->n_contexts + (size_t)k];
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

static int trials_init(struct trials *a, const struct plan_problem *problem, const int *order, struct err *err)
{
    size_t c = (size_t)problem->n_contexts, v = (size_t)problem->n_configs;

    *a = (struct trials){ .problem = problem,
                          .knapsack = knapsacks_of(problem),
                          .order = order,
                          .config = calloc(v + 1, sizeof(*a->config)),
                          .tier = calloc(c * v + 1, sizeof(*a->tier)),
                          .all = calloc(BLOCK, sizeof(*a->all)) };
    if (!a->config || !a->tier || !a->all)
        return err_nomem(err);
    for (int k = 0; k < BLOCK && k < problem->n_contexts; k++)
        if (plan_candidates_init(&a->all[k], problem, err))
            return err->code;
    return 0;
}

static void trials_release(struct trials *a)
{
    for (int k = 0; a->all && k < BLOCK; k++)
        plan_candidates_release(&a->all[k]);
    free(a->all);
    free(a->config);
    free(a->tier);
}

int plan_baselines(struct plan plan[BASELINE_COUNT], const struct plan_problem *problem, const int *order, int *config,
                   struct err *err)
{
    struct trials a;

    for (int b = 0; b < BASELINE_COUNT; b++)
        plan[b] = (struct plan){ 0 };
    if (plan_check(problem, err))
        return err->code;
    int code = trials_init(&a, problem, order, err);
    if (!code) {
        try_all(&a);
        code = take_plans(plan, &a, config, err);
    }
    trials_release(&a);
    return code;
}
