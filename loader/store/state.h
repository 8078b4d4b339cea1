/* state.h - the writers' record of a tier's folder: its payloads, which of them are placed, their namespaces, the
 * manifest in force, and the running load. One SQLite database, `evp-state`.
 *
 * Only writers open it, under the folder's lock; readers use the index that follows from it (loader/store/index.h).
 * Every change is one transaction, which is on disk before state_commit() returns. Every row is checked when read:
 * damage is ERR_FORMAT. To repair damage, remove the file: then the tier is empty, and the next load places everything
 * again.
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

const char *state_uri(const struct tier_state *s);     // of the tier, if the state is outside its folder; otherwise ""
const uint8_t *state_id(const struct tier_state *s);   // OBJECT_ID random bytes
uint64_t state_generation(const struct tier_state *s); // rises with every transaction that changes payloads
bool state_is_swept(const struct tier_state *s);       // every file in the folder is named by a payload

/* ---- namespaces ---- */

enum state_running { STATE_AT_REST, STATE_FORWARD, STATE_BACK };
enum { STATE_NAME = 256 };

/* The manifest in force in a namespace, and the running load. */
struct state_load {
    int64_t number;                                   // of the namespace; 0: not in the state yet
    char manifest[DIGEST_HEX], name[STATE_NAME];      // in force, or of the running load; "": none
    char before[DIGEST_HEX], before_name[STATE_NAME]; // to which a rollback returns; "": none
    int64_t capacity, before_capacity;                // of the tier, in these manifests
    int64_t load;                                     // a random number; the same in all tiers of one load
    enum state_running running;
    bool undoable; // `before` and the payloads' marks describe the previous state
};

int state_get_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;
int state_put_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;

/* ---- payloads ---- */

/* Calls each(arg, name_space, entry) for every payload; releases *entry afterwards, unless `each` has moved it. */
typedef int state_visit(void *arg, const char *name_space, struct entry *e, struct err *err);
int state_each(struct tier_state *s, state_visit *each, void *arg, struct err *err) MUST_CHECK;

/* The same for some payloads of a namespace: those of a context, or the spares. The cost depends on their number
 * alone. */
struct state_some {
    int64_t name_space;
    const char *context; // NULL: the spares of all contexts
};
int state_each_of(struct tier_state *s, const struct state_some *some, state_visit *each, void *arg,
                  struct err *err) MUST_CHECK;

/* The bytes of the payloads in the folder: of a namespace, and of all. */
int state_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err) MUST_CHECK;

/* Does a payload in the folder have this file? The rows that name an object are its references: there is no counter
 * that could be wrong. */
int state_is_named(struct tier_state *s, const char *file, bool *named, struct err *err) MUST_CHECK;

/* ---- changes: one transaction, until state_commit() ---- */

int state_insert(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err) MUST_CHECK; // sets e->row
int state_update(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;               // bytes, marks
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

/* Marks the placed payloads as the previous state; or removes all such marks. */
int state_keep_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;
int state_forget_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;
int state_set_swept(struct tier_state *s, bool swept, struct err *err) MUST_CHECK;
int state_commit(struct tier_state *s, struct err *err) MUST_CHECK;

#endif
