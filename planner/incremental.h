/* incremental.h - a plan that is kept up to date while contexts come, change and go, between one solution and the next.
 *
 *     struct incremental *m = incremental_new(&problem, &plan, &err);
 *     if (incremental_add(m, &candidates, &context, &err)) ...
 *     for (int k = 0; k < incremental_state(m)->n_ops; k++)
 *         carry_out(&incremental_state(m)->op[k]);
 *
 * The solved plan's dual prices stay. A new context goes to its candidate of the highest reduced value. While its tier
 * is over capacity, the step is taken that loses the least reduced value per byte it frees: a smaller variant on the
 * tier, a slower tier, a faster one if it has that much free, or none. What is free afterwards goes to contexts that
 * gain by it. Every byte written must bring move_cost.
 *
 * When all of that together is worth less than leaving the other contexts alone, it is taken back: a new context is
 * then refused, which means that it is recomputed or goes to a tier without limit.
 *
 * The bound holds for any prices. It is kept by adding and subtracting the best reduced values of contexts, so it is
 * true at every moment, and its distance from the objective tells when solving again would pay.
 */
#ifndef EVP_INCREMENTAL_H
#define EVP_INCREMENTAL_H

#include "planner/plan.h"

#include <stdint.h>

struct incremental;

/* One thing to carry out: a context goes from one placement to another. From recomputing: it is stored; to recomputing:
 * it is dropped. */
struct incremental_op {
    int context;
    struct plan_placement from, to;
    int64_t from_bytes, to_bytes; // 0 when recomputed
};

struct incremental_state {
    int n_contexts;
    double objective, upper_bound;
    int64_t free[PLAN_TIERS]; // bytes of each tier, the same for all of a pool; INT64_MAX: unlimited
    /* Of the last event, in an order in which no tier ever exceeds its capacity, one operation after the other. A
     * context may come twice: dropped, to break a circle, and stored again. */
    const struct incremental_op *op;
    int n_ops;
};

/* Takes over a plan; the problem is not needed afterwards, and its contexts keep their numbers. move_cost: utility that
 * each byte written must bring, 0 or more; the objective does not count it. NULL on failure. */
struct incremental *incremental_new(const struct plan_problem *problem, const struct plan *plan, double move_cost,
                                    struct err *err) MUST_CHECK;
void incremental_free(struct incremental *m); // NULL is fine

/* A context comes, with candidates of as many configs and tiers as the problem has. *context: its number, which may be
 * that of a removed context. When this or one of the next two functions fails, for lack of memory, only
 * incremental_free() may follow. */
int incremental_add(struct incremental *m, const struct plan_candidates *all, int *context, struct err *err) MUST_CHECK;

/* A context has other candidates now: it is used more or less, its bytes have changed ... */
int incremental_update(struct incremental *m, int context, const struct plan_candidates *all,
                       struct err *err) MUST_CHECK;

int incremental_remove(struct incremental *m, int context, struct err *err) MUST_CHECK;

struct plan_placement incremental_placement(const struct incremental *m, int context);

/* Borrowed; changes with the next event. */
const struct incremental_state *incremental_state(const struct incremental *m);

#endif
