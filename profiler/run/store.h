/* store.h - an unfinished profile: what is known already, and a place where each context's result is safe.
 *
 * HDF5 does not survive a crash in the middle of a write. So FILE is never opened for writing; each context's result
 * goes to a shard of its own, FILE.d/XXXXXXXXXXXXXXXX.h5 (named by its id's checksum), written whole, flushed and
 * renamed. A shard is never written again: a further result for the same context goes to XXXXXXXXXXXXXXXX-2.h5. At the
 * end FILE and all shards are united into FILE.d/whole, which is renamed over FILE, and FILE.d is removed. The
 * invariant: after a kill at any moment, every finished context is in FILE or in a shard.
 *
 * A store is locked from before it is read until it is closed: of two processes with the same FILE the second is
 * refused.
 *
 *     store_open(&s, path, STORE_WRITE, &err);        // locks
 *     store_read(&s, &made, STORE_EXTEND, &err);      // what is known
 *     store_set_made(&s, &made, &err);                // with backend and dtype
 *     store_begin(&s, &err);                          // the first change
 *     store_put(&s, &result, &err);                   // per context
 *     store_finish(&s, &whole, &err);
 *     store_close(&s);
 *
 * table_read() starts a process, and none may be started while a device is open. So store_read() comes before the
 * device is opened and store_finish() after it is closed; store_begin() and store_put() read nothing.
 */
#ifndef EVP_STORE_H
#define EVP_STORE_H

#include "base/err.h"
#include "base/map.h"
#include "base/tokens.h"
#include "kernels/kv.h"
#include "profiler/table/table.h"

#include <stdbool.h>

enum store_use { STORE_LOOK, STORE_WRITE }; // LOOK: store_read() alone; takes no lock and makes no folder
enum store_old { STORE_EXTEND, STORE_OVERWRITE };

struct store {
    char *path, *dir;
    struct table_made made; // of every result; its strings must outlive the store
    struct table have;      // FILE and the shards united; n_contexts 0: nothing yet
    struct table_rows rows; // of `have`
    enum store_old old;
    int lock;      // descriptor of dir; -1: not locked
    bool has_file; // `have` holds what FILE holds
    bool fresh;    // shards hold what FILE does not
};

/* STORE_WRITE makes the folder and locks it. ERR_IO when another process holds the lock. */
int store_open(struct store *s, const char *path, enum store_use use, struct err *err) MUST_CHECK;

/* Reads FILE and its shards; changes nothing. STORE_OVERWRITE: nothing is read. made: backend and dtype may be NULL,
 * not known yet. ERR_FORMAT when a file was made with another model or other options, or is damaged. */
int store_read(struct store *s, const struct table_made *made, enum store_old old, struct err *err) MUST_CHECK;

/* Zeroed with lock -1 is fine. A folder without shards goes. */
void store_close(struct store *s);

/* Says with what the results will be made, now that the device is known; it must outlive the store. ERR_FORMAT when
 * what was read was made with another backend or dtype. Changes nothing. */
int store_set_made(struct store *s, const struct table_made *made, struct err *err) MUST_CHECK;

/* The first change: removes what interrupted writes left; with STORE_OVERWRITE the shards, too. */
int store_begin(struct store *s, struct err *err) MUST_CHECK;

/* Makes one context's result safe: a table of that context alone, of all its answers or of the new ones. */
int store_put(struct store *s, const struct table *result, struct err *err) MUST_CHECK;

/* What FILE is to be. */
struct store_whole {
    const struct map *order;      // ids: contexts in the order of their shards
    const char *lineage;          // JSON
    const struct table *rows;     // contexts and configs that FILE is to have, run or not; NULL: none
    const struct kv_shape *shape; // of the model, with rows: sizes of what was not run are filled in
};

/* Unites all into FILE: what it held, then the contexts in the order of `order`, then other shards, then rows that are
 * new; and removes the folder. A FILE that holds everything already stays as it is. The lock ends with it. */
int store_finish(struct store *s, const struct store_whole *whole, struct err *err) MUST_CHECK;

/* Whether the answer to `question` (id) under `config` (name) is there, with the sizes of its variant. */
bool store_has(const struct store *s, const char *context, const char *config, const char *question);

/* How many of the first ids of a context are all that is there of it. *n is 0 when nothing of it is there, or something
 * else. */
int store_prefix(const struct store *s, const char *context, const struct tokens *ids, int *n,
                 struct err *err) MUST_CHECK;

/* ERR_FORMAT when the same id stands for other tokens, or for another question, in what is there. */
int store_check_context(const struct store *s, const char *context, const char *token_digest,
                        struct err *err) MUST_CHECK;
int store_check_question(const struct store *s, const char *question, const char *context, const char *text,
                         struct err *err) MUST_CHECK;

#endif
