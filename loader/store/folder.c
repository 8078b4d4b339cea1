/* folder.c - opens folders with their checks, and files in them. File names come from object_file() or are constants,
 * so none can lead out of the folder.
 */
#include "loader/store/folder.h"

#include "base/file.h"
#include "formats/stored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------ */

static bool has_remote_magic(int fd)
{
    /* The last ones have no constant in the header: Lustre, GPFS, BeeGFS. */
    static const uint32_t remote[] = { NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,   CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                       CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,   CODA_SUPER_MAGIC, V9FS_MAGIC,
                                       FUSE_SUPER_MAGIC, OCFS2_SUPER_MAGIC, 0x0BD00BD0,       0x47504653,
                                       0x19830326 };
    struct statfs fs;

    if (fstatfs(fd, &fs))
        return false;
    for (size_t i = 0; i < sizeof(remote) / sizeof(*remote); i++)
        if ((uint32_t)fs.f_type == remote[i])
            return true;
    return false;
}

bool (*folder_is_remote)(int fd) = has_remote_magic;

/* Splits a path into its parent and its name there, both allocated. */
static int split(const char *path, char **parent, char **name, struct err *err)
{
    size_t end = strlen(path), at;

    while (end > 1 && path[end - 1] == '/')
        end--;
    for (at = end; at > 0 && path[at - 1] != '/'; at--)
        ;
    *parent = at ? strndup(path, at) : strdup(".");
    *name = at < end ? strndup(path + at, end - at) : strdup(".");
    if (*parent && *name)
        return 0;
    free(*parent);
    free(*name);
    return err_nomem(err);
}

/* Makes a folder and flushes its parent. */
static int make_folder(int parent, const char *name, const char *path, struct err *err)
{
    if (mkdirat(parent, name, 0700))
        return errno == EEXIST ? 0 : err_set(err, ERR_IO, "cannot make folder '%s': %s", path, strerror(errno));
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd >= 0 && (!fsync(fd) || errno == EINVAL)
                   ? 0
                   : err_set(err, ERR_IO, "cannot flush the folder that holds '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return code;
}

/* How a folder is opened. */
struct opening {
    const char *path;
    enum folder_use use;
    uid_t also;
};

static bool is_trusted(const struct opening *o, uid_t owner)
{
    return owner == geteuid() || (o->use == FOLDER_READ && (owner == 0 || owner == o->also));
}

/* In a folder like /dev/shm anybody can put a link under the name: it is followed if root or the user made it. -1 with
 * *err. */
static int open_name(int parent, const char *name, const struct opening *o, struct err *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat st;
    int fd = openat(parent, name, flags | O_NOFOLLOW);

    if (fd < 0 && !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode)) {
        if (st.st_uid != 0 && !is_trusted(o, st.st_uid)) {
            err_set(err, ERR_FAIL, "'%s' is a link that belongs to user %u: it is not followed", o->path,
                    (unsigned)st.st_uid);
            return -1;
        }
        fd = openat(parent, name, flags);
    }
    if (fd < 0)
        err_set(err, ERR_IO, "cannot open folder '%s': %s", o->path, strerror(errno));
    return fd;
}

static int check_owner(int fd, const struct opening *o, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_set(err, ERR_IO, "cannot look at '%s': %s", o->path, strerror(errno));
    if (!is_trusted(o, st.st_uid))
        return err_set(err, ERR_FAIL,
                       "folder '%s' belongs to user %u, but this program runs as user %u: it is not used", o->path,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_FAIL, "other users may write to folder '%s': run 'chmod go-w' on it", o->path);
    return 0;
}

/* The parent must exist: an unmounted disk must not be mistaken for an empty tier. */
static int open_in(const char *parent, const char *name, const struct opening *o, int *fd, struct err *err)
{
    int at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC), code = 0;

    if (at < 0)
        return err_set(err, ERR_IO, "the parent folder '%s' of '%s' does not exist: is its disk mounted?", parent,
                       o->path);
    if (o->use == FOLDER_WRITE)
        code = make_folder(at, name, o->path, err);
    if (!code && (o->use == FOLDER_WRITE || !faccessat(at, name, F_OK, 0) || errno != ENOENT)) {
        *fd = open_name(at, name, o, err);
        code = *fd < 0 ? err->code : check_owner(*fd, o, err);
    }
    close(at);
    if (code && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return code;
}

int folder_open(int *fd, const char *path, enum folder_use use, uid_t also, struct err *err)
{
    const struct opening o = { path, use, also };
    char *parent, *name;

    *fd = -1;
    if (split(path, &parent, &name, err))
        return err->code;
    int code = open_in(parent, name, &o, fd, err);
    free(parent);
    free(name);
    return code;
}

