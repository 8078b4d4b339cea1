/* polish.c - the last thousandths of a small problem, where a context or two more or less matter.
 *
 * Only options whose loss at the prices is below the present distance from the bound can be part of a better plan. Over
 * those, single moves that fit and pay are made, and pairs: one context gains on a tier that lacks the room, another
 * makes the room and loses less. Kicks push a few contexts out of place, end the overload, polish again and keep the
 * better plan.
 */
#include "planner/draft.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES = 8000, KICK_MOVES = 3, PAIR_BUDGET = 40000000 };
static const double close_enough = 1e-6; // share of the bound below which polishing is not worth its time

struct pool {
    struct move *at; // by rising loss; at most MOVES
    int n;
};

static int pool_add(struct pool *pool, size_t *room, const struct move *m)
{
    if ((size_t)pool->n == *room) {
        struct move *at = realloc(pool->at, 2 * *room * sizeof(*at));
        if (!at)
            return -1;
        pool->at = at;
        *room *= 2;
    }
    pool->at[pool->n++] = *m;
    return 0;
}

/* Every option of one context whose loss is at most `most`, the base once. */
static int pool_context(struct pool *pool, size_t *room, const struct draft *d, const struct plan_problem *p,
                        const struct plan_options *o, int context, double most)
{
    struct move m = { .context = context, .to = draft_spot(d->h, context, HULL_BASE) };
    double best;

    hull_best(d->h, hull_chunk_of(d->h, context), context % HULL_CHUNK, d->dual->price, &best);
    m.loss = fmax(best - m.to.utility, 0);
    if (m.loss <= most && pool_add(pool, room, &m))
        return -1;
    for (int v = 0; v < p->n_configs; v++) {
        for (int t = 0; t < p->n_tiers; t++) {
            int tier = hull_tier(d->h, t);
            if (tier < 0 || o->bytes[v] <= 0 || !plan_option_ok(o, p, v, t))
                continue;
            m.to = (struct spot){ (double)o->bytes[v], o->utility[v * p->n_tiers + t], { v, t }, tier };
            m.loss = fmax(best - (m.to.utility - d->dual->price[tier] * m.to.size), 0);
            if (m.loss <= most && pool_add(pool, room, &m))
                return -1;
        }
    }
    return 0;
}

static int pool_fill(struct pool *pool, const struct draft *d, const struct plan_problem *p, double most,
                     struct err *err)
{
    struct plan_options o = { 0 };
    size_t room = MOVES;
    int failed = 0;

    *pool = (struct pool){ .at = calloc(room, sizeof(*pool->at)) };
    if (!pool->at || plan_options_init(&o, p, err))
        failed = 1;
    for (int i = 0; i < p->n_contexts && !failed; i++) {
        plan_options_get(&o, p, i);
        failed = pool_context(pool, &room, d, p, &o, i, most);
    }
    plan_options_release(&o);
    if (failed) {
        free(pool->at);
        return err_nomem(err);
    }
    if (pool->n > 0)
        qsort(pool->at, (size_t)pool->n, sizeof(*pool->at), move_compare);
    if (pool->n > MOVES)
        pool->n = MOVES;
    return 0;
}

/* ---- moves ------------------------------------------------------------------- */

static double gain(const struct draft *d, const struct move *m)
{
    return m->to.utility - d->spot[m->context].utility;
}

/* Room on a tier after a move. */
static double room_after(const struct draft *d, const struct move *m, int tier)
{
    const struct spot *now = &d->spot[m->context];
    double room = d->room[tier];

    if (now->tier == tier)
        room += now->size;
    if (m->to.tier == tier)
        room -= m->to.size;
    return room;
}

static int fits(const struct draft *d, const struct move *m)
{
    return m->to.tier < 0 || room_after(d, m, m->to.tier) >= 0;
}

/* Both moves together, of different contexts. */
static int pair_fits(const struct draft *d, const struct move *a, const struct move *b)
{
    int tier[2] = { a->to.tier, b->to.tier };

    for (int k = 0; k < 2; k++)
        if (tier[k] >= 0 && room_after(d, a, tier[k]) + room_after(d, b, tier[k]) - d->room[tier[k]] < 0)
            return 0;
    return 1;
}

static int single_moves(struct draft *d, const struct pool *pool)
{
    int changed = 0;

    for (int k = 0; k < pool->n; k++) {
        if (gain(d, &pool->at[k]) <= 0 || !fits(d, &pool->at[k]))
            continue;
        draft_put(d, pool->at[k].context, pool->at[k].to);
        changed = 1;
    }
    return changed;
}

