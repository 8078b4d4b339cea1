/* pair_search.c - the last thousandths of a small problem: sets of moves, met in the middle.
 *
 * What a plan lacks to the bound is what its contexts lose, each to its best candidate at the prices, and the price of
 * the room that is left over. A better plan is found by a set of moves that lose little, or gain, and together use up
 * the room almost exactly. Such sets are found by meeting in the middle (Horowitz and Sahni 1974): the contexts are
 * dealt into two halves, sets of moves of each half are listed, and for every set of one half those of the other that
 * fit into the room it leaves are looked up. So n sets of each half stand for n * n plans. A list is made context by
 * context; of sets that change the room by about the same only the one that loses least goes on.
 */
#include "planner/incumbent.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SETS = 1 << 14, MOST_SETS = 1 << 19, LOOKS_PER_SET = 16 };
enum { GRID_TIERS = 4, BLOCK = 1024 };

/* Shares of what the plan lacks: a move that changes the room by less, counted at the prices, is not looked at. */
static const double least_change = 0.25;

/* Also such shares, taken in turn: how fine the cells of room are of which one set is kept, and what a set may lose. */
static const struct {
    double cell, loss;
} trial[] = { { 0.5, 0.6 }, { 0.33, 0.3 }, { 0.5, 0.2 }, { 0.25, 0.4 } };

struct search {
    struct incumbent *d;
    const struct plan_problem *problem;
    int n_tiers;         // finite ones
    const double *price; // of those
    struct moves moves;  // their losses are counted from where the contexts are now
    double lack;         // of the incumbent to the bound
    struct rng rng;
    unsigned char *side; // (C) which half a context is dealt to
    int *group;          // (C) scratch
};

/* ---- moves ------------------------------------------------------------------ */

/* Does a move look as if it could pay? Its loss is counted from where its context is. */
static int worth_looking(const struct search *s, const struct move *m)
{
    const struct spot *from = &s->d->spot[m->context];
    double most = 0;

    for (int t = 0; t < s->n_tiers; t++)
        most = fmax(most, s->price[t] * fabs((m->to.tier == t ? m->to.size : 0) - (from->tier == t ? from->size : 0)));
    return m->loss < s->lack && m->loss < most && most >= least_change * s->lack;
}

static int add_move(struct search *s, int context, struct spot to)
{
    const struct spot *from = &s->d->spot[context];
    struct move m = { context, incumbent_value(s->d, from) - incumbent_value(s->d, &to), to };

    return worth_looking(s, &m) ? moves_add(&s->moves, &m) : 0;
}

/* To all candidates of one context, not just the points of its hulls, unless a smaller one is as good. */
static int add_moves(struct search *s, const struct plan_candidates *o, struct hull_work *w, int context)
{
    const struct plan_problem *p = s->problem;
    struct plan_placement base;
    double least = hull_base(w, o, p, &base);
    int failed = add_move(s, context, incumbent_candidate(s->d->h, context, HULL_BASE));

    for (int d = 0; d < s->n_tiers && !failed; d++) {
        int t = s->d->h->tier[d];
        hull_scan(w, o, p, t, least);
        for (int k = 0; k < w->n_rising && !failed; k++) {
            int v = w->order[w->rising[k]];
            failed =
                add_move(s, context, (struct spot){ (double)o->bytes[v], o->utility[v * p->n_tiers + t], { v, t }, d });
        }
    }
    return failed;
}

static int find_moves(struct search *s, struct err *err)
{
    struct plan_candidates o = { 0 };
    struct hull_work w = { 0 };
    int failed = plan_candidates_init(&o, s->problem, err) || hull_work_init(&w, s->problem, err);

    s->moves.n = 0;
    for (int i = 0; i < s->problem->n_contexts && !failed; i++) {
        plan_candidates_get(&o, s->problem, i);
        failed = add_moves(s, &o, &w, i);
    }
    plan_candidates_release(&o);
    hull_work_release(&w);
    moves_sort(&s->moves, POLISH_MOVES);
    return failed ? err_nomem(err) : 0;
}

/* ---- the sets of one half ------------------------------------------------------ */

struct set {
    double loss;             // HUGE_VAL: another one takes its place
    const struct move *move; // besides those of the parent
    int parent;              // -1: the empty set
};

struct half {
    const struct move **move; // context by context
    int *first, n_groups;     // (n_groups + 1) the moves of each context by rising loss; contexts by their first
    struct set *set;          // (n_sets)
    double *added;            // (n_sets, n_tiers) bytes on each tier
    int n_sets, room;
    int grid_bits; // logarithm of the places in a table of cells for so many sets
};

static void half_release(struct half *h)
{
    free(h->move);
    free(h->first);
    free(h->set);
    free(h->added);
}

