/* restricted.h - what a box of prices leaves open: the contexts that do not choose the same candidate at every price in
 * it, each with the few points that can win there, packed tightly, because they are asked again and again. The others
 * are summed up once. Near the optimum a fifth of the contexts or less is open, with about three candidates each.
 */
#ifndef EVP_RESTRICTED_H
#define EVP_RESTRICTED_H

#include "planner/hull.h"

struct box {
    double low[PLAN_TIERS], high[PLAN_TIERS]; // per finite tier
};

struct restricted {
    const struct hull *h;
    int n_blocks;
    struct restricted_block *block; // owned
};

enum { RESTRICTED_OPEN = -2 };

/* list: n contexts, or NULL: all. fixed (C): gets the point of every listed context that is fixed, HULL_BASE, or
 * RESTRICTED_OPEN; may be NULL. Replaces what the restricted held, which is zeroed at first. */
int restricted_build(struct restricted *restricted, const struct hull *h, const int *list, int n, const struct box *box,
                     int32_t *fixed, struct err *err) MUST_CHECK;
void restricted_release(struct restricted *restricted);

/* What the contexts are worth together when each takes its best point at the prices, and what that needs of each tier.
 * The same for any number of threads. */
double restricted_ask(const struct restricted *restricted, const double *price, double *demand);

#endif
