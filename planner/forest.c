/* forest.c - what serves a node under a plan; the best placements of trees at given prices. The nodes of a group of
 * trees are visited from the last to the first, so the functions of a node's children lie on top of a stack. */
#include "planner/forest_internal.h"

#include "base/parallel.h"
#include "planner/sum.h"

#include <stdlib.h>
#include <string.h>

/* ---- what serves a node ------------------------------------------------------ */

static double part_of(const struct forest *f, int node, int tier)
{
    return f->part && tier >= 0 ? f->part[(size_t)node * (size_t)f->n_tiers + (size_t)tier] : (double)NAN;
}

/* Notes for each node of a tree the fastest tier with an uncompressed cache of its subtree. */
static void find_parts(const struct forest *f, const struct plan_placement *placement, int root, struct forest_use *use)
{
    for (int v = root; v < f->end[root]; v++) {
        int c = f->context[v];
        use[v].tier = c >= 0 && placement[c].config == 0 ? placement[c].tier : PLAN_RECOMPUTE;
    }
    for (int v = f->end[root] - 1; v > root; v--) {
        int *above = &use[f->parent[v]].tier;
        if (use[v].tier >= 0 && (*above < 0 || use[v].tier < *above))
            *above = use[v].tier;
    }
}

void trees_serve(const struct forest *f, const struct plan_placement *placement, const double *gain, int root,
                 struct forest_use *use)
{
    find_parts(f, placement, root, use);
    for (int v = root; v < f->end[root]; v++) {
        int c = f->context[v];
        double part = part_of(f, v, use[v].tier);
        if (c >= 0 && placement[c].tier != PLAN_RECOMPUTE)
            use[v] = (struct forest_use){ v, placement[c].tier, gain[v] };
        else if (!isnan(part))
            use[v] = (struct forest_use){ FOREST_NONE, use[v].tier, part };
        else
            use[v] = v > root ? use[f->parent[v]] : (struct forest_use){ FOREST_NONE, PLAN_RECOMPUTE, 0 };
    }
}

int forest_serve(const struct forest *f, const struct plan_placement *placement, struct forest_use *use,
                 struct err *err)
{
    double *gain = calloc((size_t)f->n + 1, sizeof(*gain));

    if (!gain)
        return err_nomem(err);
    for (int v = 0; v < f->n; v++) {
        int c = f->context[v];
        if (c >= 0 && placement[c].tier != PLAN_RECOMPUTE && f->end[v] > v + 1)
            gain[v] = f->gain(f->arg, v, placement[c]);
    }
    for (int root = 0; root < f->n; root = f->end[root])
        trees_serve(f, placement, gain, root, use);
    free(gain);
    return 0;
}

/* ---- options ------------------------------------------------------------------ */

static int by_knapsack_and_bytes(const void *a, const void *b)
{
    const struct forest_option *x = a, *y = b;

    if (x->knapsack != y->knapsack)
        return x->knapsack < y->knapsack ? -1 : 1;
    if (x->bytes < y->bytes || x->bytes > y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->utility > y->utility || x->utility < y->utility)
        return x->utility > y->utility ? -1 : 1;
    return x->tier != y->tier ? x->tier - y->tier : x->config - y->config;
}

/* Removes options that a smaller one of the same knapsack is not worse than, for the context and for nodes below.
 * Returns the number that is left. */
static size_t prune(const struct forest *f, struct forest_option *o, size_t n)
{
    size_t kept = 0, begin = 0;

    qsort(o, n, sizeof(*o), by_knapsack_and_bytes);
    for (size_t i = 0; i < n; i++) {
        bool useful = true;
        if (kept > begin && o[begin].knapsack != o[i].knapsack)
            begin = kept;
        for (size_t k = begin; k < kept && useful; k++)
            useful = o[i].utility > o[k].utility || o[i].gain > o[k].gain;
        if (useful || (f->part && o[i].config == 0))
            o[kept++] = o[i];
    }
    return kept;
}

