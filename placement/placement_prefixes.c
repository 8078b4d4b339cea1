/* placement_prefixes.c - contexts whose tokens begin with another's, as the trees of planner/forest.h.
 *
 * The table's prefix digests say which chunks of 256 tokens contexts have in common. A context begins another one if
 * all its whole chunks do; its tokens after these, which no digest of the other covers, are taken to agree. Of several
 * contexts that end within the same chunk none is taken to begin another.
 *
 * What a use saves: the prefill of the beginning, less reading and decompression. The prefill of a beginning is the
 * least that the prefill curves of the contexts with this beginning say, so that no context saves more than its own
 * prefill.
 */
#include "placement/placement_internal.h"

#include "base/array.h"
#include "planner/forest.h"

#include <stdlib.h>
#include <string.h>

enum { HEX = DIGEST_HEX - 1 };

/* ---- building ------------------------------------------------------------------ */

/* A node before the nodes are in order. */
struct draft {
    int parent, row;
    size_t n_chunks;
    int child, next; // lists of children; -1: no more
};

struct drafts {
    struct draft *at;
    int n, cap;
};

static int add(struct drafts *d, int parent, int row, size_t n_chunks, struct err *err)
{
    struct draft node = { parent, row, n_chunks, -1, -1 };

    return ARRAY_PUSH(d, node) ? err_nomem(err) : 0;
}

struct chain {
    const char *hex;
    int row;
};

static int by_chain(const void *a, const void *b)
{
    const struct chain *x = a, *y = b;
    int order = strcmp(x->hex, y->hex);

    return order ? order : x->row - y->row;
}

/* The chunks that two chains have in common. */
static size_t common(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n / HEX;
}

/* Adds the nodes of contexts with the same chain below the node at hand, whose chain is a beginning of it. Returns
 * their node, or an error. */
static int add_group(struct drafts *d, int top, const struct chain *group, int n, struct err *err)
{
    size_t n_chunks = strlen(group->hex) / HEX;
    int node = d->n;

    if (add(d, top, n == 1 ? group->row : -1, n_chunks, err))
        return err->code;
    for (int i = 0; i < n && n > 1; i++)
        if (add(d, node, group[i].row, n_chunks, err))
            return err->code;
    return node;
}

/* Makes the nodes from chains in order: a context's node lies below the last one whose chain is a beginning of its own,
 * and where it parts from the one before, there is a node, too. */
static int draft_trees(struct drafts *d, const struct chain *chain, int n, struct err *err)
{
    int top = -1;

    for (int i = 0, end; i < n; i = end) {
        size_t same = i > 0 ? common(chain[i - 1].hex, chain[i].hex) : 0;
        int last = -1;
        for (end = i + 1; end < n && strcmp(chain[end].hex, chain[i].hex) == 0;)
            end++;
        while (top >= 0 && d->at[top].n_chunks > same) {
            last = top;
            top = d->at[top].parent;
        }
        if (same > 0 && (top < 0 || d->at[top].n_chunks < same)) {
            if (add(d, top, -1, same, err))
                return err->code;
            d->at[last].parent = top = d->n - 1;
        }
        top = add_group(d, top, chain + i, end - i, err);
        if (top < 0)
            return top;
    }
    return 0;
}

/* Does some context begin another one, or, with chunks, begin like another one? */
static bool are_related(const struct drafts *d, bool chunks)
{
    bool related = false;

    for (int v = 0; v < d->n && !related; v++)
        for (int up = d->at[v].row < 0 ? -1 : d->at[v].parent; up >= 0 && !related; up = d->at[up].parent)
            related = chunks || d->at[up].row >= 0;
    return related;
}

/* Puts the nodes in depth-first order. A draft's n_chunks becomes its number there. */
static int order_nodes(struct placement_prefixes *p, struct drafts *d, struct err *err)
{
    size_t n = (size_t)d->n + 1;
    int first = -1, v;

    p->parent = calloc(n, sizeof(*p->parent));
    p->end = calloc(n, sizeof(*p->end));
    p->row = calloc(n, sizeof(*p->row));
    p->chunk_tokens = calloc(n, sizeof(*p->chunk_tokens));
    p->saved_s = calloc(n, sizeof(*p->saved_s));
    p->chunk_s = calloc(n, sizeof(*p->chunk_s));
    p->chunk_bytes = calloc(n, sizeof(*p->chunk_bytes));
    if (!p->parent || !p->end || !p->row || !p->chunk_tokens || !p->saved_s || !p->chunk_s || !p->chunk_bytes)
        return err_nomem(err);
    for (v = d->n - 1; v >= 0; v--) {
        int *list = d->at[v].parent < 0 ? &first : &d->at[d->at[v].parent].child;
        d->at[v].next = *list;
        *list = v;
    }
    for (v = first; v >= 0;) {
        struct draft *node = &d->at[v];
        int k = p->n++;
        p->parent[k] = node->parent < 0 ? -1 : (int)d->at[node->parent].n_chunks; /* its number, see below */
        p->row[k] = node->row;
        p->chunk_tokens[k] = (int64_t)node->n_chunks * DIGEST_CHUNK;
        node->n_chunks = (size_t)k; /* from here on: its number */
        if (node->child >= 0) {
            v = node->child;
            continue;
        }
        while (v >= 0 && d->at[v].next < 0) {
            p->end[d->at[v].n_chunks] = p->n;
            v = d->at[v].parent;
        }
        if (v >= 0) {
            p->end[d->at[v].n_chunks] = p->n;
            v = d->at[v].next;
        }
    }
    return 0;
}

