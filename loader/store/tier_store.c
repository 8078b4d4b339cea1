/* tier_store.c - the files of a tier's folder, the index, locking and sweeping, in this order. Copies go through one
 * chunk of memory, so a payload may be larger than memory; the copy is read back from the disk, not from the cache.
 */
#include "loader/store/tier_store.h"

#include "base/file.h"
#include "base/map.h"
#include "base/rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

/* ---- files -------------------------------------------------------------- */

/* Reads fd to its end for size and checksum; writes the bytes to `out` unless it is NULL. */
static int copy_stream(int fd, FILE *out, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    struct checksum *sum = checksum_new(err);
    char *chunk = malloc(CHUNK);
    ssize_t n = 0;
    int code = 0;

    *size = 0;
    if (!sum || !chunk)
        code = err_nomem(err);
    while (!code && (n = read(fd, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            code = err_set(err, ERR_IO, "cannot read: %s", strerror(errno));
            break;
        }
        checksum_add(sum, chunk, (size_t)n);
        *size += n;
        if (out && fwrite(chunk, 1, (size_t)n, out) != (size_t)n)
            code = err_set(err, ERR_IO, "cannot write: %s", strerror(errno));
    }
    free(chunk);
    checksum_end(sum, checksum);
    return code;
}

static int open_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    return fd;
}

/* Drops the clean pages of a file from memory, so that the next read asks the disk. */
static void drop_cached(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return; /* the read that follows says why */
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

int tier_store_checksum(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    int fd = open_file(path, err);

    if (fd < 0)
        return fd;
    int code = copy_stream(fd, NULL, size, checksum, err);
    close(fd);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

int tier_store_copy(const char *from, const char *to, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    struct file_out out;
    int fd = open_file(from, err);

    if (fd < 0)
        return fd;
    int code = file_create(&out, to, err);
    if (!code) {
        code = copy_stream(fd, out.f, size, checksum, err);
        if (code) {
            err_wrap(err, "copying '%s' to '%s'", from, to);
            file_abort(&out);
        } else
            code = file_commit(&out, err);
    }
    close(fd);
    return code;
}

char *tier_store_path(const struct tier_store *s, const char *file)
{
    return file_join(s->tier->uri, file);
}

bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check)
{
    char *path = tier_store_path(s, e->file), checksum[XXH3_HEX];
    struct stat st;
    struct err err;
    int64_t size;
    bool has = path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == e->size;

    if (has && check == STORE_CONTENT)
        has = !tier_store_checksum(path, &size, checksum, &err) && size == e->size && !strcmp(checksum, e->checksum);
    free(path);
    return has;
}

/* ---- the index ---------------------------------------------------------- */

char *tier_store_index_path(const char *dir)
{
    return file_join(dir, "evp-index");
}

struct index_reader {
    struct entries *in;
    struct map files; // names that came already
};

static int read_row(void *arg, const struct json *row, struct err *err)
{
    struct index_reader *r = arg;
    struct entry e;
    bool added;

    if (entry_from_json(&e, row, err))
        return err->code;
    int number = map_add(&r->files, e.file, strlen(e.file), &added);
    if (number >= 0 && added)
        return entries_add(r->in, &e, err);
    if (number >= 0)
        err_set(err, ERR_FORMAT, "file '%s' comes twice", e.file);
    else
        err_nomem(err);
    entry_release(&e);
    return err->code;
}

static int read_rows(struct entries *in, struct rows_in *rows, struct err *err)
{
    struct index_reader r = { .in = in };
    int code = rows_rest(rows, read_row, &r, err);

    map_release(&r.files);
    if (!code && !rows->header)
        code = err_set(err, ERR_FORMAT, "%s has no header", rows->path);
    return code;
}

int tier_store_parse_index(struct entries *in, struct rows_in *rows, struct err *err)
{
    *in = (struct entries){ 0 };
    int code = read_rows(in, rows, err);
    if (code)
        entries_release(in);
    return code;
}

int tier_store_read_index(struct entries *in, const char *dir, struct err *err)
{
    char *path = tier_store_index_path(dir);
    struct rows_in rows;
    int code = 0;

    *in = (struct entries){ 0 };
    if (!path)
        return err_nomem(err);
    if (file_exists(path)) {
        code = rows_open(&rows, path, "index", err);
        if (!code) {
            code = tier_store_parse_index(in, &rows, err);
            rows_close(&rows);
        }
    }
    free(path);
    return code;
}

int tier_store_flush(struct tier_store *s, struct err *err)
{
    struct rows_made made = { .kind = "index", .tool = "evp-load" };
    struct rows_out out;

    if (!s->changed)
        return 0;
    char *path = tier_store_index_path(s->tier->uri);
    int code = path ? rows_create(&out, path, &made, err) : err_nomem(err);
    free(path);
    if (code)
        return code;
    for (int i = 0; i < s->in.n && !code; i++) {
        if (s->in.at[i].gone)
            continue;
        struct json_out w = rows_begin(&out);
        entry_to_json(&s->in.at[i], &w);
        code = rows_put(&out, &w, err);
    }
    if (code)
        rows_abort(&out);
    else
        code = rows_finish(&out, err);
    s->changed = s->changed && code;
    return code;
}

/* ---- opening ------------------------------------------------------------ */

/* Is this the name of a payload, or of a temporary file of a payload or the index? */
static bool is_own_name(const char *name)
{
    return (strncmp(name, "evp-", 4) == 0 && strstr(name, ".tmp.")) || entry_file_safe(name);
}

int tier_store_sweep(struct tier_store *s, struct err *err)
{
    struct map named = { 0 };
    struct dirent *d;
    int code = 0;

    for (int i = 0; i < s->in.n; i++)
        if (!s->in.at[i].gone && map_add(&named, s->in.at[i].file, strlen(s->in.at[i].file), NULL) < 0)
            code = err_nomem(err);
    DIR *dir = opendir(s->tier->uri);
    if (!dir)
        code = err_set(err, ERR_IO, "cannot read folder '%s': %s", s->tier->uri, strerror(errno));
    while (!code && (d = readdir(dir)))
        if (is_own_name(d->d_name) && map_find(&named, d->d_name, strlen(d->d_name)) < 0)
            code = tier_store_unlink(s, d->d_name, err);
    if (dir)
        closedir(dir);
    map_release(&named);
    return code;
}

static int make_folder(const struct tier *tier, struct err *err)
{
    if (mkdir(tier->uri, 0777) && errno != EEXIST)
        return err_set(err, ERR_IO, "tier '%s': cannot make folder '%s': %s", tier->name, tier->uri, strerror(errno));
    return 0;
}

/* The parent of a tier's folder, allocated; NULL without memory. */
static char *parent_of(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

/* The parent must exist: an unmounted disk must not be mistaken for an empty tier. */
static int check_parent(const struct tier *tier, struct err *err)
{
    char *parent = parent_of(tier->uri);

    if (!parent)
        return err_nomem(err);
    int code = file_is_dir(parent)
                   ? 0
                   : err_set(err, ERR_IO, "tier '%s' is gone: folder '%s', which must hold '%s', does not exist",
                             tier->name, parent, tier->uri);
    free(parent);
    return code;
}

static int lock_folder(struct tier_store *s, struct err *err)
{
    char *path = tier_store_path(s, "evp-lock");

    s->lock = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666) : -1;
    free(path);
    if (s->lock < 0)
        return err_set(err, ERR_IO, "tier '%s': cannot lock folder '%s': %s", s->tier->name, s->tier->uri,
                       strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB))
        return err_set(err, ERR_IO, "tier '%s': another evp-load is at work in '%s'", s->tier->name, s->tier->uri);
    return 0;
}

