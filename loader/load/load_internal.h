/* load_internal.h - a load, and its phases in order. Each phase is a file, and fills fields that later ones read. */
#ifndef EVP_LOAD_INTERNAL_H
#define EVP_LOAD_INTERNAL_H

#include "base/map.h"
#include "formats/manifest.h"
#include "loader/load/load.h"
#include "loader/load/load_order.h"
#include "loader/store/tier_store.h"

/* A payload with a file in a tier. */
struct copy {
    int store, entry;
    int goal;     // the goal whose payload it is; -1: none
    int next;     // the next copy of that goal in another tier, or -1
    bool packed;  // the payload folder also has a payload of this name and size
    bool damaged; // it would be the source of its goal, but is not whole
};

/* A payload that the manifest, or a rollback, wants on a tier. */
struct goal {
    struct entry want; // texts borrowed from the manifest or the previous state; size, checksum, prefix and file are
                       // set once known
    char file[OBJECT_FILE]; // want.file
    int copies;             // the first copy in another tier, or -1
    int here;               // the copy on the wanted tier; -1: none
    int source;             // the source to place it from: a copy, or ORDER_PAYLOADS
    int from;               // the store that held the context before; -1: none
    enum operation operation;
};

struct load {
    struct load_options o;
    struct manifest manifest;
    const char *name_space;
    char *receipt;                     // path; NULL: do not write one
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; .tier NULL: not served, or unreachable
    struct err *away;                  // (TIER_MAX) why a tier cannot be reached; .code 0: reachable
    bool restoring;                    // undoing a failed load: unreachable tiers stay as they are
    bool undoes[TIER_MAX];             // rollback: the load to undo has begun in this store
    struct goal *goal;                 // (n_goals) in the order of the manifest's rows
    int n_goals;
    struct map goals; // id -> number
    struct copy *copy;
    int n_copies;
    struct copy *damaged; // with missing or damaged files
    int n_damaged;
    struct order order;
    struct load_report report;
};

/* Opens the stores, ends a load that was killed at its very end, makes the goals, and lists the copies. */
int load_inventory(struct load *l, struct err *err) MUST_CHECK;

/* Finds the copies of every goal and each context's operation; sets report.nothing_to_do. */
void load_match(struct load *l);

/* Reads the payload of every goal that is not in its place, and chooses its source. */
int load_verify(struct load *l, struct err *err) MUST_CHECK;

/* Orders the steps; ERR_FAIL: a tier or a disk is too small. */
int load_put_in_order(struct load *l, struct err *err) MUST_CHECK;

/* Removes and places files. */
int load_execute(struct load *l, struct err *err) MUST_CHECK;

/* Begin and end the load in the stores: before the first step, after the last. */
int load_begin(struct load *l, struct err *err) MUST_CHECK;
int load_settle(struct load *l, struct err *err) MUST_CHECK;

/* The parts of contexts in the indexes: counts the payloads whose parts change; changes them, after a load. */
int load_count_parts(struct load *l, struct err *err) MUST_CHECK;
int load_set_parts(struct load *l, struct err *err) MUST_CHECK;

/* Ends the load in one store: the last act of load_settle(). */
int load_end_store(struct load *l, struct tier_store *s, struct err *err) MUST_CHECK;

/* ---- shared ---- */

/* The goal of a context, or NULL. */
struct goal *load_goal(const struct load *l, const char *id);

/* Copies size, checksum and prefix of a goal's payload from an entry of it. */
void load_know(struct goal *g, const struct entry *e);

struct entry *load_entry(const struct load *l, const struct copy *c);

/* Is the entry part of the previous state, to which a rollback returns? */
bool load_was_placed(const struct load *l, const struct tier_store *s, const struct entry *e);

/* The path of a payload in the payload folder, allocated, and its size; NULL: absent. */
char *load_find_payload(const struct load *l, const char *payload, int64_t *size);

void load_progress(const struct load *l, enum load_phase phase, int done, int total);

#endif
