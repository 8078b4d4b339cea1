/* repair.c - ends overloads: gathers the moves of least loss, applies the cheapest per byte of relief, then uses free
 * bytes for moves that gain. Moves go only to points of the hulls. */
#include "planner/moves.h"

#include "base/array.h"
#include "base/parallel.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { GATHERED = 20000, SAMPLE = 65536, BUCKETS = 192, FILL_PASSES = 8 };

/* ---- the moves of least loss --------------------------------------------------- */

/* Losses by powers of two, fine enough for a threshold. */
static int bucket(double loss)
{
    if (!(loss > 0))
        return 0;
    int b = ilogb(loss) + BUCKETS / 2;
    return b < 1 ? 1 : b >= BUCKETS ? BUCKETS - 1 : b;
}

struct walk {
    const struct incumbent *x;
    int stride;          // 1: all contexts, 2: every second one, ...
    const double *below; // (D + 1) limit of the loss per destination, base first; NULL: none
    void (*each)(void *arg, const struct move *m);
};

/* Calls walk->each(arg, move) for the moves of the contexts of one chunk. */
static void walk_chunk(const struct walk *walk, int chunk, void *arg)
{
    const struct incumbent *x = walk->x;
    const struct hull_chunk *c = &x->h->chunk[chunk];

    for (int i = 0; i < c->n; i += walk->stride) {
        struct move m = { .context = chunk * HULL_CHUNK + i };
        const struct candidate *now = &x->at[m.context];
        const uint32_t *first = hull_first(x->h, m.context);
        double best = incumbent_best_value(x, m.context);
        for (int d = -1; d < x->h->knapsack.n; d++) {
            int64_t from = d < 0 ? HULL_BASE : (int64_t)first[d], to = d < 0 ? HULL_BASE + 1 : (int64_t)first[d + 1];
            for (int64_t p = from; p < to; p++) {
                double own = d < 0 ? c->base[i].utility : c->utility[p] - x->dual->price[d] * c->bytes[p];
                m.loss = best > own ? best - own : 0;
                if (walk->below && m.loss >= walk->below[d + 1])
                    continue;
                m.to = d < 0 ? c->base[i] : hull_point(c, d, p);
                if (m.to.tier != now->tier || m.to.config != now->config)
                    walk->each(arg, &m);
            }
        }
    }
}

struct gathering {
    const struct walk *walk;
    struct gather *chunk; // (chunks)
};

struct gather {
    int64_t count[PLAN_TIERS + 1][BUCKETS]; // by destination, base first
    struct moves moves;
    int failed;
};

static void count_move(void *arg, const struct move *m)
{
    ((struct gather *)arg)->count[m->to.knapsack + 1][bucket(m->loss)]++;
}

static void take_move(void *arg, const struct move *m)
{
    struct gather *g = arg;

    g->failed = g->failed || ARRAY_PUSH(&g->moves, *m);
}

static void gather_chunk(void *arg, int chunk)
{
    const struct gathering *g = arg;

    walk_chunk(g->walk, chunk, &g->chunk[chunk]);
}

/* Per destination the loss below which there are about GATHERED / (D + 1) moves, estimated from a sample of the
 * contexts. Limits per destination keep one destination from crowding out another. */
static void find_limits(const struct incumbent *x, struct gather *gather, double *below)
{
    int n = x->h->knapsack.n, stride = x->h->n_contexts / SAMPLE + 1, quota = GATHERED / (n + 1) / stride + 1;
    const struct walk walk = { x, stride, NULL, count_move };

    parallel_do(parallel_threads(), x->h->n_chunks, gather_chunk, &(struct gathering){ &walk, gather });
    for (int d = 0; d <= n; d++) {
        int64_t count = 0;
        int b = 0;
        for (; b < BUCKETS && count < quota; b++)
            for (int c = 0; c < x->h->n_chunks; c++)
                count += gather[c].count[d][b];
        below[d] = b == BUCKETS ? HUGE_VAL : ldexp(1, b - BUCKETS / 2);
    }
}

/* Gathers the moves of least loss, sorted. After a failure there is nothing to release. */
static int gather_moves(const struct incumbent *x, struct moves *moves, struct err *err)
{
    double below[PLAN_TIERS + 1];
    const struct walk walk = { x, 1, below, take_move };
    int failed = 0;
    struct gather *gather = calloc((size_t)x->h->n_chunks + 1, sizeof(*gather));

    *moves = (struct moves){ 0 };
    if (!gather)
        return err_nomem(err);
    find_limits(x, gather, below);
    parallel_do(parallel_threads(), x->h->n_chunks, gather_chunk, &(struct gathering){ &walk, gather });
    for (int c = 0; c < x->h->n_chunks; c++) {
        for (int k = 0; k < gather[c].moves.n; k++)
            failed = failed || ARRAY_PUSH(moves, gather[c].moves.at[k]);
        failed |= gather[c].failed;
        moves_release(&gather[c].moves);
    }
    free(gather);
    if (!failed) {
        moves_sort(moves, INT_MAX);
        return 0;
    }
    moves_release(moves);
    return err_nomem(err);
}

/* ---- overloads --------------------------------------------------------------------- */

static int64_t overload(int64_t free_bytes)
{
    return free_bytes < 0 ? -free_bytes : 0;
}

/* The bytes of overload that a move ends, in the knapsacks it leaves and enters together. */
static int64_t relief(const struct incumbent *x, const struct move *m)
{
    int from = x->at[m->context].knapsack, to = m->to.knapsack;
    int64_t ended = 0;

    if (from >= 0)
        ended += overload(x->free[from]) - overload(incumbent_free_after(x, m, from));
    if (to >= 0 && to != from)
        ended += overload(x->free[to]) - overload(incumbent_free_after(x, m, to));
    return ended;
}

struct cheapest {
    const struct incumbent *x;
    struct move move;
    double cost; // loss of reduced value per byte of relief; HUGE_VAL: no move yet
};

static void consider(void *arg, const struct move *m)
{
    struct cheapest *best = arg;
    int64_t ended = relief(best->x, m);

    if (ended <= 0)
        return;
    double lost = incumbent_reduced_value(best->x, &best->x->at[m->context]) - incumbent_reduced_value(best->x, &m->to);
    if (lost / (double)ended < best->cost) {
        best->cost = lost / (double)ended;
        best->move = *m;
    }
}

static bool is_overloaded(const struct incumbent *x)
{
    for (int d = 0; d < x->h->knapsack.n; d++)
        if (x->free[d] < 0)
            return true;
    return false;
}

static void end_overloads(struct incumbent *x, const struct moves *moves)
{
    const struct walk all = { x, 1, NULL, consider };

    while (is_overloaded(x)) {
        struct cheapest best = { .x = x, .cost = HUGE_VAL };
        for (int k = 0; k < moves->n; k++)
            consider(&best, &moves->at[k]);
        bool found = best.cost < HUGE_VAL;
        /* else look at all moves: those to a base always end an overload */
        for (int c = 0; c < x->h->n_chunks && !found; c++)
            walk_chunk(&all, c, &best);
        incumbent_apply(x, &best.move);
    }
}

int incumbent_repair(struct incumbent *x, struct err *err)
{
    struct moves moves;
    bool changed = true;

    if (gather_moves(x, &moves, err))
        return err->code;
    end_overloads(x, &moves);
    for (int pass = 0; pass < FILL_PASSES && changed; pass++)
        changed = moves_apply_gains(&moves, x);
    moves_release(&moves);
    return 0;
}