/* The options of node v, written to `to`. */
static size_t list_options(struct trees *t, int v, struct plan_candidates *all, struct forest_option *to)
{
    const struct plan_problem *p = t->problem;
    const struct forest *f = t->f;
    bool alone = f->end[v] == v + 1;
    size_t n = 0;

    t->recompute[v] = 0;
    if (f->context[v] < 0)
        return 0;
    plan_candidates_get(all, p, f->context[v]);
    t->recompute[v] = all->recompute;
    for (int c = 0; c < p->n_configs; c++)
        for (int d = 0; d < p->n_tiers; d++) {
            if (!plan_candidate_ok(all, p, c, d))
                continue;
            int knapsack = all->bytes[c] > 0 ? knapsack_of_tier(&t->knapsack, d) : -1;
            double gain = alone ? 0 : f->gain(f->arg, v, (struct plan_placement){ c, d });
            to[n++] = (struct forest_option){
                (double)all->bytes[c], all->utility[plan_cell(p, c, d)], gain, (uint16_t)c, (int8_t)d, (int8_t)knapsack
            };
        }
    return prune(f, to, n);
}

static int list_all(struct trees *t, struct err *err)
{
    size_t cells = (size_t)t->problem->n_configs * (size_t)t->problem->n_tiers + 1, room = 0;
    struct plan_candidates all;
    int code = plan_candidates_init(&all, t->problem, err);

    for (int v = 0; v < t->f->n && !code; v++) {
        if (t->first[v] + cells > room) {
            room = 2 * (t->first[v] + cells);
            struct forest_option *more = realloc(t->option, room * sizeof(*more));
            if (!more) {
                code = err_nomem(err);
                break;
            }
            t->option = more;
        }
        t->first[v + 1] = t->first[v] + list_options(t, v, &all, t->option + t->first[v]);
        for (size_t k = t->first[v]; k < t->first[v + 1]; k++)
            t->low = fmin(t->low, t->option[k].gain);
    }
    for (size_t k = 0; t->f->part && k < (size_t)t->f->n * (size_t)t->problem->n_tiers; k++)
        t->low = fmin(t->low, t->f->part[k]); /* fmin ignores NAN */
    plan_candidates_release(&all);
    return code;
}

/* Groups whole trees, so that several threads have work. */
static void group(struct trees *t)
{
    enum { GROUP_NODES = 2048 };

    t->n_blocks = 0;
    for (int v = 0, since = -GROUP_NODES; v < t->f->n; v = t->f->end[v])
        if (v - since >= GROUP_NODES)
            t->block[t->n_blocks++] = since = v;
    t->block[t->n_blocks] = t->f->n;
}

int trees_init(struct trees *t, const struct forest *f, const struct plan_problem *problem, struct err *err)
{
    size_t n = (size_t)f->n, parts = f->part ? n * (size_t)problem->n_tiers : 0;

    *t = (struct trees){ .f = f,
                         .problem = problem,
                         .knapsack = knapsacks_of(problem),
                         .first = calloc(n + 1, sizeof(*t->first)),
                         .recompute = calloc(n + 1, sizeof(*t->recompute)),
                         .best = calloc(n + 1, sizeof(*t->best)),
                         .part = calloc(parts + 1, sizeof(*t->part)),
                         .block = calloc(n + 1, sizeof(*t->block)),
                         .value = calloc(n + 1, sizeof(*t->value)) };
    int code =
        t->first && t->recompute && t->best && t->part && t->block && t->value ? list_all(t, err) : err_nomem(err);
    if (!code)
        group(t);
    else
        trees_release(t);
    return code;
}

void trees_release(struct trees *t)
{
    free(t->first);
    free(t->option);
    free(t->recompute);
    free(t->best);
    free(t->part);
    free(t->block);
    free(t->value);
    *t = (struct trees){ 0 };
}

