/* baseline.c - what people do without a planner, for comparison.
 *
 * Storing everything uncompressed is the same as one config for all with config 0, so every config is tried, side by
 * side, and each context's options are asked for once. Configs share nothing: they are spread over threads, and the
 * result is the same for any number of them.
 */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 32 << 20, BLOCK_LEAST = 64 }; // options held at a time: long stretches without waiting for others

/* All contexts under one config. */
struct trial {
    int8_t *tier; // (C) by place in the order
    double utility;
    int64_t fill[PLAN_TIERS];
};

struct trials {
    const struct plan_problem *problem;
    const int *order;          // (C)
    int n_slots;               // contexts whose options are held at a time
    struct plan_options *slot; // (n_slots)
    struct trial *config;      // (V)
    int8_t *tiers;             // (V, C)
    double recompute;          // utility of storing nothing
};

static void trials_release(struct trials *a)
{
    for (int k = 0; a->slot && k < a->n_slots; k++)
        plan_options_release(&a->slot[k]);
    free(a->slot);
    free(a->config);
    free(a->tiers);
}

static int trials_init(struct trials *a, const struct plan_problem *p, const int *order, struct err *err)
{
    size_t c = (size_t)p->n_contexts, v = (size_t)p->n_configs;
    size_t slots = BLOCK_BYTES / (v * (size_t)(p->n_tiers + 1) * sizeof(double) + 1);

    slots = slots < BLOCK_LEAST ? BLOCK_LEAST : slots;
    slots = slots < c ? slots : c;
    *a = (struct trials){ .problem = p,
                          .order = order,
                          .n_slots = (int)slots,
                          .slot = calloc(slots + 1, sizeof(*a->slot)),
                          .config = calloc(v + 1, sizeof(*a->config)),
                          .tiers = calloc(v * c + 1, sizeof(*a->tiers)) };
    int code = a->slot && a->config && a->tiers ? 0 : err_nomem(err);
    for (int k = 0; k < a->n_slots && !code; k++)
        code = plan_options_init(&a->slot[k], p, err);
    for (size_t k = 0; k < v && !code; k++)
        a->config[k].tier = a->tiers + k * c;
    if (code)
        trials_release(a);
    return code;
}

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

/* The contexts in the slots, which are the ones from `first` on in the order. */
static void try_config(const struct trials *a, int config, int first, int n)
{
    struct trial *trial = &a->config[config];

    for (int k = 0; k < n; k++) {
        int tier = take_room(&a->slot[k], a->problem, config, trial->fill);
        trial->utility += plan_option_utility(&a->slot[k], a->problem, (struct plan_choice){ config, tier });
        trial->tier[first + k] = (int8_t)tier;
    }
}

static void try_all(struct trials *a)
{
    const struct plan_problem *p = a->problem;

    for (int first = 0; first < p->n_contexts; first += a->n_slots) {
        int n = p->n_contexts - first < a->n_slots ? p->n_contexts - first : a->n_slots;
#pragma omp parallel if (n > BLOCK_LEAST)
        {
#pragma omp for schedule(dynamic, BLOCK_LEAST)
            for (int k = 0; k < n; k++)
                plan_options_get(&a->slot[k], p, a->order[first + k]);
#pragma omp for schedule(dynamic)
            for (int v = 0; v < p->n_configs; v++)
                try_config(a, v, first, n);
        }
        for (int k = 0; k < n; k++)
            a->recompute += a->slot[k].recompute;
    }
}

/* A plan of one trial; NULL: nothing is stored. */
static int take_plan(struct plan *plan, const struct trials *a, const struct trial *trial, struct err *err)
{
    size_t n = (size_t)a->problem->n_contexts;

    plan->n_contexts = a->problem->n_contexts;
    plan->objective = trial ? trial->utility : a->recompute;
    plan->choice = calloc(n + 1, sizeof(*plan->choice));
    if (!plan->choice)
        return err_nomem(err);
    for (int t = 0; t < PLAN_TIERS; t++)
        plan->fill[t] = trial ? trial->fill[t] : 0;
    for (size_t k = 0; k < n; k++) {
        int tier = trial ? trial->tier[k] : PLAN_RECOMPUTE;
        plan->choice[a->order[k]] =
            (struct plan_choice){ tier == PLAN_RECOMPUTE ? 0 : (int32_t)(trial - a->config), tier };
    }
    return 0;
}

int plan_baselines(struct plan plan[BASELINE_COUNT], const struct plan_problem *problem, const int *order, int *config,
                   struct err *err)
{
    struct trials a;
    int best = 0;

    for (int b = 0; b < BASELINE_COUNT; b++)
        plan[b] = (struct plan){ 0 };
    if (trials_init(&a, problem, order, err))
        return err->code;
    try_all(&a);
    for (int v = 1; v < problem->n_configs; v++)
        if (a.config[v].utility > a.config[best].utility)
            best = v;
    const struct trial *trial[BASELINE_COUNT] = {
        [BASELINE_PLAIN] = &a.config[0], [BASELINE_SINGLE] = &a.config[best]
    };
    int code = 0;
    for (int b = 0; b < BASELINE_COUNT && !code; b++)
        code = take_plan(&plan[b], &a, trial[b], err);
    for (int b = 0; b < BASELINE_COUNT && code; b++)
        plan_release(&plan[b]);
    trials_release(&a);
    *config = best;
    return code;
}
