/* spread.c - places the contexts that wish for a tier, then the others by falling bytes, then those that fit nowhere.
 * */
#include "planner/spread.h"

#include "planner/candidate.h"
#include "planner/sum.h"

#include <stdlib.h>
#include <string.h>

/* A context that the plan of kinds stores. */
struct item {
    int64_t bytes;
    int context, kind, wish;
};

struct spreading {
    const struct spread *s;
    struct knapsacks knapsack;
    int64_t free[PLAN_TIERS]; // of each knapsack
    struct item *item;
    int n;
    struct plan_candidates all, of_kinds; // of one context, in both problems
    struct sum objective;
};

static int large_and_wishing_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if ((x->wish < 0) != (y->wish < 0))
        return x->wish < 0 ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->context - y->context;
}

/* Does a tier have this many free bytes? */
static bool has_free(const struct spreading *g, int tier, int64_t bytes)
{
    int d = g->knapsack.of[tier];

    return d < 0 || bytes <= g->free[d];
}

static void put(struct spreading *g, struct plan *plan, const struct item *m, int tier)
{
    int d = g->knapsack.of[tier];

    plan->placement[m->context].tier = tier;
    plan->fill[tier] += m->bytes;
    if (d >= 0)
        g->free[d] -= m->bytes;
}

/* The wished tier, or the tier of the kind that is left with the fewest free bytes; -1: the item fits on none. */
static int tightest(const struct spreading *g, const struct item *m)
{
    int best = -1;

    if (m->wish >= 0 && has_free(g, m->wish, m->bytes))
        return m->wish;
    for (int t = 0; t < g->s->problem->n_tiers; t++) {
        if (g->s->kind[t] != m->kind || !has_free(g, t, m->bytes))
            continue;
        if (best < 0 || (g->knapsack.of[t] >= 0 && g->free[g->knapsack.of[t]] < g->free[g->knapsack.of[best]]))
            best = t;
    }
    return best;
}

/* A context's most useful placement that fits now. */
static struct plan_placement best_free(const struct spreading *g)
{
    const struct plan_problem *p = g->s->problem;
    struct plan_placement best = { 0, PLAN_RECOMPUTE };

    for (int v = 0; v < p->n_configs; v++)
        for (int t = 0; t < p->n_tiers; t++)
            if (plan_candidate_ok(&g->all, p, v, t) && has_free(g, t, g->all.bytes[v]) &&
                g->all.utility[plan_cell(p, v, t)] > plan_candidate_utility(&g->all, p, best))
                best = (struct plan_placement){ v, t };
    return best;
}

/* Places a context that does not get its planned value, on `tier` or (-1) anywhere, and corrects the objective. */
static void put_otherwise(struct spreading *g, struct plan *plan, struct item *m, int tier)
{
    struct plan_placement *at = &plan->placement[m->context], promised = { at->config, m->kind };

    plan_candidates_get(&g->all, g->s->problem, m->context);
    plan_candidates_get(&g->of_kinds, g->s->kinds, m->context);
    sum_add(&g->objective, -plan_candidate_utility(&g->of_kinds, g->s->kinds, promised));
    *at = tier < 0 ? best_free(g) : (struct plan_placement){ at->config, tier };
    sum_add(&g->objective, plan_candidate_utility(&g->all, g->s->problem, *at));
    m->bytes = at->tier == PLAN_RECOMPUTE ? 0 : g->all.bytes[at->config];
    if (at->tier != PLAN_RECOMPUTE)
        put(g, plan, m, at->tier);
}

/* Lists the stored contexts with their bytes. */
static void list_items(struct spreading *g, const struct plan *plan)
{
    for (int i = 0; i < plan->n_contexts; i++) {
        struct plan_placement at = plan->placement[i];
        if (at.tier == PLAN_RECOMPUTE)
            continue;
        plan_candidates_get(&g->of_kinds, g->s->kinds, i);
        int wish = g->s->wish ? g->s->wish[i] : -1;
        wish = wish >= 0 && g->s->kind[wish] == at.tier ? wish : -1;
        g->item[g->n++] = (struct item){ g->of_kinds.bytes[at.config], i, at.tier, wish };
    }
}

static void divide(struct spreading *g, struct plan *plan)
{
    int n_left = 0;

    memset(plan->fill, 0, sizeof(plan->fill));
    sum_add(&g->objective, plan->objective);
    list_items(g, plan);
    qsort(g->item, (size_t)g->n, sizeof(*g->item), large_and_wishing_first);
    for (int k = 0; k < g->n; k++) {
        struct item m = g->item[k];
        int tier = tightest(g, &m);
        if (tier < 0)
            g->item[n_left++] = m;
        else if (m.wish >= 0 && tier != m.wish)
            put_otherwise(g, plan, &m, tier);
        else
            put(g, plan, &m, tier);
    }
    for (int k = 0; k < n_left; k++)
        put_otherwise(g, plan, &g->item[k], -1);
    plan->objective = g->objective.value;
}

int plan_spread(struct plan *plan, const struct spread *s, struct err *err)
{
    struct spreading g = { .s = s, .item = calloc((size_t)plan->n_contexts + 1, sizeof(*g.item)) };
    double price[PLAN_TIERS];
    int code = g.item ? 0 : err_nomem(err);

    if (!code)
        code = plan_check(s->problem, err);
    if (!code && (plan_candidates_init(&g.all, s->problem, err) || plan_candidates_init(&g.of_kinds, s->kinds, err)))
        code = err->code;
    memcpy(price, plan->price, sizeof(price));
    for (int t = 0; t < s->problem->n_tiers; t++)
        plan->price[t] = price[s->kind[t]];
    if (!code) {
        g.knapsack = knapsacks_of(s->problem);
        memcpy(g.free, g.knapsack.capacity, sizeof(g.free));
        divide(&g, plan);
    }
    plan->optimal = false;
    plan_candidates_release(&g.all);
    plan_candidates_release(&g.of_kinds);
    free(g.item);
    if (code)
        plan_release(plan);
    return code;
}
