/* state.h - the writers' record of a tier's folder: the payloads placed there, their namespaces, the manifest in force,
 * the running load, and the placement before. One SQLite database, `evp-state`.
 *
 * Only writers open it, under the folder's lock; readers use the index that follows from it (loader/store/index.h).
 * Every change is one transaction, which is on disk before state_commit() returns. Every row is checked when read:
 * damage is ERR_FORMAT. To repair damage, remove the file: the next load finds the payloads again
 * (tier_store_adopt()).
 *
 * docs/formats/index.md describes the tables.
 */
#ifndef EVP_STATE_H
#define EVP_STATE_H

#include "base/err.h"
#include "formats/stored.h"

#include <stdbool.h>
#include <stdint.h>

struct tier_state;
enum state_use { STATE_LOOK, STATE_CHANGE };

/* Opens DIR/evp-state. If it does not exist, STATE_CHANGE creates it and STATE_LOOK sets *s to NULL. ERR_FORMAT: it is
 * damaged, of another version, or of another tier than `uri`; pass "" if that is impossible. The caller closes *s. */
int state_open(struct tier_state **s, const char *dir, const char *uri, enum state_use use, struct err *err) MUST_CHECK;
void state_close(struct tier_state *s); // NULL is fine; drops uncommitted changes

/* Reads all pages: ERR_FORMAT if SQLite finds damage. */
int state_check(struct tier_state *s, struct err *err) MUST_CHECK;

const char *state_uri(const struct tier_state *s);   // of the tier, if the state is outside its folder; otherwise ""
const uint8_t *state_id(const struct tier_state *s); // OBJECT_ID random bytes
uint64_t state_generation(
    const struct tier_state *s);                 // rises with every transaction that changes payloads; 0: none yet
bool state_is_swept(const struct tier_state *s); // every file in the folder is named by a payload

/* ---- namespaces ---- */

enum state_running { STATE_AT_REST, STATE_FORWARD, STATE_BACK };
enum { STATE_NAME = 256 };

/* The manifest in force in a namespace, and the running load. */
struct state_load {
    int64_t number;                                   // of the namespace; 0: not in the state yet
    char manifest[DIGEST_HEX], name[STATE_NAME];      // in force, or of the running load, with its path; "": none
    char before[DIGEST_HEX], before_name[STATE_NAME]; // to which a rollback returns; "": none
    int64_t capacity, before_capacity;                // of the tier, in these manifests
    int64_t load;                                     // a random number; the same in all tiers of one load
    enum state_running running;
    bool undoable; // `before` and the rows of state_each_before() are the placement before the load in force
};

int state_get_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;
int state_put_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;
int state_drop_load(struct tier_state *s, const struct state_load *load, struct err *err) MUST_CHECK; // has no payloads

/* ---- payloads ---- */

/* Calls each(arg, name_space, entry) for every payload; releases *entry afterwards, unless `each` has moved it. */
typedef int state_visit(void *arg, const char *name_space, struct entry *e, struct err *err);
int state_each(struct tier_state *s, state_visit *each, void *arg, struct err *err) MUST_CHECK;

/* The same for the payloads of one context in a namespace, at a cost independent of the others. */
struct state_context {
    int64_t name_space;
    const char *id;
};
int state_each_of(struct tier_state *s, const struct state_context *of, state_visit *each, void *arg,
                  struct err *err) MUST_CHECK;

/* The same for the placement of a namespace before the load in force. These entries have no file, size, checksum,
 * prefix or row. */
int state_each_before(struct tier_state *s, int64_t name_space, state_visit *each, void *arg,
                      struct err *err) MUST_CHECK;

/* The bytes of the payloads: of a namespace, and of all. */
int state_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err) MUST_CHECK;

/* Does a payload have this file? The rows that name an object are its references: there is no counter
 * that could be wrong. */
int state_is_named(struct tier_state *s, const char *file, bool *named, struct err *err) MUST_CHECK;

/* ---- changes: one transaction, until state_commit() ---- */

int state_insert(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err) MUST_CHECK; // sets e->row
int state_update(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK; // its id, bytes and payload
int state_delete(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- parts of contexts, for the index ---- */

/* The token digests of the first whole chunk of a payload's context, of the first two, and so on. */
struct state_parts {
    uint32_t header; // bytes of the payload's header
    int n;           // 0: the payload has no parts
    uint8_t (*digest)[32];
};

bool state_has_parts(const struct tier_state *s); // false: no payload has any

/* The parts of a payload: 1 and *parts, which the caller releases; 0 if none were put; or an error. */
int state_get_parts(struct tier_state *s, const struct entry *e, struct state_parts *parts, struct err *err);
void state_parts_release(struct state_parts *parts);

/* In the current transaction, like the other changes. state_delete() also removes the parts. */
int state_put_parts(struct tier_state *s, const struct entry *e, const struct state_parts *parts,
                    struct err *err) MUST_CHECK;
int state_delete_parts(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- what ends a transaction ---- */

/* Records the placement of a namespace for state_each_before(); or forgets it. */
int state_keep_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;
int state_forget_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;

/* Makes the state that of the index on disk, which is newer or of another state; recorded with the next change. */
void state_take_over(struct tier_state *s, const uint8_t id[OBJECT_ID], uint64_t generation);
int state_set_swept(struct tier_state *s, bool swept, struct err *err) MUST_CHECK;
int state_commit(struct tier_state *s, struct err *err) MUST_CHECK;

#endif
