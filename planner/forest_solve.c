/* forest_solve.c - prices of a forest by cutting planes; a plan that fits, made better some contexts at a time.
 *
 * With one context of each tree free and all others fixed, the trees are independent, and what a tree is worth with
 * each placement of its free context is known: a problem for plan_solve(). So are contexts that none begins with: all
 * but those whose chunks serve others may be free together.
 */
#include "planner/forest_internal.h"

#include "base/rng.h"
#include "planner/master_lp.h"
#include "planner/sum.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CUTS = 120, MAX_BOXES = 20, MAX_STEPS = 60 };
enum {
    ROUNDS_WORK = 20000000,
    MIN_ROUNDS = 8,
    MAX_ROUNDS = 400,
    LATER_ROUNDS = 20,
    LEAVES_EVERY = 4,
    MAX_STARTS = 400,
    STARTS_PER_CONTEXT = 10
};
static const double near = 1e-9; // relative distance of the bound from the lowest one

struct search {
    const struct plan_problem *problem;
    const struct forest *f;
    struct trees trees;
    int n_knapsacks;
    double price[PLAN_TIERS], bound;  // the lowest bound found, and where
    struct plan_placement *placement; // (C) the best at some prices
    double demand[PLAN_TIERS];
};

/* ---- prices -------------------------------------------------------------------- */

/* The bound at prices; s->placement and s->demand are what is best there. */
static int evaluate(struct search *s, const double *price, double *bound, struct err *err)
{
    if (trees_evaluate(&s->trees, price, bound, err) || trees_placements(&s->trees, s->placement, s->demand, err))
        return err->code;
    for (int d = 0; d < s->n_knapsacks; d++)
        *bound += price[d] * (double)s->trees.knapsack.capacity[d];
    if (*bound < s->bound) {
        s->bound = *bound;
        memcpy(s->price, price, (size_t)s->n_knapsacks * sizeof(*price));
    }
    return 0;
}

/* Prices at which nothing is worth its bytes: a candidate brings its own gain, and at most the best gain to each use of
 * its tree. */
static void highest_prices(const struct trees *t, double *high)
{
    const struct forest *f = t->f;
    double best = 0;

    for (size_t k = 0; k < t->first[f->n]; k++)
        best = fmax(best, t->option[k].gain);
    for (size_t k = 0; f->part && k < (size_t)f->n * (size_t)t->problem->n_tiers; k++)
        best = fmax(best, f->part[k]); /* fmax ignores NAN */
    memset(high, 0, (size_t)t->knapsack.n * sizeof(*high));
    for (int root = 0; root < f->n; root = f->end[root]) {
        double uses = 0;
        for (int v = root; v < f->end[root]; v++)
            uses += f->frequency[v];
        for (int v = root; v < f->end[root]; v++)
            for (size_t k = t->first[v]; k < t->first[v + 1]; k++) {
                const struct forest_option *o = &t->option[k];
                if (o->knapsack >= 0)
                    high[o->knapsack] =
                        fmax(high[o->knapsack], (o->utility - t->recompute[v] + uses * (best - t->low)) / o->bytes);
            }
    }
}

/* Cutting planes (as in dual.c) for prices up to `high`. */
static int cut(struct search *s, const double *high, struct err *err)
{
    const double smoothing = 0.3;
    double width[PLAN_TIERS], at[PLAN_TIERS], slope[PLAN_TIERS];
    struct master_lp *m = malloc(sizeof(*m));
    int n = s->n_knapsacks, code = m ? 0 : err_nomem(err);

    for (int d = 0; d < n; d++) {
        width[d] = 1;
        at[d] = fmin(s->price[d], high[d]);
    }
    if (m)
        master_lp_init(m, n, width);
    for (int k = 0; k < MAX_CUTS && !code; k++) {
        double bound, value;
        code = evaluate(s, at, &bound, err);
        if (code)
            break;
        value = bound;
        for (int d = 0; d < n; d++) {
            slope[d] = (double)s->trees.knapsack.capacity[d] - s->demand[d];
            value -= slope[d] * at[d];
            slope[d] *= high[d];
        }
        if (n == 0 || master_lp_add(m, value, slope) || s->bound - m->theta <= near * fabs(s->bound))
            break;
        for (int d = 0; d < n; d++)
            at[d] = (1 - smoothing) * m->at[d] * high[d] + smoothing * s->price[d];
    }
    free(m);
    return code;
}

