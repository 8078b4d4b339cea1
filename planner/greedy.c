/* greedy.c - the two greedies of the papers, which differ in one number: what a step costs.
 *
 * EvicPress (Algorithm 1, with the cascade of section 4.4): a step costs the utility it loses. AdaptCache: the utility
 * it loses per byte it frees. A binary heap holds the cheapest step of each context on the tier at work. Tiers are
 * relieved from the fastest down, and a context only ever moves down, so each tier is visited once. Ties go to the
 * lower context, then the lower config, then the faster tier.
 */
#include "planner/heap.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

struct step {
    struct plan_placement to;
    int64_t from_bytes, to_bytes;
};

struct greedy {
    const struct plan_problem *problem;
    enum plan_solver solver;
    struct plan_candidates candidates;
    struct plan *plan;
    struct step *step; // (C) each context's cheapest on the tier at work
    struct heap heap;  // by its cost
};

static double step_cost(const struct greedy *g, double lost, int64_t freed)
{
    return g->solver == PLAN_EVICPRESS ? lost : lost / (double)freed;
}

/* The most useful candidate of all, or only of those on tiers slower than `above`. */
static struct plan_placement best_candidate(const struct greedy *g, int above)
{
    const struct plan_problem *p = g->problem;
    struct plan_placement best = { 0, PLAN_RECOMPUTE };
    double value = g->candidates.recompute;

    for (int v = 0; v < p->n_configs; v++) {
        for (int t = above + 1; t < p->n_tiers; t++) {
            if (!plan_candidate_ok(&g->candidates, p, v, t) || !(g->candidates.utility[plan_cell(p, v, t)] > value))
                continue;
            value = g->candidates.utility[plan_cell(p, v, t)];
            best = (struct plan_placement){ v, t };
        }
    }
    return best;
}

/* Pushes a context's cheapest step that frees bytes on its tier: to leave the tier, or to shrink in place. A context
 * that holds no bytes has none. */
static int push_step(struct greedy *g, int context)
{
    const struct plan_problem *p = g->problem;
    struct plan_placement at = g->plan->placement[context];

    plan_candidates_get(&g->candidates, p, context);
    int64_t bytes = g->candidates.bytes[at.config];
    double now = plan_candidate_utility(&g->candidates, p, at);
    if (bytes == 0)
        return 0;
    struct plan_placement to = best_candidate(g, at.tier);
    double min_cost = step_cost(g, now - plan_candidate_utility(&g->candidates, p, to), bytes);
    for (int v = 0; v < p->n_configs; v++) {
        int64_t smaller = g->candidates.bytes[v];
        if (smaller >= bytes || !plan_candidate_ok(&g->candidates, p, v, at.tier))
            continue;
        double cost = step_cost(g, now - g->candidates.utility[plan_cell(p, v, at.tier)], bytes - smaller);
        if (cost < min_cost) {
            min_cost = cost;
            to = (struct plan_placement){ v, at.tier };
        }
    }
    g->step[context] = (struct step){ to, bytes, to.tier == PLAN_RECOMPUTE ? 0 : g->candidates.bytes[to.config] };
    return heap_push(&g->heap, (struct heap_entry){ .key = min_cost, .context = context });
}

/* Takes the cheapest steps until a tier is within its capacity; -1 without memory. */
static int relieve_tier(struct greedy *g, int tier)
{
    const struct plan_problem *p = g->problem;
    int64_t *fill = g->plan->fill;

    g->heap.n = 0;
    for (int i = 0; i < p->n_contexts && fill[tier] > p->capacity[tier]; i++)
        if (g->plan->placement[i].tier == tier && push_step(g, i))
            return -1;
    while (fill[tier] > p->capacity[tier] && g->heap.n > 0) {
        int context = g->heap.at[0].context;
        const struct step *s = &g->step[context];
        heap_remove(&g->heap, 0);
        fill[tier] -= s->from_bytes;
        if (s->to.tier != PLAN_RECOMPUTE)
            fill[s->to.tier] += s->to_bytes;
        g->plan->placement[context] = s->to;
        if (s->to.tier == tier && push_step(g, context))
            return -1;
    }
    return 0;
}

static int solve(struct greedy *g)
{
    const struct plan_problem *p = g->problem;

    for (int i = 0; i < p->n_contexts; i++) {
        plan_candidates_get(&g->candidates, p, i);
        struct plan_placement c = best_candidate(g, -1);
        g->plan->placement[i] = c;
        if (c.tier != PLAN_RECOMPUTE)
            g->plan->fill[c.tier] += g->candidates.bytes[c.config];
    }
    for (int t = 0; t < p->n_tiers; t++)
        if (relieve_tier(g, t))
            return -1;
    return 0;
}

int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver, struct err *err)
{
    size_t n = (size_t)problem->n_contexts;
    struct greedy g = { .problem = problem, .solver = solver, .plan = plan };

    if (plan_check(problem, err))
        return err->code;
    *plan = (struct plan){ .n_contexts = problem->n_contexts, .placement = calloc(n + 1, sizeof(*plan->placement)) };
    g.step = calloc(n + 1, sizeof(*g.step));
    int code = plan->placement && g.step ? plan_candidates_init(&g.candidates, problem, err) : err_nomem(err);
    if (!code)
        code = solve(&g) ? err_nomem(err) : plan_total(plan, problem, err);
    plan_candidates_release(&g.candidates);
    heap_release(&g.heap);
    free(g.step);
    if (code)
        plan_release(plan);
    return code;
}
