/* pair_search.c - closes the last thousandths of a small problem's gap: pairs of sets of moves, by meeting in the
 * middle.
 *
 * A plan's gap is the losses of its contexts plus the price of its free bytes. A better plan is reached by a set of
 * moves that together lose little, or gain, and use the free bytes almost exactly. Such sets are found by meeting in
 * the middle (Horowitz and Sahni 1974): the contexts are divided at random into two halves, and sets of moves are
 * listed for each half. For every set of the first half, a lookup finds the sets of the second half that fit into the
 * remaining bytes. So n sets of each half cover n * n plans. A list is built context by context; of sets that change
 * the fill by about the same, only the one with the least loss is extended.
 */
#include "planner/moves.h"

#include "base/parallel.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SETS = 1 << 14, MAX_SETS = 1 << 19, TRIES_PER_SET = 16 };
enum { GRID_DIMS = 4, BLOCK = 1024 };

/* Moves whose change of the fill, at the dual prices, is below this share of the gap are not listed. */
static const double min_change = 0.25;

/* Trials, in turn, as shares of the gap: the width of a cell, which keeps one of all sets with about the same fill, and
 * the highest loss of a set. */
static const struct {
    double cell, loss;
} trial[] = { { 0.5, 0.6 }, { 0.33, 0.3 }, { 0.5, 0.2 }, { 0.25, 0.4 } };

struct search {
    struct incumbent *x;
    int n_knapsacks;
    const double *price; // (n_knapsacks)
    struct moves moves;  // with losses relative to the current candidates
    double gap;          // of the incumbent
    struct rng rng;
    unsigned char *side; // (C) the half of each context
    int *group;          // (C) scratch
};

/* Sets the loss of a move, relative to the context's current candidate. Could the move pay? */
static bool is_promising(const void *arg, struct move *m)
{
    const struct search *s = arg;
    const struct candidate *from = &s->x->at[m->context];
    double max_change = 0;

    m->loss = incumbent_reduced_value(s->x, from) - incumbent_reduced_value(s->x, &m->to);
    for (int d = 0; d < s->n_knapsacks; d++)
        max_change = fmax(max_change, s->price[d] * fabs((double)candidate_added(from, &m->to, d)));
    return m->loss < s->gap && m->loss < max_change && max_change >= min_change * s->gap;
}

/* ---- the sets of one half ------------------------------------------------------ */

struct set {
    double loss;             // HUGE_VAL: replaced by another set
    const struct move *move; // in addition to those of the parent
    int parent;              // -1: the empty set
};

struct half {
    const struct move **move; // context by context
    int *first, n_groups;     // (n_groups + 1) the moves of each context by rising loss; contexts by their first
    struct set *set;          // (n_sets)
    double *added;            // (n_sets, D) bytes in each knapsack
    int n_sets, cap;
    int grid_bits; // log2 of the size of a table of cells for `cap` sets
};

static void half_release(struct half *h)
{
    free(h->move);
    free(h->first);
    free(h->set);
    free(h->added);
}

/* Reserves space for all sets, at most `max`. */
static int half_reserve(struct half *h, const struct search *s, int max)
{
    int64_t cap = 1;

    for (int g = 0; g < h->n_groups && cap < max; g++)
        cap *= 1 + h->first[g + 1] - h->first[g];
    h->cap = cap < max ? (int)cap : max;
    h->grid_bits = 2;
    while (1 << h->grid_bits < 2 * h->cap)
        h->grid_bits++;
    h->set = malloc(((size_t)h->cap + 1) * sizeof(*h->set));
    h->added = calloc(((size_t)h->cap + 1) * (size_t)s->n_knapsacks, sizeof(*h->added));
    return h->set && h->added ? 0 : -1;
}

