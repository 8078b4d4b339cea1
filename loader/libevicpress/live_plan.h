/* live_plan.h - a plan that a serving process keeps up to date between two nightly plans: texts and variants of the
 * contexts, around the planner's arithmetic (planner/density.h), which knows only numbers. Not thread-safe:
 * loader/libevicpress/evp_plan.c has the lock.
 *
 * The planner numbers a config by its index among the context's variants. When a context gets new variants, its stored
 * variant keeps its number, so that the context can stay in place. This may leave holes: variants whose config is NULL.
 */
#ifndef EVP_LIVE_PLAN_H
#define EVP_LIVE_PLAN_H

#include "formats/manifest.h"
#include "planner/density.h"
#include "planner/sum.h"

_Static_assert((int)TIER_MAX <= (int)PLAN_TIERS, "the planner takes all tiers of a manifest");
_Static_assert((int)VARIANTS_USES == (int)USES_SCALES, "a row holds a count for each time scale");

enum { LIVE_TIERS = 16 };                  // the limit of struct evp_plan_state
enum { LIVE_VARIANTS = VARIANTS_MAX + 1 }; // one more, for a hole

/* Heads the memory block of a context's texts and variants. */
struct live_own {
    struct live_own *next; // in the list of blocks to free after a save
};

struct live_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency; // as it was given, until the plan has seen uses
    struct variants variants;
    struct live_own *own; // holds id, token_digest and variants; NULL: the opened manifest does
    bool by_use;          // a use brought it, so the plan may forget it
};

/* What is believed of a context that nobody has profiled: means over the opened manifest's contexts. */
struct live_typical {
    struct {
        const char *config;
        double quality, bytes_per_token, decompress_s_per_token;
    } variant[VARIANTS_MAX];
    int n;
    double prefill_s_per_token, prefill_s_per_token2; // a prefill of n tokens takes the first * n + the second * n^2
    double question_s;
};

struct live_plan {
    struct manifest opened;
    struct plan_problem problem; // sizes and capacities
    int64_t capacity[PLAN_TIERS];
    int pool[PLAN_TIERS]; // for each tier: the first tier of its pool
    struct density *density;
    struct plan_candidates candidates; // of the current event
    struct live_context *at;           // by the planner's number; id NULL: unused
    int n, cap;
    struct map ids; // id -> its index in `number`
    struct {
        int *at; // (ids.n) the planner's number; -1: the context is gone
        int n, cap;
    } number;
    int n_gone;
    struct live_context old; // the context that the last event changed or removed, as it was before
    int old_number;          // its number; -1: none
    bool broken;             // memory ran out during an event
    struct live_typical typical;
    double all_uses;        // sum of the opened manifest's frequencies, at least 1
    bool learns;            // there was a use: frequencies are chances of use, times all_uses
    int hand;               // the number that is forgotten next, if it may be
    struct live_save *save; // in progress; NULL: none
};

/* The objective, from the manifest. */
static inline struct plan_goal live_plan_goal(const struct live_plan *l)
{
    return (struct plan_goal){ l->opened.alpha, l->opened.slo_ttft_s, l->opened.slo_weight };
}

/* On failure nothing is left to release. ERR_FORMAT: the manifest is damaged, was not made by evp-plan --online, or is
 * impossible: for example, a tier exceeds its capacity. */
int live_plan_open(struct live_plan *l, const char *path, struct err *err) MUST_CHECK;
void live_plan_close(struct live_plan *l);

/* The planner's number of an id, or -1. */
int live_plan_find(const struct live_plan *l, const char *id);

/* Checks and adds a context; copies texts and variants. ERR_FORMAT: invalid, and nothing has changed. After ERR_NOMEM
 * of any event the plan may be broken. */
int live_plan_add(struct live_plan *l, const struct live_context *c, struct err *err) MUST_CHECK;

/* The same, but the context is not placed yet. */
int live_plan_enter(struct live_plan *l, const struct live_context *c, int *number, struct err *err) MUST_CHECK;

struct live_update {
    double frequency;
    const struct variant_info *variant; // (n_variants) replace the present ones; NULL: no change
    int n_variants;
};

