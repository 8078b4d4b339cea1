/* tier_files.c - the files of a store: copied, flushed, read back and deleted. A copy goes through the file system
 * (copy_file_range, which shares blocks where that is possible) or through one chunk of memory, so a payload may be
 * larger than memory; it is read back from the disk, not from the cache.
 */
#include "loader/index/folder.h"
#include "loader/store/tier_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

int tier_store_checksum(int fd, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    struct checksum *sum = checksum_new(err);
    char *chunk = malloc(CHUNK);
    int code = sum && chunk ? 0 : err_nomem(err);

    *size = 0;
    for (ssize_t n = 1; !code && n;) {
        n = pread(fd, chunk, CHUNK, *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            code = err_set(err, ERR_IO, "cannot read: %s", strerror(errno));
            break;
        }
        checksum_add(sum, chunk, (size_t)n);
        *size += n;
    }
    free(chunk);
    checksum_end(sum, checksum);
    return code;
}

int tier_store_file(const struct tier_store *s, const struct entry *e, struct err *err)
{
    int fd = folder_open_file(s->folder, e->file);

    return fd >= 0 ? fd : err_set(err, ERR_IO, "cannot open '%s/%s': %s", s->tier->uri, e->file, strerror(errno));
}

bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check)
{
    char checksum[XXH3_HEX];
    struct stat st;
    struct err err;
    int64_t size;
    int fd = s->folder < 0 ? -1 : folder_open_file(s->folder, e->file);

    if (fd < 0)
        return false;
    bool has = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == e->size;
    if (has && check == STORE_CONTENT)
        has = !tier_store_checksum(fd, &size, checksum, &err) && size == e->size && !strcmp(checksum, e->checksum);
    close(fd);
    return has;
}

/* ---- copying -------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t n, struct err *err)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_set(err, ERR_IO, "cannot write: %s", strerror(errno));
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* From `at` on. */
static int copy_through_memory(int from, int to, off_t at, struct err *err)
{
    char *chunk = malloc(CHUNK);
    int code = chunk ? 0 : err_nomem(err);

    for (ssize_t n = 1; !code && n;) {
        n = pread(from, chunk, CHUNK, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = err_set(err, ERR_IO, "cannot read: %s", strerror(errno));
        else
            code = write_all(to, chunk, (size_t)n, err);
        at += n;
    }
    free(chunk);
    return code;
}

static int copy_file(int from, int to, struct err *err)
{
    off_t at = 0;
    ssize_t n;

    while ((n = copy_file_range(from, &at, to, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n == 0)
        return at ? 0 : copy_through_memory(from, to, at, err); /* some file systems say 0 for "cannot" */
    if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM)
        return copy_through_memory(from, to, at, err);
    return err_set(err, ERR_IO, "cannot copy: %s", strerror(errno));
}

/* Closes what folder_create_file() gave, after writing to it ended with `code`. */
static int end_file(const struct tier_store *s, int to, const struct entry *e, int code, struct err *err)
{
    if (to >= 0 && close(to) && !code)
        code = err_set(err, ERR_IO, "cannot write: %s", strerror(errno));
    if (code && to >= 0)
        err_wrap(err, "'%s'", e->file);
    if (code && to >= 0)
        unlinkat(s->folder, e->file, 0);
    return code ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}

int tier_store_copy(const struct tier_store *s, int from, const struct entry *e, struct err *err)
{
    int to = folder_create_file(s->folder, e->file, err);

    return end_file(s, to, e, to < 0 ? to : copy_file(from, to, err), err);
}

int tier_store_write(const struct tier_store *s, const void *bytes, size_t n, const struct entry *e, struct err *err)
{
    int to = folder_create_file(s->folder, e->file, err);

    return end_file(s, to, e, to < 0 ? to : write_all(to, bytes, n, err), err);
}

/* Flushes a file or a folder of the store's folder. */
static int flush_name(const struct tier_store *s, const char *name, struct err *err)
{
    int fd = folder_open_file(s->folder, name);
    int code = fd >= 0 && (!fsync(fd) || errno == EINVAL)
                   ? 0
                   : err_set(err, ERR_IO, "cannot flush '%s/%s': %s", s->tier->uri, name, strerror(errno));

    if (fd >= 0)
        close(fd);
    return code;
}

int tier_store_flush_file(const struct tier_store *s, const struct entry *e, struct err *err)
{
    char name[OBJECT_FILE];

    snprintf(name, sizeof(name), "%s", e->file);
    int code = flush_name(s, name, err);
    for (char *slash; !code && (slash = strrchr(name, '/'));) {
        *slash = '\0';
        code = flush_name(s, name, err);
    }
    return code ? code : flush_name(s, ".", err);
}

int tier_store_flush(const struct tier_store *s, struct err *err)
{
    return syncfs(s->folder)
               ? err_set(err, ERR_IO, "tier '%s': cannot flush '%s': %s", s->tier->name, s->tier->uri, strerror(errno))
               : 0;
}

int tier_store_read_back(const struct tier_store *s, const struct entry *e, struct err *err)
{
    int fd = tier_store_file(s, e, err);

    if (fd < 0)
        return fd;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* clean pages go, so that the disk is asked */
    close(fd);
    return tier_store_has(s, e, STORE_CONTENT)
               ? 0
               : err_set(err, ERR_IO, "'%s/%s' reads back with other bytes than were checked before", s->tier->uri,
                         e->file);
}

int tier_store_unlink(const struct tier_store *s, const struct entry *e, struct err *err)
{
    return unlinkat(s->folder, e->file, 0) && errno != ENOENT
               ? err_set(err, ERR_IO, "cannot remove '%s/%s': %s", s->tier->uri, e->file, strerror(errno))
               : 0;
}