static int open_folder(struct tier_store *s, enum tier_store_use use, struct err *err)
{
    if (use == STORE_LOOK && !file_is_dir(s->tier->uri))
        return check_parent(s->tier, err);
    if (use == STORE_CHANGE && (make_folder(s->tier, err) || lock_folder(s, err)))
        return err->code;
    if (tier_store_read_index(&s->in, s->tier->uri, err))
        return err_wrap(err, "tier '%s'", s->tier->name);
    return use == STORE_CHANGE ? tier_store_sweep(s, err) : 0;
}

int tier_store_open(struct tier_store *s, const struct tier *tier, enum tier_store_use use, struct err *err)
{
    *s = (struct tier_store){ .tier = tier, .lock = -1 };
    if (!tier_is_folder(tier))
        return err_set(err, ERR_FAIL, "evp-load serves folder tiers; tier '%s' is of kind '%s'", tier->name,
                       tier_kind_name(tier->kind));
    if (check_parent(tier, err))
        return err->code;
    int code = open_folder(s, use, err);
    if (code)
        tier_store_close(s);
    return code;
}

void tier_store_close(struct tier_store *s)
{
    if (s->tier && s->lock >= 0)
        close(s->lock);
    entries_release(&s->in);
    *s = (struct tier_store){ .lock = -1 };
}

int tier_store_disk(const struct tier_store *s, uint64_t *device, int64_t *free_bytes, struct err *err)
{
    char *parent = parent_of(s->tier->uri);
    const char *path = file_is_dir(s->tier->uri) ? s->tier->uri : parent;
    struct statvfs fs;
    struct stat st;

    if (!parent)
        return err_nomem(err);
    int code = stat(path, &st) || statvfs(path, &fs) ? -1 : 0;
    if (code)
        code = err_set(err, ERR_IO, "tier '%s': cannot read the free bytes of '%s': %s", s->tier->name, path,
                       strerror(errno));
    free(parent);
    if (code)
        return code;
    *device = st.st_dev;
    *free_bytes = (int64_t)((uint64_t)fs.f_bavail * fs.f_frsize & INT64_MAX);
    return 0;
}

/* ---- changing ----------------------------------------------------------- */

int tier_store_put(struct tier_store *s, const char *from, const struct entry *e, struct err *err)
{
    char *path = tier_store_path(s, e->file), checksum[XXH3_HEX];
    struct entry copy;
    int64_t size;

    if (!path)
        return err_nomem(err);
    int code = tier_store_copy(from, path, &size, checksum, err);
    if (!code && (size != e->size || strcmp(checksum, e->checksum) != 0))
        code = err_set(err, ERR_FORMAT, "'%s' changed while it was read", from);
    if (!code) {
        drop_cached(path);
        code = tier_store_checksum(path, &size, checksum, err);
    }
    if (!code && (size != e->size || strcmp(checksum, e->checksum) != 0))
        code = err_set(err, ERR_IO, "'%s' reads back with other bytes than were written", path);
    if (!code)
        code = entry_copy(&copy, e, err);
    if (!code)
        code = entries_add(&s->in, &copy, err);
    if (code)
        unlink(path);
    free(path);
    s->changed = true;
    return code ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}

int tier_store_unlink(struct tier_store *s, const char *file, struct err *err)
{
    char *path = tier_store_path(s, file);

    if (!path)
        return err_nomem(err);
    int code =
        unlink(path) && errno != ENOENT ? err_set(err, ERR_IO, "cannot remove '%s': %s", path, strerror(errno)) : 0;
    free(path);
    return code;
}