/* Room for as many sets as there are, or for `most` if there are more. */
static int half_room(struct half *h, const struct search *s, int most)
{
    int64_t room = 1;

    for (int g = 0; g < h->n_groups && room < most; g++)
        room *= 1 + h->first[g + 1] - h->first[g];
    h->room = room < most ? (int)room : most;
    h->grid_bits = 2;
    while (1 << h->grid_bits < 2 * h->room)
        h->grid_bits++;
    h->set = malloc(((size_t)h->room + 1) * sizeof(*h->set));
    h->added = calloc(((size_t)h->room + 1) * (size_t)s->n_tiers, sizeof(*h->added));
    return h->set && h->added ? 0 : -1;
}

/* Takes the moves of the contexts that were dealt to a side. */
static int half_init(struct half *h, const struct search *s, unsigned char side, int most)
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
    return half_room(h, s, most);
}

static uint64_t mix(uint64_t hash, double cell)
{
    return (hash ^ (uint64_t)(int64_t)floor(cell)) * 0x9e3779b97f4a7c15;
}

/* Puts a set at the end, not yet counted. Returns where what it adds to each tier lies in a grid. */
static uint64_t half_append(struct half *h, const struct search *s, struct set set, double cell_width)
{
    const struct spot *from = &s->d->spot[set.move->context];
    double *added = h->added + (size_t)h->n_sets * (size_t)s->n_tiers;
    uint64_t cell = 0;

    h->set[h->n_sets] = set;
    memcpy(added, h->added + (size_t)set.parent * (size_t)s->n_tiers, (size_t)s->n_tiers * sizeof(*added));
    if (from->tier >= 0)
        added[from->tier] -= from->size;
    if (set.move->to.tier >= 0)
        added[set.move->to.tier] += set.move->to.size;
    for (int t = 0; t < s->n_tiers; t++)
        cell = mix(cell, added[t] * s->price[t] / cell_width);
    return cell >> (64 - h->grid_bits);
}

struct listing {
    int32_t *taken; // the set of each cell, -1: none
    double cell_width, loss;
    int64_t looks; // left
};