/* ---- convex functions of the gain ---------------------------------------------- */

/* The slope rises by `jump` at `at`. */
struct bend {
    double at, jump;
};

/* A function on the stack: its value and slope at the least gain, and its bends. */
struct function {
    int node;
    size_t first, n;
    double start, slope;
};

/* One thread's work: a group of trees. */
struct work {
    struct trees *t;
    const double *price;    // (D)
    struct bend *bend;      // the bends of all functions on the stack, in its order
    struct function *stack; // the last child first
    int n;
    double *value, *slope; // of the children's sum: at each bend, and after it
    double *below;         // (T) the best H of a child, less what the child is worth otherwise
    int *child;            // (T) which
};

static int by_place(const void *a, const void *b)
{
    const struct bend *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static double value_at(const struct work *w, const struct function *f, double gain)
{
    const struct bend *b = w->bend + f->first, *end = b + f->n;
    double value = f->start + f->slope * (gain - w->t->low);

    for (; b < end && b->at < gain; b++)
        value += b->jump * (gain - b->at);
    return value;
}

/* The same of a function whose values and slopes at its bends are known. */
static double sum_at(const struct work *w, const struct function *f, double gain)
{
    size_t low = 0, high = f->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->bend[f->first + middle].at < gain)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return f->start + f->slope * (gain - w->t->low);
    return w->value[low - 1] + w->slope[low - 1] * (gain - w->bend[f->first + low - 1].at);
}

/* Replaces the functions of the children by their sum. */
static struct function add_up(struct work *w, int node, int n_children)
{
    struct function sum = { .node = node }, *child = w->stack + w->n - n_children;
    double at = w->t->low;

    sum.first = n_children > 0 ? child[0].first : w->n > 0 ? w->stack[w->n - 1].first + w->stack[w->n - 1].n : 0;
    for (int k = 0; k < n_children; k++) {
        sum.n += child[k].n;
        sum.start += child[k].start;
        sum.slope += child[k].slope;
    }
    w->n -= n_children;
    if (n_children > 1)
        qsort(w->bend + sum.first, sum.n, sizeof(*w->bend), by_place);
    double value = sum.start, slope = sum.slope;
    for (size_t k = 0; k < sum.n; k++) {
        const struct bend *b = &w->bend[sum.first + k];
        value += slope * (b->at - at);
        slope += b->jump;
        at = b->at;
        w->value[k] = value;
        w->slope[k] = slope;
    }
    return sum;
}

/* Makes it the maximum of itself and a constant. Returns from where it is above the constant. */
static double raise(struct work *w, struct function *f, double constant)
{
    double value = f->start, slope = f->slope, at = w->t->low;
    size_t n = f->n, k = 0;

    if (value >= constant)
        return -HUGE_VAL;
    while (k < n && value + slope * (w->bend[f->first + k].at - at) <= constant) {
        value += slope * (w->bend[f->first + k].at - at);
        at = w->bend[f->first + k].at;
        slope += w->bend[f->first + k++].jump;
    }
    double from = slope > 0 ? fmax(at + (constant - value) / slope, w->t->low) : HUGE_VAL;
    *f = (struct function){ f->node, f->first, 0, constant, 0 };
    if (from < HUGE_VAL) {
        memmove(w->bend + f->first + 1, w->bend + f->first + k, (n - k) * sizeof(*w->bend));
        w->bend[f->first] = (struct bend){ from, slope };
        f->n = n - k + 1; /* one more for each node at most */
    }
    return from;
}

/* ---- one node -------------------------------------------------------------------- */

