/* load_internal.h - a load, and its phases in the order in which they run. Each phase is a file; each fills what the
 * next ones read.
 */
#ifndef EVP_LOAD_INTERNAL_H
#define EVP_LOAD_INTERNAL_H

#include "base/map.h"
#include "formats/manifest.h"
#include "loader/load/load.h"
#include "loader/load/load_order.h"
#include "loader/store/tier_store.h"

/* A payload whose file is in a tier. */
struct copy {
    int store, entry;
    int goal;     // the goal that it is the payload of; -1: of none
    int next;     // the next copy of that goal in another tier; -1
    bool packed;  // a payload of its name and size is in the payload folder too
    bool damaged; // it was to be the source of its goal, and is not whole
};

/* A payload that is wanted in a tier. */
struct goal {
    struct entry want;      // texts are those of the manifest or of the state before; size, checksum, prefix and file
                            // once they are known
    char file[OBJECT_FILE]; // want.file
    int copies;             // the first copy of it in another tier; -1
    int here;               // the copy in its place; -1: none
    int source;             // what it is placed from: a copy, or ORDER_PAYLOADS
    int from;               // the store that held the context before; -1: none
    enum operation operation;
};

struct load {
    struct load_options o;
    struct manifest manifest;
    const char *name_space;
    char *receipt;                     // path; NULL: none is written
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; .tier NULL: not served, or away
    struct err *away;                  // (TIER_MAX) why a tier cannot be reached; .code 0: it can
    bool restoring;                    // after a failure: what is away stays as it is
    bool undoes[TIER_MAX];             // of a rollback: the load to undo has begun in this store
    struct goal *goal;                 // (n_goals) in the order of the manifest's rows
    int n_goals;
    struct map goals; // id -> number
    struct copy *copy;
    int n_copies;
    struct copy *damaged; // their files are missing or damaged
    int n_damaged;
    struct order order;
    struct load_report report;
};

/* Opens the stores, ends what a killed load has almost ended, makes the goals, and lists the copies. */
int load_inventory(struct load *l, struct err *err) MUST_CHECK;

/* Finds the copies of every goal, names each context's operation, and whether there is nothing to do. */
void load_match(struct load *l);

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

/* The goal of a context; NULL: it has none. */
struct goal *load_goal(const struct load *l, const char *id);

/* Sets what is known of the payload of a goal that an entry is. */
void load_know(struct goal *g, const struct entry *e);

struct entry *load_entry(const struct load *l, const struct copy *c);

/* An entry of the state before: what a rollback leads back to. */
bool load_was_placed(const struct load *l, const struct tier_store *s, const struct entry *e);

/* The path of a payload in the payload folder, allocated, and its size; NULL: there is none. */
char *load_find_payload(const struct load *l, const char *payload, int64_t *size);

void load_progress(const struct load *l, enum load_phase phase, int done, int total);

#endif
