/* ordering.c - repeatedly emits every operation that fits. This ends, because everything fits in the end and each
 * context is dropped at most once. */
#include "planner/ordering.h"

#include "base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool changes_nothing(const struct incremental_op *op)
{
    return op->from.tier == op->to.tier && op->from.config == op->to.config && op->from_bytes == op->to_bytes;
}

/* The tier that accounts for a tier's bytes. */
static int account_of(const struct ordering *o, int tier)
{
    return o->pool && tier != PLAN_RECOMPUTE ? o->pool[tier] : tier;
}

/* The free bytes in the account of a tier; NULL: unlimited, or PLAN_RECOMPUTE. */
static int64_t *account(const struct ordering *o, int64_t *free_bytes, int tier)
{
    int64_t *at = tier == PLAN_RECOMPUTE ? NULL : &free_bytes[account_of(o, tier)];

    return at && *at != INT64_MAX ? at : NULL;
}

static bool fits(const struct ordering *o, const struct incremental_op *op, int64_t *free_bytes)
{
    const int64_t *to = account(o, free_bytes, op->to.tier);
    int64_t freed = account_of(o, op->from.tier) == account_of(o, op->to.tier) ? op->from_bytes : 0;

    return !to || op->to_bytes - freed <= *to;
}

static int emit(struct ordering *o, const struct incremental_op *op, int64_t *free_bytes)
{
    int64_t *from = account(o, free_bytes, op->from.tier), *to = account(o, free_bytes, op->to.tier);

    if (from)
        *from += op->from_bytes;
    if (to)
        *to -= op->to_bytes;
    return ARRAY_PUSH(&o->ordered, *op);
}

/* Emits every operation that fits, one after another, and keeps the rest. -1 without memory. */
static int emit_fitting(struct ordering *o, int64_t *free_bytes)
{
    int left = 0;

    for (int k = 0; k < o->wanted.n; k++) {
        struct incremental_op op = o->wanted.at[k];
        if (changes_nothing(&op))
            continue;
        if (!fits(o, &op, free_bytes))
            o->wanted.at[left++] = op;
        else if (emit(o, &op, free_bytes))
            return -1;
    }
    o->wanted.n = left;
    return 0;
}

/* Drops the first context with bytes on a limited tier; it is stored at its destination later. */
static int break_cycle(struct ordering *o, int64_t *free_bytes)
{
    for (int k = 0; k < o->wanted.n; k++) {
        struct incremental_op *op = &o->wanted.at[k], drop = *op;
        if (!account(o, free_bytes, op->from.tier) || op->from_bytes == 0)
            continue;
        drop.to = op->from = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        drop.to_bytes = op->from_bytes = 0;
        return emit(o, &drop, free_bytes);
    }
    return 0;
}

int ordering_make(struct ordering *o, const int64_t *free_before)
{
    int64_t free_bytes[PLAN_TIERS];

    memcpy(free_bytes, free_before, sizeof(free_bytes));
    o->ordered.n = 0;
    while (o->wanted.n > 0) {
        int before = o->wanted.n;
        if (emit_fitting(o, free_bytes) || (o->wanted.n == before && break_cycle(o, free_bytes)))
            return -1;
    }
    return 0;
}

void ordering_release(struct ordering *o)
{
    free(o->wanted.at);
    free(o->ordered.at);
    *o = (struct ordering){ 0 };
}
