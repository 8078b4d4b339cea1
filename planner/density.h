/* density.h - a plan that follows the requests: a cache that keeps what is worth most per byte.
 *
 *     struct density *d = density_new(&setup, &err);
 *     density_add(d, &context, &number, &err);
 *     density_used(d, number, &(struct density_use){ .at_s = now, .computed = true }, &err);
 *     for (int k = 0; k < density_state(d)->n_ops; k++)
 *         carry_out(&density_state(d)->op[k]);
 *
 * What a use of a context is worth when it is stored in a form on a tier, in seconds:
 *
 *     value = alpha * (quality - 1) + cost of computing it - cost of reading it - slo_weight * (difference of lateness)
 *
 * Costs of GPU and tier time are prices of measured queues (planner/prices.h); chances of use come from planner/uses.h.
 * What an item holds against its space is its
 *
 *     density = (chance * value - the same of its best alternative on the next tier, or of none) / bytes
 *
 * After each use the context goes to the tier and form with the greatest gain: chance * value, less the cost of
 * writing over the time that things stay on the tier, less what the items lose that must leave. If no gain is above 0,
 * it is not stored. What was computed, or is held whole, may take any form; other contexts keep theirs, or are given
 * up, so that their next use computes them, where that pays. Densities are those of a random sample of each tier, so a
 * use costs the same whatever the number of contexts.
 */
#ifndef EVP_DENSITY_H
#define EVP_DENSITY_H

#include "planner/plan.h"
#include "planner/prices.h"
#include "planner/uses.h"
#include "planner/utility.h"

struct density;

struct density_tier {
    int64_t capacity; // bytes; INT64_MAX: unlimited
    int pool;         // the first tier of its pool, itself without one
    double latency_s, read_s_per_byte, write_s_per_byte;
    double read_spread; // standard deviation / mean of a read's time
};

struct density_setup {
    struct density_tier tier[PLAN_TIERS];
    int n_tiers, n_gpus;
    struct plan_goal goal;
    double move_cost; // seconds that each written byte must bring
};

/* One form of a context. */
struct density_form {
    int64_t bytes; // below 0: not available
    double quality, decompress_s;
    uint64_t tiers; // bit t: tier t may hold it
};

struct density_context {
    double prefill_s, question_s, prefill_sd_s, question_sd_s;
    const struct density_form *form; // (n_forms) copied
    int n_forms;
    int whole;   // the form from which all others can be made; -1: none
    bool pinned; // stays where it is, or goes wherever its forms may be
};

struct density_use {
    double at_s;   // when, in seconds; NAN: not known, and all are of uses without a time
    bool computed; // all forms can be made
};

/* One operation: a context goes from one placement to another. From recomputing: it is stored; to recomputing: it is
 * dropped. Carried out in order, no tier ever exceeds its capacity; a context may have two. */
struct density_op {
    int context;
    struct plan_placement from, to;
    int64_t from_bytes, to_bytes; // 0 when recomputed
};

struct density_state {
    int n_contexts, n_stored;
    int64_t free[PLAN_TIERS];    // bytes of each tier, equal for all tiers of a pool; INT64_MAX: unlimited
    const struct density_op *op; // of the last event
    int n_ops;
};

struct density *density_new(const struct density_setup *setup, struct err *err) MUST_CHECK;
void density_free(struct density *d); // NULL is fine

/* Adds a context that is not stored and was never used. *context: its number, which a removed context may have had.
 * After a failure (ERR_NOMEM) of this or another event only density_free() may be called. */
int density_add(struct density *d, const struct density_context *all, int *context, struct err *err) MUST_CHECK;

/* Replaces what is known of a context; density_settle() must follow. What is stored of it has its form's number in the
 * new forms, or that form is not available any more. */
int density_change(struct density *d, int context, const struct density_context *all, struct err *err) MUST_CHECK;
int density_remove(struct density *d, int context, struct err *err) MUST_CHECK;

/* Puts a context where it is stored; there is room. Makes no operation. */
int density_put(struct density *d, int context, struct plan_placement at, struct err *err) MUST_CHECK;

/* What is stored of a context is gone. Makes no operation. */
void density_lose(struct density *d, int context);

/* A use. */
int density_used(struct density *d, int context, const struct density_use *use, struct err *err) MUST_CHECK;

/* Finds a context its place, as after a use for which it was computed. */
int density_settle(struct density *d, int context, struct err *err) MUST_CHECK;

struct plan_placement density_placement(const struct density *d, int context);

/* How often contexts are used; may be set. */
struct uses *density_uses(struct density *d);
struct use_counts *density_counts(struct density *d, int context);

/* Borrowed; changes with the next event. */
const struct density_state *density_state(const struct density *d);

#endif
