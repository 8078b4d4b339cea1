/* load.h - carries a manifest out in folder tiers: evp-load without its options and messages.
 *
 *     struct load l;
 *     if (load_open(&l, &options, err)) ...   // reads and checks everything, orders the steps, moves no payload
 *     if (load_run(&l, err)) ...              // carries it out and writes the receipt
 *     load_close(&l);
 *
 * The content of the tiers is known from their indexes (loader/store/tier_store.h), not from a receipt: a load leads
 * from whatever is there to what the manifest says. So a second run continues a killed one, and has nothing to do after
 * a completed one. Two payloads are the same when context, tokens, config, model and size are.
 *
 * Capacities are compared with bytes as the table counts them, and no tier exceeds its own at any moment. A payload
 * that a load takes out of a tier stays in its folder as a spare, counted like the rest, as long as no placed payload
 * needs its bytes. A rollback uses spares, and takes from the payload folder what is no longer in the tiers. Where
 * neither has a payload, the rollback is refused before it changes anything.
 *
 * A load that fails in the middle returns to the state before it in the same way. Only the last load can be undone.
 *
 * Tiers of an earlier manifest that this one does not have are ignored: their folders keep what they hold.
 */
#ifndef EVP_LOAD_H
#define EVP_LOAD_H

#include "base/err.h"
#include "loader/formats/stored.h"
#include "loader/formats/manifest.h"
#include "loader/formats/receipt.h"
#include "loader/load/load_steps.h"
#include "loader/store/tier_store.h"

#include <stdbool.h>
#include <stdint.h>

enum load_direction { LOAD_FORWARD, LOAD_BACK };
enum load_phase { LOAD_CHECKS, LOAD_STEPS }; // payloads are checked; steps are carried out

struct load_options {
    const char *manifest; // NULL or "-": standard input; then `receipt` is needed
    const char *payloads; // folder; NULL: none, which is fine as long as nothing must come from it
    const char *receipt;  // NULL: MANIFEST.receipt
    enum load_direction direction;
    bool dry_run; // load_run() is not called; nothing is changed on disk
    bool repair;  // read back what is in place already, and place again what is damaged
    char **args;  // for the receipt
    int n_args;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    /* Called with done = 0 when a phase begins, then whenever more is done. A failure may end a phase early, and a
     * rollback then begins both phases again. May be NULL. */
    void (*progress)(void *arg, enum load_phase phase, int done, int total);
    void *arg;
};

struct load_file { // a payload that is in a tier
    int store, entry;
};

struct load_goal {     // a payload that shall be in a tier
    struct entry want; // file, size and checksum once they are known
    const char *payload;
    int store;
    int from;    // the store that held it before; -1: none
    bool placed; // it is in its place
    bool packed; // it is in the payload folder, and was checked if it is needed from there
    enum operation operation;
};

struct load {
    struct load_options o;
    struct manifest manifest;
    char *receipt, *pending, *before;  // paths
    struct receipt past;               // the state before this load, or what a rollback leads to
    bool has_past;                     // it was read from a file: pending, or before a rollback `before`
    struct tier_store store[TIER_MAX]; // one per tier of the manifest; .tier NULL: not a folder, and unused
    int64_t capacity[TIER_MAX];        // of the stores
    int n_stores;
    struct load_file *file;
    int n_files;
    struct load_goal *goal;
    int n_goals;
    struct steps steps;
    bool nothing_to_do;
    int n_damaged;
    struct entries evicted;         // contexts that were placed and are not a goal now; entry.tier: the store
    int n_operations[N_OPERATIONS]; // of goals, and evictions
    int64_t written[TIER_MAX];      // bytes of files, by load_run
    int64_t spare[TIER_MAX];        // bytes kept for a rollback, as the table counts them; by load_run
    int n_refetch, n_lost; // payloads a rollback needs from the payload folder; those missing there; by load_run
};

/* ERR_FORMAT names context and file of a payload that is missing, damaged or not the one of the manifest, or a receipt
 * that contradicts the manifest. ERR_FAIL: a tier cannot hold the plan or is not a folder, a disk has too few free
 * bytes, or a rollback lacks payloads. ERR_IO: a tier is gone or in use. */
int load_open(struct load *l, const struct load_options *options, struct err *err) MUST_CHECK;

/* After a failure the state before the load is in place again, or the sentence says that it is not. */
int load_run(struct load *l, struct err *err) MUST_CHECK;
void load_close(struct load *l); // zeroed is fine

/* The bytes of a store's goals as the table counts them; INT64_MAX when they exceed that. */
int64_t load_goal_bytes(const struct load *l, int store);

#endif