/* Adds every set so far with one of the moves of a context. */
static void half_extend(struct half *h, const struct search *s, struct listing *l, int group)
{
    int before = h->n_sets;

    for (int k = 0; k < before; k++) {
        for (int m = h->first[group]; m < h->first[group + 1]; m++) {
            struct set set = { h->set[k].loss + h->move[m]->loss, h->move[m], k };
            if (set.loss >= l->loss || h->n_sets >= h->room || --l->looks < 0)
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

static int half_list(struct half *h, const struct search *s, int t)
{
    struct listing l = { .taken = malloc(sizeof(*l.taken) << h->grid_bits),
                         .cell_width = trial[t].cell * s->lack,
                         .loss = trial[t].loss * s->lack,
                         .looks = (int64_t)h->room * LOOKS_PER_SET };

    if (!l.taken)
        return -1;
    h->set[0] = (struct set){ 0, NULL, -1 };
    memset(l.taken, -1, sizeof(*l.taken) << h->grid_bits);
    h->n_sets = 1;
    l.taken[0] = 0;
    for (int g = 0; g < h->n_groups && h->n_sets < h->room && l.looks > 0; g++)
        half_extend(h, s, &l, g);
    free(l.taken);
    return 0;
}

/* ---- meeting ------------------------------------------------------------------- */

/* The sets of one half by the cell that they lie in, cells being as wide in each tier's room as the plan lacks. */
struct grid {
    int n_tiers, tier[GRID_TIERS]; // with a price
    double scale[GRID_TIERS];      // cells per byte
    int bits;
    int32_t *head, *next; // (1 << bits), (sets): chains, -1 at the end
};

struct pair {
    double lack; // to the bound
    int a, b;
};

static int grid_init(struct grid *g, const struct search *s, const struct half *h)
{
    *g = (struct grid){ .bits = h->grid_bits,
                        .head = malloc(sizeof(*g->head) << h->grid_bits),
                        .next = malloc((size_t)h->n_sets * sizeof(*g->next)) };
    if (!g->head || !g->next)
        return -1;
    for (int t = 0; t < s->n_tiers && g->n_tiers < GRID_TIERS; t++) {
        if (!(s->price[t] > 0))
            continue;
        g->scale[g->n_tiers] = s->price[t] / s->lack;
        g->tier[g->n_tiers++] = t;
    }
    memset(g->head, -1, sizeof(*g->head) << g->bits);
    for (int b = 0; b < h->n_sets; b++) {
        const double *added = h->added + (size_t)b * (size_t)s->n_tiers;
        uint64_t cell = 0;
        for (int k = 0; k < g->n_tiers; k++)
            cell = mix(cell, added[g->tier[k]] * g->scale[k]);
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

/* Of the sets in one cell, the one that fits into the room and makes the best pair with set a. */
static void look(const struct search *s, const struct half *half, const struct grid *g, int32_t b, int a,
                 const double *room, struct pair *best)
{
    double loss = s->lack + half[0].set[a].loss;

    for (int t = 0; t < s->n_tiers; t++)
        loss -= s->price[t] * s->d->room[t];
    for (; b >= 0; b = g->next[b]) {
        const double *added = half[1].added + (size_t)b * (size_t)s->n_tiers;
        double lack = loss + half[1].set[b].loss, least = 0;
        for (int t = 0; t < s->n_tiers; t++) {
            double left = room[t] - added[t];
            least = left < least ? left : least;
            lack += s->price[t] * left;
        }
        if (least >= 0 && lack < best->lack)
            *best = (struct pair){ lack, a, b };
    }
}

/* The best partner of set a: two cells in every direction hold what leaves less room than the plan lacks. */
static void meet(const struct search *s, const struct half *half, const struct grid *g, int a, struct pair *best)
{
    const double *added = half[0].added + (size_t)a * (size_t)s->n_tiers;
    double room[PLAN_TIERS];

    for (int t = 0; t < s->n_tiers; t++)
        room[t] = s->d->room[t] - added[t];
    for (int corner = 0; corner < 1 << g->n_tiers; corner++) {
        uint64_t cell = 0;
        for (int k = 0; k < g->n_tiers; k++)
            cell = mix(cell, room[g->tier[k]] * g->scale[k] - (corner >> k & 1));
        look(s, half, g, g->head[cell >> (64 - g->bits)], a, room, best);
    }
}

/* The best pair of sets that lacks less than *best. The same for any number of threads: blocks know nothing of each
 * other. */
static void meet_all(const struct search *s, const struct half *half, const struct grid *g, struct pair *best)
{
    struct pair found[MOST_SETS / BLOCK + 1];
    int n_blocks = (half[0].n_sets + BLOCK - 1) / BLOCK;

#pragma omp parallel for schedule(dynamic, 1) if (n_blocks > 1)
    for (int k = 0; k < n_blocks; k++) {
        int last = (k + 1) * BLOCK < half[0].n_sets ? (k + 1) * BLOCK : half[0].n_sets;
        found[k] = *best;
        for (int a = k * BLOCK; a < last; a++)
            if (half[0].set[a].loss < HUGE_VAL)
                meet(s, half, g, a, &found[k]);
    }
    for (int k = 0; k < n_blocks; k++)
        if (found[k].lack < best->lack)
            *best = found[k];
}

/* ---- rounds ----------------------------------------------------------------------- */

static void make_moves(struct incumbent *d, const struct half *h, int set)
{
    for (; h->set[set].parent >= 0; set = h->set[set].parent)
        incumbent_put(d, h->set[set].move->context, h->set[set].move->to);
}

/* Deals the contexts out, and takes the best pair of sets if there is one. */
static int meet_once(struct search *s, int most, int t)
{
    struct half half[2] = { { 0 }, { 0 } };
    struct grid grid = { 0 };
    struct pair pair = { s->lack, -1, -1 };

    for (int i = 0; i < s->problem->n_contexts; i++)
        s->side[i] = (unsigned char)rng_below(&s->rng, 2);
    int failed = half_init(&half[0], s, 0, most) || half_init(&half[1], s, 1, most);
#pragma omp parallel for schedule(static, 1) reduction(| : failed) if (half[0].room + half[1].room > BLOCK)
    for (int k = 0; k < 2; k++)
        failed |= failed || half_list(&half[k], s, t);
    failed = failed || grid_init(&grid, s, &half[1]);
    if (!failed)
        meet_all(s, half, &grid, &pair);
    if (pair.a >= 0) {
        make_moves(s->d, &half[0], pair.a);
        make_moves(s->d, &half[1], pair.b);
        s->lack = s->d->dual->bound - incumbent_total(s->d);
    }
    half_release(&half[0]);
    half_release(&half[1]);
    grid_release(&grid);
    return failed;
}

int incumbent_pair_search(struct incumbent *d, const struct plan_problem *problem, int64_t work, struct err *err)
{
    size_t n = (size_t)problem->n_contexts + 1, n_trials = sizeof(trial) / sizeof(*trial);
    struct search s = { .d = d,
                        .problem = problem,
                        .n_tiers = d->h->n_tiers,
                        .price = d->dual->price,
                        .lack = d->dual->bound - incumbent_total(d),
                        .rng = rng_new(1),
                        .side = malloc(n),
                        .group = malloc(n * sizeof(*s.group)) };
    int code = s.side && s.group ? 0 : err_nomem(err), most = FIRST_SETS;
    double before = 0;

    for (size_t k = 0; work > 0 && !code && !incumbent_is_close(d); k++) {
        if (before < s.lack || before > s.lack)
            code = find_moves(&s, err);
        else if (k % n_trials == 0)
            most = most < MOST_SETS ? 2 * most : most;
        before = s.lack;
        if (!code && meet_once(&s, most, (int)(k % n_trials)))
            code = err_nomem(err);
        work -= most;
    }
    moves_release(&s.moves);
    free(s.side);
    free(s.group);
    return code;
}