/* Finds for each tier which child should hold an uncompressed cache for this node. */
static void compare_children(struct work *w, int node, int n_children)
{
    const struct trees *t = w->t;
    int n_tiers = t->f->part ? t->problem->n_tiers : 0;

    for (int d = 0; d < n_tiers; d++) {
        double gain = part_of(t->f, node, d);
        struct forest_part *h = &t->part[(size_t)node * (size_t)n_tiers + (size_t)d];
        *h = (struct forest_part){ -HUGE_VAL, FOREST_NONE, FOREST_NONE };
        w->below[d] = -HUGE_VAL;
        for (int k = 0; k < n_children; k++) {
            const struct function *f = &w->stack[w->n - n_children + k];
            double held = t->part[(size_t)f->node * (size_t)n_tiers + (size_t)d].value;
            if (!(held > -HUGE_VAL))
                continue;
            double more = held - value_at(w, f, gain), instead = held - t->best[f->node].value;
            if (!isnan(gain) && more > h->value)
                *h = (struct forest_part){ more, FOREST_NONE, f->node };
            if (instead > w->below[d]) {
                w->below[d] = instead;
                w->child[d] = f->node;
            }
        }
    }
}

/* Chooses the node's option; writes H of its own uncompressed cache. */
static void choose_option(struct work *w, int node, const struct function *sum, struct forest_best *best)
{
    const struct trees *t = w->t;
    int n_tiers = t->problem->n_tiers;

    *best = (struct forest_best){ -HUGE_VAL, 0, FOREST_NONE, PLAN_RECOMPUTE };
    for (size_t k = t->first[node]; k < t->first[node + 1]; k++) {
        const struct forest_option *o = &t->option[k];
        double value = o->utility - (o->knapsack >= 0 ? w->price[o->knapsack] * o->bytes : 0) + sum_at(w, sum, o->gain);
        if (value > best->value) {
            best->value = value;
            best->option = (int)(k - t->first[node]);
        }
        if (!t->f->part || o->config != 0)
            continue;
        struct forest_part *h = &t->part[(size_t)node * (size_t)n_tiers + (size_t)o->tier];
        if (value > h->value)
            *h = (struct forest_part){ value, (int)(k - t->first[node]), FOREST_NONE };
    }
}

/* H and P of a node from what its children and options can do. */
static void finish(struct work *w, int node, const struct function *sum)
{
    const struct trees *t = w->t;
    int n_tiers = t->f->part ? t->problem->n_tiers : 0;
    struct forest_best best, *to = &t->best[node];

    for (int d = 0; d < n_tiers; d++) {
        struct forest_part *h = &t->part[(size_t)node * (size_t)n_tiers + (size_t)d];
        double gain = part_of(t->f, node, d);
        if (h->child >= 0)
            h->value += t->recompute[node] + t->f->frequency[node] * gain + sum_at(w, sum, gain);
    }
    choose_option(w, node, sum, &best);
    *to = best;
    for (int d = 0; d < n_tiers; d++) {
        struct forest_part *h = &t->part[(size_t)node * (size_t)n_tiers + (size_t)d];
        if (best.option >= 0 && w->below[d] > -HUGE_VAL && best.value + w->below[d] > h->value)
            *h = (struct forest_part){ best.value + w->below[d], best.option, w->child[d] };
        if (h->value > to->value)
            *to = (struct forest_best){ h->value, 0, FOREST_NONE, d };
    }
}

static void visit(struct work *w, int node)
{
    const struct trees *t = w->t;
    const struct forest *f = t->f;
    int n_children = 0;

    for (int c = node + 1; c < f->end[node]; c = f->end[c])
        n_children++;
    compare_children(w, node, n_children);
    struct function sum = add_up(w, node, n_children);
    finish(w, node, &sum);
    sum.start += t->recompute[node] + f->frequency[node] * t->low;
    sum.slope += f->frequency[node];
    t->best[node].from = raise(w, &sum, t->best[node].value);
    w->stack[w->n++] = sum;
}

