/* greedy.c - the greedy algorithms of the two papers, which differ only in the cost of a step.
 *
 * EvicPress (Algorithm 1, with the cascade of section 4.4): cost = lost utility. AdaptCache: cost = lost utility per
 * freed byte. A binary heap has the cheapest step of each context in the current knapsack (a tier, or a pool of tiers).
 * Knapsacks are relieved from the fastest down, and contexts only move down, so each knapsack is visited once. Ties go
 * to the lower context, then the lower config, then the faster tier.
 */
#include "planner/candidate.h"
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
    struct knapsacks knapsack;
    int64_t fill[PLAN_TIERS]; // of the knapsacks
    struct step *step;        // (C) the cheapest of each context in the current knapsack
    struct heap heap;         // by its cost
};

static double step_cost(const struct greedy *g, double lost, int64_t freed)
{
    return g->solver == PLAN_EVICPRESS ? lost : lost / (double)freed;
}

/* May a context go from tier `from` to `tier`: is it slower and unlimited, or in a lower knapsack? */
static bool is_below(const struct greedy *g, int from, int tier)
{
    int d = knapsack_of_tier(&g->knapsack, tier);

    return d < 0 ? tier > from : d > knapsack_of_tier(&g->knapsack, from);
}

/* The candidate with the highest utility, of all or only of those below tier `above`. */
static struct plan_placement best_candidate(const struct greedy *g, int above)
{
    const struct plan_problem *p = g->problem;
    struct plan_placement best = { 0, PLAN_RECOMPUTE };
    double value = g->candidates.recompute;

    for (int v = 0; v < p->n_configs; v++) {
        for (int t = 0; t < p->n_tiers; t++) {
            if ((above >= 0 && !is_below(g, above, t)) || !plan_candidate_ok(&g->candidates, p, v, t) ||
                !(g->candidates.utility[plan_cell(p, v, t)] > value))
                continue;
            value = g->candidates.utility[plan_cell(p, v, t)];
            best = (struct plan_placement){ v, t };
        }
    }
    return best;
}

/* The tier of a knapsack where a config is worth most; PLAN_RECOMPUTE: not available there. */
static int best_tier_in(const struct greedy *g, int config, int knapsack)
{
    const struct plan_problem *p = g->problem;
    const double *utility = g->candidates.utility;
    int best = PLAN_RECOMPUTE;

    for (int t = g->knapsack.tier[knapsack]; t < p->n_tiers; t++)
        if (g->knapsack.of[t] == knapsack && plan_candidate_ok(&g->candidates, p, config, t) &&
            (best < 0 || utility[plan_cell(p, config, t)] > utility[plan_cell(p, config, best)]))
            best = t;
    return best;
}

/* Pushes a context's cheapest step that frees bytes in its knapsack: leaving it or shrinking there. A context of 0
 * bytes has none. */
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
        int tier = smaller < bytes ? best_tier_in(g, v, knapsack_of_tier(&g->knapsack, at.tier)) : PLAN_RECOMPUTE;
        if (tier < 0)
            continue;
        double cost = step_cost(g, now - g->candidates.utility[plan_cell(p, v, tier)], bytes - smaller);
        if (cost < min_cost) {
            min_cost = cost;
            to = (struct plan_placement){ v, tier };
        }
    }
    g->step[context] = (struct step){ to, bytes, to.tier == PLAN_RECOMPUTE ? 0 : g->candidates.bytes[to.config] };
    return heap_push(&g->heap, (struct heap_entry){ .key = min_cost, .context = context });
}

static void add_fill(struct greedy *g, int tier, int64_t bytes)
{
    int d = knapsack_of_tier(&g->knapsack, tier);

    if (d >= 0)
        g->fill[d] += bytes;
}

/* Takes the cheapest steps until a knapsack is within its capacity; -1 without memory. */
static int relieve(struct greedy *g, int knapsack)
{
    const int64_t *fill = &g->fill[knapsack], capacity = g->knapsack.capacity[knapsack];

    g->heap.n = 0;
    for (int i = 0; i<g->problem->n_contexts && * fill> capacity; i++)
        if (knapsack_of_tier(&g->knapsack, g->plan->placement[i].tier) == knapsack && push_step(g, i))
            return -1;
    while (*fill > capacity && g->heap.n > 0) {
        int context = g->heap.at[0].context;
        const struct step *s = &g->step[context];
        heap_remove(&g->heap, 0);
        g->fill[knapsack] -= s->from_bytes;
        add_fill(g, s->to.tier, s->to_bytes);
        g->plan->placement[context] = s->to;
        if (knapsack_of_tier(&g->knapsack, s->to.tier) == knapsack && push_step(g, context))
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
        add_fill(g, c.tier, g->candidates.bytes[c.config]);
    }
    for (int d = 0; d < g->knapsack.n; d++)
        if (relieve(g, d))
            return -1;
    return 0;
}

static int open_greedy(struct greedy *g, struct err *err)
{
    if (plan_check(g->problem, err))
        return err->code;
    g->knapsack = knapsacks_of(g->problem);
    g->step = calloc((size_t)g->problem->n_contexts + 1, sizeof(*g->step));
    return g->step ? plan_candidates_init(&g->candidates, g->problem, err) : err_nomem(err);
}

static void close_greedy(struct greedy *g)
{
    plan_candidates_release(&g->candidates);
    heap_release(&g->heap);
    free(g->step);
}

int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver, struct err *err)
{
    size_t n = (size_t)problem->n_contexts;
    struct greedy g = { .problem = problem, .solver = solver, .plan = plan };

    *plan = (struct plan){ .n_contexts = problem->n_contexts, .placement = calloc(n + 1, sizeof(*plan->placement)) };
    int code = plan->placement ? open_greedy(&g, err) : err_nomem(err);
    if (!code)
        code = solve(&g) ? err_nomem(err) : plan_total(plan, problem, err);
    close_greedy(&g);
    if (code)
        plan_release(plan);
    return code;
}

int plan_greedy_insert(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver, int context,
                       struct err *err)
{
    struct greedy g = { .problem = problem, .solver = solver, .plan = plan };
    int code = open_greedy(&g, err);

    if (!code) {
        for (int t = 0; t < problem->n_tiers; t++)
            add_fill(&g, t, plan->fill[t]);
        plan_candidates_get(&g.candidates, problem, context);
        plan->placement[context] = best_candidate(&g, -1);
        add_fill(&g, plan->placement[context].tier, g.candidates.bytes[plan->placement[context].config]);
    }
    for (int d = 0; d < g.knapsack.n && !code; d++)
        code = relieve(&g, d) ? err_nomem(err) : 0;
    if (!code)
        code = plan_total(plan, problem, err);
    close_greedy(&g);
    return code;
}
