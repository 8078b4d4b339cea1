/* greedy.c - the greedy algorithms of the two papers, which differ only in the cost of a step.
 *
 * EvicPress (Algorithm 1, with the cascade of section 4.4): cost = lost utility. AdaptCache: cost = lost utility per
 * freed byte. A binary heap for each knapsack (a tier, or a pool of tiers) has the cheapest step of each context that
 * is there, and steps that were: a context whose utilities have changed, or that has moved, has a new entry, and the
 * old one is passed over when its turn comes. Knapsacks are relieved from the fastest down, and contexts only move
 * down, so each knapsack is visited once. Ties go to the lower context, then the lower config, then the faster tier.
 */
#include "base/array.h"
#include "planner/candidate.h"
#include "planner/heap.h"
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

struct step {
    struct plan_placement to;
    int64_t from_bytes, to_bytes;
    double cost;
};

struct plan_greedy {
    const struct plan_problem *problem;
    enum plan_solver solver;
    struct plan_candidates candidates;
    struct plan_placement *at; // (C)
    struct knapsacks knapsack;
    int64_t fill[PLAN_TIERS];     // of the knapsacks
    struct step *step;            // (C) the cheapest of each context where it is
    struct heap heap[PLAN_TIERS]; // of the knapsacks: by its cost
    struct plan_greedy_moves moves;
    bool *moved; // (C) is it in `moves`?
};

static double step_cost(const struct plan_greedy *g, double lost, int64_t freed)
{
    return g->solver == PLAN_EVICPRESS ? lost : lost / (double)freed;
}

/* May a context go from tier `from` to `tier`: is it slower and unlimited, or in a lower knapsack? */
static bool is_below(const struct plan_greedy *g, int from, int tier)
{
    int d = knapsack_of_tier(&g->knapsack, tier);

    return d < 0 ? tier > from : d > knapsack_of_tier(&g->knapsack, from);
}

/* The candidate with the highest utility, of all or only of those below tier `above`. */
static struct plan_placement best_candidate(const struct plan_greedy *g, int above)
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
static int best_tier_in(const struct plan_greedy *g, int config, int knapsack)
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
 * bytes, or outside the knapsacks, has none. */
static int push_step(struct plan_greedy *g, int context)
{
    const struct plan_problem *p = g->problem;
    struct plan_placement at = g->at[context];
    int knapsack = knapsack_of_tier(&g->knapsack, at.tier);

    if (knapsack < 0)
        return 0;
    plan_candidates_get(&g->candidates, p, context);
    int64_t bytes = g->candidates.bytes[at.config];
    double now = plan_candidate_utility(&g->candidates, p, at);
    if (bytes == 0) {
        g->step[context].cost = (double)NAN; // no entry is its
        return 0;
    }
    struct plan_placement to = best_candidate(g, at.tier);
    double min_cost = step_cost(g, now - plan_candidate_utility(&g->candidates, p, to), bytes);
    for (int v = 0; v < p->n_configs; v++) {
        int64_t smaller = g->candidates.bytes[v];
        int tier = smaller < bytes ? best_tier_in(g, v, knapsack) : PLAN_RECOMPUTE;
        if (tier < 0)
            continue;
        double cost = step_cost(g, now - g->candidates.utility[plan_cell(p, v, tier)], bytes - smaller);
        if (cost < min_cost) {
            min_cost = cost;
            to = (struct plan_placement){ v, tier };
        }
    }
    g->step[context] =
        (struct step){ to, bytes, to.tier == PLAN_RECOMPUTE ? 0 : g->candidates.bytes[to.config], min_cost };
    return heap_push(&g->heap[knapsack], (struct heap_entry){ .key = min_cost, .context = context });
}

static void add_fill(struct plan_greedy *g, int tier, int64_t bytes)
{
    int d = knapsack_of_tier(&g->knapsack, tier);

    if (d >= 0)
        g->fill[d] += bytes;
}

