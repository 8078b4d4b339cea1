/* load.h - carries a manifest out in folder tiers: evp-load without its options and messages.
 *
 *     struct load *l;
 *     if (load_open(&l, &options, err)) ...   // reads and checks everything, orders the steps, moves no payload
 *     if (load_run(l, err)) ...               // carries it out and writes the receipt
 *     load_close(l);
 *
 * What is in the tiers, which manifest is in force and what an earlier load left unfinished is known from the stores
 * themselves (loader/store/tier_store.h), whatever the manifests are called. A load leads from whatever is there to
 * what the manifest says. So a second run continues a killed one or replaces it, and has nothing to do after a
 * completed one. Two payloads are the same when context, tokens, config, model and size are.
 *
 * A load changes one namespace, the manifest's model unless options say otherwise. Capacities are compared with bytes
 * as the table counts them. A payload that a load takes out of a tier stays in its folder as a spare, counted like the
 * rest, as long as no placed payload needs its bytes. A rollback uses spares, and takes from the payload folder what is
 * no longer in the tiers. Where neither has a payload, the rollback is refused before it changes anything. The payload
 * folder is only read.
 *
 * Only the load in force can be undone, once. A load that fails in the middle returns to the state before it in the
 * same way.
 *
 * A tier whose payloads cannot be reached is left as it is, and its contexts out; a rollback needs all of its tiers.
 *
 * Tiers of an earlier manifest that this one does not have are ignored: their folders keep what they hold.
 */
#ifndef EVP_LOAD_H
#define EVP_LOAD_H

#include "base/err.h"
#include "formats/operation.h"
#include "formats/tiers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct load;
enum load_direction { LOAD_FORWARD, LOAD_BACK };
enum load_phase { LOAD_CHECKS, LOAD_STEPS }; // payloads are checked; steps are carried out

struct load_options {
    const char *manifest;   // NULL or "-": standard input
    const char *payloads;   // folder; NULL: none, which is fine as long as nothing must come from it
    const char *receipt;    // NULL: MANIFEST.receipt, and none for standard input
    const char *name_space; // NULL: the manifest's model digest
    enum load_direction direction;
    bool dry_run;  // load_run() is not called; nothing is changed on disk
    bool repair;   // read back what is in place already, and place again what is damaged
    double wait_s; // for another load of the same tiers to end
    bool chunks;   // the indexes have the parts of contexts, too
    bool share;    // open the folders to `group`; else they stay as open as they are
    gid_t group;
    int jobs;    // payloads that are copied at the same time
    char **args; // for the receipt
    int n_args;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    /* Called with done = 0 when a phase begins, then whenever more is done. A failure may end a phase early, and a
     * rollback then begins both phases again. May be NULL. */
    void (*progress)(void *arg, enum load_phase phase, int done, int total);
    void *arg;
};

struct load_tier {
    const char *name;       // NULL: evp-load does not serve its kind, or it is away
    int64_t capacity;       // INT64_MAX: unlimited
    int64_t placed;         // bytes of the goals, as the table counts them
    int64_t other;          // bytes that other namespaces hold
    int64_t spare, written; // after load_run(): bytes kept for a rollback; bytes of files
};

struct load_report {
    bool nothing_to_do;
    int n_goals;                    // contexts that shall be placed
    int n_damaged;                  // payloads in place that are missing or damaged
    int n_skipped;                  // contexts on tiers that evp-load does not serve, or that are away
    int n_away;                     // tiers that cannot be reached: they stay as they are
    int n_operations[N_OPERATIONS]; // of goals, and evictions
    int n_parts; // payloads in place whose parts are to come into the index, or to go; after load_run(): all that did
    int n_refetch, n_lost; // after load_run(): payloads a rollback needs from the payload folder; those missing there
    int n_tiers;
    struct load_tier tier[TIER_MAX]; // (n_tiers)
};

/* ERR_FORMAT names context and file of a payload that is missing, damaged or not the one of the manifest. ERR_FAIL: a
 * tier cannot hold the plan, a disk has too few free bytes, or a rollback lacks payloads or is not of the load in
 * force. ERR_IO: a tier is gone or in use. */
int load_open(struct load **load, const struct load_options *options, struct err *err) MUST_CHECK;

/* After a failure the state before the load is in place again, or the sentence says that it is not. */
int load_run(struct load *l, struct err *err) MUST_CHECK;
void load_close(struct load *l); // NULL is fine

const struct load_report *load_report(const struct load *l);

/* What a load changes: evictions first. Texts are borrowed. */
struct load_change {
    enum operation operation;
    const char *from, *to; // names of tiers; NULL: none
    const char *id, *config;
    int64_t bytes;
};
void load_each_change(const struct load *l, void (*each)(void *arg, const struct load_change *change), void *arg);

#endif
