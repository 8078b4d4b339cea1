/* incremental.h - a plan that is kept up to date between solutions, while contexts come, change and go.
 *
 *     struct incremental *m = incremental_new(&problem, &plan, &err);
 *     if (incremental_add(m, &candidates, &context, &err)) ...
 *     for (int k = 0; k < incremental_state(m)->n_ops; k++)
 *         carry_out(&incremental_state(m)->op[k]);
 *
 * The solved plan's dual prices stay. A new context goes to its candidate with the highest reduced value. While its
 * tier is over capacity, the step with the least loss of reduced value per freed byte is taken: a smaller variant on
 * the tier, a slower tier, a faster one with enough free bytes, or recomputing. Contexts that gain by it then use the
 * bytes that are left. Every written byte must bring move_cost.
 *
 * If all of that is worth less than leaving the other contexts alone, it is undone, and the new context is refused: it
 * is recomputed or goes to an unlimited tier.
 *
 * The bound holds for any prices. Adding and subtracting the best reduced values of contexts keeps it exact at every
 * moment; its distance from the objective tells when to solve again.
 */
#ifndef EVP_INCREMENTAL_H
#define EVP_INCREMENTAL_H

#include "planner/plan.h"

#include <stdint.h>

struct incremental;

/* One operation: a context goes from one placement to another. From recomputing: it is stored; to recomputing: it is
 * dropped. */
struct incremental_op {
    int context;
    struct plan_placement from, to;
    int64_t from_bytes, to_bytes; // 0 when recomputed
};

struct incremental_state {
    int n_contexts;
    double objective, upper_bound;
    int64_t free[PLAN_TIERS]; // bytes of each tier, equal for all tiers of a pool; INT64_MAX: unlimited
    /* The last event's operations, one after another; in this order no tier ever exceeds its capacity. A context may
     * have two: dropped to break a cycle, and stored again. */
    const struct incremental_op *op;
    int n_ops;
};

/* Starts from a plan. Needs neither problem nor plan afterwards; contexts keep their numbers. move_cost: utility that
 * each written byte must bring, 0 or more; the objective does not count it. NULL on failure. */
struct incremental *incremental_new(const struct plan_problem *problem, const struct plan *plan, double move_cost,
                                    struct err *err) MUST_CHECK;
void incremental_free(struct incremental *m); // NULL is fine

/* Adds a context; its candidates have the problem's configs and tiers. *context: its number, which a removed context
 * may have had. After a failure (ERR_NOMEM) of this or one of the next three functions, only incremental_free() may be
 * called. */
int incremental_add(struct incremental *m, const struct plan_candidates *all, int *context, struct err *err) MUST_CHECK;

/* Replaces a context's candidates: its frequency or its bytes have changed, for example. */
int incremental_update(struct incremental *m, int context, const struct plan_candidates *all,
                       struct err *err) MUST_CHECK;

int incremental_remove(struct incremental *m, int context, struct err *err) MUST_CHECK;

/* Records that what is stored of a context is gone: it is recomputed, and the other contexts stay where they are. all:
 * its candidates. */
int incremental_lose(struct incremental *m, int context, const struct plan_candidates *all, struct err *err) MUST_CHECK;

struct plan_placement incremental_placement(const struct incremental *m, int context);

/* Borrowed; changes with the next event. */
const struct incremental_state *incremental_state(const struct incremental *m);

#endif
