/* state.h - what the writers of a tier's folder know about it: every payload in it, which of them are placed, under
 * which namespace, which manifest is in force, and what a load at work is doing. One SQLite database, `evp-state`.
 *
 * Only writers open it, under the folder's lock; readers read the index that follows from it (loader/store/index.h).
 * Every change is one transaction, which reaches the disk before state_commit() returns. Every row is checked as it is
 * read: damage is ERR_FORMAT. The cure is to remove the file: the tier is then empty, and the next load places
 * everything again.
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

/* Opens DIR/evp-state. STATE_CHANGE makes it when it is not there; STATE_LOOK sets
 * *s to NULL when it is not there. ERR_FORMAT: it is damaged, of another version, or of another tier than `uri`, which
 * is "" where that cannot be. The caller closes *s. */
int state_open(struct tier_state **s, const char *dir, const char *uri, enum state_use use, struct err *err) MUST_CHECK;
void state_close(struct tier_state *s); // NULL is fine; what was not committed is gone

/* Reads all pages: ERR_FORMAT when SQLite finds damage. */
int state_check(struct tier_state *s, struct err *err) MUST_CHECK;

const char *state_uri(const struct tier_state *s);     // of the tier, where the state is not in its folder; else ""
const uint8_t *state_id(const struct tier_state *s);   // OBJECT_ID random bytes
uint64_t state_generation(const struct tier_state *s); // rises with every transaction that changes payloads
bool state_is_swept(const struct tier_state *s);       // no file is in the folder that no payload names

/* ---- namespaces ---- */

enum state_running { STATE_AT_REST, STATE_FORWARD, STATE_BACK };
enum { STATE_NAME = 256 };

/* Which manifest is in force in a namespace, and which load is at work. */
struct state_load {
    int64_t number;                                   // of the namespace; 0: the state does not have it yet
    char manifest[DIGEST_HEX], name[STATE_NAME];      // in force, or of the load at work; "": none
    char before[DIGEST_HEX], before_name[STATE_NAME]; // that a rollback leads back to; "": none
    int64_t capacity, before_capacity;                // of the tier in these manifests
    int64_t load;                                     // a random number; the same in all tiers of one load
    enum state_running running;
    bool undoable; // `before` and the payloads' marks are the state before
};

int state_get_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;
int state_put_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err) MUST_CHECK;

/* ---- payloads ---- */

/* each(arg, name_space, entry) for every payload; *entry is emptied afterwards, unless `each` has taken it over. */
typedef int state_visit(void *arg, const char *name_space, struct entry *e, struct err *err);
int state_each(struct tier_state *s, state_visit *each, void *arg, struct err *err) MUST_CHECK;

/* The same for some payloads of a namespace: those of a context, or those in the folder that readers do not see. Costs
 * what they are, whatever else is in the state. */
struct state_some {
    int64_t name_space;
    const char *context; // NULL: the unseen ones of all contexts
};
int state_each_of(struct tier_state *s, const struct state_some *some, state_visit *each, void *arg,
                  struct err *err) MUST_CHECK;

/* The bytes that the payloads in the folder take: those of a namespace, and those of all. */
int state_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err) MUST_CHECK;

/* Is a payload in the folder as this file? So an object's references are the rows that name it, and never a number that
 * could differ from them. */
int state_is_named(struct tier_state *s, const char *file, bool *named, struct err *err) MUST_CHECK;

/* ---- changes: all until state_commit() are one transaction ---- */

int state_insert(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err) MUST_CHECK; // sets e->row
int state_update(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;               // bytes, marks
int state_delete(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- parts of contexts, for the index ---- */

/* The token digests of the first chunk of a payload's context, of its first two, and so on, whole ones alone. */
struct state_parts {
    uint32_t header; // bytes of the payload's header
    int n;           // 0: the payload can only be used whole
    uint8_t (*digest)[32];
};

bool state_has_parts(const struct tier_state *s); // false: no payload has any

/* The parts of a payload: 1 and *parts, which the caller releases, 0 when none were put, or an error. */
int state_get_parts(struct tier_state *s, const struct entry *e, struct state_parts *parts, struct err *err);
void state_parts_release(struct state_parts *parts);

/* With the transaction at hand, as the other changes. state_delete() removes the parts, too. */
int state_put_parts(struct tier_state *s, const struct entry *e, const struct state_parts *parts,
                    struct err *err) MUST_CHECK;
int state_delete_parts(struct tier_state *s, const struct entry *e, struct err *err) MUST_CHECK;

/* ---- what ends a transaction ---- */

/* The state before becomes what is placed now; or is forgotten. */
int state_keep_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;
int state_forget_before(struct tier_state *s, int64_t name_space, struct err *err) MUST_CHECK;
int state_set_swept(struct tier_state *s, bool swept, struct err *err) MUST_CHECK;
int state_commit(struct tier_state *s, struct err *err) MUST_CHECK;

#endif
