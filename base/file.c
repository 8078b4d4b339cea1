/* file.c - reading, then writing through a temporary file, then questions about paths. */
#include "base/file.h"

#include "base/unconst.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Mapping and unmapping lock the whole address space, so threads that open small files would wait for each other. */
enum { MAP_MIN = 1 << 16 };

static int read_open(struct file_map *map, int fd, struct err *err)
{
    map->copy = malloc(map->n);
    map->at = map->copy;
    if (!map->at)
        return err_nomem(err);
    for (size_t done = 0; done < map->n;) {
        ssize_t n = read(fd, (char *)map->copy + done, map->n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, ERR_IO, "%s", n ? strerror(errno) : "it was cut");
        done += (size_t)n;
    }
    return 0;
}

static int map_open(struct file_map *map, int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) || S_ISDIR(st.st_mode))
        return err_set(err, ERR_IO, "%s", strerror(S_ISDIR(st.st_mode) ? EISDIR : errno));
    map->n = (size_t)st.st_size;
    if (map->n < MAP_MIN)
        return map->n ? read_open(map, fd, err) : 0;
    void *at = mmap(NULL, map->n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return err_set(err, ERR_IO, "%s", strerror(errno));
    map->at = at;
    return 0;
}

void file_unmap(struct file_map *map)
{
    if (map->at && !map->copy)
        munmap(unconst(map->at), map->n);
    free(map->copy);
    *map = (struct file_map){ 0 };
}

int file_check_pointer(const char *at, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";

    if (n < sizeof(begin) - 1 || memcmp(at, begin, sizeof(begin) - 1) != 0)
        return 0;
    return err_set(err, ERR_FORMAT, "a pointer of Git LFS in place of the file: git lfs pull fetches it");
}

int file_map(struct file_map *map, const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct err why;

    *map = (struct file_map){ 0 };
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    int code = map_open(map, fd, &why);
    close(fd);
    if (!code && file_check_pointer(map->at, map->n, err) == 0)
        return 0;
    file_unmap(map);
    return code ? err_set(err, code, "cannot read '%s': %s", path, why.msg) : err_wrap(err, "'%s'", path);
}

void file_map_forget(const struct file_map *map)
{
    if (map->at && !map->copy)
        madvise(unconst(map->at), map->n, MADV_DONTNEED); // the pages are unmodified: nothing is lost
}

/* Finds the file mapped at an address, "": none, in lines "FROM-TO rw-p OFFSET DEVICE INODE NAME". Makes system calls
 * only, as is right in a signal's handler. */
static void name_mapped(uintptr_t at, char name[PATH_MAX])
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    uintptr_t end[2] = { 0 };
    size_t n = 0, part = 0;

    for (unsigned char c; read(fd, &c, 1) == 1 && !(c == '\n' && end[0] <= at && at < end[1]);)
        if (c == '\n')
            end[0] = end[1] = n = part = 0;
        else if (part < 2 && (c == '-' || c == ' '))
            part++;
        else if (part < 2)
            end[part] = end[part] * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        else if ((n || c == '/') && n < PATH_MAX - 1)
            name[n++] = c < ' ' || c == 0x7f ? '?' : (char)c;
    name[n] = '\0';
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT; // threads that read the same file come here together
    char name[PATH_MAX];

    (void)context;
    name_mapped((uintptr_t)info->si_addr, name);
    if (!*name) {
        signal(sig, SIG_DFL);
        raise(sig);
        return;
    }
    while (atomic_flag_test_and_set(&said))
        pause();
    const char *part[] = { isatty(STDERR_FILENO) ? "\r\033[K" : "", program_invocation_short_name, ": error: '", name,
                           "' became shorter while it was read, or its disk failed\n" };
    struct iovec text[5];
    for (int i = 0; i < 5; i++)
        text[i] = (struct iovec){ unconst(part[i]), strlen(part[i]) };
    (void)!writev(STDERR_FILENO, text, 5);
    _exit(err_exit_status(ERR_FORMAT));
}