/* Takes the moves of the contexts in one half. */
static int half_init(struct half *h, const struct search *s, unsigned char side, int max)
{
    size_t n_moves = (size_t)s->moves.n + 2;

    h->move = malloc(n_moves * sizeof(*h->move));
    h->first = calloc(n_moves, sizeof(*h->first));
    if (!h->move || !h->first)
        return -1;
    for (int k = 0; k < s->moves.n; k++)
        s->group[s->moves.at[k].context] = -1;
    for (int k = 0; k < s->moves.n; k++) {
        int *g = &s->group[s->moves.at[k].context];
        if (s->side[s->moves.at[k].context] != side)
            continue;
        *g = *g < 0 ? h->n_groups++ : *g;
        h->first[*g + 2]++;
    }
    for (int g = 0; g < h->n_groups; g++)
        h->first[g + 2] += h->first[g + 1];
    for (int k = 0; k < s->moves.n; k++)
        if (s->side[s->moves.at[k].context] == side)
            h->move[h->first[s->group[s->moves.at[k].context] + 1]++] = &s->moves.at[k];
    return half_reserve(h, s, max);
}

static uint64_t mix(uint64_t hash, double cell)
{
    return (hash ^ (uint64_t)(int64_t)floor(cell)) * 0x9e3779b97f4a7c15;
}

/* Writes a set behind the last one, without counting it. Returns its cell: sets of a cell add about the same to each
 * knapsack. */
static uint64_t half_append(struct half *h, const struct search *s, struct set set, double cell_width)
{
    const struct candidate *from = &s->x->at[set.move->context], *to = &set.move->to;
    size_t n = (size_t)s->n_knapsacks;
    double *added = h->added + (size_t)h->n_sets * n;
    uint64_t cell = 0;

    h->set[h->n_sets] = set;
    memcpy(added, h->added + (size_t)set.parent * n, n * sizeof(*added));
    if (from->knapsack >= 0)
        added[from->knapsack] -= (double)from->bytes;
    if (to->knapsack >= 0)
        added[to->knapsack] += (double)to->bytes;
    for (int d = 0; d < s->n_knapsacks; d++)
        cell = mix(cell, added[d] * s->price[d] / cell_width);
    return cell >> (64 - h->grid_bits);
}

struct listing {
    int32_t *taken; // the set of each cell; -1: none
    double cell_width, max_loss;
    int64_t tries; // left
};

/* Extends every set so far by each move of a context. */
static void half_extend(struct half *h, const struct search *s, struct listing *l, int group)
{
    int before = h->n_sets;

    for (int k = 0; k < before; k++) {
        for (int m = h->first[group]; m < h->first[group + 1]; m++) {
            struct set set = { h->set[k].loss + h->move[m]->loss, h->move[m], k };
            if (set.loss >= l->max_loss || h->n_sets >= h->cap || --l->tries < 0)
                break;
            int32_t *taken = &l->taken[half_append(h, s, set, l->cell_width)];
            if (*taken >= 0 && h->set[*taken].loss <= set.loss)
                continue;
            if (*taken >= 0)
                h->set[*taken].loss = HUGE_VAL;
            *taken = h->n_sets++;
        }
    }
}

/* The work of two threads. */
struct lists {
    const struct search *s;
    struct half *half; // both
    size_t trial;
    bool failed[2];
};

static void half_list(void *arg, int k)
{
    struct lists *lists = arg;
    const struct search *s = lists->s;
    struct half *h = &lists->half[k];
    size_t t = lists->trial;
    struct listing l = { .taken = malloc(sizeof(*l.taken) << h->grid_bits),
                         .cell_width = trial[t].cell * s->gap,
                         .max_loss = trial[t].loss * s->gap,
                         .tries = (int64_t)h->cap * TRIES_PER_SET };

    lists->failed[k] = !l.taken;
    if (!l.taken)
        return;
    h->set[0] = (struct set){ 0, NULL, -1 };
    memset(l.taken, -1, sizeof(*l.taken) << h->grid_bits);
    h->n_sets = 1;
    l.taken[0] = 0;
    for (int g = 0; g < h->n_groups && h->n_sets < h->cap && l.tries > 0; g++)
        half_extend(h, s, &l, g);
    free(l.taken);
}

