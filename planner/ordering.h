/* ordering.h - orders the operations of an event so that no tier ever exceeds its capacity. */
#ifndef EVP_ORDERING_H
#define EVP_ORDERING_H

#include "planner/incremental.h"

struct operations {
    struct incremental_op *at;
    int n, cap;
};

struct ordering {
    const int *pool;           // (PLAN_TIERS) the first tier of each tier's pool, borrowed; NULL: no pools
    struct operations wanted;  // one per context that changes, in any order; owned
    struct operations ordered; // owned
};

/* Moves the operations of `wanted` into `ordered`, in such an order. free_bytes (PLAN_TIERS): free bytes of the tiers
 * before the first operation, for a pool at its first tier; INT64_MAX: unlimited. After the last operation everything
 * must fit. Where a cycle of full tiers blocks every operation, a context is dropped and stored again later, so it has
 * two operations. -1 without memory. */
int ordering_make(struct ordering *o, const int64_t *free_bytes) MUST_CHECK;

void ordering_release(struct ordering *o);

#endif