/* ---- seconds and bytes of a beginning --------------------------------------------- */

/* first: (C + 1) points of the prefill curves by context. */
static double prefill_of(const struct table *t, const int *first, int row, double tokens)
{
    double n = 0, s = 0;

    for (int i = first[row]; i < first[row + 1]; i++) {
        double next = (double)t->curve_n_tokens[i];
        if (next >= tokens)
            return next > n ? s + (t->curve_s[i] - s) * (tokens - n) / (next - n) : s;
        n = next;
        s = t->curve_s[i];
    }
    double all = (double)t->n_tokens[row];
    return all > n ? s + (t->prefill_s[row] - s) * (tokens - n) / (all - n) : t->prefill_s[row];
}

static int time_beginnings(struct placement_prefixes *p, const struct table *t, struct err *err)
{
    int *first = calloc((size_t)t->n_contexts + 2, sizeof(*first));

    if (!first)
        return err_nomem(err);
    for (int i = 0; i < t->n_points; i++)
        first[t->curve_context[i] + 1]++;
    for (int c = 0; c < t->n_contexts; c++)
        first[c + 1] += first[c];
    for (int v = 0; v < p->n; v++) {
        p->chunk_s[v] = HUGE_VAL;
        p->saved_s[v] = HUGE_VAL;
        p->chunk_bytes[v] = (double)NAN;
    }
    for (int v = 0; v < p->n; v++) {
        int row = p->row[v];
        for (int up = row < 0 ? -1 : v; up >= 0; up = p->parent[up]) {
            double tokens = (double)p->chunk_tokens[up], all = (double)t->n_tokens[row];
            p->chunk_s[up] = fmin(p->chunk_s[up], prefill_of(t, first, row, tokens));
            if (p->row[up] >= 0)
                p->saved_s[up] = fmin(p->saved_s[up], prefill_of(t, first, row, (double)t->n_tokens[p->row[up]]));
            int64_t bytes = t->cell_bytes[table_cell(t, row, 0)];
            if (bytes >= 0)
                p->chunk_bytes[up] = fmax(p->chunk_bytes[up], (double)bytes * tokens / all); /* ignores NAN */
        }
    }
    free(first);
    return 0;
}

/* A context that serves others keeps their floors. */
static void raise_floors(struct placement_input *in)
{
    const struct placement_prefixes *p = &in->prefixes;

    for (int v = 0; v < p->n; v++)
        for (int up = p->row[v] < 0 ? -1 : p->parent[v]; up >= 0; up = p->parent[up]) {
            const struct rule *own = &in->rule[p->row[v]];
            struct rule *above = p->row[up] < 0 ? NULL : &in->rule[p->row[up]];
            if (!above)
                continue;
            above->min_quality = fmax(above->min_quality, own->min_quality);
            above->min_facts = fmax(above->min_facts, own->min_facts);
        }
}

/* A context with a chain, and times and sizes that are known. */
static bool is_usable(const struct table *t, int row)
{
    return *t->context_prefix_digests[row] && t->n_tokens[row] > 0 && t->prefill_s[row] >= 0;
}

static int make(struct placement_input *in, struct chain *chain, struct drafts *d, struct err *err)
{
    const struct table *t = &in->table;
    int n = 0;

    for (int row = 0; row < t->n_contexts; row++)
        if (is_usable(t, row))
            chain[n++] = (struct chain){ t->context_prefix_digests[row], row };
    qsort(chain, (size_t)n, sizeof(*chain), by_chain);
    if (draft_trees(d, chain, n, err))
        return err->code;
    if (!are_related(d, in->sharing == SHARING_CHUNKS))
        return 0;
    for (int row = 0; row < t->n_contexts; row++)
        if (!is_usable(t, row) && add(d, -1, row, 0, err))
            return err->code;
    if (order_nodes(&in->prefixes, d, err))
        return err->code;
    raise_floors(in);
    return time_beginnings(&in->prefixes, t, err);
}

int placement_find_prefixes(struct placement_input *in, struct err *err)
{
    struct drafts d = { 0 };

    if (in->sharing == SHARING_NONE || !in->table.context_prefix_digests)
        return 0;
    struct chain *chain = calloc((size_t)in->table.n_contexts + 1, sizeof(*chain));
    int code = chain ? make(in, chain, &d, err) : err_nomem(err);
    free(chain);
    free(d.at);
    return code;
}

void placement_prefixes_release(struct placement_prefixes *p)
{
    free(p->parent);
    free(p->end);
    free(p->row);
    free(p->chunk_tokens);
    free(p->saved_s);
    free(p->chunk_s);
    free(p->chunk_bytes);
    *p = (struct placement_prefixes){ 0 };
}

