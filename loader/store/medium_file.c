/* medium_file.c - the medium `file`: a payload is a file of the tier's folder; its key is the file's name. A copy uses
 * copy_file_range(), which shares blocks if possible, or one chunk of memory, so a payload may be larger than memory.
 * It is read back from the disk, not from the cache.
 */
#include "loader/store/folder.h"
#include "loader/store/medium_drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

/* ---- writing ------------------------------------------------------------------------ */

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

/* Copies from offset `at`. */
static int copy_through_memory(const struct blob *from, int to, uint64_t at, struct err *err)
{
    char *chunk = malloc(blob_chunk(from));
    int code = chunk ? 0 : err_nomem(err);

    for (ssize_t n = 1; !code && n;) {
        n = blob_next(from, chunk, blob_chunk(from), at, err);
        code = n < 0 ? err->code : write_all(to, chunk, (size_t)n, err);
        at += (uint64_t)(n < 0 ? 0 : n);
    }
    free(chunk);
    return code;
}

static int copy_file(const struct blob *from, int to, struct err *err)
{
    off_t at = 0;
    ssize_t n;

    while ((n = copy_file_range(from->fd, &at, to, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n == 0)
        return at ? 0 : copy_through_memory(from, to, 0, err); /* some file systems return 0 for "cannot" */
    if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM)
        return copy_through_memory(from, to, (uint64_t)at, err);
    return err_set(err, ERR_IO, "cannot copy: %s", strerror(errno));
}

/* Copies a small file faster than copy_file_range() can: 1, or 0 if it is not small. */
static int copy_small(const struct blob *from, int to, struct err *err)
{
    char bytes[BLOB_SMALL];
    size_t n = 0, max = from->size < 0 ? sizeof(bytes) : (size_t)from->size;

    if (from->size >= BLOB_SMALL)
        return 0;
    for (ssize_t got = 1; got > 0 && n < max; n += (size_t)got) {
        got = blob_next(from, bytes + n, max - n, n, err);
        if (got < 0)
            return err->code;
    }
    if (n == sizeof(bytes))
        return 0;
    return write_all(to, bytes, n, err) ? err->code : 1;
}

static int put_into(int to, const struct blob *from, struct err *err)
{
    if (from->bytes)
        return write_all(to, from->bytes, (size_t)from->size, err);
    int small = copy_small(from, to, err);
    if (small)
        return small < 0 ? small : 0;
    return from->fd >= 0 ? copy_file(from, to, err) : copy_through_memory(from, to, 0, err);
}

static int put_file(const struct medium *m, const char *key, const struct blob *from, struct err *err)
{
    int to = folder_create_file(m->folder, key, err);

    if (to < 0)
        return to;
    int code = put_into(to, from, err);
    if (close(to) && !code)
        code = err_set(err, ERR_IO, "cannot write: %s", strerror(errno));
    if (!code)
        return 0;
    err_wrap(err, "'%s'", key);
    unlinkat(m->folder, key, 0);
    return code;
}

/* ---- flushing ----------------------------------------------------------------------- */

/* Flushes a file or a folder of the tier's folder. */
static int flush_name(const struct medium *m, const char *name, struct err *err)
{
    int fd = folder_open_file(m->folder, name);
    int code = fd >= 0 && (!fsync(fd) || errno == EINVAL)
                   ? 0
                   : err_set(err, ERR_IO, "cannot flush '%s/%s': %s", m->uri, name, strerror(errno));

    if (fd >= 0)
        close(fd);
    return code;
}

/* Flushes one file and its folders alone; or, for NULL, the whole disk. */
static int flush_files(const struct medium *m, const char *key, struct err *err)
{
    char name[OBJECT_FILE];

    if (!key)
        return syncfs(m->folder) ? err_set(err, ERR_IO, "cannot flush '%s': %s", m->uri, strerror(errno)) : 0;
    snprintf(name, sizeof(name), "%s", key);
    int code = flush_name(m, name, err);
    for (char *slash; !code && (slash = strrchr(name, '/'));) {
        *slash = '\0';
        code = flush_name(m, name, err);
    }
    return code ? code : flush_name(m, ".", err);
}

/* ---- reading ------------------------------------------------------------------------ */

/* On a network file system another host may remove a file between any two calls. */
static bool is_gone(int why)
{
    return why == ENOENT || why == ESTALE;
}

/* ERR_FORMAT unless it is a regular file of b->size bytes. */
static int check_file(const struct medium *m, const char *key, const struct blob *b, struct err *err)
{
    struct stat st;

    if (fstat(b->fd, &st))
        return is_gone(errno) ? MEDIUM_GONE
                              : err_set(err, ERR_IO, "'%s/%s': cannot read: %s", m->uri, key, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s/%s' is not a file", m->uri, key);
    if (st.st_size != b->size)
        return err_set(err, ERR_FORMAT, "'%s/%s' has %lld bytes, not %lld", m->uri, key, (long long)st.st_size,
                       (long long)b->size);
    return 0;
}

static int get_file(const struct medium *m, const char *key, struct blob *b, struct err *err)
{
    b->fd = folder_open_file(m->folder, key);
    if (b->fd < 0)
        return is_gone(errno) ? MEDIUM_GONE
                              : err_set(err, ERR_IO, "'%s/%s': cannot open: %s", m->uri, key, strerror(errno));
    int code = check_file(m, key, b, err);
    if (code)
        close(b->fd);
    return code;
}

/* Drops clean pages, so that the next read comes from the disk. */
static void drop_pages(const struct blob *b)
{
    posix_fadvise(b->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int look_at_files(const struct medium *m, const struct medium_object *object, int n, bool *there,
                         struct err *err)
{
    (void)err;
    for (int i = 0; i < n; i++) /* one or two seconds for a million files; opening them would take five times as long */
        there[i] = folder_file_size(m->folder, object[i].key) == object[i].size;
    return 0;
}

/* ---- listing and removing ----------------------------------------------------------- */

static int remove_file(const struct medium *m, const struct medium_object *object, struct err *err)
{
    return unlinkat(m->folder, object->key, 0) && errno != ENOENT
               ? err_set(err, ERR_IO, "cannot remove '%s/%s': %s", m->uri, object->key, strerror(errno))
               : 0;
}

struct visit {
    medium_visit *each;
    void *arg;
};

static int visit_file(void *arg, const char *file, struct err *err)
{
    const struct visit *v = arg;
    const struct medium_object object = { file, 0 };

    return v->each(v->arg, &object, err);
}

static int each_file(const struct medium *m, medium_visit *each, void *arg, struct err *err)
{
    struct visit v = { each, arg };

    return folder_each_payload(m->folder, visit_file, &v, err);
}

const struct medium_driver medium_file = {
    .name = "file",
    .chunk = CHUNK,
    .put = put_file,
    .flush = flush_files,
    .get = get_file,
    .drop = drop_pages,
    .look = look_at_files,
    .remove = remove_file,
    .each = each_file,
};
