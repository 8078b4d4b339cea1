/* probe.c - the measurement of a folder: five rounds of writing a file, dropping its pages and reading it back, then
 * small reads at random offsets. Medians, so that one disturbed round does not count.
 */
#include "loader/store/probe.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
    BLOCK = 1 << 20,    // large enough that the cost of a call does not matter
    SMALL = 4096,       // a page: the smallest read of a device
    REPEATS = 5,        // odd, so that the median is a measured value
    SMALL_READS = 101,  // so that a few disturbed reads do not matter
    PAGES_AT_ONCE = 256 // of a block, for mincore
};

struct probe_file {
    const char *dir; // for messages
    int fd;
    uint64_t blocks;
    char *block; // BLOCK bytes
    bool in_memory;
};

int probe_look(struct folder *folder, const char *dir, struct err *err)
{
    struct statfs fs;

    if (statfs(dir, &fs))
        return err_set(err, ERR_IO, "cannot read the free bytes of '%s': %s", dir, strerror(errno));
    folder->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    folder->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    return 0;
}

static int compare_real(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), compare_real);
    return v[n / 2];
}

static int write_once(struct probe_file *t, double *seconds, struct err *err)
{
    if (ftruncate(t->fd, 0) || lseek(t->fd, 0, SEEK_SET))
        return err_set(err, ERR_IO, "cannot empty a file in '%s': %s", t->dir, strerror(errno));
    double start = clock_now();
    for (uint64_t i = 0; i < t->blocks; i++) {
        errno = ENOSPC; // the reason for a short write, which sets no errno
        if (write(t->fd, t->block, BLOCK) != BLOCK)
            return err_set(err, ERR_IO, "cannot write to '%s': %s", t->dir, strerror(errno));
    }
    if (fsync(t->fd))
        return err_set(err, ERR_IO, "cannot flush a file in '%s': %s", t->dir, strerror(errno));
    *seconds = clock_now() - start;
    return 0;
}

/* Drops the file's pages from memory; returns the share of them that stayed. */
static double drop_pages(struct probe_file *t)
{
    unsigned char there[PAGES_AT_ONCE];
    uint64_t stayed = 0, pages = 0;

    if (t->in_memory)
        return 0;
    posix_fadvise(t->fd, 0, 0, POSIX_FADV_DONTNEED);
    for (uint64_t i = 0; i < t->blocks; i++) {
        void *at = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, t->fd, (off_t)(i * BLOCK));
        if (at == MAP_FAILED)
            return 1; // not known: assume the worst
        size_t n = BLOCK / (size_t)sysconf(_SC_PAGESIZE);
        if (n <= PAGES_AT_ONCE && mincore(at, BLOCK, there) == 0)
            for (size_t p = 0; p < n; p++)
                stayed += there[p] & 1;
        pages += n;
        munmap(at, BLOCK);
    }
    return (double)stayed / (double)pages;
}

static int read_at(struct probe_file *t, uint64_t offset, size_t n, struct err *err)
{
    errno = EIO;
    if (pread(t->fd, t->block, n, (off_t)offset) != (ssize_t)n)
        return err_set(err, ERR_IO, "cannot read from '%s': %s", t->dir, strerror(errno));
    return 0;
}

static int read_once(struct probe_file *t, double *seconds, struct err *err)
{
    double start = clock_now();

    for (uint64_t i = 0; i < t->blocks; i++)
        if (read_at(t, i * BLOCK, BLOCK, err))
            return err->code;
    *seconds = clock_now() - start;
    return 0;
}

static int read_small(struct probe_file *t, double *seconds, struct err *err)
{
    double each[SMALL_READS];
    struct rng rng = rng_new(1);

    drop_pages(t);
    posix_fadvise(t->fd, 0, 0,
                  POSIX_FADV_RANDOM); // else the neighbouring pages are read too, and the next read is free
    for (int i = 0; i < SMALL_READS; i++) {
        uint64_t offset = rng_below(&rng, t->blocks * (BLOCK / SMALL)) * SMALL;
        double start = clock_now();
        if (read_at(t, offset, SMALL, err))
            return err->code;
        each[i] = clock_now() - start;
    }
    *seconds = median(each, SMALL_READS);
    return 0;
}

static int measure(struct probe_file *t, struct probe *p, struct err *err)
{
    double writes[REPEATS], reads[REPEATS], bytes = (double)(t->blocks * BLOCK);

    *p = (struct probe){ 0 };
    for (int i = 0; i < REPEATS; i++) {
        if (write_once(t, &writes[i], err))
            return err->code;
        p->cached = drop_pages(t);
        if (read_once(t, &reads[i], err))
            return err->code;
    }
    p->write_bytes_per_s = round(bytes / median(writes, REPEATS)); // fractions of a byte mean nothing
    p->read_bytes_per_s = round(bytes / median(reads, REPEATS));
    if (read_small(t, &p->latency_s, err))
        return err->code;
    p->latency_s = round(p->latency_s * 1e9) / 1e9;
    return 0;
}

/* Opens a file without a name. Old and network file systems lack O_TMPFILE; there the name is removed at once. */
static int open_nameless(const char *dir, struct err *err)
{
    struct buf path = { 0 };
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    buf_printf(&path, "%s/evp-probe.XXXXXX", dir);
    fd = buf_failed(&path) ? err_nomem(err) : mkstemp(path.at);
    if (fd == -1)
        err_set(err, ERR_IO, "cannot create a file in '%s': %s", dir, strerror(errno));
    else if (fd >= 0)
        unlink(path.at);
    buf_release(&path);
    return fd;
}

int probe_run(struct probe *p, const char *dir, uint64_t bytes, struct err *err)
{
    struct folder folder;
    struct rng rng = rng_new(0);
    struct probe_file t = { .dir = dir, .fd = -1, .blocks = bytes > BLOCK ? bytes / BLOCK : 1 };

    if (probe_look(&folder, dir, err))
        return err->code;
    t.in_memory = folder.in_memory;
    t.block = malloc(BLOCK);
    if (!t.block)
        return err_nomem(err);
    for (size_t i = 0; i < BLOCK;
         i += sizeof(uint64_t)) { // noise, because some file systems compress or store zeros as holes
        uint64_t noise = rng_next(&rng);
        memcpy(t.block + i, &noise, sizeof(noise));
    }
    t.fd = open_nameless(dir, err);
    int code = t.fd < 0 ? err->code : measure(&t, p, err);
    if (t.fd >= 0)
        close(t.fd);
    free(t.block);
    return code;
}
