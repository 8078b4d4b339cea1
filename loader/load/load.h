/* load.h - carries a manifest out in folder tiers.
 *
 *     struct load l;
 *     if (load_open(&l, &options, err)) ...   // reads and checks everything, makes the plan, moves no payload
 *     if (load_run(&l, err)) ...              // carries it out and writes the receipt
 *     load_close(&l);
 *
 * What lies in the tiers is known from their indexes (loader/store/tier_store.h), not from a receipt: a load leads from
 * whatever is there to what the manifest says, so running it again goes on where a killed one stopped, and has nothing
 * to do after a completed one. A payload counts as the same when context, tokens, config and model are, and its size.
 *
 * Capacities are compared with bytes as the table counts them, and no tier exceeds its own at any moment. What a load
 * takes out of a tier stays in its folder as a spare, counted like the rest, as long as no placed payload needs the
 * room; a rollback goes back to spares, and re-inserts from the payload folder what had to make room. Where neither
 * has a payload, the rollback is refused before it changes anything.
 *
 * A load that fails in the middle returns to the state before it, in the same way. Only the last load can be undone:
 * after a rollback, the one before it can not be rolled back too.
 *
 * Tiers of an earlier manifest that this one does not have are not looked at: their folders keep what they hold.
 */
#ifndef EVP_LOAD_H
#define EVP_LOAD_H

#include "base/err.h"
#include "loader/formats/stored.h"
#include "loader/formats/manifest.h"
#include "loader/formats/receipt.h"
#include "loader/load/steps.h"
#include "loader/store/tier_store.h"

#include <stdbool.h>
#include <stdint.h>

enum load_direction { LOAD_FORWARD, LOAD_BACK };

struct load_options {
    const char *manifest; // NULL or "-": standard input; then `receipt` is needed
    const char *payloads; // folder; NULL: none, which is fine as long as nothing must come from it
    const char *receipt;  // NULL: MANIFEST.receipt
    enum load_direction direction;
    bool dry_run; // load_run is not called; nothing is changed on disk
    bool verify;  // read back what is in place already; what is damaged is placed again
    char **args;  // for the receipt
    int n_args;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

struct load_file { // something that lies in a tier
    int store, entry;
};

struct load_goal {     // something that shall lie in a tier
    struct entry want; // file, size and checksum once they are known
    const char *payload;
    int store;
    int from;    // store it was in before, -1: none
    bool placed; // it is in its place
    bool packed; // it is in the payload folder, and was checked when it is needed from there
    enum operation operation;
};

struct load {
    struct load_options o;
    struct manifest manifest;
    char *receipt, *pending, *before;  // paths
    struct receipt past;               // the state before this load, or what a rollback leads to
    bool has_past;                     // it was read from a file: pending, or before a rollback `before`
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; tier NULL: not a folder, and not used
    int64_t capacity[TIER_MAX];        // of the stores
    int n_stores;
    struct load_file *file;
    int n_files;
    struct load_goal *goal;
    int n_goals;
    struct steps steps;
    bool nothing_to_do;
    int n_damaged;
    struct entries evicted;         // contexts that were placed and are no goal any more; entry.tier: the store
    int n_operations[OP_EVICT + 1]; // of goals, and evictions
    int64_t written[TIER_MAX];      // bytes of files, by load_run
    int64_t spare[TIER_MAX];        // bytes as the table counts them kept for a rollback, by load_run
    int n_refetch, n_lost;          // what a rollback needs from the payload folder; what that lacks; by load_run
};

/* ERR_FORMAT names context and file of a payload that is missing, damaged or another one than the manifest says, and
 * of a receipt that contradicts the manifest; ERR_FAIL: a tier that cannot hold the plan, is gone or is no folder, a
 * disk without room, a rollback without data. */
int load_open(struct load *l, const struct load_options *options, struct err *err) MUST_CHECK;

/* After a failure the state before the load is in place again, or the sentence says that it is not. */
int load_run(struct load *l, struct err *err) MUST_CHECK;
void load_close(struct load *l); // zeroed is fine

/* Bytes as the table counts them that the goals take in a tier. */
int64_t load_fill(const struct load *l, int store);

#endif