/* Finds the prices: near those of the contexts without what they share, then farther away where that is needed. */
static int find_prices(struct search *s, const double *flat, struct err *err)
{
    double limit[PLAN_TIERS], high[PLAN_TIERS];
    bool wider = true;

    highest_prices(&s->trees, limit);
    for (int d = 0; d < s->n_knapsacks; d++) {
        s->price[d] = fmin(flat[d], limit[d]);
        high[d] = fmin(flat[d] > 0 ? 4 * flat[d] : 1e-3 * limit[d], limit[d]) + 1e-300;
    }
    s->bound = HUGE_VAL;
    for (int k = 0; k < MAX_BOXES && wider; k++) {
        if (cut(s, high, err))
            return err->code;
        wider = false;
        for (int d = 0; d < s->n_knapsacks; d++)
            if (s->price[d] > 0.9 * high[d] && high[d] < limit[d]) {
                high[d] = fmin(8 * high[d], limit[d]);
                wider = true;
            }
    }
    return 0;
}

/* ---- a first plan ---------------------------------------------------------------- */

static bool fits(const struct search *s)
{
    bool all = true;

    for (int d = 0; d < s->n_knapsacks; d++)
        all &= s->demand[d] <= (double)s->trees.knapsack.capacity[d];
    return all;
}