/* Is a folder's lock taken before another's? Zeroed: it cannot be looked at. */
static bool is_before(const struct stat *a, const struct stat *b)
{
    if (!a->st_ino || !b->st_ino)
        return a->st_ino != 0;
    return a->st_dev != b->st_dev ? a->st_dev < b->st_dev : a->st_ino < b->st_ino;
}

int folder_order(const struct tiers *tiers, int order[TIER_MAX])
{
    struct stat st[TIER_MAX];
    int n = 0;

    for (int t = 0; t < tiers->n; t++) {
        const char *folder = tier_folder(&tiers->at[t]);
        int failed = folder && !stat(folder, &st[t]) ? 0 : folder ? errno : ENOENT, i = n;
        if (failed == ENOENT || failed == ENOTDIR)
            continue;
        if (failed)
            st[t] = (struct stat){ 0 };
        for (; i > 0 && is_before(&st[t], &st[order[i - 1]]); i--)
            order[i] = order[i - 1];
        order[i] = t;
        n++;
    }
    return n;
}

bool folder_is_blank(const char *path)
{
    static const char *const name[] = { "evp-index", "evp-payloads", "evp-state" };
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool blank = fd >= 0 || errno == ENOENT;

    for (size_t i = 0; i < sizeof(name) / sizeof(*name) && blank && fd >= 0; i++)
        blank = faccessat(fd, name[i], F_OK, 0) && errno == ENOENT;
    if (fd >= 0)
        close(fd);
    return blank;
}

/* ---- groups ------------------------------------------------------------------- */

static int open_to(int at, gid_t group, struct err *err)
{
    struct stat st;

    if (fstat(at, &st) || (st.st_gid != group && fchown(at, (uid_t)-1, group)) ||
        fchmod(at, S_ISDIR(st.st_mode) ? 0750 : 0640))
        return err_set(err, ERR_FAIL, "cannot open what is in the folder to group %u: %s", (unsigned)group,
                       strerror(errno));
    return 0;
}

int folder_adopt(int fd, int at, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_set(err, ERR_IO, "cannot look at a folder: %s", strerror(errno));
    return st.st_mode & S_IRGRP ? open_to(at, st.st_gid, err) : 0;
}

/* ---- files -------------------------------------------------------------------- */

/* Opens the sub-folder of a file. Nobody else may write to the folder; links are not followed. */
static int open_parent(int fd, const char *file, const char **name)
{
    int at = dup(fd);

    for (const char *slash; at >= 0 && (slash = strchr(file, '/')); file = slash + 1) {
        char part[OBJECT_FILE];
        snprintf(part, sizeof(part), "%.*s", (int)(slash - file), file);
        int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        close(at);
        at = next;
        errno = why;
    }
    *name = file;
    return at;
}

/* Opens a file of a folder with openat2(): needs Linux 5.6 or later, and no sandbox that forbids it. */
static int open_beneath(int fd, const char *file, int flags, mode_t mode)
{
    const struct open_how how = { .flags = (unsigned)flags,
                                  .mode = mode,
                                  .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

    return (int)syscall(SYS_openat2, fd, file, &how, sizeof(how));
}

static bool lacks_call(int why)
{
    return why == ENOSYS || why == EPERM;
}

int folder_open_file(int fd, const char *file)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    const char *name;
    int at = open_beneath(fd, file, flags, 0);

    if (at >= 0 || !lacks_call(errno))
        return at;
    int parent = open_parent(fd, file, &name);
    if (parent < 0)
        return -1;
    at = openat(parent, name, flags);
    int why = errno;
    close(parent);
    errno = why;
    return at;
}

int64_t folder_file_size(int fd, const char *file)
{
    struct stat st;

    return fstatat(fd, file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ? -1 : st.st_size;
}

static int make_parents(int fd, const char *file, struct err *err)
{
    char path[OBJECT_FILE];

    for (const char *slash = strchr(file, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof(path), "%.*s", (int)(slash - file), file);
        if (mkdirat(fd, path, 0700) && errno != EEXIST)
            return err_set(err, ERR_IO, "cannot make folder '%s': %s", path, strerror(errno));
        int at = folder_open_file(fd, path);
        int code = at < 0 ? err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno))
                          : folder_adopt(fd, at, err);
        if (at >= 0)
            close(at);
        if (code)
            return code;
    }
    return 0;
}

enum { CREATE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };

