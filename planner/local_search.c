/* local_search.c - small problems, where a context or two more or less matter: moves and pairs of moves.
 *
 * Only candidates whose loss at the prices is below the present distance from the bound can be part of a better plan.
 * Over those, single moves that fit and pay are made, and pairs: one context gains on a tier that lacks the room,
 * another makes the room and loses less.
 */
#include "planner/incumbent.h"

#include <math.h>

enum { PAIR_BUDGET = 40000000 };

/* Every candidate of one context whose loss is at most `most`, the base once. */
static int add_moves(struct moves *moves, const struct incumbent *d, const struct plan_problem *p,
                     const struct plan_candidates *o, int context, double most)
{
    struct move m = { .context = context, .to = incumbent_candidate(d->h, context, HULL_BASE) };
    double best = incumbent_best(d, context);

    m.loss = fmax(best - m.to.utility, 0);
    if (m.loss <= most && moves_add(moves, &m))
        return -1;
    for (int v = 0; v < p->n_configs; v++) {
        for (int t = 0; t < p->n_tiers; t++) {
            int tier = hull_tier(d->h, t);
            if (tier < 0 || o->bytes[v] <= 0 || !plan_candidate_ok(o, p, v, t))
                continue;
            m.to = (struct spot){ (double)o->bytes[v], o->utility[v * p->n_tiers + t], { v, t }, tier };
            m.loss = fmax(best - incumbent_value(d, &m.to), 0);
            if (m.loss <= most && moves_add(moves, &m))
                return -1;
        }
    }
    return 0;
}

/* On failure there is nothing to release. */
static int find_moves(struct moves *moves, const struct incumbent *d, const struct plan_problem *p, double most,
                      struct err *err)
{
    struct plan_candidates o;
    int failed = 0;

    *moves = (struct moves){ 0 };
    if (plan_candidates_init(&o, p, err))
        return err->code;
    for (int i = 0; i < p->n_contexts && !failed; i++) {
        plan_candidates_get(&o, p, i);
        failed = add_moves(moves, d, p, &o, i, most);
    }
    plan_candidates_release(&o);
    moves_sort(moves, POLISH_MOVES);
    if (!failed)
        return 0;
    moves_release(moves);
    return err_nomem(err);
}

/* ---- moves ------------------------------------------------------------------- */

static double gain(const struct incumbent *d, const struct move *m)
{
    return m->to.utility - d->spot[m->context].utility;
}

/* Room on a tier after a move. */
static double room_after(const struct incumbent *d, const struct move *m, int tier)
{
    const struct spot *now = &d->spot[m->context];
    double room = d->room[tier];

    if (now->tier == tier)
        room += now->size;
    if (m->to.tier == tier)
        room -= m->to.size;
    return room;
}

static int fits(const struct incumbent *d, const struct move *m)
{
    return m->to.tier < 0 || room_after(d, m, m->to.tier) >= 0;
}

/* Both moves together, of different contexts. */
static int pair_fits(const struct incumbent *d, const struct move *a, const struct move *b)
{
    int tier[2] = { a->to.tier, b->to.tier };

    for (int k = 0; k < 2; k++)
        if (tier[k] >= 0 && room_after(d, a, tier[k]) + room_after(d, b, tier[k]) - d->room[tier[k]] < 0)
            return 0;
    return 1;
}

static int single_moves(struct incumbent *d, const struct moves *moves)
{
    int changed = 0;

    for (int k = 0; k < moves->n; k++) {
        if (gain(d, &moves->at[k]) <= 0 || !fits(d, &moves->at[k]))
            continue;
        incumbent_put(d, moves->at[k].context, moves->at[k].to);
        changed = 1;
    }
    return changed;
}

/* The best pair for one gaining move: among moves of others that free room on its tier. */
static const struct move *partner(const struct incumbent *d, const struct moves *moves, const struct move *a,
                                  double most, int64_t *budget)
{
    const struct move *best = NULL;
    double best_gain = 1e-12 * fabs(most), own = gain(d, a), loss = incumbent_loss(d, a->context, &d->spot[a->context]);

    for (int k = 0; k < moves->n && moves->at[k].loss + a->loss <= most + loss; k++) {
        const struct move *b = &moves->at[k];
        const struct spot *now = &d->spot[b->context];
        --*budget;
        if (now->tier != a->to.tier || b->context == a->context || own + gain(d, b) <= best_gain || !pair_fits(d, a, b))
            continue;
        best = b;
        best_gain = own + gain(d, b);
    }
    return best;
}

static int pair_moves(struct incumbent *d, const struct moves *moves, double most, int64_t *budget)
{
    int changed = 0;

    for (int k = 0; *budget > 0 && k < moves->n; k++) {
        const struct move *a = &moves->at[k];
        if (gain(d, a) <= 0 || a->to.tier < 0)
            continue;
        const struct move *b = partner(d, moves, a, most, budget);
        if (!b)
            continue;
        incumbent_put(d, a->context, a->to);
        incumbent_put(d, b->context, b->to);
        changed = 1;
    }
    return changed;
}

static void climb(struct incumbent *d, const struct moves *moves, double most)
{
    int64_t budget = PAIR_BUDGET;
    int changed = 1;

    while (changed && budget > 0) {
        changed = single_moves(d, moves);
        changed |= pair_moves(d, moves, most, &budget);
    }
}

int incumbent_local_search(struct incumbent *d, const struct plan_problem *problem, struct err *err)
{
    struct moves moves;
    double most = d->dual->bound - incumbent_total(d);

    if (find_moves(&moves, d, problem, most, err))
        return err->code;
    climb(d, &moves, most);
    moves_release(&moves);
    return 0;
}