/* ---- pairs ---------------------------------------------------------------------- */

/* The sets of the second half by cell. In every dimension a cell is as wide as the gap, in bytes * dual price. Only the
 * first GRID_DIMS knapsacks with a price are dimensions. */
struct grid {
    const struct search *s;
    const struct half *half; // both
    int n_dims, knapsack[GRID_DIMS];
    double scale[GRID_DIMS]; // cells per byte
    int bits;
    int32_t *head, *next; // (1 << bits), (sets): chains, -1 at the end
};

struct pair {
    double gap; // of the resulting plan
    int a, b;   // a set of each half
};

static int grid_init(struct grid *g, const struct search *s, const struct half *half)
{
    const struct half *h = &half[1];

    *g = (struct grid){ .s = s,
                        .half = half,
                        .bits = h->grid_bits,
                        .head = malloc(sizeof(*g->head) << h->grid_bits),
                        .next = malloc((size_t)h->n_sets * sizeof(*g->next)) };
    if (!g->head || !g->next)
        return -1;
    for (int d = 0; d < s->n_knapsacks && g->n_dims < GRID_DIMS; d++) {
        if (!(s->price[d] > 0))
            continue;
        g->scale[g->n_dims] = s->price[d] / s->gap;
        g->knapsack[g->n_dims++] = d;
    }
    memset(g->head, -1, sizeof(*g->head) << g->bits);
    for (int b = 0; b < h->n_sets; b++) {
        const double *added = h->added + (size_t)b * (size_t)s->n_knapsacks;
        uint64_t cell = 0;
        for (int k = 0; k < g->n_dims; k++)
            cell = mix(cell, added[g->knapsack[k]] * g->scale[k]);
        g->next[b] = g->head[cell >> (64 - g->bits)];
        g->head[cell >> (64 - g->bits)] = b;
    }
    return 0;
}

static void grid_release(struct grid *g)
{
    free(g->head);
    free(g->next);
}

/* Tries all sets of one cell with set a of the first half, which leaves `left` bytes in each knapsack. */
static void try_cell(const struct grid *g, uint64_t cell, int a, const double *left, struct pair *best)
{
    const struct search *s = g->s;
    double loss = s->gap + g->half[0].set[a].loss;

    for (int d = 0; d < s->n_knapsacks; d++)
        loss -= s->price[d] * (double)s->x->free[d];
    for (int32_t b = g->head[cell]; b >= 0; b = g->next[b]) {
        const double *added = g->half[1].added + (size_t)b * (size_t)s->n_knapsacks;
        double gap = loss + g->half[1].set[b].loss, min_free = 0;
        for (int d = 0; d < s->n_knapsacks; d++) {
            double free_bytes = left[d] - added[d];
            min_free = free_bytes < min_free ? free_bytes : min_free;
            gap += s->price[d] * free_bytes;
        }
        if (min_free >= 0 && gap < best->gap)
            *best = (struct pair){ gap, a, b };
    }
}

/* The best partner of set a: two cells per dimension contain all sets that leave free bytes worth less than the gap. */
static void find_partner(const struct grid *g, int a, struct pair *best)
{
    const struct search *s = g->s;
    const double *added = g->half[0].added + (size_t)a * (size_t)s->n_knapsacks;
    double left[PLAN_TIERS];

    for (int d = 0; d < s->n_knapsacks; d++)
        left[d] = (double)s->x->free[d] - added[d];
    for (int corner = 0; corner < 1 << g->n_dims; corner++) {
        uint64_t cell = 0;
        for (int k = 0; k < g->n_dims; k++)
            cell = mix(cell, left[g->knapsack[k]] * g->scale[k] - (corner >> k & 1));
        try_cell(g, cell >> (64 - g->bits), a, left, best);
    }
}

