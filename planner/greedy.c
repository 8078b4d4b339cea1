/* greedy.c - the two greedies of the papers, which differ in one number: what a step costs.
 *
 * EvicPress (Algorithm 1, with the cascade of section 4.4): a step costs the utility it loses. AdaptCache: the utility
 * it loses per byte it frees. Steps are kept in a binary heap, one per context on the tier at work: its cheapest. Tiers
 * are settled from the fastest down, and a context only ever moves down, so each tier is done once. Ties go to the
 * lower context, then the lower config, then the faster tier.
 */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

struct step {
    double cost;
    int context;
    struct plan_choice to;
};

struct heap {
    struct step *at; // room for one per context
    int n;
};

static int before(const struct step *a, const struct step *b)
{
    return a->cost < b->cost || (a->cost <= b->cost && a->context < b->context);
}

static void heap_push(struct heap *h, struct step s)
{
    int i = h->n++;

    for (; i > 0 && before(&s, &h->at[(i - 1) / 2]); i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = s;
}

static struct step heap_pop(struct heap *h)
{
    struct step top = h->at[0], last = h->at[--h->n];
    int i = 0;

    for (;;) {
        int child = 2 * i + 1;
        if (child + 1 < h->n && before(&h->at[child + 1], &h->at[child]))
            child++;
        if (child >= h->n || !before(&h->at[child], &last))
            break;
        h->at[i] = h->at[child];
        i = child;
    }
    h->at[i] = last;
    return top;
}

struct greedy {
    const struct plan_problem *problem;
    enum plan_solver solver;
    struct plan_options options;
    struct plan *plan;
    struct heap heap;
};

static double step_cost(const struct greedy *g, double drop, int64_t freed)
{
    return g->solver == PLAN_EVICPRESS ? drop : drop / (double)freed;
}

/* The most useful option of all, or only of those on tiers slower than `above`. */
static struct plan_choice best_option(const struct greedy *g, int above)
{
    const struct plan_problem *p = g->problem;
    struct plan_choice best = { 0, PLAN_RECOMPUTE };
    double value = g->options.recompute;

    for (int v = 0; v < p->n_configs; v++) {
        for (int t = above + 1; t < p->n_tiers; t++) {
            if (!plan_option_ok(&g->options, p, v, t) || !(g->options.utility[v * p->n_tiers + t] > value))
                continue;
            value = g->options.utility[v * p->n_tiers + t];
            best = (struct plan_choice){ v, t };
        }
    }
    return best;
}

/* Puts the cheapest step of a context that frees bytes on its tier into the heap: leaving the tier, or shrinking in
 * place. A context that holds no bytes has none. */
static void push_step(struct greedy *g, int context)
{
    const struct plan_problem *p = g->problem;
    struct plan_choice at = g->plan->choice[context];

    plan_options_get(&g->options, p, context);
    int64_t bytes = g->options.bytes[at.config];
    double now = plan_option_utility(&g->options, p, at);
    if (bytes == 0)
        return;
    struct step s = { .context = context, .to = best_option(g, at.tier) };
    s.cost = step_cost(g, now - plan_option_utility(&g->options, p, s.to), bytes);
    for (int v = 0; v < p->n_configs; v++) {
        int64_t smaller = g->options.bytes[v];
        if (smaller >= bytes || !plan_option_ok(&g->options, p, v, at.tier))
            continue;
        double cost = step_cost(g, now - g->options.utility[v * p->n_tiers + at.tier], bytes - smaller);
        if (cost < s.cost) {
            s.cost = cost;
            s.to = (struct plan_choice){ v, at.tier };
        }
    }
    heap_push(&g->heap, s);
}

static void settle_tier(struct greedy *g, int tier)
{
    const struct plan_problem *p = g->problem;
    int64_t *fill = g->plan->fill;

    g->heap.n = 0;
    for (int i = 0; i < p->n_contexts && fill[tier] > p->capacity[tier]; i++)
        if (g->plan->choice[i].tier == tier)
            push_step(g, i);
    while (fill[tier] > p->capacity[tier] && g->heap.n > 0) {
        struct step s = heap_pop(&g->heap);
        struct plan_choice *c = &g->plan->choice[s.context];
        plan_options_get(&g->options, p, s.context);
        fill[tier] -= g->options.bytes[c->config];
        if (s.to.tier != PLAN_RECOMPUTE)
            fill[s.to.tier] += g->options.bytes[s.to.config];
        *c = s.to;
        if (s.to.tier == tier)
            push_step(g, s.context);
    }
}

static void solve(struct greedy *g)
{
    const struct plan_problem *p = g->problem;

    for (int i = 0; i < p->n_contexts; i++) {
        plan_options_get(&g->options, p, i);
        struct plan_choice c = best_option(g, -1);
        g->plan->choice[i] = c;
        if (c.tier != PLAN_RECOMPUTE)
            g->plan->fill[c.tier] += g->options.bytes[c.config];
    }
    for (int t = 0; t < p->n_tiers; t++)
        settle_tier(g, t);
}

int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver, struct err *err)
{
    size_t n = (size_t)problem->n_contexts;
    struct greedy g = { .problem = problem, .solver = solver, .plan = plan };

    *plan = (struct plan){ .n_contexts = problem->n_contexts, .choice = calloc(n + 1, sizeof(*plan->choice)) };
    g.heap.at = calloc(n + 1, sizeof(*g.heap.at));
    int code = plan->choice && g.heap.at ? plan_options_init(&g.options, problem, err) : err_nomem(err);
    if (!code) {
        solve(&g);
        code = plan_total(plan, problem, err);
    }
    plan_options_release(&g.options);
    free(g.heap.at);
    if (code)
        plan_release(plan);
    return code;
}
