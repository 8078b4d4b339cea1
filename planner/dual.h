/* dual.h - the Lagrangian dual: the prices per byte at which demand meets capacity, and the bound they prove.
 *
 *     L(price) = sum_d price_d * capacity_d + sum_i max_o (u_io - price_d(o) * s_io)
 *
 * is convex in a handful of prices and bounds every plan from above. Its minimum is found by cutting planes (Kelley
 * 1960; the master is the one of Dantzig and Wolfe) on 4,096 sampled contexts, then 65,536, then all, each level in a
 * box around the last level's prices. Only the contexts that the box leaves open are evaluated again and again
 * (planner/restricted.h).
 *
 * Besides the prices, the dual gives the optimum of the linear program: a mix of a few plans, each given by the prices
 * at which it is best, and its weight. The mix exceeds no capacity and reaches the bound; a plan is rounded from it.
 */
#ifndef EVP_DUAL_H
#define EVP_DUAL_H

#include "planner/restricted.h"

struct dual {
    const struct hull *h;     // borrowed: what was solved
    double price[PLAN_TIERS]; // of the knapsacks
    double bound;             // L(price), over all contexts
    int n_plans;              // at most D + 1
    double plan_price[PLAN_TIERS + 1][PLAN_TIERS], weight[PLAN_TIERS + 1];
    int32_t *fixed; // (C) owned: the point that a context takes in each of those plans, HULL_BASE or RESTRICTED_OPEN
};

/* start: prices to begin with (D), or NULL. */
int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err) MUST_CHECK;
void dual_release(struct dual *dual);

#endif
