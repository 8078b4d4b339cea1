/* live_plan.h - a plan that a serving process keeps up to date between two nightly ones: texts and variants of the
 * contexts, around the planner's arithmetic (planner/incremental.h), which knows numbers only. Several threads may not
 * use one: loader/libevicpress/evp_plan.c has the lock.
 *
 * For the planner, a config's number is the index among the variants of that context. So that a context can stay where
 * it is when it gets other variants, its present variant keeps its number, and there may be holes: variants whose
 * config is NULL.
 */
#ifndef EVP_LIVE_PLAN_H
#define EVP_LIVE_PLAN_H

#include "formats/manifest.h"
#include "planner/incremental.h"
#include "planner/utility.h"

_Static_assert((int)TIER_MAX <= (int)PLAN_TIERS, "the planner takes as many tiers as a manifest may have");

enum { LIVE_TIERS = 16 };                  // as many as struct evp_plan_state tells of
enum { LIVE_VARIANTS = VARIANTS_MAX + 1 }; // a hole where the present variant was may take one number

/* Memory of a context's texts and variants, which follow it. */
struct live_own {
    struct live_own *next; // of those to be freed after a save
};

struct live_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency;
    struct variants variants;
    struct live_own *own; // of id, token_digest and variants; NULL: they are the opened manifest's
};

struct live_plan {
    struct manifest opened;
    struct plan_problem problem; // sizes and capacities
    int64_t capacity[PLAN_TIERS];
    int pool[PLAN_TIERS]; // of each tier the first tier of its pool
    struct incremental *incremental;
    struct plan_candidates candidates; // of the event at hand
    struct live_context *at;           // by the planner's number; id NULL: no context has it
    int n, cap;
    struct map ids; // id -> its index in `number`
    struct {
        int *at; // (ids.n) the planner's number; -1: the context is gone
        int n, cap;
    } number;
    int n_gone;
    struct live_context old; // what the last event changed or removed, until the next one
    int old_number;          // -1: it changed and removed none
    bool broken;             // memory ran out within an event
    struct live_save *save;  // at work; NULL: none
};

/* What the plan is for, as the manifest says. */
static inline struct plan_goal live_plan_goal(const struct live_plan *l)
{
    return (struct plan_goal){ l->opened.alpha, l->opened.slo_ttft_s, l->opened.slo_weight };
}

/* On failure nothing is left to release. ERR_FORMAT: the manifest is damaged, was not made by evp-plan --online, or
 * says something impossible, such as more bytes on a tier than it holds. */
int live_plan_open(struct live_plan *l, const char *path, struct err *err) MUST_CHECK;
void live_plan_close(struct live_plan *l);

/* The planner's number of an id, or -1. */
int live_plan_find(const struct live_plan *l, const char *id);

/* Adds a context, which is checked here. Texts and variants are copied. ERR_FORMAT: it is refused, and nothing has
 * changed. After ERR_NOMEM of an event the plan may be broken. */
int live_plan_add(struct live_plan *l, const struct live_context *c, struct err *err) MUST_CHECK;

struct live_update {
    double frequency;
    const struct variant_info *variant; // (n_variants) instead of those the context had; NULL: they stay
    int n_variants;
};

int live_plan_update(struct live_plan *l, int number, const struct live_update *u, struct err *err) MUST_CHECK;
int live_plan_remove(struct live_plan *l, int number, struct err *err) MUST_CHECK;

/* The context of an operation of the last event, as it was before and as it is after. */
const struct live_context *live_plan_before(const struct live_plan *l, int number);
const struct live_context *live_plan_after(const struct live_plan *l, int number);

/* ---- saving ----
 *
 * A save copies the contexts piece by piece, and events go on between the pieces: what an event changes that was not
 * copied yet, it copies before. So the copy is the plan as it was when the save began. Texts are not copied: what an
 * event would free stays until the save ends.
 */
struct live_copy {
    struct live_context context; // id NULL: no context had the number
    struct plan_placement placement;
    bool taken;
};

struct live_save {
    struct live_copy *at; // (n)
    int n, next;          // numbers below `next` are copied
    double objective, upper_bound;
    struct live_own *unused; // what events have freed
};

/* Begins, goes on, ends the copying; each needs the lock, and takes less than a millisecond. live_save_go_on() returns
 * false when all is copied. After live_save_end() the plan knows the save no longer; then free it. */
int live_save_begin(struct live_plan *l, struct live_save *save, struct err *err) MUST_CHECK;
bool live_save_go_on(struct live_plan *l);

/* Writes the manifest of a save whose copying is done; of the plan only the opened manifest is read. Without lock. */
int live_save_write(const struct live_plan *l, const struct live_save *save, const char *path,
                    struct err *err) MUST_CHECK;
void live_save_end(struct live_plan *l);
void live_save_release(struct live_save *save); // after live_save_end()

#endif
