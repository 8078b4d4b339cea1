/* incremental.h - a plan that is kept while contexts come, change and go, between one solution and the next.
 *
 *     struct incremental *m = incremental_new(&problem, &plan, &err);
 *     if (incremental_add(m, &candidates, &context, &err)) ...
 *     for (int k = 0; k < incremental_state(m)->n_ops; k++)
 *         carry_out(&incremental_state(m)->op[k]);
 *
 * The solved plan's prices per byte stay. A context that comes is put where it is worth most at the prices; while its
 * tier is too full, the step is taken that loses least per byte it frees, worth at the prices being counted: a smaller
 * form in place, a slower tier, a faster one if it has room, or none. Room that is left over goes to those who gain.
 *
 * The bound holds for any prices, so it is kept by adding and subtracting what a context is worth at best: it is true
 * at every moment, and tells by its distance from the objective when planning anew would pay.
 */
#ifndef EVP_INCREMENTAL_H
#define EVP_INCREMENTAL_H

#include "planner/plan.h"

#include <stdint.h>

struct incremental;

/* One thing to carry out. Recomputed before: the context comes to be stored; afterwards: it is dropped. */
struct incremental_op {
    int context;
    struct plan_placement from, to;
    int64_t from_bytes, to_bytes; // 0 when recomputed
};

struct incremental_state {
    int n_contexts;
    double objective, upper_bound;
    int64_t room[PLAN_TIERS]; // bytes free on each tier; INT64_MAX: unlimited
    /* Of the last event, in an order in which no tier ever holds more than its capacity, one operation after the other.
     * A context may come twice: dropped, to break a circle, and stored again. */
    const struct incremental_op *op;
    int n_ops;
};

/* Takes over a plan; the problem is not needed afterwards, and its contexts keep their numbers. NULL on failure. */
struct incremental *incremental_new(const struct plan_problem *problem, const struct plan *plan,
                                    struct err *err) MUST_CHECK;
void incremental_free(struct incremental *m); // NULL is fine

/* A context comes, with candidates of as many configs and tiers as the problem has. *context: its number, which may be
 * one that was removed. Out of memory: only incremental_free() may follow, also below. */
int incremental_add(struct incremental *m, const struct plan_candidates *o, int *context, struct err *err) MUST_CHECK;

/* A context's candidates are others now: it is used more or less, its bytes have changed ... */
int incremental_update(struct incremental *m, int context, const struct plan_candidates *o, struct err *err) MUST_CHECK;

int incremental_remove(struct incremental *m, int context, struct err *err) MUST_CHECK;

struct plan_placement incremental_placement(const struct incremental *m, int context);

/* Borrowed; changes with the next event. */
const struct incremental_state *incremental_state(const struct incremental *m);

#endif