static void run(void *arg, int block)
{
    const struct work *shared = arg;
    struct trees *t = shared->t;
    int begin = t->block[block], end = t->block[block + 1];
    size_t n = (size_t)(end - begin) + 1, n_tiers = (size_t)t->problem->n_tiers + 1;
    struct work w = { .t = t,
                      .price = shared->price,
                      .bend = malloc(n * sizeof(*w.bend)),
                      .stack = malloc(n * sizeof(*w.stack)),
                      .value = malloc(n * sizeof(*w.value)),
                      .slope = malloc(n * sizeof(*w.slope)),
                      .below = malloc(n_tiers * sizeof(*w.below)),
                      .child = malloc(n_tiers * sizeof(*w.child)) };
    bool ok = w.bend && w.stack && w.value && w.slope && w.below && w.child;
    struct sum sum = { 0, 0 };

    for (int v = end - 1; ok && v >= begin; v--) {
        visit(&w, v);
        if (t->f->parent[v] >= 0)
            continue;
        sum_add(&sum, value_at(&w, &w.stack[w.n - 1], 0));
        w.n = 0;
    }
    t->value[block] = sum.value;
    if (!ok)
        __atomic_store_n(&t->failed, 1, __ATOMIC_RELAXED);
    free(w.bend);
    free(w.stack);
    free(w.value);
    free(w.slope);
    free(w.below);
    free(w.child);
}

int trees_evaluate(struct trees *t, const double *price, double *value, struct err *err)
{
    struct work w = { .t = t, .price = price };
    struct sum sum = { 0, 0 };

    t->failed = 0;
    parallel_do(parallel_threads(), t->n_blocks, run, &w);
    if (t->failed)
        return err_nomem(err);
    for (int b = 0; b < t->n_blocks; b++)
        sum_add(&sum, t->value[b]);
    *value = sum.value;
    return 0;
}

/* ---- the placements ---------------------------------------------------------------- */

/* What a node's parent has decided for it. */
struct order {
    double gain; // that serves the parent
    int tier;    // an uncompressed cache on this tier must be in the subtree; PLAN_RECOMPUTE: free
};

static void decide(const struct trees *t, int v, struct order *order, struct plan_placement *placement, double *demand)
{
    const struct forest *f = t->f;
    size_t n_tiers = (size_t)t->problem->n_tiers;
    int tier = order[v].tier, option = FOREST_NONE, child = FOREST_NONE;
    double gain = order[v].gain;

    if (tier == PLAN_RECOMPUTE && gain <= t->best[v].from) {
        option = t->best[v].option;
        tier = option >= 0 ? PLAN_RECOMPUTE : t->best[v].part;
    }
    if (tier != PLAN_RECOMPUTE) {
        const struct forest_part *h = &t->part[(size_t)v * n_tiers + (size_t)tier];
        option = h->option;
        child = h->child;
        gain = part_of(f, v, tier);
    }
    if (f->context[v] >= 0)
        placement[f->context[v]] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    if (option >= 0) {
        const struct forest_option *o = &t->option[t->first[v] + (size_t)option];
        placement[f->context[v]] = (struct plan_placement){ o->config, o->tier };
        gain = o->gain;
        if (o->knapsack >= 0)
            demand[o->knapsack] += o->bytes;
    }
    for (int c = v + 1; c < f->end[v]; c = f->end[c])
        order[c] = (struct order){ gain, c == child ? tier : PLAN_RECOMPUTE };
}

int trees_placements(const struct trees *t, struct plan_placement *placement, double *demand, struct err *err)
{
    struct order *order = malloc(((size_t)t->f->n + 1) * sizeof(*order));

    if (!order)
        return err_nomem(err);
    memset(demand, 0, (size_t)t->knapsack.n * sizeof(*demand));
    for (int v = 0; v < t->f->n; v++) {
        if (t->f->parent[v] < 0)
            order[v] = (struct order){ 0, PLAN_RECOMPUTE };
        decide(t, v, order, placement, demand);
    }
    free(order);
    return 0;
}
