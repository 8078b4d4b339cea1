/* load_internal.h - a load, and its phases in the order in which they run. Each phase is a file; each fills what the
 * next ones read.
 */
#ifndef EVP_LOAD_INTERNAL_H
#define EVP_LOAD_INTERNAL_H

#include "base/map.h"
#include "loader/formats/manifest.h"
#include "loader/load/load.h"
#include "loader/load/load_order.h"
#include "loader/load/load_planned.h"
#include "loader/store/tier_store.h"

/* A payload whose file is in a tier. */
struct copy {
    int store, entry;
    int goal;     // the goal that it is the payload of; -1: of none
    int next;     // the next copy of that goal in another tier; -1
    bool packed;  // a payload of its name and size is in the payload folder too
    bool damaged; // it was to be the source of its goal, and is not whole
};

/* A payload that shall be in a tier. There may be millions: what it is, its context says. */
struct goal {
    int context;               // number in `planned`
    int copies;                // the first copy of it in another tier; -1
    int here;                  // the copy in its place; -1: none
    int source;                // what it is placed from: a copy, or ORDER_PAYLOADS
    int8_t from;               // the store that held the context before; -1: none
    uint8_t operation;         // enum operation
    uint8_t prefix[OBJECT_ID]; // once its size is known
};

struct load {
    struct load_options o;
    struct manifest manifest; // without its rows
    struct planned planned;   // these, or the state before; goals, and what is in its place and is none
    const char *name_space;
    char *receipt;                     // path; NULL: none is written
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; .tier NULL: not served, or away
    struct err *away;                  // (TIER_MAX) why a tier cannot be reached; .code 0: it can
    bool restoring;                    // after a failure: what is away stays as it is
    bool undoes[TIER_MAX];             // of a rollback: the load to undo has begun in this store
    struct goal *goal;                 // in the order of their contexts
    int n_goals;
    struct copy *copy;
    int n_copies;
    struct copy *damaged; // their files are missing or damaged
    int n_damaged;
    struct order order;
    struct load_report report;
};

/* Reads the manifest. */
int load_read(struct load *l, struct err *err) MUST_CHECK;

/* Opens the stores, ends what a killed load has almost ended, makes the goals, and lists the copies. */
int load_inventory(struct load *l, struct err *err) MUST_CHECK;

/* Finds the copies of every goal, names each context's operation, and whether there is nothing to do. */
int load_match(struct load *l, struct err *err) MUST_CHECK;

/* Reads the payload of every goal that is not in its place, and chooses its source. */
int load_verify(struct load *l, struct err *err) MUST_CHECK;

/* Orders the steps; ERR_FAIL: a tier or a disk is too small. */
int load_put_in_order(struct load *l, struct err *err) MUST_CHECK;

/* Removes and places files. */
int load_execute(struct load *l, struct err *err) MUST_CHECK;

/* The load as the stores know it: begun before the first step, ended after the last one. */
int load_begin(struct load *l, struct err *err) MUST_CHECK;
int load_settle(struct load *l, struct err *err) MUST_CHECK;

/* Which parts of contexts the indexes have: how many payloads that changes, and the change itself, after a load. */
int load_count_parts(struct load *l, struct err *err) MUST_CHECK;
int load_set_parts(struct load *l, struct err *err) MUST_CHECK;

/* Ends the load of a store as the others have: what load_settle() does last. */
int load_end_store(struct load *l, struct tier_store *s, struct err *err) MUST_CHECK;

/* ---- shared ---- */

/* What sifts the payloads of a store (struct tier_store_options): takes out those that are in their place. */
struct load_sift {
    struct load *l;
    int tier;
};
int load_sift(void *arg, struct tier_store *s, int first, struct err *err) MUST_CHECK;

static inline struct planned_context *load_context(const struct load *l, const struct goal *g)
{
    return &l->planned.at[g->context];
}

/* The goal of a context; NULL: it is none. */
struct goal *load_goal(const struct load *l, const char *id);

/* Is the context's payload in its place, so that it is no goal? */
bool load_in_place(const struct load *l, const char *id);

struct entry *load_entry(const struct load *l, const struct copy *c);

/* An entry of the state before: what a rollback leads back to. */
bool load_was_placed(const struct load *l, const struct tier_store *s, const struct entry *e);

/* The path of a payload in the payload folder, allocated, and its size; NULL: there is none. */
char *load_find_payload(const struct load *l, const char *payload, int64_t *size);

void load_progress(const struct load *l, enum load_phase phase, int done, int total);

#endif
