/* dual.h - the prices per byte at which the tiers clear, and the bound they prove.
 *
 *     L(price) = sum_d price_d * capacity_d + sum_i max_o (u_io - price_d(o) * s_io)
 *
 * is convex in a handful of prices and bounds every plan from above. Its minimum is found by cutting planes (Kelley
 * 1960; the master_lp is the Dantzig-Wolfe one) on 4,096 sampled contexts, then 65,536, then all, each level in a box
 * around the last level's prices. Only contexts that the box leaves open are asked again and again
 * (planner/restricted.h).
 *
 * Besides the prices, the few plans whose mix is the optimum of the linear program are given by the prices they are
 * best at, with their weights: a mix that exceeds no capacity and reaches the bound, from which a plan is rounded.
 */
#ifndef EVP_DUAL_H
#define EVP_DUAL_H

#include "planner/restricted.h"

struct dual {
    double price[PLAN_TIERS]; // of the finite tiers
    double bound;             // L(price), over all contexts
    int n_plans;              // at most n_tiers + 1
    double plan_price[PLAN_TIERS + 1][PLAN_TIERS], weight[PLAN_TIERS + 1];
    int32_t
        *fixed; // (C) owned: the point that a context takes in every one of those plans, HULL_BASE or RESTRICTED_OPEN
};

/* start: prices to begin with (n_tiers), or NULL. */
int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err) MUST_CHECK;
void dual_release(struct dual *dual);

#endif
