/* load.h - carries out a manifest on tiers: evp-load without its options and messages.
 *
 *     struct load *l;
 *     if (load_open(&l, &options, err)) ...   // reads and checks everything, orders the steps, changes no tier
 *     if (load_run(l, err)) ...               // carries it out and writes the receipt
 *     load_close(l);
 *
 * The stores themselves record their payloads, the manifest in force and unfinished loads (loader/store/tier_store.h);
 * the names of manifest files do not matter. A load leads from any state to the manifest's. So a second run continues
 * or replaces a killed one, and has nothing to do after a completed one. Two payloads are the same if context, tokens,
 * config, model and size are equal.
 *
 * A load changes one namespace, by default the manifest's model. Capacities are compared with bytes as the table counts
 * them. The payload folder is only read. A payload that the manifest does not place is removed. Tiers that another host
 * fills (`"access":"read"`) are not touched.
 *
 * One failure never stops the rest. A tier that cannot be opened, or fails during the load, stays as it is, and its
 * contexts are left out. A context whose payload is missing, damaged or does not fit is left out too, and what the
 * tiers have of it stays if the others leave space. Each is named once; the next load goes on from there. A payload
 * found missing or damaged in its tier is no longer placed, so that evp-pack makes it again. A file of the payload
 * folder that fails its check counts as absent.
 *
 * The stores keep the placement before the load in force. LOAD_BACK leads back to it, once; payloads that the tiers no
 * longer have come from the payload folder. Tiers of earlier manifests that this one lacks are ignored.
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
enum load_phase { LOAD_CHECKS, LOAD_STEPS }; // checking payloads; carrying out steps

struct load_options {
    const char *manifest;   // NULL or "-": standard input
    const char *payloads;   // folder; NULL: none, which fails only if a payload must come from it
    const char *receipt;    // NULL: MANIFEST.receipt, and none for standard input
    const char *name_space; // NULL: the manifest's model digest
    enum load_direction direction;
    bool take_over; // evict also what a plan of another folder has placed in the namespace
    bool retire;    // remove the namespace: the manifest only names the tiers
    bool new_disk;  // folders of kind `file` may be empty although the manifest keeps payloads there
    bool dry_run;   // load_run() is not called; nothing changes on disk
    bool repair;    // read all payloads in place, compare them with the payload folder, and replace what differs
    double wait_s;  // seconds to wait for another load of the same tiers
    bool chunks;    // the indexes also have the parts of contexts
    bool share;     // open the folders to `group`; otherwise their access stays
    gid_t group;
    int jobs;    // payloads copied at the same time
    char **args; // for the receipt
    int n_args;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    /* Called with done = 0 when a phase begins, then with progress. A failure may end a phase early. May be NULL. */
    void (*progress)(void *arg, enum load_phase phase, int done, int total);
    void *arg;
};

struct load_tier {
    const char *name; // NULL: evp-load does not serve this kind, or cannot reach the tier
    int64_t capacity; // INT64_MAX: unlimited
    int64_t placed;   // bytes wanted there, as the table counts them; after load_run(): placed there
    int64_t other;    // bytes of other namespaces
    int64_t written;  // after load_run(): bytes of written files
};

struct load_report {
    bool nothing_to_do;
    int n_goals;                    // contexts that the load places, or finds in place
    int n_damaged;                  // payloads in place that are missing or damaged
    int n_unknown;                  // payloads in place that cannot be read now
    int n_skipped;                  // contexts left out
    int n_away;                     // tiers left out, or that failed
    bool no_receipt;                // the receipt could not be written
    bool not_back;                  // a rollback that changed nothing: the load to undo is still in force
    int n_operations[N_OPERATIONS]; // of placed contexts, and evictions
    int n_parts; // payloads in place whose parts enter or leave the index; after load_run(): all such payloads
    int n_tiers;
    struct load_tier tier[TIER_MAX]; // (n_tiers)
};

/* ERR_FAIL: a tier cannot hold the plan, or there is nothing to roll back. ERR_FORMAT: the manifest is wrong, a
 * rollback names another load than the one in force, or another plan's contexts would be evicted. ERR_IO: there is no
 * payload folder. What is left out is not a failure: it is reported, and counted. */
int load_open(struct load **load, const struct load_options *options, struct err *err) MUST_CHECK;

/* Fails only without memory; the next load goes on from there. */
int load_run(struct load *l, struct err *err) MUST_CHECK;
void load_close(struct load *l); // NULL is fine

const struct load_report *load_report(const struct load *l);

/* A change by the load; load_each_change() reports evictions first. Texts are borrowed. */
struct load_change {
    enum operation operation;
    const char *from, *to; // names of tiers; NULL: none
    const char *id, *config;
    int64_t bytes;
};
void load_each_change(const struct load *l, void (*each)(void *arg, const struct load_change *change), void *arg);

#endif
