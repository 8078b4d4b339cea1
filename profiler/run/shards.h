/* shards.h - an unfinished profile: what is known already, and a place where each context's result is safe.
 *
 * HDF5 does not survive a crash in the middle of a write. So FILE is never opened for writing; each context's result
 * goes to a shard of its own, FILE.d/XXXXXXXXXXXXXXXX.h5 (named by its id's checksum), written whole, flushed and
 * renamed. A shard is never written again: a further result for the same context goes to XXXXXXXXXXXXXXXX-2.h5. At the
 * end FILE and all shards are united into FILE.d/whole, which is renamed over FILE, and FILE.d is removed. The
 * invariant: after a kill at any moment, every finished context is in FILE or in a shard.
 *
 * Shards are locked from before they are read until they are closed: of two processes with the same FILE the second is
 * refused.
 *
 *     shards_open(&s, path, SHARDS_WRITE, &err);        // locks
 *     shards_read(&s, &made, SHARDS_EXTEND, &err);      // what is known
 *     shards_set_made(&s, &made, &err);                // with backend and dtype
 *     shards_begin(&s, &err);                          // the first change
 *     shards_put(&s, &result, &err);                   // per context
 *     shards_finish(&s, &whole, &err);
 *     shards_close(&s);
 *
 * table_read() starts a process, and none may be started while a device is open. So shards_read() comes before the
 * device is opened and shards_finish() after it is closed; shards_begin() and shards_put() read nothing.
 */
#ifndef EVP_SHARDS_H
#define EVP_SHARDS_H

#include "base/err.h"
#include "base/map.h"
#include "base/tokens.h"
#include "kernels/kv.h"
#include "profiler/table/table.h"

#include <stdbool.h>

enum shards_use { SHARDS_LOOK, SHARDS_WRITE }; // LOOK: shards_read() alone; takes no lock and makes no folder
enum shards_old { SHARDS_EXTEND, SHARDS_OVERWRITE };

struct shards {
    char *path, *dir;
    struct table_made made; // of every result; its strings must outlive the shards
    struct table have;      // FILE and the shards united; n_contexts 0: nothing yet
    struct table_rows rows; // of `have`
    enum shards_old old;
    int lock;      // descriptor of dir; -1: not locked
    bool has_file; // `have` holds what FILE holds
    bool fresh;    // shards hold what FILE does not
};

/* SHARDS_WRITE makes the folder and locks it. ERR_IO when another process holds the lock. */
int shards_open(struct shards *s, const char *path, enum shards_use use, struct err *err) MUST_CHECK;

/* Reads FILE and its shards; changes nothing. SHARDS_OVERWRITE: nothing is read. made: backend and dtype may be NULL,
 * not known yet. ERR_FORMAT when a file was made with another model or other options, or is damaged. */
int shards_read(struct shards *s, const struct table_made *made, enum shards_old old, struct err *err) MUST_CHECK;

/* Zeroed with lock -1 is fine. A folder without shards goes. */
void shards_close(struct shards *s);

/* Says with what the results will be made, now that the device is known; it must outlive the shards. ERR_FORMAT when
 * what was read was made with another backend or dtype. Changes nothing. */
int shards_set_made(struct shards *s, const struct table_made *made, struct err *err) MUST_CHECK;

/* The first change: removes what interrupted writes left; with SHARDS_OVERWRITE the shards, too. */
int shards_begin(struct shards *s, struct err *err) MUST_CHECK;

/* Makes one context's result safe: a table of that context alone, of all its answers or of the new ones. */
int shards_put(struct shards *s, const struct table *result, struct err *err) MUST_CHECK;

/* What FILE is to be. */
struct shards_whole {
    const struct map *order;      // ids: contexts in the order of their shards
    const char *lineage;          // JSON
    const struct table *rows;     // contexts and configs that FILE is to have, run or not; NULL: none
    const struct kv_shape *shape; // of the model, with rows: sizes of what was not run are filled in
};

/* Unites all into FILE: what it held, then the contexts in the order of `order`, then other shards, then rows that are
 * new; and removes the folder. A FILE that holds everything already stays as it is. The lock ends with it. */
int shards_finish(struct shards *s, const struct shards_whole *whole, struct err *err) MUST_CHECK;

/* Whether the answer to `question` (id) under `config` (name) is there, with the sizes of its variant. */
bool shards_has(const struct shards *s, const char *context, const char *config, const char *question);

/* How many of the first ids of a context are all that is there of it. *n is 0 when nothing of it is there, or something
 * else. */
int shards_prefix(const struct shards *s, const char *context, const struct tokens *ids, int *n,
                  struct err *err) MUST_CHECK;

/* ERR_FORMAT when the same id stands for other tokens, or for another question, in what is there. */
int shards_check_context(const struct shards *s, const char *context, const char *token_digest,
                         struct err *err) MUST_CHECK;
int shards_check_question(const struct shards *s, const char *question, const char *context, const char *text,
                          struct err *err) MUST_CHECK;

#endif
