/* faults.so - preloaded into a program: while the file $FAULT has a line "ERRNO PATH", files and folders whose path
 * begins with PATH can neither be opened nor read, as on a failing disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long (*plain)(long, ...); // the C library's syscall()

__attribute__((constructor)) static void find_plain(void)
{
    *(void **)&plain = dlsym(RTLD_NEXT, "syscall");
}

/* Does the fault concern the file `name` of the folder fd, or with name NULL the open file fd? Sets errno. */
static int strikes(int fd, const char *name)
{
    char line[4096] = "", path[8192] = "", link[64], *end;
    int why, saved = errno, at = getenv("FAULT") ? (int)plain(SYS_openat, AT_FDCWD, getenv("FAULT"), O_RDONLY, 0) : -1;

    if (at >= 0) {
        plain(SYS_read, at, line, sizeof(line) - 1);
        plain(SYS_close, at);
    }
    why = (int)strtol(line, &end, 10);
    end[strcspn(end, "\n")] = 0;
    if (!name || *name != '/') {
        snprintf(link, sizeof(link), fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
        if (readlink(link, path, 4096) < 0)
            why = 0;
        if (name)
            strcat(path, "/");
    }
    if (name)
        strncat(path, name, 4000);
    errno = saved;
    if (!why || (!name && why == EMFILE) || strncmp(path, end + 1, strlen(end + 1)) != 0)
        return 0;
    errno = why;
    return 1;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int openat(int fd, const char *name, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return strikes(fd, name) ? -1 : (int)plain(SYS_openat, fd, name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return openat(AT_FDCWD, name, flags, mode);
}

long syscall(long number, ...)
{
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_openat2 && strikes((int)a[0], (const char *)a[1]))
        return -1;
    return plain(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return strikes(fd, NULL) ? -1 : plain(SYS_pread64, fd, to, n, at);
}

ssize_t read(int fd, void *to, size_t n)
{
    return strikes(fd, NULL) ? -1 : plain(SYS_read, fd, to, n);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