/* Ends an event of the planner, which returned `code`. */
int live_plan_end(struct live_plan *l, int code);

int live_plan_update(struct live_plan *l, int number, const struct live_update *u, struct err *err) MUST_CHECK;
int live_plan_remove(struct live_plan *l, int number, struct err *err) MUST_CHECK;

/* Records that what is stored of a context is gone. ERR_FORMAT: it is pinned, and keeps its place. */
int live_plan_lose(struct live_plan *l, int number, struct err *err) MUST_CHECK;

/* ---- in the planner's numbers (live_values.c) ---- */

#define LIVE_UTILITY_MAX 1e15 // beside more, sums of twice a double's precision would lose small utilities

/* The candidates of a context, as planner/plan.h wants them. */
double live_candidates(const struct live_plan *l, const struct live_context *c, int64_t *bytes, double *out);

/* The same into *to. ERR_FORMAT: a utility is too large for sums. */
int live_check_utilities(const struct live_plan *l, const struct live_context *c, struct plan_candidates *to,
                         struct err *err) MUST_CHECK;

/* As planner/density.h wants the plan, and a context; form: (LIVE_VARIANTS). */
struct density_setup live_setup(const struct live_plan *l);
struct density_context live_planned(const struct live_plan *l, const struct live_context *c, struct density_form *form);

/* The utility of copied contexts where they are, and a bound on that of any plan; both with frequencies as copied. */
struct live_sums {
    struct sum objective, bound;
};
void live_sums_begin(struct live_sums *s, const struct live_plan *l);
void live_sums_add(struct live_sums *s, const struct live_plan *l, const struct live_context *c,
                   struct plan_placement at,
                   struct plan_candidates *candidates); // of l->problem
double live_sums_bound(const struct live_sums *s);

/* ---- learning from uses (live_uses.c) ---- */

int live_uses_init(struct live_plan *l, struct err *err) MUST_CHECK; // of an opened plan

/* One use of use->id; at_s NAN: at an unknown time. A context that is not there enters with what is typical for its
 * n_tokens; otherwise only the id is read. ERR_FORMAT: invalid, and no operations were made. */
int live_plan_used(struct live_plan *l, const struct live_context *use, double at_s, struct err *err) MUST_CHECK;

/* The context of an operation of the last event, before and after it. */
const struct live_context *live_plan_before(const struct live_plan *l, int number);
const struct live_context *live_plan_after(const struct live_plan *l, int number);

/* ---- saving ----
 *
 * A save copies the contexts block by block; events continue between blocks. Before an event changes a context that is
 * not copied yet, it copies that context. So the copy is the plan at the start of the save. Texts are not copied;
 * memory that an event would free stays until the save ends.
 */
struct live_copy {
    struct live_context context; // id NULL: no context had the number
    struct plan_placement placement;
    struct use_counts counts;
    bool taken;
};

struct live_save {
    struct live_copy *at; // (n)
    int n, next;          // numbers below `next` are copied
    struct uses uses;     // when it began
    bool learns;
    struct live_own *unused; // memory that events would have freed
};

/* A context as it is now, with its frequency by `uses` if the plan learned from them. */
struct live_copy live_plan_copy(const struct live_plan *l, int number, const struct uses *uses, bool learned);

/* Copies a context into the running save, unless it is there already. */
void live_plan_keep(struct live_plan *l, int number);

/* Begin, continue, end the copying; each call needs the lock, and takes less than a millisecond. live_save_go_on()
 * returns false when everything is copied. live_save_end() detaches the save from the plan; then release it. */
int live_save_begin(struct live_plan *l, struct live_save *save, struct err *err) MUST_CHECK;
bool live_save_go_on(struct live_plan *l);

/* Writes the manifest of a copied save. Needs no lock: it reads only the opened manifest of the plan. */
int live_save_write(const struct live_plan *l, const struct live_save *save, const char *path,
                    struct err *err) MUST_CHECK;
void live_save_end(struct live_plan *l);
void live_save_release(struct live_save *save); // after live_save_end()

#endif
