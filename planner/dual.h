/* dual.h - the Lagrangian dual: the prices per byte at which demand meets capacity, and the bound they prove.
 *
 *     L(price) = sum_d price_d * capacity_d + sum_i max_o (u_io - price_d(o) * s_io)
 *
 * is convex in the few prices and bounds every plan from above. Cutting planes find its minimum (Kelley 1960; the
 * master is the one of Dantzig and Wolfe), first on 4,096 sampled contexts, then on 65,536, then on all, each level in
 * a box around the last level's prices. Only the contexts that the box leaves open are evaluated repeatedly
 * (planner/restricted.h).
 *
 * The dual also gives the optimum of the linear program: a weighted mix of a few plans, each given by the prices at
 * which it is best. The mix exceeds no capacity and reaches the bound; rounding turns it into a plan.
 */
#ifndef EVP_DUAL_H
#define EVP_DUAL_H

#include "planner/restricted.h"

struct dual {
    const struct hull *h;     // borrowed
    double price[PLAN_TIERS]; // of each knapsack
    double bound;             // L(price), over all contexts
    int n_plans;              // at most D + 1
    double plan_price[PLAN_TIERS + 1][PLAN_TIERS], weight[PLAN_TIERS + 1];
    int32_t *fixed; // (C) owned: the point of a context in all these plans, HULL_BASE or RESTRICTED_OPEN
};

/* start: prices to begin with (D), or NULL. */
int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err) MUST_CHECK;
void dual_release(struct dual *dual);

#endif
