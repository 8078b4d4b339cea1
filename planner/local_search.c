/* local_search.c - moves and pairs of moves, for small problems, where single contexts matter.
 *
 * Only candidates with a loss below the gap can be in a better plan. Applied are single moves that fit and gain, and
 * pairs: one context gains in a knapsack that lacks the space, another one leaves that knapsack or shrinks there and
 * loses less.
 */
#include "planner/moves.h"

#include <stddef.h>
#include <math.h>

enum { PAIR_BUDGET = 40000000 };

struct search {
    struct incumbent *x;
    struct moves moves;
    double gap; // at the start of the search
    int64_t budget;
};

/* Do two moves of different contexts fit together? */
static bool pair_fits(const struct incumbent *x, const struct move *a, const struct move *b)
{
    int knapsack[2] = { a->to.knapsack, b->to.knapsack };

    for (int k = 0; k < 2; k++) {
        int d = knapsack[k];
        if (d >= 0 && incumbent_free_after(x, a, d) + incumbent_free_after(x, b, d) - x->free[d] < 0)
            return false;
    }
    return true;
}

/* The best partner of a move that gains: another context's move out of the same knapsack, or to fewer bytes there, that
 * loses least and makes both fit. NULL: none. */
static const struct move *find_partner(struct search *s, const struct move *a)
{
    const struct incumbent *x = s->x;
    const struct move *best = NULL;
    double best_gain = 1e-12 * fabs(s->gap), own = incumbent_gain(x, a);
    double max_loss = s->gap + incumbent_loss(x, a->context, &x->at[a->context]);

    const struct move *b = s->moves.at, *end = s->moves.at + s->moves.n;
    for (; b < end && b->loss + a->loss <= max_loss; b++) {
        if (x->at[b->context].knapsack != a->to.knapsack || b->context == a->context ||
            own + incumbent_gain(x, b) <= best_gain || !pair_fits(x, a, b))
            continue;
        best = b;
        best_gain = own + incumbent_gain(x, b);
    }
    s->budget -= b - s->moves.at;
    return best;
}

static bool apply_pairs(struct search *s)
{
    bool changed = false;

    for (int k = 0; s->budget > 0 && k < s->moves.n; k++) {
        const struct move *a = &s->moves.at[k];
        if (incumbent_gain(s->x, a) <= 0 || a->to.knapsack < 0)
            continue;
        const struct move *b = find_partner(s, a);
        if (!b)
            continue;
        incumbent_apply(s->x, a);
        incumbent_apply(s->x, b);
        changed = true;
    }
    return changed;
}

static bool loses_less_than_gap(const void *arg, struct move *m)
{
    const struct search *s = arg;

    m->loss = incumbent_loss(s->x, m->context, &m->to);
    return m->loss <= s->gap;
}

int incumbent_local_search(struct incumbent *x, const struct plan_problem *problem, struct err *err)
{
    struct search s = { .x = x, .gap = incumbent_gap(x), .budget = PAIR_BUDGET };
    const struct moves_filter filter = { .price = loses_less_than_gap, .arg = &s };
    int code = moves_find(&s.moves, x, problem, &filter, err);
    bool changed = !code;

    while (changed && s.budget > 0) {
        changed = moves_apply_gains(&s.moves, x);
        changed |= apply_pairs(&s);
    }
    moves_release(&s.moves);
    return code;
}