/* The best pair for one gaining move: among moves of others that free room on its tier. */
static const struct move *partner(const struct draft *d, const struct pool *pool, const struct move *a, double most,
                                  int64_t *budget)
{
    const struct move *best = NULL;
    double best_gain = 1e-12 * fabs(most), own = gain(d, a), loss = draft_loss(d, a->context, &d->spot[a->context]);

    for (int k = 0; k < pool->n && pool->at[k].loss + a->loss <= most + loss; k++) {
        const struct move *b = &pool->at[k];
        const struct spot *now = &d->spot[b->context];
        --*budget;
        if (now->tier != a->to.tier || b->context == a->context || own + gain(d, b) <= best_gain || !pair_fits(d, a, b))
            continue;
        best = b;
        best_gain = own + gain(d, b);
    }
    return best;
}

static int pair_moves(struct draft *d, const struct pool *pool, double most, int64_t *budget)
{
    int changed = 0;

    for (int k = 0; k<pool->n && * budget> 0; k++) {
        const struct move *a = &pool->at[k];
        if (gain(d, a) <= 0 || a->to.tier < 0)
            continue;
        const struct move *b = partner(d, pool, a, most, budget);
        if (!b)
            continue;
        draft_put(d, a->context, a->to);
        draft_put(d, b->context, b->to);
        changed = 1;
    }
    return changed;
}

static void climb(struct draft *d, const struct pool *pool, double most, int64_t budget)
{
    int changed = 1;

    while (changed && budget > 0) {
        changed = single_moves(d, pool);
        changed |= pair_moves(d, pool, most, &budget);
    }
}

/* ---- kicks --------------------------------------------------------------------- */

/* Of the pool's moves that end some overload, the one that loses least per byte; the base ends any. */
static int end_overload(struct draft *d, const struct pool *pool, int tier, int keep)
{
    const struct move *best = NULL;
    double least = HUGE_VAL;

    for (int k = 0; k < pool->n; k++) {
        const struct move *m = &pool->at[k];
        if (d->spot[m->context].tier != tier || m->context == keep || (m->to.tier != tier && !fits(d, m)))
            continue;
        double freed = room_after(d, m, tier) - d->room[tier];
        if (freed <= 0)
            continue;
        double cost = -gain(d, m) / fmin(freed, -d->room[tier]);
        if (cost < least) {
            least = cost;
            best = m;
        }
    }
    if (!best)
        return -1;
    draft_put(d, best->context, best->to);
    return 0;
}

static int kick(struct draft *d, const struct pool *pool, struct rng *r)
{
    int keep = -1;

    for (int k = 0; k < KICK_MOVES; k++) {
        double u = rng_unit(r); /* low losses more often */
        const struct move *m = &pool->at[(int)(u * u * pool->n)];
        draft_put(d, m->context, m->to);
        keep = m->context;
    }
    for (int t = 0; t < d->h->n_tiers; t++)
        while (d->room[t] < 0)
            if (end_overload(d, pool, t, keep))
                return -1;
    for (int t = 0; t < d->h->n_tiers; t++)
        if (d->room[t] < 0)
            return -1;
    return 0;
}

static void copy_draft(struct draft *to, const struct draft *from)
{
    memcpy(to->spot, from->spot, (size_t)from->h->n_contexts * sizeof(*to->spot));
    memcpy(to->room, from->room, sizeof(to->room));
}

static int kick_rounds(struct draft *d, const struct pool *pool, double most, int kicks, struct err *err)
{
    struct rng r = rng_new(1);
    struct draft trial;
    double best = draft_total(d), now = best;

    if (draft_init(&trial, d->h, d->dual, err))
        return err->code;
    copy_draft(&trial, d);
    for (int k = 0; k < kicks && pool->n > 0; k++) {
        double before = now;
        if (kick(&trial, pool, &r)) {
            copy_draft(&trial, d);
            now = best;
            continue;
        }
        climb(&trial, pool, most, PAIR_BUDGET / 400);
        now = draft_total(&trial);
        if (now > best) {
            best = now;
            copy_draft(d, &trial);
        } else if (now < before - 0.1 * (d->dual->bound - best)) {
            copy_draft(&trial, d);
            now = best;
        }
    }
    draft_release(&trial);
    return 0;
}

int draft_polish(struct draft *d, const struct plan_problem *problem, int kicks, struct err *err)
{
    struct pool pool;
    double most = d->dual->bound - draft_total(d);

    if (most <= close_enough * fabs(d->dual->bound))
        return 0;
    if (pool_fill(&pool, d, problem, most, err))
        return err->code;
    climb(d, &pool, most, PAIR_BUDGET);
    free(pool.at);
    if (kicks == 0)
        return 0;
    most = d->dual->bound - draft_total(d);
    if (pool_fill(&pool, d, problem, most, err))
        return err->code;
    int code = kick_rounds(d, &pool, most, kicks, err);
    free(pool.at);
    return code;
}
