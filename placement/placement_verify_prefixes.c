/* placement_verify_prefixes.c - the bound of a manifest whose contexts serve each other, with none of the solver's
 * code.
 *
 * As planner/forest.h, but F of a node is a table: one value for every gain that its parent can be served with. Those
 * are 0, and for each node above, from the root down, the gains of its context's variants and of its chunks on each
 * tier.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>
#include <string.h>

struct values {
    double *f, *held, best; // (states of the parent); (T) H; P
};

struct bounding {
    const struct placement_input *in;
    const double *price; // (T)
    int n_tiers, n_own;  // tiers; gains of a node: every variant, then chunks on each tier
    int *depth;          // (N) nodes above
    double *gain;        // (N, n_own)
    struct values *of;   // (N)
};

static double *gains_of(const struct bounding *b, int node)
{
    return b->gain + (size_t)node * (size_t)b->n_own;
}

/* Index of a node's gain k among the states of its children. */
static int state(const struct bounding *b, int node, int k)
{
    return 1 + b->depth[node] * b->n_own + k;
}

static bool may_hold(const struct placement_input *in, int row, int v, int t)
{
    size_t cell = table_cell(&in->table, row, v);

    return placement_allowed(in, cell, placement_floor(in, row)) && (in->pin[row] == PIN_NONE || in->pin[row] == t) &&
           in->table.cell_bytes[cell] <= in->capacity[t] && placement_tier_allows(in, v, t);
}

static double recomputed(const struct placement_input *in, int row)
{
    double value = row < 0 ? 0 : placement_utility(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });

    return row >= 0 && in->pin[row] >= 0 ? utility_unpinned(value) : value;
}

/* Utility of a context's variant on a tier, less costs and the price of its bytes; -inf: not allowed. */
static double reduced(const struct bounding *b, int row, int v, int t)
{
    const struct placement_input *in = b->in;
    struct plan_placement c = { v, t };

    if (row < 0 || !may_hold(in, row, v, t))
        return -HUGE_VAL;
    return placement_utility(in, row, c) - placement_write_cost(in, row, c) -
           in->move_price * (double)placement_written(in, row, c) -
           b->price[t] * (double)in->table.cell_bytes[table_cell(&in->table, row, v)];
}

/* The sum of the children's F at one of their states; *more[t]: how much more it is if one of them holds an
 * uncompressed cache on tier t for this node. */
static double sum_of_children(const struct bounding *b, int node, int at, double *more)
{
    const struct placement_prefixes *p = &b->in->prefixes;
    double sum = 0;

    for (int t = 0; t < b->n_tiers; t++)
        more[t] = -HUGE_VAL;
    for (int c = node + 1; c < p->end[node]; c = p->end[c]) {
        sum += b->of[c].f[at];
        for (int t = 0; t < b->n_tiers; t++)
            more[t] = fmax(more[t], b->of[c].held[t] - b->of[c].f[at]);
    }
    return sum;
}

/* P and H. */
static void store(struct bounding *b, int node)
{
    const struct placement_input *in = b->in;
    int row = in->prefixes.row[node], n_tiers = b->n_tiers;
    bool chunks = in->sharing == SHARING_CHUNKS;
    double more[TIER_MAX], frequency = row < 0 ? 0 : in->frequency[row];
    struct values *to = &b->of[node];

    to->best = -HUGE_VAL;
    for (int t = 0; t < n_tiers; t++)
        to->held[t] = -HUGE_VAL;
    for (int v = 0; v < in->table.n_configs; v++)
        for (int t = 0; t < n_tiers; t++) {
            double own = reduced(b, row, v, t);
            if (!(own > -HUGE_VAL))
                continue;
            double value = own + sum_of_children(b, node, state(b, node, v * n_tiers + t), more);
            to->best = fmax(to->best, value);
            for (int d = 0; chunks && d < n_tiers; d++) {
                to->held[d] = fmax(to->held[d], value + more[d]);
                to->held[d] = v == 0 && t == d ? fmax(to->held[d], value) : to->held[d];
            }
        }
    for (int t = 0; chunks && t < n_tiers; t++) {
        int k = in->table.n_configs * n_tiers + t;
        double gain = gains_of(b, node)[k];
        if (isnan(gain))
            continue;
        double value = recomputed(in, row) + frequency * gain + sum_of_children(b, node, state(b, node, k), more);
        to->held[t] = fmax(to->held[t], value + more[t]);
    }
    for (int t = 0; t < n_tiers; t++)
        to->best = fmax(to->best, to->held[t]);
}

/* F at every state of the parent. */
static void serve(struct bounding *b, int node)
{
    const struct placement_prefixes *p = &b->in->prefixes;
    int row = p->row[node];
    double more[TIER_MAX], base = recomputed(b->in, row), frequency = row < 0 ? 0 : b->in->frequency[row];
    double *f = b->of[node].f;

    f[0] = fmax(base + sum_of_children(b, node, 0, more), b->of[node].best);
    for (int up = p->parent[node]; up >= 0; up = p->parent[up])
        for (int k = 0; k < b->n_own; k++) {
            int at = state(b, up, k);
            double gain = gains_of(b, up)[k];
            f[at] = isnan(gain) ? -HUGE_VAL
                                : fmax(base + frequency * gain + sum_of_children(b, node, at, more), b->of[node].best);
        }
}

