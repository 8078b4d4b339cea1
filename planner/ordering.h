/* ordering.h - the operations that carry an event out, in an order in which no tier ever exceeds its capacity. */
#ifndef EVP_ORDERING_H
#define EVP_ORDERING_H

#include "planner/incremental.h"

struct operations {
    struct incremental_op *at;
    int n, cap;
};

struct ordering {
    const int *pool;           // (PLAN_TIERS) of each tier the first tier of its pool, borrowed; NULL: no tier shares
    struct operations wanted;  // one per context that changes, in any order; owned
    struct operations ordered; // owned
};

/* Puts the operations of `wanted` into `ordered`, in such an order, and empties `wanted`. free_bytes (PLAN_TIERS): what
 * the tiers, or the pools that begin with them, have free before the first operation, INT64_MAX: unlimited; after the
 * last one everything must fit. Where a circle of full tiers leaves nothing that fits, a context is dropped, and stored
 * again later: then it has two operations. -1 without memory. */
int ordering_make(struct ordering *o, const int64_t *free_bytes) MUST_CHECK;

void ordering_release(struct ordering *o);

#endif
