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
    bool damaged; // it would be the source of its goal, but is not whole
    bool stay;    // its context, or any, is left out: it is removed only if its bytes are needed
    bool goes;    // it will be removed
    bool renamed; // it had another id, or was named by its tokens alone, and has got the id of its goal
};

/* A payload that the manifest, or a rollback, wants on a tier. */
struct goal {
    struct entry
        want; // texts borrowed from the manifest or `before`; size, checksum, prefix and file are set once known
    char file[OBJECT_FILE]; // want.file
    int copies;             // the first copy in another tier, or -1
    int here;               // the copy on the wanted tier; -1: none
    int source;             // the source to place it from: a copy, or ORDER_PAYLOADS
    int twin;               // the next goal with the same tokens, in a circle
    int from;               // the store that held the context before; -1: none
    bool placed;            // by this load
    bool spoilt;            // its file in the payload folder fails its check, which was said
    bool left;              // left out: there is no payload, or it cannot be placed
    bool kept;              // left out, and `want` is what the tiers still have of the context
    enum operation operation;
};

struct load {
    struct load_options o;
    struct manifest manifest;
    const char *name_space;
    char *path;                        // of the manifest, absolute; NULL: standard input
    char *receipt;                     // path; NULL: do not write one
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; .tier NULL: not served, or cannot be opened
    struct err *away;                  // (TIER_MAX) why a tier is left out, or has failed; .code 0: it works
    bool undoes[TIER_MAX];             // rollback: the load to undo has begun in this store
    struct entries before;             // rollback: the placement to return to; entry.tier is a store
    struct goal *goal;                 // (n_goals) in the order of the manifest's rows
    int n_goals;
    struct map goals;  // id -> number
    struct map packed; // token digest and config -> number of a name:
    struct {
        char **at;
        int n, cap;
    } packed_name; // files of the payload folder; listed only if a payload is not there under its name
    struct copy *copy;
    int n_copies;
    struct copy *damaged; // with missing or damaged files
    int n_damaged;
    int n_said;             // left-out contexts that were named
    int64_t used[TIER_MAX]; // bytes of the namespace in the tiers while the steps run
    bool held[TIER_MAX];    // payloads stayed there that should have been removed
    bool changed;           // a payload was placed, or is no longer
    struct order order;
    struct load_report report;
};

/* Opens the stores, ends a load that was killed at its very end, makes the goals, and lists the copies. */
int load_inventory(struct load *l, struct err *err) MUST_CHECK;

/* Finds the copies of every goal and each context's operation; sets report.nothing_to_do. */
int load_match(struct load *l, struct err *err) MUST_CHECK;

/* Reads the payload of every goal that is not in its place, and chooses its source. */
int load_verify(struct load *l, struct err *err) MUST_CHECK;

/* Orders the steps; ERR_FAIL: a tier is too small. Leaves out goals for which a disk is too small. */
int load_put_in_order(struct load *l, struct err *err) MUST_CHECK;

/* Removes and places files. */
int load_execute(struct load *l, struct err *err) MUST_CHECK;

/* Begin and end the load in the stores: before the first step, after the last. */
void load_begin(struct load *l);
void load_settle(struct load *l);

/* The parts of contexts in the indexes: counts the payloads whose parts change; changes them, after a load. */
void load_count_parts(struct load *l);
void load_set_parts(struct load *l);

/* Ends the load in one store: the last act of load_settle(). */
int load_end_store(struct load *l, struct tier_store *s, struct err *err) MUST_CHECK;

/* ---- failures ---- */

/* Does the load change this tier? */
static inline bool load_serves(const struct load *l, int store)
{
    return l->store[store].tier && !l->away[store].code;
}

/* Leaves out an open tier from now on, with its waiting goals, and says why. */
void load_give_up(struct load *l, int store, const struct err *why);

/* Leaves out a context, and says why. */
void load_leave_out(struct load *l, struct goal *g, const struct err *why);

/* ---- shared ---- */

/* The goal of a context, or NULL. */
struct goal *load_goal(const struct load *l, const char *id);

struct entry *load_entry(const struct load *l, const struct copy *c);

/* The path of a payload in the payload folder, allocated, and its size; NULL: absent. */
char *load_find_payload(const struct load *l, const char *payload, int64_t *size);

/* Reads and checks the whole payload of a goal in the payload folder, and fills its entry. */
int load_check_packed(struct entry *want, const char *path, int64_t size, struct err *err) MUST_CHECK;

/* Size and checksum of a file. */
int load_checksum(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err) MUST_CHECK;

void load_progress(const struct load *l, enum load_phase phase, int done, int total);

#endif
