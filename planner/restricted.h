/* restricted.h - the restricted set: the contexts whose choice a box of dual prices leaves open.
 *
 * A context is open when different candidates are best at different prices in the box. The restricted set holds the few
 * candidates of each open context that can win somewhere in the box, packed tightly, because they are evaluated
 * repeatedly. The other contexts are fixed and summed once. Near the optimum at most a fifth of the contexts is open,
 * with about three candidates each.
 */
#ifndef EVP_RESTRICTED_H
#define EVP_RESTRICTED_H

#include "planner/hull.h"

struct box {
    double low[PLAN_TIERS], high[PLAN_TIERS]; // prices per knapsack
};

/* Contexts of a hull. */
struct sample {
    const int *context; // (n) NULL: the first n
    int n;
};

struct restricted {
    const struct hull *h; // set by the caller
    int n_blocks;
    struct restricted_block *block; // owned
};

enum { RESTRICTED_OPEN = -2 };

/* Fills the restricted set again. fixed (C): gets the point of every fixed context of the sample, HULL_BASE, or
 * RESTRICTED_OPEN; may be NULL. */
int restricted_build(struct restricted *r, const struct sample *sample, const struct box *box, int32_t *fixed,
                     struct err *err) MUST_CHECK;
void restricted_release(struct restricted *r);

/* Returns the total reduced value of all contexts, each at its best candidate at the prices. demand (D): the bytes that
 * these candidates take of each knapsack. The same for any number of threads. */
double restricted_evaluate(const struct restricted *r, const double *price, double *demand);

#endif
