/* ordering.h - what an event does to the contexts it touches, and the operations that carry it out one after the other.
 */
#ifndef EVP_ORDERING_H
#define EVP_ORDERING_H

#include "planner/incremental.h"

/* A place for a context. Bytes count on finite tiers only. */
struct point {
    int64_t bytes;
    double utility;
    uint16_t config;
    int8_t tier, finite; // tier of the problem and its index among the finite ones, both -1 when recomputed
};

static const struct point point_recomputed = { 0, 0, 0, -1, -1 };

/* Bytes that going from one place to another adds to a tier. */
static inline int64_t point_added(const struct point *from, const struct point *to, int finite)
{
    return (to->finite == finite ? to->bytes : 0) - (from->finite == finite ? from->bytes : 0);
}

struct change {
    int context;
    struct point from, to;
};

struct changes {
    struct change *at; // (n) owned
    int n, room;
    struct incremental_op *op; // (n_ops) owned
    int n_ops, ops_room;
};

/* A context is about to leave a place. Returns the change's index, of which `to` is the caller's to fill in, or -1
 * without memory. */
int changes_note(struct changes *c, int context, const struct point *from);

/* Makes the operations, in an order in which no tier ever holds more than it can: room (PLAN_TIERS) is what the finite
 * tiers have before the first; after the last everything must fit. -1 without memory. The changes are gone. */
int changes_order(struct changes *c, const int64_t *room) MUST_CHECK;

void changes_release(struct changes *c);

#endif
