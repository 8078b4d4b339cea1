/* tier_store.h - the writer's side of a tier.
 *
 *     DIR/evp-payloads/0f/0f1e...   the payloads; a name never has two contents
 *     DIR/evp-state                 the writers' record (loader/store/state.h); elsewhere with the tier's `state`
 *     DIR/evp-index                 the placed payloads, for readers (loader/store/index.h)
 *     DIR/evp-lock                  held by the running writer
 *
 * Crash invariant: every payload in an index is complete, at every moment and after a crash. This follows from the
 * order of writes: payloads are copied, flushed and read back before the transaction that names them; the index follows
 * the transaction; files are removed after the index without them is in place. So a killed writer can leave only an
 * index older than the state, which the next writer rewrites, and files that no payload names, which it sweeps. If the
 * state was lost, or is older than the index because it was restored from a copy, the next load reads the payloads that
 * it does not name, and names them again.
 *
 * A store is opened for one namespace: the payloads of others are neither listed nor changed, and stay in the index.
 * Files with other names than those above are never changed.
 *
 * The tier's medium holds the payloads (loader/store/medium.h). If it is not this folder, as with Redis, DIR is the
 * tier's `state`, and has everything except evp-payloads/.
 */
#ifndef EVP_TIER_STORE_H
#define EVP_TIER_STORE_H

#include "base/err.h"
#include "formats/stored.h"
#include "formats/tiers.h"
#include "loader/store/index.h"
#include "loader/store/medium.h"
#include "loader/store/state.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum tier_store_use { STORE_LOOK, STORE_CHANGE };
struct tier_store;

struct tier_store_options {
    const struct tier *tier; // borrowed; its uri is the folder
    const char *name_space;  // borrowed; shorter than INDEX_TEXT
    const char *context;     // borrowed; STORE_CHANGE for its payloads alone, at a cost independent of the others
    enum tier_store_use use;
    double wait_s; // seconds to wait for another writer
    bool share;    // STORE_CHANGE opens the folder to `group`; otherwise its access stays
    gid_t group;
    bool lazy;  // do not contact a server
    bool adopt; // STORE_CHANGE names payloads again that a lost state has forgotten; otherwise it fails (ERR_FORMAT)
    bool *busy; // set if tier_store_open() fails because of another writer; may be NULL
    bool *away; // set if it fails because the medium cannot be reached; may be NULL
};

/* A changed row, and the number in s->in of its present or former payload. */
struct tier_touched {
    int64_t row;
    int entry;
};

struct tier_store {
    const struct tier *tier; // NULL: not opened
    const char *name_space, *context;
    struct state_load load;
    struct entries in;   // the payloads of the namespace, or of the one context; numbers do not change
    int64_t own_bytes;   // of a store for one context: the namespace's bytes when it was opened
    int64_t other_bytes; // bytes of other namespaces, which count against the tier's capacity

    struct medium medium; // .driver NULL: nothing exists yet
    struct tier_state *state;
    struct index index; // as on disk; closed: not the state's, so it is rebuilt from all rows
    struct {
        struct tier_touched *at;
        size_t n, cap;
    } touched;        // rows changed since the index was written
    int folder, lock; // -1: none
    bool lazy;
    bool unswept;  // there may be objects that no payload names
    bool lost;     // the state was new, or older than the index
    int n_adopted; // payloads named again
    int n_unknown; // tier_store_sweep(): objects left, because they cannot be read or belong to an unknown namespace
};

/* STORE_CHANGE creates the folder if its parent exists, and locks it. Nothing that readers see changes before
 * tier_store_tidy() or tier_store_publish(). STORE_LOOK changes nothing; a missing folder or state is an empty store.
 * ERR_IO: the parent is missing, or another writer holds the lock. ERR_FAIL: the tier is not a folder, the folder is
 * not the user's own, or it is on a network file system and the tier has no `state`. ERR_FORMAT: the state is damaged,
 * or the store is of an earlier release. */
int tier_store_open(struct tier_store *s, const struct tier_store_options *options, struct err *err) MUST_CHECK;
void tier_store_close(struct tier_store *s); // zeroed is fine; drops uncommitted changes

/* After a writer was killed: rewrites the index if it is not the state's, and removes objects that no payload names,
 * unless the store is lazy and its medium a server. */
int tier_store_tidy(struct tier_store *s, struct err *err) MUST_CHECK;

