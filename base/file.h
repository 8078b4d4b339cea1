/* file.h - files read whole, and files that appear whole or not at all.
 *
 * Writing goes to a temporary file in the same folder; file_commit() flushes it to the disk, renames it over the final
 * name and flushes the folder. Whatever happens before leaves the old file as it was. A device or a pipe (/dev/null,
 * /dev/stdout) is written to directly: a rename would put a file in its place.
 */
#ifndef EVP_FILE_H
#define EVP_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file mapped read-only; a small one is read. An empty file has n = 0 and at = NULL. */
struct file_map {
    const void *at;
    size_t n;
    void *copy; // its bytes, where they were read
};

int file_map(struct file_map *map, const char *path, struct err *err) MUST_CHECK;
void file_unmap(struct file_map *map);
/* Gives back the memory that reading the map took. What is read again comes from the file. */
void file_map_forget(const struct file_map *map);

/* Adds the whole of `path` ("-": standard input) to *text; fails with ERR_FORMAT above `limit` bytes. */
int file_read(struct buf *text, const char *path, size_t limit, struct err *err) MUST_CHECK;

/* A file being written. Write to `f` directly; errors of the stream come out of file_commit(). */
struct file_out {
    FILE *f;
    char *path, *temp; // temp NULL: a device or a pipe
    bool nameless;     // it has no name yet, `temp` neither
};

/* Where the file system can, the file has no name before file_commit(), so that a process that is killed leaves
 * nothing. Else its name is PATH.tmp.XXXXXX, and always with file_create_named(), for who must open it a second time.
 */
int file_create(struct file_out *out, const char *path, struct err *err) MUST_CHECK;
int file_create_named(struct file_out *out, const char *path, struct err *err) MUST_CHECK;
int file_commit(struct file_out *out, struct err *err) MUST_CHECK; /* releases *out, also when it fails */
void file_abort(struct file_out *out);                             /* removes the temporary file; zeroed is fine */

/* file_create, write, file_commit. */
int file_write(const char *path, const void *bytes, size_t n, struct err *err) MUST_CHECK;

/* Removes what killed processes have left in a folder: files NAME.tmp.XXXXXX, NAME ending with `suffix`, that are older
 * than a minute and that nobody is writing. */
void file_sweep(const char *dir, const char *suffix);

/* rename(), and the folder flushed. */
int file_rename(const char *from, const char *to, struct err *err) MUST_CHECK;

bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_same(const char *a, const char *b); // one regular file under two names, links included; "-": standard input
int file_size(const char *path, uint64_t *size, struct err *err) MUST_CHECK;
int file_mkdir(const char *path, struct err *err) MUST_CHECK; /* like mkdir -p */

/* dir + "/" + name, allocated; the caller frees it. NULL without memory. */
char *file_join(const char *dir, const char *name);

/* The part of a path after its last slash; borrowed. */
const char *file_name(const char *path);

/* ${XDG_CACHE_HOME:-$HOME/.cache}/evp, and ${EVP_MODELS:-that/models}. Allocated; NULL without memory. */
char *file_cache_dir(void);
char *file_models_dir(void);

#endif
