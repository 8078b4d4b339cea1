/* live_plan.h - a plan kept between two nights: texts and variants of the contexts, around the planner's arithmetic
 * (planner/incremental.h), which knows numbers only. Not for several threads: loader/libevp/evp_plan.c locks.
 *
 * A config's number, for the planner, is its place among the variants of that context. So that a context can stay where
 * it is when it gets other variants, its present variant keeps its number, and there may be holes: variants without a
 * config.
 */
#ifndef EVP_LIVE_PLAN_H
#define EVP_LIVE_PLAN_H

#include "loader/formats/manifest.h"
#include "planner/incremental.h"

enum { LIVE_VARIANTS = VARIANTS_MAX + 1 }; // what was and is no more may take one number

struct live_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency;
    struct variants variants;
    void *own; // where id, token_digest and variants lie; NULL: in the manifest that was opened
};

struct live_plan {
    struct manifest opened;
    struct plan_problem problem; // sizes and capacities
    int64_t capacity[PLAN_TIERS];
    struct incremental *incremental;
    struct plan_candidates candidates; // of the event at hand
    struct live_context *at;           // by the planner's number; id NULL: none has it
    int n, room;
    struct map ids; // id -> its index in `number`
    int *number;    // (ids.n) the planner's number; -1: gone
    int number_room, n_gone;
    struct live_context old; // what the last event changed or removed, until the next one
    int old_number;          // -1: it did neither
    bool broken;             // memory ran out within an event
};

/* On failure nothing is left to release. ERR_FORMAT: no manifest of an online plan, or none that can be. */
int live_plan_open(struct live_plan *o, const char *path, struct err *err) MUST_CHECK;
void live_plan_close(struct live_plan *o);

/* The planner's number of an id, or -1. */
int live_plan_find(const struct live_plan *o, const char *id);

/* A context whose fields were not checked yet. Texts and variants are copied. ERR_FORMAT: it is refused, and nothing
 * has changed. After ERR_NOMEM of an event *o is broken. */
int live_plan_add(struct live_plan *o, const struct live_context *c, struct err *err) MUST_CHECK;

/* variant NULL: the variants stay. */
int live_plan_update(struct live_plan *o, int number, double frequency, const struct variant_info *variant,
                     int n_variants, struct err *err) MUST_CHECK;
int live_plan_remove(struct live_plan *o, int number, struct err *err) MUST_CHECK;

/* The context of an operation of the last event, as it was before and as it is after. */
const struct live_context *live_before(const struct live_plan *o, int number);
const struct live_context *live_after(const struct live_plan *o, int number);

/* The plan as a manifest that borrows tiers and header: release it with live_plan_manifest_release(). */
int live_plan_manifest(const struct live_plan *o, struct manifest *m, struct err *err) MUST_CHECK;
void live_plan_manifest_release(struct manifest *m);

#endif