static int bound_node(struct bounding *b, int node, struct err *err)
{
    const struct placement_prefixes *p = &b->in->prefixes;
    size_t n_states = 1 + (size_t)b->depth[node] * (size_t)b->n_own;

    b->of[node].f = calloc(n_states, sizeof(double));
    b->of[node].held = calloc((size_t)b->n_tiers + 1, sizeof(double));
    if (!b->of[node].f || !b->of[node].held)
        return err_nomem(err);
    store(b, node);
    serve(b, node);
    for (int c = node + 1; c < p->end[node]; c = p->end[c]) {
        free(b->of[c].f);
        free(b->of[c].held);
        b->of[c] = (struct values){ 0 };
    }
    return 0;
}

static void find_gains(struct bounding *b)
{
    const struct placement_input *in = b->in;
    const struct placement_prefixes *p = &in->prefixes;

    for (int v = 0; v < p->n; v++) {
        double *gain = gains_of(b, v);
        b->depth[v] = p->parent[v] < 0 ? 0 : b->depth[p->parent[v]] + 1;
        for (int k = 0; k < b->n_own; k++) {
            int config = k / b->n_tiers, t = k % b->n_tiers;
            if (config == in->table.n_configs)
                gain[k] = placement_chunks_saved(in, v, t);
            else
                gain[k] = p->row[v] >= 0 && may_hold(in, p->row[v], config, t)
                              ? placement_beginning_gain(in, v, (struct plan_placement){ config, t })
                              : (double)NAN;
        }
    }
}

int placement_bound_prefixes(const struct placement_input *in, const double *price, double *bound, struct err *err)
{
    size_t n = (size_t)in->prefixes.n;
    int n_own = (in->table.n_configs + 1) * in->tiers.n;
    struct bounding b = { .in = in, .price = price, .n_tiers = in->tiers.n, .n_own = n_own };
    int code = 0;

    b.depth = calloc(n + 1, sizeof(*b.depth));
    b.gain = calloc(n * (size_t)n_own + 1, sizeof(*b.gain));
    b.of = calloc(n + 1, sizeof(*b.of));
    if (!b.depth || !b.gain || !b.of)
        code = err_nomem(err);
    if (!code)
        find_gains(&b);
    *bound = 0;
    for (int v = in->prefixes.n - 1; v >= 0 && !code; v--) {
        code = bound_node(&b, v, err);
        if (!code && in->prefixes.parent[v] < 0) {
            *bound += b.of[v].f[0];
            free(b.of[v].f);
            free(b.of[v].held);
            b.of[v] = (struct values){ 0 };
        }
    }
    for (size_t v = 0; v < n && b.of; v++) {
        free(b.of[v].f);
        free(b.of[v].held);
    }
    free(b.depth);
    free(b.gain);
    free(b.of);
    return code;
}

/* ---- what serves the rows of a manifest -------------------------------------------- */

/* The fastest tier with an uncompressed cache of a node's subtree; n_tiers: none. */
static int fastest_below(const struct placement_input *in, const struct plan_placement *at, int node)
{
    const struct placement_prefixes *p = &in->prefixes;
    int fastest = in->tiers.n;

    for (int v = node; v < p->end[node]; v++) {
        int row = p->row[v];
        if (row >= 0 && at[row].tier != PLAN_RECOMPUTE && at[row].config == 0 && at[row].tier < fastest)
            fastest = at[row].tier;
    }
    return fastest;
}

/* fastest: (N) fastest_below(). */
static struct placement_use serving(const struct placement_input *in, const struct plan_placement *at,
                                    const int *fastest, int node)
{
    const struct placement_prefixes *p = &in->prefixes;
    struct placement_use use = { .row = -1 };

    if (at[p->row[node]].tier != PLAN_RECOMPUTE)
        return use;
    for (int v = node; v >= 0; v = p->parent[v]) {
        int row = p->row[v];
        if (row >= 0 && at[row].tier != PLAN_RECOMPUTE)
            return (struct placement_use){ row, at[row], placement_beginning_saved(in, v, at[row]),
                                           placement_beginning_gain(in, v, at[row]) };
        double saved = in->sharing == SHARING_CHUNKS && fastest[v] < in->tiers.n
                           ? placement_chunks_saved(in, v, fastest[v])
                           : (double)NAN;
        if (!isnan(saved)) {
            use.saved_s = use.gain = saved;
            return use;
        }
    }
    return use;
}

int placement_serving(struct placement_use **use, const struct placement_input *in, const struct plan_placement *at,
                      struct err *err)
{
    const struct placement_prefixes *p = &in->prefixes;
    int *fastest = calloc((size_t)p->n + 1, sizeof(*fastest));

    *use = calloc((size_t)in->table.n_contexts + 1, sizeof(**use));
    for (int c = 0; *use && c < in->table.n_contexts; c++)
        (*use)[c].row = -1;
    for (int v = 0; v < p->n && *use && fastest; v++)
        fastest[v] = fastest_below(in, at, v);
    for (int v = 0; v < p->n && *use && fastest; v++)
        if (p->row[v] >= 0)
            (*use)[p->row[v]] = serving(in, at, fastest, v);
    int code = *use && fastest ? 0 : err_nomem(err);
    free(fastest);
    return code;
}
