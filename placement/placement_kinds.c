/* placement_kinds.c - plans many contexts on many tiers of few kinds, such as the GPUs, memories and disks of equal
 * nodes: plans the kinds, then divides each among its tiers (planner/spread.h).
 *
 * Tiers are of one kind if they have equal read times and allowed configs, and are in the same pool or in none. A
 * context that is pinned to a tier, or stays on one, wishes for that tier.
 */
#include "placement/placement_internal.h"

#include "planner/spread.h"

#include <stdlib.h>
#include <string.h>

struct kinds {
    struct placement_input in; // of the kinds; borrows everything that is not in this struct
    struct tier tier[PLAN_TIERS];
    int kind[PLAN_TIERS]; // the kind of each tier
    int *pin;             // (C) by row, with kinds in place of tiers
    struct plan_placement *before;
    int *wish; // (C) by context
};

static bool is_alike(const struct tier *a, const struct tier *b)
{
    bool same = a->read_bytes_per_s == b->read_bytes_per_s && a->latency_s == b->latency_s &&
                a->device_bytes_per_s == b->device_bytes_per_s && a->read_spread == b->read_spread &&
                a->part_bytes_per_s == b->part_bytes_per_s && a->part_spread == b->part_spread &&
                a->n_configs == b->n_configs && strcmp(a->pool, b->pool) == 0 &&
                (a->capacity == INT64_MAX) == (b->capacity == INT64_MAX);

    for (int i = 0; i < a->n_configs && same; i++)
        same = strcmp(a->config[i], b->config[i]) == 0;
    return same;
}

/* Finds the kinds, their capacities and the largest variant that a tier of each can hold. */
static void find_kinds(struct kinds *k, const struct placement_input *in)
{
    int n = 0;

    for (int t = 0; t < in->tiers.n; t++) {
        const struct tier *tier = &in->tiers.at[t];
        int kind = 0;
        while (kind < n && !is_alike(&k->tier[kind], tier))
            kind++;
        k->kind[t] = kind;
        if (kind == n) {
            k->tier[n] = *tier;
            k->in.max_bytes[n] = tier->capacity;
            k->in.capacity[n++] = tier->capacity;
            continue;
        }
        k->in.max_bytes[kind] = k->in.max_bytes[kind] > tier->capacity ? k->in.max_bytes[kind] : tier->capacity;
        if (!*tier->pool && tier->capacity < INT64_MAX)
            k->in.capacity[kind] += tier->capacity < INT64_MAX / PLAN_TIERS ? tier->capacity : INT64_MAX / PLAN_TIERS;
    }
    k->in.tiers = (struct tiers){ k->tier, n };
    tiers_pools(&k->in.tiers, k->in.pool);
}

static void kinds_release(struct kinds *k)
{
    free(k->pin);
    free(k->before);
    free(k->wish);
    free(k->in.allowed);
}

static int take_rows(struct kinds *k, const struct placement_input *in, struct err *err)
{
    size_t n = (size_t)in->table.n_contexts + 1;

    k->in.allowed = NULL;
    k->pin = calloc(n, sizeof(*k->pin));
    k->before = calloc(n, sizeof(*k->before));
    k->wish = calloc(n, sizeof(*k->wish));
    if (!k->pin || !k->before || !k->wish)
        return err_nomem(err);
    for (int i = 0; i < in->table.n_contexts; i++) {
        const struct plan_placement *b = &in->before[i];
        k->pin[i] = in->pin[i] >= 0 ? k->kind[in->pin[i]] : in->pin[i];
        k->before[i] = *b;
        if (b->config >= 0 && b->tier >= 0)
            k->before[i].tier = k->kind[b->tier];
    }
    k->in.pin = k->pin;
    k->in.before = k->before;
    return placement_find_allowed(&k->in, err);
}

static void find_wishes(struct kinds *k, const struct placement_input *in, const struct plan *plan)
{
    for (int i = 0; i < plan->n_contexts; i++) {
        int row = in->row[i];
        bool stays = in->before[row].config >= 0 && in->before[row].config == plan->placement[i].config;
        k->wish[i] = in->pin[row] >= 0 ? in->pin[row] : stays ? in->before[row].tier : -1;
    }
}

bool placement_has_kinds(const struct placement_input *in)
{
    if (in->table.n_contexts < SPREAD_MIN || in->prefixes.n > 0 || in->max_move < INT64_MAX)
        return false;
    for (int t = 1; t < in->tiers.n; t++)
        for (int u = 0; u < t; u++)
            if (is_alike(&in->tiers.at[u], &in->tiers.at[t]))
                return true;
    return false;
}

static int solve_kinds(struct placement_plan *p, struct kinds *k, const struct plan_effort *effort, struct err *err)
{
    const struct placement_input *in = p->in;
    struct plan_problem problem = placement_problem(in), of_kinds = placement_problem(&k->in);
    struct plan_effort effort_of_kinds = *effort;
    double start[PLAN_TIERS] = { 0 };

    for (int t = 0; effort->start && t < in->tiers.n; t++)
        start[k->kind[t]] = effort->start[t];
    effort_of_kinds.start = effort->start ? start : NULL;
    if (plan_solve(&p->plan, &of_kinds, p->solver, &effort_of_kinds, err))
        return err->code;
    find_wishes(k, in, &p->plan);
    return plan_spread(&p->plan, &(struct spread){ &problem, &of_kinds, k->kind, k->wish }, err);
}

int placement_solve_kinds(struct placement_plan *p, const struct plan_effort *effort, struct err *err)
{
    struct kinds *k = malloc(sizeof(*k));

    if (!k)
        return err_nomem(err);
    *k = (struct kinds){ .in = *p->in };
    find_kinds(k, p->in);
    int code = take_rows(k, p->in, err);
    if (!code)
        code = solve_kinds(p, k, effort, err);
    kinds_release(k);
    free(k);
    return code;
}
