/* baseline.c - what people do without a planner, for comparison.
 *
 * Storing everything uncompressed is the same as one config for all with config 0, so every config is tried, side by
 * side, and each context's options are asked for once: by several threads, some contexts each. Room is taken in order,
 * while the options are still in the cache of the thread that asked.
 */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 64 }; // contexts; 150 KB of options where there are 60 configs and 4 tiers

/* All contexts under one config. */
struct trial {
    double utility;
    int64_t fill[PLAN_TIERS];
};

struct trials {
    const struct plan_problem *problem;
    const int *order;     // (C)
    struct trial *config; // (V)
    int8_t *tier;         // (C, V) by place in the order
    double recompute;     // utility of storing nothing
    struct err err;       // code 0: none
};

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

/* The k-th context in the order under each config. */
static void try_context(struct trials *a, const struct plan_options *o, int k)
{
    int n_configs = a->problem->n_configs;
    int8_t *tier = a->tier + (size_t)k * (size_t)n_configs; // (V)

    a->recompute += o->recompute;
    for (int v = 0; v < n_configs; v++) {
        int t = take_room(o, a->problem, v, a->config[v].fill);
        a->config[v].utility += plan_option_utility(o, a->problem, (struct plan_choice){ v, t });
        tier[v] = (int8_t)t;
    }
}

/* What one thread asks for. */
struct block {
    struct plan_options o[BLOCK];
    struct err err; // code 0: none
};

static void block_init(struct block *b, const struct plan_problem *p)
{
    *b = (struct block){ 0 };
    for (int k = 0; k < BLOCK && !b->err.code; k++)
        if (plan_options_init(&b->o[k], p, &b->err))
            break;
}

static void block_release(struct block *b)
{
    for (int k = 0; k < BLOCK; k++)
        plan_options_release(&b->o[k]);
}

/* The contexts from the first-th in the order on. */
static void try_block(struct trials *a, struct block *b, int first)
{
    const struct plan_problem *p = a->problem;
    int n = p->n_contexts - first < BLOCK ? p->n_contexts - first : BLOCK;

    for (int k = 0; k < n && !b->err.code; k++)
        plan_options_get(&b->o[k], p, a->order[first + k]);
#pragma omp ordered
    {
        if (b->err.code)
            a->err = b->err;
        for (int k = 0; k < n && !a->err.code; k++)
            try_context(a, &b->o[k], first + k);
    }
}

static int try_all(struct trials *a, struct err *err)
{
    const struct plan_problem *p = a->problem;

#pragma omp parallel if (p->n_contexts > BLOCK)
    {
        struct block b;
        block_init(&b, p);
#pragma omp for ordered schedule(dynamic)
        for (int first = 0; first < p->n_contexts; first += BLOCK)
            try_block(a, &b, first);
        block_release(&b);
    }
    if (a->err.code)
        *err = a->err;
    return a->err.code;
}

/* The plan of one trial; config -1: nothing is stored. */
static int take_plan(struct plan *plan, const struct trials *a, int config, struct err *err)
{
    const struct plan_problem *p = a->problem;

    *plan = (struct plan){ .n_contexts = p->n_contexts,
                           .objective = config < 0 ? a->recompute : a->config[config].utility,
                           .choice = calloc((size_t)p->n_contexts + 1, sizeof(*plan->choice)) };
    if (!plan->choice)
        return err_nomem(err);
    for (int t = 0; t < PLAN_TIERS && config >= 0; t++)
        plan->fill[t] = a->config[config].fill[t];
    for (int k = 0; k < p->n_contexts; k++) {
        int tier = config < 0 ? PLAN_RECOMPUTE : a->tier[(size_t)k * (size_t)p->n_configs + (size_t)config];
        plan->choice[a->order[k]] = (struct plan_choice){ tier == PLAN_RECOMPUTE ? 0 : config, tier };
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
    struct trials a = { .problem = problem,
                        .order = order,
                        .config = calloc(v + 1, sizeof(*a.config)),
                        .tier = calloc(c * v + 1, sizeof(*a.tier)) };
    int code = a.config && a.tier ? try_all(&a, err) : err_nomem(err);

    for (int b = 0; b < BASELINE_COUNT; b++)
        plan[b] = (struct plan){ 0 };
    if (!code)
        code = take_plans(plan, &a, config, err);
    free(a.config);
    free(a.tier);
    return code;
}
