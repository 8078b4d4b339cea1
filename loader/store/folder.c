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

/* The parent of a folder, allocated; NULL without memory. */
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
static int check_parent(const char *path, struct err *err)
{
    char *parent = parent_of(path);

    if (!parent)
        return err_nomem(err);
    int code =
        file_is_dir(parent)
            ? 0
            : err_set(err, ERR_IO, "the parent folder '%s' of '%s' does not exist: is its disk mounted?", parent, path);
    free(parent);
    return code;
}

static int make_folder(const char *path, struct err *err)
{
    if (mkdir(path, 0700))
        return errno == EEXIST ? 0 : err_set(err, ERR_IO, "cannot make folder '%s': %s", path, strerror(errno));
    char *parent = parent_of(path);
    int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int code = fd >= 0 && (!fsync(fd) || errno == EINVAL)
                   ? 0
                   : err_set(err, ERR_IO, "cannot flush the folder that holds '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(parent);
    return code;
}

static int check_owner(int fd, const char *path, enum folder_use use, uid_t also, struct err *err)
{
    struct stat st;
    uid_t me = geteuid();

    if (fstat(fd, &st))
        return err_set(err, ERR_IO, "cannot look at '%s': %s", path, strerror(errno));
    bool mine = st.st_uid == me || (use == FOLDER_READ && (st.st_uid == 0 || st.st_uid == also));
    if (!mine)
        return err_set(err, ERR_FAIL,
                       "folder '%s' belongs to user %u, but this program runs as user %u: it is not used", path,
                       (unsigned)st.st_uid, (unsigned)me);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_FAIL, "other users may write to folder '%s': run 'chmod go-w' on it", path);
    return 0;
}

int folder_open(int *fd, const char *path, enum folder_use use, uid_t also, struct err *err)
{
    *fd = -1;
    if (check_parent(path, err) || (use == FOLDER_WRITE && make_folder(path, err)))
        return err->code;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return use == FOLDER_READ && errno == ENOENT
                   ? 0
                   : err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
    if (!check_owner(*fd, path, use, also, err))
        return 0;
    close(*fd);
    *fd = -1;
    return err->code;
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

/* The folder itself comes last: once it is open, so is everything in it. */
int folder_share(int fd, gid_t group, struct err *err)
{
    struct sharing s = { fd, group };
    char name[OBJECT_FILE];
    struct stat st;

    if (!fstat(fd, &st) && st.st_gid == group && (st.st_mode & 0777) == 0750)
        return 0;
    if (folder_each_payload(fd, share_payload, &s, err) || open_name_to(fd, "evp-payloads", group, err) ||
        open_name_to(fd, "evp-index", group, err))
        return err->code;
    for (unsigned i = 0; i < 256; i++) {
        snprintf(name, sizeof(name), "evp-payloads/%02x", i);
        if (open_name_to(fd, name, group, err))
            return err->code;
    }
    return open_to(fd, group, err);
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
    char *parent = parent_of(path);
    const char *there = file_is_dir(path) ? path : parent;
    struct statvfs fs;
    struct stat st;

    if (!parent)
        return err_nomem(err);
    int code = stat(there, &st) || statvfs(there, &fs)
                   ? err_set(err, ERR_IO, "cannot read the free bytes of '%s': %s", there, strerror(errno))
                   : 0;
    free(parent);
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
