/* shards.h - an unfinished profile: the results so far, and a safe file for each further context.
 *
 * HDF5 does not survive a crash in the middle of a write. So FILE is never opened for writing; each context's result
 * goes to a shard of its own, FILE.d/XXXXXXXXXXXXXXXX.h5 (named by its id's checksum), written whole, flushed and
 * renamed. A shard is never written again: a further result for the same context goes to XXXXXXXXXXXXXXXX-2.h5. At the
 * end FILE and all shards are united into FILE.d/whole, which is renamed over FILE, and FILE.d is removed. The
 * invariant: after a kill at any moment, every finished context is in FILE or in a shard.
 *
 * The shards are locked before they are read and until they are closed: a second process with the same FILE is refused.
 *
 *     shards_open(&s, path, SHARDS_WRITE, &err);        // locks
 *     shards_read(&s, &made, SHARDS_EXTEND, &err);      // the results so far
 *     shards_set_made(&s, &made, &err);                // with backend and dtype
 *     shards_begin(&s, &err);                          // first change on disk
 *     shards_put(&s, &result, &err);                   // for each context
 *     shards_finish(&s, &whole, &err);
 *     shards_close(&s);
 *
 * table_read() starts a process, which must not happen while a device is open. So shards_read() comes before the device
 * is opened and shards_finish() after it is closed; shards_begin() and shards_put() read nothing.
 */
#ifndef EVP_SHARDS_H
#define EVP_SHARDS_H

#include "base/err.h"
#include "base/map.h"
#include "base/tokens.h"
#include "kernels/kv.h"
#include "profiler/table/table_asked.h"

#include <stdbool.h>

enum shards_use { SHARDS_LOOK, SHARDS_WRITE }; // LOOK: only shards_read(), without lock or folder
enum shards_old { SHARDS_EXTEND, SHARDS_OVERWRITE };

struct shards {
    char *path, *dir;
    struct table_made made; // for every result; its strings must outlive the shards
    struct table have;      // FILE and the shards, united; n_contexts 0: nothing yet
    struct table_rows rows; // of `have`
    enum shards_old old;
    int lock;        // descriptor of dir; -1: not locked
    bool has_file;   // `have` includes FILE
    bool fresh;      // the shards have results that FILE lacks
    int n_forgotten; // contexts that shards_finish() left out
};

/* SHARDS_WRITE makes and locks the folder. ERR_IO when another process holds the lock. */
int shards_open(struct shards *s, const char *path, enum shards_use use, struct err *err) MUST_CHECK;

/* After shards_open(): is there no result, neither in FILE nor in a shard? Then shards_read() compares nothing. */
bool shards_are_new(const struct shards *s);

/* Reads FILE and its shards, or nothing with SHARDS_OVERWRITE. Changes nothing on disk. made: backend and dtype may be
 * NULL, not known yet. ERR_FORMAT when a file is damaged or was made with another model or other options. */
int shards_read(struct shards *s, const struct table_made *made, enum shards_old old, struct err *err) MUST_CHECK;

/* Removes a folder without shards. Zeroed with lock -1 is fine. */
void shards_close(struct shards *s);

/* Sets `made` for the results, now that the device is known; it must outlive the shards. ERR_FORMAT when the results so
 * far were made with another backend or dtype. Changes nothing on disk. */
int shards_set_made(struct shards *s, const struct table_made *made, struct err *err) MUST_CHECK;

/* First change on disk: removes the files of interrupted writes; with SHARDS_OVERWRITE also the shards. */
int shards_begin(struct shards *s, struct err *err) MUST_CHECK;

/* Writes the result of one context: a table of that context alone, with all its answers or only the new ones. */
int shards_put(struct shards *s, const struct table *result, struct err *err) MUST_CHECK;

/* What FILE becomes. */
struct shards_whole {
    const struct map *order;             // ids: the order of the contexts
    const char *lineage;                 // JSON
    const struct table *rows;            // contexts and configs that FILE must have, run or not; NULL: none
    const struct kv_shape *shape;        // of the model, with `rows`: fills in sizes that were not measured
    const struct table_asked_run *asked; // times of questions, and what is forgotten; NULL: nothing
};

/* Unites everything into FILE: its own rows, the contexts in the order of `order`, other shards, then new rows. Removes
 * the folder and the lock. A FILE that already has everything is not written. Changes `have`. */
int shards_finish(struct shards *s, const struct shards_whole *whole, struct err *err) MUST_CHECK;

/* Do the results have the answer to `question` (id) under `config` (name), with the sizes of its variant? */
bool shards_has(const struct shards *s, const char *context, const char *config, const char *question);

/* Do the results have the decoding times of a variant? */
bool shards_has_decode_s(const struct shards *s, const char *context, const char *config);

/* Sets *n to the length of the context in the results, if its tokens there are the first *n of `ids`; 0: it is absent
 * or different. */
int shards_prefix(const struct shards *s, const char *context, const struct tokens *ids, int *n,
                  struct err *err) MUST_CHECK;

/* ERR_FORMAT when the results have other tokens, or another question, under the same id. */
int shards_check_context(const struct shards *s, const char *context, const char *token_digest,
                         struct err *err) MUST_CHECK;
int shards_check_question(const struct shards *s, const char *question, const char *context, const char *text,
                          struct err *err) MUST_CHECK;

#endif