struct pairing {
    const struct grid *g;
    struct pair found[MAX_SETS / BLOCK + 1]; // of each block of sets of the first half
};

static void pair_block(void *arg, int block)
{
    struct pairing *p = arg;
    const struct half *h = &p->g->half[0];

    for (int a = block * BLOCK; a < (block + 1) * BLOCK && a < h->n_sets; a++)
        if (h->set[a].loss < HUGE_VAL)
            find_partner(p->g, a, &p->found[block]);
}

/* Finds the pair with the smallest gap, if below best->gap. Every block starts from the same gap, so the result is the
 * same for any number of threads. */
static void find_pair(const struct grid *g, struct pair *best)
{
    struct pairing p = { .g = g };
    int n_blocks = (g->half[0].n_sets + BLOCK - 1) / BLOCK;

    for (int k = 0; k < n_blocks; k++)
        p.found[k] = *best;
    parallel_do(parallel_threads(), n_blocks, pair_block, &p);
    for (int k = 0; k < n_blocks; k++)
        if (p.found[k].gap < best->gap)
            *best = p.found[k];
}

/* ---- rounds ----------------------------------------------------------------------- */

static void apply_set(struct incumbent *x, const struct half *h, int set)
{
    for (; h->set[set].parent >= 0; set = h->set[set].parent)
        incumbent_apply(x, h->set[set].move);
}

/* Divides the contexts into halves and applies the best pair of sets, if there is one. t: the trial. -1 without
 * memory. */
static int one_round(struct search *s, int max_sets, size_t t)
{
    struct half half[2] = { { 0 }, { 0 } };
    struct grid grid = { 0 };
    struct pair pair = { s->gap, -1, -1 };

    for (int i = 0; i < s->x->h->n_contexts; i++)
        s->side[i] = (unsigned char)rng_below(&s->rng, 2);
    struct lists lists = { s, half, t, { false, false } };
    bool failed = half_init(&half[0], s, 0, max_sets) || half_init(&half[1], s, 1, max_sets);
    if (!failed)
        parallel_do(half[0].cap + half[1].cap > BLOCK ? parallel_threads() : 1, 2, half_list, &lists);
    failed = failed || lists.failed[0] || lists.failed[1] || grid_init(&grid, s, half);
    if (!failed)
        find_pair(&grid, &pair);
    if (pair.a >= 0) {
        apply_set(s->x, &half[0], pair.a);
        apply_set(s->x, &half[1], pair.b);
        s->gap = incumbent_gap(s->x);
    }
    half_release(&half[0]);
    half_release(&half[1]);
    grid_release(&grid);
    return failed ? -1 : 0;
}

int incumbent_pair_search(struct incumbent *x, const struct plan_problem *problem, int64_t work, struct err *err)
{
    size_t n = (size_t)problem->n_contexts + 1, n_trials = sizeof(trial) / sizeof(*trial);
    struct search s = { .x = x,
                        .n_knapsacks = x->h->knapsack.n,
                        .price = x->dual->price,
                        .gap = incumbent_gap(x),
                        .rng = rng_new(1),
                        .side = malloc(n),
                        .group = malloc(n * sizeof(*s.group)) };
    const struct moves_filter filter = { .undominated = true, .price = is_promising, .arg = &s };
    int code = s.side && s.group ? 0 : err_nomem(err), max_sets = FIRST_SETS;
    double before = 0;

    for (size_t k = 0; work > 0 && !code && !incumbent_is_close(x); k++) {
        if (before < s.gap || before > s.gap)
            code = moves_find(&s.moves, x, problem, &filter, err);
        else if (k % n_trials == 0)
            max_sets = max_sets < MAX_SETS ? 2 * max_sets : max_sets;
        before = s.gap;
        if (!code && one_round(&s, max_sets, k % n_trials))
            code = err_nomem(err);
        work -= max_sets;
    }
    moves_release(&s.moves);
    free(s.side);
    free(s.group);
    return code;
}
