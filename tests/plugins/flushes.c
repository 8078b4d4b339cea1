/* flushes.c - loaded before the C library of a tool (LD_PRELOAD): writes what a power cut could undo, and what prevents
 * that, to the file $FLUSHES: "mkdir FOLDER NAME", "rename FOLDER FILE", "unlink FOLDER FILE" and "fsync PATH", in
 * their order.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
    char line[2 * PATH_MAX];
    const char *path = getenv("FLUSHES");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (fd >= 0 && write(fd, line, (size_t)n) != n)
        abort();
    if (fd >= 0)
        close(fd);
}

/* The path of an open file. */
static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n < 0 ? 0 : n] = '\0';
    return path;
}

SEEN int mkdirat(int fd, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    int code = (int)syscall(SYS_mkdirat, fd, name, mode);

    if (code == 0)
        note("mkdir %s %s\n", path_of(fd, path), name);
    return code;
}

SEEN int renameat(int from, const char *old, int to, const char *new)
{
    char path[PATH_MAX];
    int code = (int)syscall(SYS_renameat2, from, old, to, new, 0);

    if (code == 0)
        note("rename %s %s\n", path_of(to, path), new);
    return code;
}

SEEN int unlinkat(int fd, const char *file, int flags)
{
    char path[PATH_MAX];
    int code = (int)syscall(SYS_unlinkat, fd, file, flags);

    if (code == 0)
        note("unlink %s %s\n", path_of(fd, path), file);
    return code;
}

SEEN int fsync(int fd)
{
    char path[PATH_MAX];

    note("fsync %s\n", path_of(fd, path));
    return (int)syscall(SYS_fsync, fd);
}