/* Notes the first time that a context goes, and from where. */
static int move(struct plan_greedy *g, int context, struct plan_placement to)
{
    const struct plan_greedy_move m = { context, g->at[context] };
    bool first = !g->moved[context];

    g->at[context] = to;
    g->moved[context] = true;
    return first ? ARRAY_PUSH(&g->moves, m) : 0;
}

/* Takes the cheapest steps until a knapsack is within its capacity; -1 without memory. */
static int relieve(struct plan_greedy *g, int knapsack)
{
    struct heap *heap = &g->heap[knapsack];

    while (g->fill[knapsack] > g->knapsack.capacity[knapsack] && heap->n > 0) {
        const struct heap_entry e = heap->at[0];
        const struct step s = g->step[e.context];
        heap_remove(heap, 0);
        if (e.key != s.cost || knapsack_of_tier(&g->knapsack, g->at[e.context].tier) != knapsack)
            continue;
        g->fill[knapsack] -= s.from_bytes;
        add_fill(g, s.to.tier, s.to_bytes);
        if (move(g, e.context, s.to) || push_step(g, e.context))
            return -1;
    }
    return 0;
}

/* Puts a context where it is worth most, whether there is space or not. */
static int put(struct plan_greedy *g, int context)
{
    plan_candidates_get(&g->candidates, g->problem, context);
    struct plan_placement best = best_candidate(g, -1);
    add_fill(g, best.tier, g->candidates.bytes[best.config]);
    return move(g, context, best) || push_step(g, context) ? -1 : 0;
}

static int relieve_all(struct plan_greedy *g)
{
    for (int d = 0; d < g->knapsack.n; d++)
        if (relieve(g, d))
            return -1;
    return 0;
}

struct plan_greedy *plan_greedy_open(const struct plan_problem *problem, enum plan_solver solver, struct err *err)
{
    size_t n = (size_t)problem->n_contexts + 1;
    struct plan_greedy *g = calloc(1, sizeof(*g));

    if (!g) {
        err_nomem(err);
        return NULL;
    }
    g->problem = problem;
    g->solver = solver;
    g->at = malloc(n * sizeof(*g->at));
    g->step = calloc(n, sizeof(*g->step));
    g->moved = calloc(n, sizeof(*g->moved));
    int code = plan_check(problem, err);
    if (!code)
        code = g->at && g->step && g->moved ? plan_candidates_init(&g->candidates, problem, err) : err_nomem(err);
    if (code) {
        plan_greedy_close(g);
        return NULL;
    }
    g->knapsack = knapsacks_of(problem);
    for (int i = 0; i < problem->n_contexts; i++)
        g->at[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    return g;
}

void plan_greedy_close(struct plan_greedy *g)
{
    if (!g)
        return;
    plan_candidates_release(&g->candidates);
    for (int d = 0; d < PLAN_TIERS; d++)
        heap_release(&g->heap[d]);
    free(g->moves.at);
    free(g->moved);
    free(g->step);
    free(g->at);
    free(g);
}

struct plan_placement plan_greedy_at(const struct plan_greedy *g, int context)
{
    return g->at[context];
}

int plan_greedy_used(struct plan_greedy *g, int context, const struct plan_greedy_moves **moves, struct err *err)
{
    bool stored = g->at[context].tier != PLAN_RECOMPUTE;

    for (int k = 0; k < g->moves.n; k++)
        g->moved[g->moves.at[k].context] = false;
    g->moves.n = 0;
    *moves = &g->moves;
    return (stored ? push_step(g, context) : put(g, context) || relieve_all(g)) ? err_nomem(err) : 0;
}

int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver, struct err *err)
{
    struct plan_greedy *g = plan_greedy_open(problem, solver, err);
    int code = 0;

    if (!g)
        return err->code;
    for (int i = 0; i < problem->n_contexts && !code; i++)
        code = put(g, i) ? err_nomem(err) : 0;
    if (!code && relieve_all(g))
        code = err_nomem(err);
    *plan = (struct plan){ .n_contexts = problem->n_contexts, .placement = g->at };
    g->at = NULL;
    plan_greedy_close(g);
    if (!code)
        code = plan_total(plan, problem, err);
    if (code)
        plan_release(plan);
    return code;
}