/* Creates a file step by step; replaces a file that a killed load left under the name. -1 with errno. */
static int create_slowly(int fd, const char *file)
{
    const char *name;
    int parent = open_parent(fd, file, &name);

    if (parent < 0)
        return -1;
    unlinkat(parent, name, 0);
    int at = openat(parent, name, CREATE, 0600), why = errno;
    close(parent);
    errno = why;
    return at;
}

static int create(int fd, const char *file)
{
    int at = open_beneath(fd, file, CREATE, 0600);

    return at < 0 && (errno == EEXIST || lacks_call(errno)) ? create_slowly(fd, file) : at;
}

int folder_create_file(int fd, const char *file, struct err *err)
{
    int at = create(fd, file);

    if (at < 0 && errno == ENOENT) {
        if (make_parents(fd, file, err))
            return err->code;
        at = create(fd, file);
    }
    int code =
        at < 0 ? err_set(err, ERR_IO, "cannot create '%s': %s", file, strerror(errno)) : folder_adopt(fd, at, err);
    if (at >= 0 && code)
        close(at);
    return code ? code : at;
}

int folder_disk(const char *path, uint64_t *device, int64_t *free_bytes, struct err *err)
{
    char *parent, *name;
    struct statvfs fs;
    struct stat st;

    if (split(path, &parent, &name, err))
        return err->code;
    const char *there = file_is_dir(path) ? path : parent;
    int code = stat(there, &st) || statvfs(there, &fs)
                   ? err_set(err, ERR_IO, "cannot read the free bytes of '%s': %s", there, strerror(errno))
                   : 0;
    free(parent);
    free(name);
    if (code)
        return code;
    *device = st.st_dev;
    *free_bytes = (int64_t)((uint64_t)fs.f_bavail * fs.f_frsize & INT64_MAX);
    return 0;
}

/* ---- listing ------------------------------------------------------------------------ */

/* name: relative to the folder. */
static int visit_folder(int fd, const char *name, folder_visit *each, void *arg, struct err *err)
{
    int at = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), code = 0;
    DIR *dir = at < 0 ? NULL : fdopendir(at);
    struct dirent *d;

    if (!dir) {
        int why = errno;
        if (at >= 0)
            close(at);
        return why == ENOENT ? 0 : err_set(err, ERR_IO, "cannot read folder '%s': %s", name, strerror(why));
    }
    while (!code && (d = readdir(dir))) {
        char file[OBJECT_FILE + sizeof(d->d_name)];
        snprintf(file, sizeof(file), "%s/%s", name, d->d_name);
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            code = each(arg, file, err);
    }
    closedir(dir);
    return code;
}

int folder_each_payload(int fd, folder_visit *each, void *arg, struct err *err)
{
    char name[OBJECT_FILE];
    int code = 0;

    for (unsigned i = 0; i < 256 && !code; i++) {
        snprintf(name, sizeof(name), "evp-payloads/%02x", i);
        code = visit_folder(fd, name, each, arg, err);
    }
    return code;
}

/* ---- sharing ------------------------------------------------------------------------ */

/* Opens a file or folder to the group, by its name; a missing one is not an error. */
static int open_name_to(int fd, const char *name, gid_t group, struct err *err)
{
    int at = folder_open_file(fd, name);

    if (at < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_IO, "cannot open '%s': %s", name, strerror(errno));
    int code = open_to(at, group, err);
    close(at);
    return code;
}

struct sharing {
    int fd;
    gid_t group;
};

static int share_payload(void *arg, const char *file, struct err *err)
{
    const struct sharing *s = arg;

    return open_name_to(s->fd, file, s->group, err);
}

static int check_name(void *arg, const char *file, struct err *err)
{
    (void)arg;
    return strncmp(file, "./evp-", 6) == 0
               ? 0
               : err_set(err, ERR_FAIL,
                         "its folder also holds '%.80s', and --group would change who may use that: give the tier a "
                         "folder of its own",
                         file + 2);
}

/* The folder itself comes last: once it is open, so is everything in it. */
int folder_share(int fd, gid_t group, struct err *err)
{
    struct sharing s = { fd, group };
    char name[OBJECT_FILE];
    struct stat st;

    if (!fstat(fd, &st) && st.st_gid == group && (st.st_mode & 0777) == 0750)
        return 0;
    if (visit_folder(fd, ".", check_name, NULL, err) || folder_each_payload(fd, share_payload, &s, err) ||
        open_name_to(fd, "evp-payloads", group, err) || open_name_to(fd, "evp-index", group, err))
        return err->code;
    for (unsigned i = 0; i < 256; i++) {
        snprintf(name, sizeof(name), "evp-payloads/%02x", i);
        if (open_name_to(fd, name, group, err))
            return err->code;
    }
    return open_to(fd, group, err);
}