void file_map_guard(void)
{
    sigaction(SIGBUS, &(struct sigaction){ .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO }, NULL);
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
            else if (file_check_pointer(text->at + start, text->n - start, err))
                code = err_wrap(err, "'%s'", path);
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

/* Replaces the last six characters of a path by random letters. */
static bool draw_letters(char *path)
{
    enum { LETTERS = 6 };
    static const char letter[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    unsigned char random[LETTERS];
    char *end = path + strlen(path) - LETTERS;

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return false;
    for (int k = 0; k < LETTERS; k++)
        end[k] = letter[random[k] % 64];
    return true;
}

enum { TRIES = 100 }; // to find an unused name

/* Opens a new file with a random name. Like mkstemp(), but with the mode of the process's umask. Calling umask() to
 * read it would affect files that other threads create. */
static int create_temp(char *path)
{
    int fd = -1;

    for (int i = 0; i < TRIES && fd < 0; i++) {
        if (!draw_letters(path))
            return -1;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

/* The folder of a path, allocated; NULL without memory. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* Needs /proc: only through it can a nameless file get a name. */
static int create_nameless(const char *path)
{
    char *parent = access("/proc/self/fd", X_OK) == 0 ? parent_of(path) : NULL;
    int fd = parent ? open(parent, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;

    free(parent);
    return fd;
}

static int open_stream(struct file_out *out, int fd, struct err *err)
{
    out->f = fdopen(fd, "wb");
    if (out->f)
        return 0;
    close(fd);
    if (!out->nameless)
        unlink(out->temp);
    out_release(out);
    return err_nomem(err);
}

/* Sets the paths: 0. Opens a device or a pipe: 1. */
static int begin_out(struct file_out *out, const char *path, struct err *err)
{
    struct buf temp = { 0 };

    *out = (struct file_out){ .path = strdup(path) };
    if (out->path && is_special(path))
        return create_special(out, err) ? err->code : 1;
    buf_printf(&temp, "%s.tmp.XXXXXX", path);
    out->temp = buf_take(&temp);
    if (out->path && out->temp)
        return 0;
    out_release(out);
    return err_nomem(err);
}

static int create_named(struct file_out *out, struct err *err)
{
    int fd = create_temp(out->temp);

    if (fd >= 0)
        return open_stream(out, fd, err);
    err_set(err, ERR_IO, "cannot create '%s': %s", out->path, strerror(errno));
    out_release(out);
    return err->code;
}

int file_create_named(struct file_out *out, const char *path, struct err *err)
{
    int code = begin_out(out, path, err);

    return code > 0 ? 0 : code ? code : create_named(out, err);
}

int file_create(struct file_out *out, const char *path, struct err *err)
{
    int code = begin_out(out, path, err);

    if (code)
        return code > 0 ? 0 : code;
    int fd = create_nameless(path);
    if (fd >= 0) {
        out->nameless = true;
        return open_stream(out, fd, err);
    }
    code = create_named(out, err);
    if (!code)
        flock(fileno(out->f),
              LOCK_EX | LOCK_NB); /* file_sweep() skips locked files; without locks it removes nothing */
    return code;
}

/* fsync on a folder. */
static int sync_dir(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
    int failed = fsync(fd) && errno != EINVAL && errno != EROFS; /* some file systems cannot flush a folder */
    int why = errno;
    close(fd);
    return failed ? err_set(err, ERR_IO, "cannot flush folder '%s': %s", path, strerror(why)) : 0;
}

/* Flushes the folder of a path, so that the rename survives a crash of the machine. */
static int sync_parent(const char *path, struct err *err)
{
    char *parent = parent_of(path);
    int code = parent ? sync_dir(parent, err) : err_nomem(err);

    free(parent);
    return code;
}

int file_rename(const char *from, const char *to, struct err *err)
{
    if (rename(from, to))
        return err_set(err, ERR_IO, "cannot rename to '%s': %s", to, strerror(errno));
    return sync_parent(to, err);
}

/* Gives a nameless file its final name if that is free: 1. Otherwise a temporary name, for a rename: 0. -1: failed. */
static int name_file(struct file_out *out)
{
    char fd[64];

    snprintf(fd, sizeof(fd), "/proc/self/fd/%d", fileno(out->f));
    if (linkat(AT_FDCWD, fd, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW) == 0)
        return 1;
    for (int i = 0; i < TRIES && errno == EEXIST && draw_letters(out->temp); i++)
        if (linkat(AT_FDCWD, fd, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0) {
            out->nameless = false;
            return 0;
        }
    return -1;
}

/* Flushes and closes the stream; gives a nameless file its name. *named: the name is the final one, no rename is
 * needed. */
static int finish(struct file_out *out, bool *named, struct err *err)
{
    int got = 0;
    bool failed = fflush(out->f) || ferror(out->f) || (out->temp && fsync(fileno(out->f)));

    if (!failed && out->nameless) {
        got = name_file(out);
        failed = got < 0;
    }
    *named = got == 1;
    int code = failed ? err_set(err, ERR_IO, "cannot write '%s': %s", out->path, strerror(errno)) : 0;
    if (fclose(out->f) && !code)
        code = err_set(err, ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    return code;
}

int file_commit(struct file_out *out, struct err *err)
{
    bool named;
    int code = finish(out, &named, err);

    if (!code && named)
        code = sync_parent(out->path, err);
    else if (!code && out->temp)
        code = file_rename(out->temp, out->path, err);
    if (code && out->temp && !out->nameless)
        unlink(out->temp);
    out_release(out);
    return code;
}

void file_abort(struct file_out *out)
{
    if (out->f) {
        fclose(out->f);
        if (out->temp && !out->nameless)
            unlink(out->temp);
    }
    out_release(out);
}

/* Is it NAME.tmp.XXXXXX, NAME ending with `suffix`? */
static bool is_temp(const char *name, const char *suffix)
{
    enum { TAIL = sizeof(".tmp.XXXXXX") - 1 };
    size_t n = strlen(name), end = strlen(suffix);

    return n > TAIL + end && strncmp(name + n - TAIL, ".tmp.", 5) == 0 &&
           strncmp(name + n - TAIL - end, suffix, end) == 0;
}

/* A locked file is being written. A new file is unlocked for a moment, so young files stay. */
static void sweep_file(int dir, const char *name)
{
    enum { YOUNG = 60 }; // seconds
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > YOUNG && !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(dir, name, 0);
    close(fd);
}

void file_sweep(const char *path, const char *suffix)
{
    DIR *dir = opendir(path);
    struct dirent *d;

    while (dir && (d = readdir(dir)))
        if (is_temp(d->d_name, suffix))
            sweep_file(dirfd(dir), d->d_name);
    if (dir)
        closedir(dir);
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

static int look_at(const char *path, struct stat *st)
{
    return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, st) : stat(path, st);
}

bool file_same(const char *a, const char *b)
{
    struct stat x, y;

    return look_at(a, &x) == 0 && look_at(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
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

    buf_add(&b, dir, n);
    if (!n || dir[n - 1] != '/')
        buf_addc(&b, '/');
    buf_adds(&b, name);
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
