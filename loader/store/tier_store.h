/* tier_store.h - a folder that is a storage tier, as its writers use it.
 *
 *     DIR/evp-payloads/0f/0f1e...   the payloads; a name is never used for another content
 *     DIR/evp-state                 what the writers know (loader/store/state.h); elsewhere with the tier's `state`
 *     DIR/evp-index                 what readers read (loader/store/index.h): all that is placed
 *     DIR/evp-lock                  held by the writer that is at work
 *
 * Crash invariant: whatever an index names is complete, at every moment and after a crash. It holds because of the
 * order of writes. Payloads are copied, flushed and read back before the transaction that names them; the index follows
 * the transaction; files are removed after the index without them is in place. What a killed writer left is therefore
 * an index that is older than the state, which the next one writes again, and files that no payload names, which it
 * sweeps.
 *
 * A store is opened for one namespace: the payloads of others are neither listed nor touched, and stay in the index.
 * Files that are not named like those above are never touched.
 *
 * What holds the payloads is the tier's medium (loader/store/medium.h). Where it is not this folder, as with Redis, DIR
 * is the tier's `state`, and has all but evp-payloads/.
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
    const char *context; // borrowed; STORE_CHANGE of its payloads alone, at a cost that does not grow with the others
    enum tier_store_use use;
    double wait_s; // for another writer to end
    bool share;    // STORE_CHANGE opens the folder to `group`; else it stays as open as it is
    gid_t group;
    bool lazy;  // a server is not asked whether it is there, and not swept: .unswept may stay true
    bool *busy; // set when tier_store_open() fails because of another writer; may be NULL
    bool *away; // set when it fails because what holds the payloads cannot be reached; may be NULL
};

/* A row that changed, and the number in s->in of the payload that has it, or had it. */
struct tier_touched {
    int64_t row;
    int entry;
};

struct tier_store {
    const struct tier *tier; // NULL: not opened
    const char *name_space, *context;
    struct state_load load;
    struct entries in;   // the payloads of the namespace but those that `sift` took out, those of the state before
                         // included; numbers do not change
    int64_t own_bytes;   // of a store for one context: what the namespace took when it was opened
    int64_t other_bytes; // what other namespaces take of the tier's capacity

    struct medium medium; // .driver NULL: there is nothing yet
    struct tier_state *state;
    struct index index; // as on disk; closed: that is not the state's, and is made from all rows
    struct {
        struct tier_touched *at;
        size_t n, cap;
    } touched;        // rows that changed since the index was written
    int folder, lock; // -1: none
    bool unswept;     // objects that no payload names may be there
};

/* STORE_CHANGE makes the folder when its parent exists, locks it, writes the index again if it is not that of the
 * state, and sweeps the folder if a writer was killed. STORE_LOOK changes nothing; a folder or state that does not
 * exist is an empty store. ERR_IO: the parent is gone, or another writer holds the lock. ERR_FAIL: the tier is not a
 * folder, the folder is not the user's own, or it is on a network file system and the tier has no `state`. ERR_FORMAT:
 * the state is damaged, or the store is of an earlier release. */
int tier_store_open(struct tier_store *s, const struct tier_store_options *options, struct err *err) MUST_CHECK;
void tier_store_close(struct tier_store *s); // zeroed is fine; what was not committed is gone

/* Of a store for one context: adds the spares of all others to its entries. */
int tier_store_read_spares(struct tier_store *s, struct err *err) MUST_CHECK;

/* ---- payloads ---- */

/* Puts the bytes of `from` under e->file; they are safe after tier_store_flush(). */
int tier_store_put(const struct tier_store *s, const struct blob *from, const struct entry *e,
                   struct err *err) MUST_CHECK;

/* Flushes one payload and nothing else; or everything that was put. */
int tier_store_flush_file(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;
int tier_store_flush(const struct tier_store *s, struct err *err) MUST_CHECK;

/* Reads a flushed payload back from where it is kept. ERR_IO: it is not what *e says. */
int tier_store_read_back(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* Opens the payload of an entry for reading. The caller closes *b after success. */
int tier_store_get(const struct tier_store *s, const struct entry *e, struct blob *b, struct err *err) MUST_CHECK;

/* Is the payload of an entry there, with its size? STORE_CONTENT also reads it and compares its checksum. */
enum tier_store_check { STORE_SIZE, STORE_CONTENT };
bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check);

/* there: (s->in.n) which payloads of the namespace are there with their sizes. Fails when that cannot be found out. */
int tier_store_look(const struct tier_store *s, bool *there, struct err *err) MUST_CHECK;

/* Do payloads in the state have this one's object? Contexts with the same tokens do; the object is there once. */
int tier_store_shares(const struct tier_store *s, const struct entry *e, bool *shares, struct err *err) MUST_CHECK;

/* Removes the object of an entry that was forgotten, and that the published index must not name, unless other payloads
 * have it too. */
int tier_store_remove(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* The same of an object that no other payload has: not the state, but the medium alone is used. */
int tier_store_remove_own(const struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- changes, which become true together with tier_store_commit() ---- */

/* Adds a payload whose file is flushed; takes *e over, also when it fails. */
int tier_store_add(struct tier_store *s, struct entry *e, struct err *err) MUST_CHECK;

/* The payload s->in.at[i] has other bytes, or is placed or not, or has lost its file (tier_store_forget). */
int tier_store_update(struct tier_store *s, int i, struct err *err) MUST_CHECK;
int tier_store_forget(struct tier_store *s, int i, struct err *err) MUST_CHECK;

/* The parts of the payload s->in.at[i] come into the index, or go. */
int tier_store_put_parts(struct tier_store *s, int i, const struct state_parts *parts, struct err *err) MUST_CHECK;
int tier_store_drop_parts(struct tier_store *s, int i, struct err *err) MUST_CHECK;
int tier_store_has_parts(struct tier_store *s, int i, bool *has, struct err *err) MUST_CHECK;

/* Puts the parts of a placed payload that can be used in part, if the state lacks them; reads its header and tokens. */
int tier_store_read_parts(struct tier_store *s, int i, struct err *err) MUST_CHECK;

int tier_store_commit(struct tier_store *s, struct err *err) MUST_CHECK;

/* Writes what was committed into the index, whole; a row that changed was touched. */
int tier_store_publish(struct tier_store *s, struct err *err) MUST_CHECK;
int tier_store_touch(struct tier_store *s, int entry, struct err *err) MUST_CHECK;

/* Does the above for all payloads, until the index has the parts of all that can be used in part, or of none; commits
 * and publishes. other: how many payloads it will change. */
enum tier_store_parts { STORE_WHOLE, STORE_PARTS };
int tier_store_set_parts(struct tier_store *s, enum tier_store_parts want, struct err *err) MUST_CHECK;
int tier_store_other_parts(struct tier_store *s, enum tier_store_parts want, int64_t *other,
                           struct err *err) MUST_CHECK;

/* Removes objects that no payload names. */
int tier_store_sweep(struct tier_store *s, struct err *err) MUST_CHECK;

#endif