/* What is best at the lowest multiple of the prices where it fits. */
static int first_plan(struct search *s, struct plan_placement *placement, struct err *err)
{
    size_t bytes = (size_t)s->problem->n_contexts * sizeof(*placement);
    double low = 1, high = 1, base[PLAN_TIERS], price[PLAN_TIERS], bound, step = 1e-4;
    bool found = false;

    memcpy(base, s->price, sizeof(base)); /* evaluate() may change them */
    for (int i = 0; i < s->problem->n_contexts; i++)
        placement[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    for (int k = 0; k < MAX_STEPS && (!found || high - low > 1e-7 * high); k++) {
        double times = found ? (low + high) / 2 : high;
        for (int d = 0; d < s->n_knapsacks; d++)
            price[d] = times * base[d];
        if (evaluate(s, price, &bound, err))
            return err->code;
        if (fits(s)) {
            memcpy(placement, s->placement, bytes);
            found = true;
            high = times;
        } else {
            low = times;
            high = found ? high : times * (1 + step);
            step = fmin(2 * step, 10);
        }
    }
    return 0;
}

/* ---- better plans ---------------------------------------------------------------- */

/* The plan at hand, and the round. Tree k has the contexts of nodes node[first[k]] to before node[first[k + 1]]. */
struct rounds {
    const struct search *s;
    const struct plan_problem *problem;
    struct plan_placement *placement; // (C) borrowed
    double *utility, *gain;           // (N) of each stored node: its own, and to a use below
    struct forest_use *use;           // (N)
    int n, turn, most;                // most: contexts of a tree
    int *root, *first, *node;
    bool leaves;       // free are leaves; else one context of each tree
    int n_free, *free; // (n_free) their nodes
    bool *is_free;     // (N)
    int *provider;     // (N) of each node: the node of the uncompressed cache whose chunks serve it, the fastest tier's
    double *value;     // (n_free, T + 2) worth of a tree with its free context recomputed; and stored, without its
                       // own utility and what uses below gain: compressed, uncompressed on tier 0, 1, ...
    double *below;     // (n_free) those uses
    int64_t capacity[PLAN_TIERS]; // left by what is fixed
    struct plan_candidates all;   // scratch
};

/* Does a free node's tree or leaf have nothing that depends on it? */
static bool is_alone(const struct rounds *r, int node)
{
    const struct forest *f = r->s->f;

    return r->leaves || (f->parent[node] < 0 && f->end[node] == node + 1);
}

/* Looks up what a node's placement is worth. */
static void look_up(struct rounds *r, int v)
{
    const struct forest *f = r->s->f;
    struct plan_placement at = r->placement[f->context[v]];

    r->utility[v] = r->gain[v] = 0;
    if (at.tier == PLAN_RECOMPUTE)
        return;
    plan_candidates_get(&r->all, r->problem, f->context[v]);
    r->utility[v] = plan_candidate_utility(&r->all, r->problem, at);
    if (f->end[v] > v + 1)
        r->gain[v] = f->gain(f->arg, v, at);
}

/* The worth of the tree of a root. *below: uses that a node serves below itself. */
static double worth_of_tree(const struct rounds *r, int root, int node, double *below)
{
    const struct forest *f = r->s->f;
    struct sum sum = { 0, 0 };

    *below = 0;
    trees_serve(f, r->placement, r->gain, root, r->use);
    for (int v = root; v < f->end[root]; v++) {
        bool stored = f->context[v] >= 0 && r->placement[f->context[v]].tier != PLAN_RECOMPUTE;
        sum_add(&sum, stored ? r->utility[v] : r->s->trees.recompute[v] + f->frequency[v] * r->use[v].gain);
        *below += !stored && r->use[v].node == node && node >= 0 ? f->frequency[v] : 0;
    }
    return sum.value;
}

/* The objective of the plan at hand. */
static double worth(const struct rounds *r)
{
    struct sum sum = { 0, 0 };
    double ignored;

    for (int k = 0; k < r->n; k++)
        sum_add(&sum, worth_of_tree(r, r->root[k], FOREST_NONE, &ignored));
    return sum.value;
}

/* The value of a leaf that is recomputed: what serves its parent serves it. */
static double value_of_leaf(const struct rounds *r, int v)
{
    const struct forest *f = r->s->f;

    return r->s->trees.recompute[v] + (f->parent[v] < 0 ? 0 : f->frequency[v] * r->use[f->parent[v]].gain);
}

static void value_free(struct rounds *r, int k)
{
    const struct forest *f = r->s->f;
    int v = r->free[k], c = f->context[v], n_tiers = r->problem->n_tiers, root = v;
    double *value = r->value + (size_t)k * (size_t)(n_tiers + 2), utility = r->utility[v], gain = r->gain[v], ignored;
    struct plan_placement was = r->placement[c];

    if (is_alone(r, v)) {
        value[0] = value_of_leaf(r, v);
        return;
    }
    while (f->parent[root] >= 0)
        root = f->parent[root];
    r->utility[v] = r->gain[v] = 0;
    for (int o = 0; o < n_tiers + 2; o++) {
        r->placement[c] = (struct plan_placement){ o > 1 ? 0 : 1, o == 0 ? PLAN_RECOMPUTE : o > 1 ? o - 2 : 0 };
        if (o < 2 || f->part)
            value[o] = worth_of_tree(r, root, o == 1 ? v : FOREST_NONE, o == 1 ? &r->below[k] : &ignored);
        else
            value[o] = value[1];
    }
    r->placement[c] = was;
    r->utility[v] = utility;
    r->gain[v] = gain;
}

/* The candidates of the k-th free context. */
static double candidates(const void *arg, int k, int64_t *bytes, double *utility)
{
    const struct rounds *r = arg;
    const struct forest *f = r->s->f;
    int v = r->free[k], n_tiers = r->problem->n_tiers, n_configs = r->problem->n_configs;
    const double *value = r->value + (size_t)k * (size_t)(n_tiers + 2);

    r->problem->candidates(r->problem->arg, f->context[v], bytes, utility);
    if (is_alone(r, v))
        return value[0];
    for (int c = 0; c < n_configs; c++)
        for (int d = 0; d < n_tiers; d++) {
            int cell = plan_cell(r->problem, c, d);
            if (r->below[k] > 0 && !isnan(utility[cell]))
                utility[cell] += r->below[k] * f->gain(f->arg, v, (struct plan_placement){ c, d });
            utility[cell] += value[c == 0 ? d + 2 : 1];
        }
    return value[0];
}

/* Takes what is fixed off the capacities. */
static void take_capacities(struct rounds *r)
{
    const struct plan_problem *p = r->problem;
    double used[PLAN_TIERS] = { 0 };

    for (int i = 0; i < r->first[r->n]; i++) {
        struct plan_placement at = r->placement[r->s->f->context[r->node[i]]];
        if (at.tier == PLAN_RECOMPUTE || r->is_free[r->node[i]])
            continue;
        plan_candidates_get(&r->all, p, r->s->f->context[r->node[i]]);
        used[p->pool ? p->pool[at.tier] : at.tier] += (double)r->all.bytes[at.config];
    }
    for (int t = 0; t < p->n_tiers; t++)
        r->capacity[t] = p->capacity[t] - (p->capacity[t] < INT64_MAX ? (int64_t)used[p->pool ? p->pool[t] : t] : 0);
}

/* Takes the uncompressed caches whose chunks serve a node that is no leaf from those that are free. */
static void fix_providers(struct rounds *r)
{
    const struct forest *f = r->s->f;
    int *provider = r->provider;

    for (int v = 0; v < f->n; v++)
        provider[v] = FOREST_NONE;
    for (int v = f->n - 1; v >= 0; v--) {
        int c = f->context[v], up = f->parent[v];
        bool own = c >= 0 && r->placement[c].tier != PLAN_RECOMPUTE && r->placement[c].config == 0;
        int of = f->end[v] > v + 1 ? provider[v] : FOREST_NONE;
        if (own && (of < 0 || r->placement[c].tier <= r->placement[f->context[of]].tier))
            of = v;
        if (f->end[v] > v + 1 && of >= 0)
            r->is_free[of] = false;
        if (up >= 0 && of >= 0 &&
            (provider[up] < 0 || r->placement[f->context[of]].tier <= r->placement[f->context[provider[up]]].tier))
            provider[up] = of;
    }
}

/* Frees one context of each tree, another one in each turn; or all leaves that serve no other node. */
static void choose_free(struct rounds *r)
{
    const struct forest *f = r->s->f;

    for (int v = 0; v < f->n; v++)
        r->is_free[v] = r->leaves && f->context[v] >= 0 && f->end[v] == v + 1;
    for (int k = 0; k < r->n && !r->leaves; k++)
        r->is_free[r->node[r->first[k] + r->turn % (r->first[k + 1] - r->first[k])]] = true;
    if (r->leaves && f->part)
        fix_providers(r);
    r->n_free = 0;
    for (int v = 0; v < f->n; v++)
        if (r->is_free[v])
            r->free[r->n_free++] = v;
}

/* One round. Takes the new placements if the objective rises. */
static int play(struct rounds *r, double *objective, const struct plan_effort *effort, struct err *err)
{
    const struct forest *f = r->s->f;
    struct plan_problem free_ones = *r->problem;
    struct plan found;

    choose_free(r);
    memset(r->below, 0, (size_t)r->n_free * sizeof(*r->below));
    for (int root = 0; root < f->n && r->leaves; root = f->end[root])
        trees_serve(f, r->placement, r->gain, root, r->use);
    for (int k = 0; k < r->n_free; k++)
        value_free(r, k);
    take_capacities(r);
    free_ones.n_contexts = r->n_free;
    free_ones.capacity = r->capacity;
    free_ones.candidates = candidates;
    free_ones.arg = r;
    if (plan_solve(&found, &free_ones, PLAN_OPTIMAL, effort, err))
        return err->code;
    for (int side = 0; side < 2; side++) { /* exchanges, and back if that is not better */
        for (int k = 0; k < r->n_free; k++) {
            struct plan_placement *at = &r->placement[f->context[r->free[k]]], was = *at;
            *at = found.placement[k];
            found.placement[k] = was;
            if (at->tier != was.tier || at->config != was.config)
                look_up(r, r->free[k]);
        }
        double is = side ? *objective : worth(r);
        if (side || is > *objective) {
            *objective = is;
            break;
        }
    }
    plan_release(&found);
    return 0;
}

/* The contexts of a tree in random order. */
static void shuffle(struct rounds *r)
{
    struct rng rng = rng_named(1, "forest");

    r->most = 1;
    for (int k = 0; k < r->n; k++) {
        int n = r->first[k + 1] - r->first[k], *node = r->node + r->first[k];
        r->most = n > r->most ? n : r->most;
        for (int i = n - 1; i > 0; i--) {
            int j = (int)rng_below(&rng, (uint64_t)i + 1), other = node[i];
            node[i] = node[j];
            node[j] = other;
        }
    }
}

static int list_trees(struct rounds *r, struct err *err)
{
    const struct forest *f = r->s->f;
    size_t n = (size_t)f->n + 1;
    int nodes = 0;

    r->utility = calloc(n, sizeof(*r->utility));
    r->gain = calloc(n, sizeof(*r->gain));
    r->use = calloc(n, sizeof(*r->use));
    r->root = calloc(n, sizeof(*r->root));
    r->first = calloc(n, sizeof(*r->first));
    r->node = calloc(n, sizeof(*r->node));
    r->free = calloc(n, sizeof(*r->free));
    r->is_free = calloc(n, sizeof(*r->is_free));
    r->provider = calloc(n, sizeof(*r->provider));
    if (!r->utility || !r->gain || !r->use || !r->root || !r->first || !r->node || !r->free || !r->is_free ||
        !r->provider)
        return err_nomem(err);
    for (int root = 0; root < f->n; root = f->end[root]) {
        r->root[r->n++] = root;
        for (int v = root; v < f->end[root]; v++)
            if (f->context[v] >= 0)
                r->node[nodes++] = v;
        r->first[r->n] = nodes;
    }
    r->value = calloc(n * (size_t)(r->problem->n_tiers + 2), sizeof(*r->value));
    r->below = calloc(n, sizeof(*r->below));
    shuffle(r);
    return r->value && r->below ? plan_candidates_init(&r->all, r->problem, err) : err_nomem(err);
}

/* Rounds until a whole turn over all contexts brings nothing. */
static int run_rounds(struct rounds *r, int first, int rounds, double *objective, struct err *err)
{
    double start[PLAN_TIERS];
    const struct plan_effort brief = { .start = start, .brief = true };
    int idle = 0, code = 0;

    for (int t = 0; t < r->problem->n_tiers; t++)
        start[t] = r->s->trees.knapsack.of[t] < 0 ? 0 : r->s->price[r->s->trees.knapsack.of[t]];
    for (int i = 0; i < r->first[r->n]; i++)
        look_up(r, r->node[i]);
    *objective = worth(r);
    r->turn = first;
    for (int k = 0; k < rounds && idle <= r->most && !code; k++) {
        double was = *objective;
        r->leaves = k % LEAVES_EVERY == LEAVES_EVERY - 1;
        code = play(r, objective, &brief, err);
        idle = *objective > was + near * fabs(was) ? 0 : idle + !r->leaves;
        r->turn += !r->leaves;
    }
    return code;
}

/* Changes the best plan, or makes a first one. */
static int start_from(struct search *s, struct rounds *r, const struct plan_placement *best, struct rng *rng,
                      struct err *err)
{
    double chance = rng_unit(rng) * rng_unit(rng);

    if (!best)
        return first_plan(s, r->placement, err);
    for (int i = 0; i < s->problem->n_contexts; i++)
        r->placement[i] = rng_unit(rng) < chance ? (struct plan_placement){ 0, PLAN_RECOMPUTE } : best[i];
    return 0;
}

/* Plays from a first plan, then from the best one with some contexts taken out, while that takes little. The best plan
 * is in r->placement at the end. */
static int try_starts(struct search *s, struct rounds *r, struct plan_placement *best, struct err *err)
{
    int work = (int)(ROUNDS_WORK / ((int64_t)(s->f->n + 1) * (s->problem->n_tiers + 2))), code = 0;
    int rounds = work < MIN_ROUNDS ? MIN_ROUNDS : work, starts = 1 + work / (2 * LATER_ROUNDS);
    size_t bytes = (size_t)s->problem->n_contexts * sizeof(*best);
    double highest = -HUGE_VAL, objective;
    struct rng rng = rng_named(2, "forest");

    rounds = rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    starts = starts > MAX_STARTS ? MAX_STARTS : starts;
    starts =
        starts > STARTS_PER_CONTEXT * s->problem->n_contexts ? STARTS_PER_CONTEXT * s->problem->n_contexts : starts;
    for (int k = 0; k < starts && !code; k++) {
        int first = k ? (int)rng_below(&rng, MAX_ROUNDS) : 0;
        code = start_from(s, r, k ? best : NULL, &rng, err);
        if (!code)
            code = run_rounds(r, first, k ? LATER_ROUNDS : rounds, &objective, err);
        if (!code && objective > highest) {
            highest = objective;
            memcpy(best, r->placement, bytes);
        }
    }
    memcpy(r->placement, best, bytes);
    return code;
}

/* The last round is played with all effort. */
static int make_plan(struct search *s, struct rounds *r, struct plan *plan, const struct plan_effort *effort,
                     struct err *err)
{
    struct plan_placement *best = calloc((size_t)plan->n_contexts + 1, sizeof(*best));
    int code = best ? 0 : err_nomem(err);

    if (!code)
        code = try_starts(s, r, best, err);
    if (!code)
        code = run_rounds(r, 0, 0, &plan->objective, err);
    if (!code)
        code = play(r, &plan->objective, effort, err);
    for (int i = 0; i < plan->n_contexts && !code; i++) {
        struct plan_placement at = plan->placement[i];
        if (at.tier == PLAN_RECOMPUTE)
            continue;
        plan_candidates_get(&r->all, s->problem, i);
        plan->fill[at.tier] += r->all.bytes[at.config];
    }
    free(best);
    return code;
}

/* ---- the whole -------------------------------------------------------------------- */

static int search(struct search *s, struct plan *plan, const struct plan_effort *effort, struct err *err)
{
    const struct plan_effort rough = { .start = effort->start, .rough = true };
    struct rounds r = { .s = s, .problem = s->problem, .placement = plan->placement };
    struct plan flat;
    double price[PLAN_TIERS];

    if (plan_solve(&flat, s->problem, PLAN_OPTIMAL, &rough, err))
        return err->code;
    for (int d = 0; d < s->n_knapsacks; d++)
        price[d] = flat.price[s->trees.knapsack.tier[d]];
    plan_release(&flat);
    int code = find_prices(s, price, err);
    if (!code)
        code = list_trees(&r, err);
    if (!code)
        code = make_plan(s, &r, plan, effort, err);
    free(r.utility);
    free(r.gain);
    free(r.use);
    free(r.root);
    free(r.first);
    free(r.node);
    free(r.free);
    free(r.is_free);
    free(r.provider);
    free(r.value);
    free(r.below);
    plan_candidates_release(&r.all);
    return code;
}

int forest_solve(struct plan *plan, const struct plan_problem *problem, const struct forest *f,
                 const struct plan_effort *effort, struct err *err)
{
    struct search s = { .problem = problem, .f = f };

    *plan = (struct plan){ .n_contexts = problem->n_contexts };
    if (plan_check(problem, err) || trees_init(&s.trees, f, problem, err))
        return err->code;
    size_t n = (size_t)problem->n_contexts + 1;
    s.n_knapsacks = s.trees.knapsack.n;
    s.placement = calloc(n, sizeof(*s.placement));
    plan->placement = calloc(n, sizeof(*plan->placement));
    int code = s.placement && plan->placement ? search(&s, plan, effort, err) : err_nomem(err);
    for (int t = 0; t < problem->n_tiers; t++)
        plan->price[t] = s.trees.knapsack.of[t] < 0 ? 0 : s.price[s.trees.knapsack.of[t]];
    plan->upper_bound = s.bound + 64 * 0x1p-52 * fabs(s.bound);
    plan->optimal = !code && plan->upper_bound - plan->objective <= 1e-12 * fabs(plan->upper_bound);
    trees_release(&s.trees);
    free(s.placement);
    if (code)
        plan_release(plan);
    return code;
}