/* ---- what a beginning brings --------------------------------------------------------- */

double placement_chunks_saved(const struct placement_input *in, int node, int tier)
{
    const struct placement_prefixes *p = &in->prefixes;

    if (p->chunk_tokens[node] == 0 || isnan(p->chunk_bytes[node]))
        return (double)NAN;
    return p->chunk_s[node] - tier_read_s(&in->tiers.at[tier], (int64_t)p->chunk_bytes[node]);
}

double placement_beginning_saved(const struct placement_input *in, int node, struct plan_placement at)
{
    const struct placement_prefixes *p = &in->prefixes;

    return p->saved_s[node] - placement_ttft(in, p->row[node], at) + in->table.question_s[p->row[node]];
}

double placement_beginning_gain(const struct placement_input *in, int node, struct plan_placement at)
{
    const struct plan_placement none = { 0, PLAN_RECOMPUTE };
    int row = in->prefixes.row[node];

    return placement_beginning_saved(in, node, at) + in->alpha * (placement_quality(in, row, at) - 1) +
           placement_decode_s(in, row, none) - placement_decode_s(in, row, at);
}

/* ---- the planner's forest --------------------------------------------------------------- */

static double gain_of(const void *arg, int node, struct plan_placement at)
{
    return placement_beginning_gain(arg, node, at);
}

/* The forest of the input: borrows its arrays, and has its own of the rest. */
static int open_forest(struct forest *f, const struct placement_input *in, struct err *err)
{
    const struct placement_prefixes *p = &in->prefixes;
    size_t n = (size_t)p->n, n_tiers = (size_t)in->tiers.n;
    bool chunks = in->sharing == SHARING_CHUNKS;
    int *context = calloc((size_t)in->table.n_contexts + 1, sizeof(*context));

    *f = (struct forest){
        .n_tiers = in->tiers.n, .n = p->n, .parent = p->parent, .end = p->end, .gain = gain_of, .arg = in
    };
    f->context = calloc(n + 1, sizeof(*f->context));
    f->frequency = calloc(n + 1, sizeof(*f->frequency));
    f->part = chunks ? calloc(n * n_tiers + 1, sizeof(*f->part)) : NULL;
    if (!context || !f->context || !f->frequency || (chunks && !f->part)) {
        free(context);
        return err_nomem(err);
    }
    for (int i = 0; i < in->table.n_contexts; i++)
        context[in->row[i]] = i;
    for (int v = 0; v < p->n; v++) {
        f->context[v] = p->row[v] < 0 ? FOREST_NONE : context[p->row[v]];
        f->frequency[v] = p->row[v] < 0 ? 0 : in->frequency[p->row[v]];
        for (int t = 0; chunks && t < in->tiers.n; t++)
            f->part[(size_t)v * n_tiers + (size_t)t] = placement_chunks_saved(in, v, t);
    }
    free(context);
    return 0;
}

static void close_forest(struct forest *f)
{
    free(f->context);
    free(f->frequency);
    free(f->part);
}

int placement_solve_problem(struct plan *plan, const struct placement_input *in, enum plan_solver solver,
                            const struct plan_effort *effort, struct err *err)
{
    struct plan_problem problem = placement_problem(in);
    struct forest f;

    if (in->prefixes.n == 0)
        return plan_solve(plan, &problem, solver, effort, err);
    int code = open_forest(&f, in, err);
    if (!code)
        code = forest_solve(plan, &problem, &f, effort, err);
    close_forest(&f);
    return code;
}

/* ---- what serves each context under a plan ------------------------------------------------ */

/* What the node that serves a context brings it. */
static void take_use(const struct placement_input *in, const struct forest *f, const struct forest_use *from,
                     const struct plan_placement *placement, struct placement_use *to)
{
    to->gain = from->gain;
    to->saved_s = from->gain; /* chunks of an uncompressed cache lose no quality */
    if (from->node < 0)
        return;
    to->at = placement[f->context[from->node]];
    to->row = in->prefixes.row[from->node];
    to->saved_s = placement_beginning_saved(in, from->node, to->at);
}

int placement_uses(struct placement_use **use, const struct placement_input *in, const struct plan_placement *placement,
                   struct err *err)
{
    struct forest f;

    *use = NULL;
    if (in->prefixes.n == 0)
        return 0;
    struct forest_use *from = calloc((size_t)in->prefixes.n + 1, sizeof(*from));
    int code = open_forest(&f, in, err);
    *use = calloc((size_t)in->table.n_contexts + 1, sizeof(**use));
    if (!code)
        code = from && *use ? forest_serve(&f, placement, from, err) : err_nomem(err);
    for (int v = 0; v < f.n && !code; v++)
        if (f.context[v] >= 0) {
            struct placement_use *to = &(*use)[f.context[v]];
            *to = (struct placement_use){ .row = -1 };
            if (placement[f.context[v]].tier == PLAN_RECOMPUTE && from[v].tier != PLAN_RECOMPUTE)
                take_use(in, &f, &from[v], placement, to);
        }
    close_forest(&f);
    free(from);
    if (code) {
        free(*use);
        *use = NULL;
    }
    return code;
}
