/* file.h - files read whole, and files that appear whole or not at all.
 *
 * Writing goes to a temporary file in the same folder; file_commit() flushes it to the disk, renames it over the final
 * name and flushes the folder. Until then the old file stays as it was. A device or a pipe (/dev/null, /dev/stdout) is
 * written to directly: a rename would replace it by a file.
 */
#ifndef EVP_FILE_H
#define EVP_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file mapped read-only; small files are read instead. An empty file has n = 0 and at = NULL. */
struct file_map {
    const void *at;
    size_t n;
    void *copy; // the bytes, if the file was read
};

int file_map(struct file_map *map, const char *path, struct err *err) MUST_CHECK;
void file_unmap(struct file_map *map);
/* Releases the map's memory; later accesses read the file again. */
void file_map_forget(const struct file_map *map);
/* From now on a mapped file that is cut ends the tool with a message and status 3. Not for libraries: it handles
 * SIGBUS. */
void file_map_guard(void);

/* Adds the whole of `path` ("-": standard input) to *text; fails with ERR_FORMAT above `limit` bytes. */
int file_read(struct buf *text, const char *path, size_t limit, struct err *err) MUST_CHECK;

/* A file being written. Write to `f` directly; errors of the stream come out of file_commit(). */
struct file_out {
    FILE *f;
    char *path, *temp; // temp NULL: a device or a pipe
    bool nameless;     // the file has no name yet, not even `temp`
};

/* If the file system supports it, the file has no name before file_commit(), so a killed process leaves nothing behind.
 * Otherwise it is PATH.tmp.XXXXXX. With file_create_named() it always has that name, for a caller that opens it
 * twice. */
int file_create(struct file_out *out, const char *path, struct err *err) MUST_CHECK;
int file_create_named(struct file_out *out, const char *path, struct err *err) MUST_CHECK;
int file_commit(struct file_out *out, struct err *err) MUST_CHECK; /* releases *out, also on failure */
void file_abort(struct file_out *out);                             /* removes the temporary file; zeroed is fine */

/* file_create, write, file_commit. */
int file_write(const char *path, const void *bytes, size_t n, struct err *err) MUST_CHECK;

/* Removes the remains of killed processes from a folder: files NAME.tmp.XXXXXX, NAME ending with `suffix`, that are
 * older than a minute and not being written. */
void file_sweep(const char *dir, const char *suffix);

/* rename(), then flushes the folder. */
int file_rename(const char *from, const char *to, struct err *err) MUST_CHECK;

/* ERR_FORMAT: the n bytes begin a pointer of Git LFS. file_map() and file_read() call it. */
int file_check_pointer(const char *at, size_t n, struct err *err) MUST_CHECK;

bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_same(const char *a, const char *b); // do both name one regular file, also through links? "-": standard input
int file_size(const char *path, uint64_t *size, struct err *err) MUST_CHECK;
int file_mkdir(const char *path, struct err *err) MUST_CHECK; /* like mkdir -p */

/* dir + "/" + name, allocated; the caller frees it. NULL without memory. */
char *file_join(const char *dir, const char *name);

/* The end of a path after its last slash; borrowed. */
const char *file_name(const char *path);

/* ${XDG_CACHE_HOME:-$HOME/.cache}/evp, and ${EVP_MODELS:-that/models}. Allocated; NULL without memory. */
char *file_cache_dir(void);
char *file_models_dir(void);

#endif