/* ---- payloads ---- */

/* Puts the bytes of `from` under e->file; they are durable after tier_store_flush(). */
int tier_store_put(const struct tier_store *s, const struct blob *from, const struct entry *e,
                   struct err *err) MUST_CHECK;

/* Flushes one payload alone; or everything that was put. */
int tier_store_flush_file(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;
int tier_store_flush(const struct tier_store *s, struct err *err) MUST_CHECK;

/* Reads a flushed payload back from the medium itself, not from a cache. ERR_FORMAT: it differs from *e. */
int tier_store_read_back(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* Opens the payload of an entry for reading. The caller closes *b after success. */
int tier_store_get(const struct tier_store *s, const struct entry *e, struct blob *b, struct err *err) MUST_CHECK;

/* Does the payload of an entry exist with its size? */
bool tier_store_has(const struct tier_store *s, const struct entry *e);

/* Reads the payload of an entry. ERR_FORMAT: it is missing, or damaged; other codes: it cannot be read now. */
int tier_store_check(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* there: (s->in.n) which payloads exist with their sizes. Fails only if that cannot be determined. */
int tier_store_look(const struct tier_store *s, bool *there, struct err *err) MUST_CHECK;

/* Do other payloads in the state use the same object? Contexts with the same tokens share one. */
int tier_store_shares(const struct tier_store *s, const struct entry *e, bool *shares, struct err *err) MUST_CHECK;

/* Removes the object of a forgotten entry, unless other payloads use it. The published index must not name the
 * entry. */
int tier_store_remove(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* The same for an object that no other payload uses: does not ask the state. */
int tier_store_remove_own(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- changes, one transaction until tier_store_commit() ---- */

/* Adds a payload with a flushed file; takes ownership of *e, also on failure. */
int tier_store_add(struct tier_store *s, struct entry *e, struct err *err) MUST_CHECK;

/* Records that the payload s->in.at[i] has another id or number of bytes; or that it is not placed any more. */
int tier_store_update(struct tier_store *s, int i, struct err *err) MUST_CHECK;
int tier_store_forget(struct tier_store *s, int i, struct err *err) MUST_CHECK;

/* Adds the parts of the payload s->in.at[i] to the index, removes them, or says whether it has any. */
int tier_store_put_parts(struct tier_store *s, int i, const struct state_parts *parts, struct err *err) MUST_CHECK;
int tier_store_drop_parts(struct tier_store *s, int i, struct err *err) MUST_CHECK;
int tier_store_has_parts(struct tier_store *s, int i, bool *has, struct err *err) MUST_CHECK;

/* Puts the parts of a placed payload, if it has parts and the state lacks them; reads its header and tokens. */
int tier_store_read_parts(struct tier_store *s, int i, struct err *err) MUST_CHECK;

int tier_store_commit(struct tier_store *s, struct err *err) MUST_CHECK;

/* Rewrites the index from the committed rows; tier_store_touch() marks a row as changed. */
int tier_store_publish(struct tier_store *s, struct err *err) MUST_CHECK;
int tier_store_touch(struct tier_store *s, int entry, struct err *err) MUST_CHECK;

/* Adds the parts of all payloads to the index, or removes all; commits and publishes. tier_store_other_parts(): how
 * many payloads that would change. */
enum tier_store_parts { STORE_WHOLE, STORE_PARTS };
int tier_store_set_parts(struct tier_store *s, enum tier_store_parts want, struct err *err) MUST_CHECK;
int tier_store_other_parts(struct tier_store *s, enum tier_store_parts want, int64_t *other,
                           struct err *err) MUST_CHECK;

/* Is the state older than the index, or of another store? Then it may lack payloads that the tier holds. */
bool tier_store_is_older(const struct tier_state *state, const struct index *index);

/* ---- objects that no payload names: for tier_store.c ---- */

/* Reads them, and names those that belong to a known namespace, with their token digests as ids; commits. */
int tier_store_adopt(struct tier_store *s, struct err *err) MUST_CHECK;
int tier_store_refuse_lost(const struct tier_store *s, struct err *err) MUST_CHECK; // ERR_FORMAT: there are some

/* Removes them, except files that cannot be read, and whole payloads of unknown namespaces. */
int tier_store_sweep(struct tier_store *s, struct err *err) MUST_CHECK;

#endif
