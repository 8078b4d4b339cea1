/* incumbent.h - the best plan so far: the candidate of every context and the free bytes of every knapsack.
 *
 * loss of a candidate = its context's best reduced value - its own. A plan's gap (bound - objective) is the sum of the
 * contexts' losses and the free bytes at the dual prices, none of them negative. Rounding, repair and the searches make
 * both small.
 */
#ifndef EVP_INCUMBENT_H
#define EVP_INCUMBENT_H

#include "planner/dual.h"
#include "planner/hull.h"

#include <stdbool.h>

struct incumbent {
    const struct hull *h;
    const struct dual *dual;
    struct candidate *at;     // (C)
    int64_t free[PLAN_TIERS]; // of each knapsack: capacity - placed bytes; negative: overloaded
};

/* A possible step: one context goes to another candidate. */
struct move {
    int context;
    double loss;
    struct candidate to;
};

int incumbent_init(struct incumbent *x, const struct dual *dual,
                   struct err *err) MUST_CHECK; // nothing placed
void incumbent_release(struct incumbent *x);

void incumbent_apply(struct incumbent *x, const struct move *m);
double incumbent_objective(const struct incumbent *x); // a compensated sum
double incumbent_gap(const struct incumbent *x);

/* Smaller differences between objectives are rounding errors. */
double incumbent_rounding(const struct incumbent *x);

/* Is the gap so small that closing it is not worth the time? */
bool incumbent_is_close(const struct incumbent *x);

double incumbent_reduced_value(const struct incumbent *x, const struct candidate *c);
double incumbent_best_value(const struct incumbent *x, int context); // the reduced value of its best candidate
double incumbent_loss(const struct incumbent *x, int context, const struct candidate *c);

/* The rise of the objective by a move. Inline, because local search calls it millions of times. */
static inline double incumbent_gain(const struct incumbent *x, const struct move *m)
{
    return m->to.utility - x->at[m->context].utility;
}

/* The free bytes of a knapsack after a move. */
static inline int64_t incumbent_free_after(const struct incumbent *x, const struct move *m, int knapsack)
{
    return x->free[knapsack] - candidate_added(&x->at[m->context], &m->to, knapsack);
}

/* ---- the steps of making a plan, in this order; each in its own file ---- */

/* Rounds the dual's mix of plans. Contexts on which the plans differ are assigned so that the fill of each knapsack
 * stays as close to the mix as possible (error diffusion). A few contexts may overload a knapsack. */
void incumbent_round(struct incumbent *x);

/* Ends overloads at the least loss per byte, then fills free bytes with the moves of least loss. */
int incumbent_repair(struct incumbent *x, struct err *err) MUST_CHECK;

/* Improves by single moves and pairs of moves with a loss below the gap. */
int incumbent_local_search(struct incumbent *x, const struct plan_problem *problem, struct err *err) MUST_CHECK;

#endif
