/* Reading, then writing through a temporary file, then what the tools ask about paths. */
#include "base/file.h"

#include "base/unconst.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_map(struct file_map *map, const char *path, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *map = (struct file_map){ 0 };
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(fd, &st) || S_ISDIR(st.st_mode)) {
        err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(S_ISDIR(st.st_mode) ? EISDIR : errno));
        close(fd);
        return err->code;
    }
    map->n = (size_t)st.st_size;
    void *at = map->n ? mmap(NULL, map->n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (at == MAP_FAILED)
        return err_set(err, ERR_IO, "cannot map '%s': %s", path, strerror(errno));
    map->at = at;
    return 0;
}

void file_unmap(struct file_map *map)
{
    if (map->at)
        munmap(unconst(map->at), map->n);
    *map = (struct file_map){ 0 };
}

int file_read(struct buf *text, const char *path, size_t limit, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "rb");
    int code = 0;

    if (!f)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    for (size_t start = text->n;;) {
        char *to = buf_reserve(text, 1 << 16);
        if (!to) {
            code = err_nomem(err);
            break;
        }
        size_t n = fread(to, 1, 1 << 16, f);
        text->n += n;
        if (text->n - start > limit) {
            code = err_set(err, ERR_FORMAT, "'%s' is larger than %zu bytes", path, limit);
            break;
        }
        if (n == 0) {
            text->at[text->n] = '\0';
            if (ferror(f))
                code = err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
            break;
        }
    }
    if (!standard)
        fclose(f);
    return code;
}

static void out_release(struct file_out *out)
{
    free(out->path);
    free(out->temp);
    *out = (struct file_out){ 0 };
}

/* Is it a device or a pipe? */
static bool is_special(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int create_special(struct file_out *out, struct err *err)
{
    out->f = fopen(out->path, "wb");
    if (out->f)
        return 0;
    err_set(err, ERR_IO, "cannot open '%s': %s", out->path, strerror(errno));
    out_release(out);
    return err->code;
}

int file_create(struct file_out *out, const char *path, struct err *err)
{
    struct buf temp = { 0 };

    *out = (struct file_out){ .path = strdup(path) };
    if (out->path && is_special(path))
        return create_special(out, err);
    buf_printf(&temp, "%s.tmp.XXXXXX", path);
    out->temp = buf_take(&temp);
    if (!out->path || !out->temp) {
        out_release(out);
        return err_nomem(err);
    }
    int fd = mkstemp(out->temp);
    if (fd < 0) {
        err_set(err, ERR_IO, "cannot create '%s': %s", path, strerror(errno));
        out_release(out);
        return err->code;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask); /* mkstemp's 0600 is for secrets; these are ordinary files */
    out->f = fdopen(fd, "wb");
    if (!out->f) {
        close(fd);
        unlink(out->temp);
        out_release(out);
        return err_nomem(err);
    }
    return 0;
}

/* fsync on a folder. */
static int sync_dir(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
    int failed = fsync(fd) && errno != EINVAL && errno != EROFS; /* some file systems have nothing to flush */
    int why = errno;
    close(fd);
    return failed ? err_set(err, ERR_IO, "cannot flush folder '%s': %s", path, strerror(why)) : 0;
}

/* Flushes the folder of a path, so that the rename survives a crash of the machine. */
static int sync_parent(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct buf dir = { 0 };

    if (!slash)
        return sync_dir(".", err);
    buf_add(&dir, path, slash == path ? 1 : (size_t)(slash - path));
    int code = buf_failed(&dir) ? err_nomem(err) : sync_dir(dir.at, err);
    buf_release(&dir);
    return code;
}

int file_rename(const char *from, const char *to, struct err *err)
{
    if (rename(from, to))
        return err_set(err, ERR_IO, "cannot rename to '%s': %s", to, strerror(errno));
    return sync_parent(to, err);
}

int file_commit(struct file_out *out, struct err *err)
{
    int code = 0;

    if (fflush(out->f) || ferror(out->f) || (out->temp && fsync(fileno(out->f))))
        code = err_set(err, ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    if (fclose(out->f) && !code)
        code = err_set(err, ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    if (!code && out->temp)
        code = file_rename(out->temp, out->path, err);
    if (code && out->temp)
        unlink(out->temp);
    out_release(out);
    return code;
}

void file_abort(struct file_out *out)
{
    if (out->f) {
        fclose(out->f);
        if (out->temp)
            unlink(out->temp);
    }
    out_release(out);
}

int file_write(const char *path, const void *bytes, size_t n, struct err *err)
{
    struct file_out out;

    if (file_create(&out, path, err))
        return err->code;
    fwrite(bytes, 1, n, out.f);
    return file_commit(&out, err);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int file_size(const char *path, uint64_t *size, struct err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set(err, ERR_IO, "cannot look at '%s': %s", path, strerror(errno));
    *size = (uint64_t)st.st_size;
    return 0;
}

int file_mkdir(const char *path, struct err *err)
{
    char *copy = strdup(path);

    if (!copy)
        return err_nomem(err);
    for (char *p = copy + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char was = *p;
        *p = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST) {
            err_set(err, ERR_IO, "cannot make folder '%s': %s", copy, strerror(errno));
            free(copy);
            return err->code;
        }
        *p = was;
        if (!was)
            break;
    }
    free(copy);
    return file_is_dir(path) ? 0 : err_set(err, ERR_IO, "cannot make folder '%s': %s", path, strerror(ENOTDIR));
}

char *file_join(const char *dir, const char *name)
{
    struct buf b = { 0 };
    size_t n = strlen(dir);

    buf_printf(&b, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return buf_take(&b);
}

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *file_cache_dir(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && *cache)
        return file_join(cache, "evp");
    return file_join(home && *home ? home : ".", ".cache/evp");
}

char *file_models_dir(void)
{
    const char *models = getenv("EVP_MODELS");
    char *cache = models && *models ? NULL : file_cache_dir();
    char *dir = models && *models ? strdup(models) : cache ? file_join(cache, "models") : NULL;

    free(cache);
    return dir;
}
