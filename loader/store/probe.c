/* probe.c - measures a folder: five rounds of writing a file, dropping its pages and reading it back, then small reads
 * at random offsets; then the same with several files, each read by its own thread. Results are medians, so that one
 * disturbed round does not count.
 */
#include "loader/store/probe.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
    BLOCK = 1 << 20,    // large enough to make the cost of a call negligible
    SMALL = 4096,       // a page: the smallest read of a device
    REPEATS = 5,        // odd, so that the median is a measured value
    SMALL_READS = 101,  // enough to make a few disturbed reads harmless
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

/* Standard deviation / mean of n times. */
static double spread(const double *v, int n)
{
    double mean = 0, squares = 0;

    for (int i = 0; i < n; i++)
        mean += v[i] / n;
    for (int i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    return mean > 0 ? round(sqrt(squares / (n - 1)) / mean * 1e4) / 1e4 : 0;
}

static int write_once(struct probe_file *t, double *seconds, struct err *err)
{
    if (ftruncate(t->fd, 0) || lseek(t->fd, 0, SEEK_SET))
        return err_set(err, ERR_IO, "cannot empty a file in '%s': %s", t->dir, strerror(errno));
    double start = clock_now();
    for (uint64_t i = 0; i < t->blocks; i++) {
        errno = ENOSPC; // the reason for a short write, which does not set errno
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

/* As libevicpress reads what a checksum covers. */
static int read_once(struct probe_file *t, double *seconds, struct err *err)
{
    struct checksum *sum = checksum_new(err);
    double start = clock_now();
    int code = sum ? 0 : err->code;

    for (uint64_t i = 0; i < t->blocks && !code; i++) {
        code = read_at(t, i * BLOCK, BLOCK, err);
        if (!code)
            checksum_add(sum, t->block, BLOCK);
    }
    *seconds = clock_now() - start;
    checksum_end(sum, NULL);
    return code;
}

static int read_small(struct probe_file *t, double *seconds, struct err *err)
{
    double each[SMALL_READS];
    struct rng rng = rng_new(1);

    drop_pages(t);
    posix_fadvise(t->fd, 0, 0,
                  POSIX_FADV_RANDOM); // otherwise neighbouring pages are read too, and the next read is free
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
    p->read_spread = spread(reads, REPEATS);
    p->write_bytes_per_s = round(bytes / median(writes, REPEATS)); // fractions of a byte mean nothing
    p->read_bytes_per_s = round(bytes / median(reads, REPEATS));
    if (read_small(t, &p->latency_s, err))
        return err->code;
    p->latency_s = round(p->latency_s * 1e9) / 1e9;
    return 0;
}

/* Opens a nameless file. Old and network file systems lack O_TMPFILE; there the name is removed at once. */
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

/* Opens an empty file in dir and fills a block with noise, because some file systems compress, or store zeros as holes.
 * Call close_file() in every case. */
static int open_file(struct probe_file *t, const char *dir, uint64_t bytes, struct err *err)
{
    struct folder folder;
    struct rng rng = rng_new(0);

    *t = (struct probe_file){ .dir = dir, .fd = -1, .blocks = bytes > BLOCK ? bytes / BLOCK : 1 };
    if (probe_look(&folder, dir, err))
        return err->code;
    t->in_memory = folder.in_memory;
    t->block = malloc(BLOCK);
    if (!t->block)
        return err_nomem(err);
    for (size_t i = 0; i < BLOCK; i += sizeof(uint64_t)) {
        uint64_t noise = rng_next(&rng);
        memcpy(t->block + i, &noise, sizeof(noise));
    }
    t->fd = open_nameless(dir, err);
    return t->fd < 0 ? err->code : 0;
}

static void close_file(struct probe_file *t)
{
    if (t->fd >= 0)
        close(t->fd);
    free(t->block);
}

int probe_run(struct probe *p, const char *dir, uint64_t bytes, struct err *err)
{
    struct probe_file t;
    int code = open_file(&t, dir, bytes, err);

    if (!code)
        code = measure(&t, p, err);
    close_file(&t);
    return code;
}

/* ---- several reads at once ----------------------------------------------------- */

/* A file, and the thread that reads it. */
struct reader {
    struct probe_file file;
    pthread_t thread;
    pthread_rwlock_t *gate; // closed until all threads have started
    double begin, end;
    int code;
    struct err err;
};

static void *read_behind_gate(void *arg)
{
    struct reader *r = arg;
    double seconds;

    pthread_rwlock_rdlock(r->gate);
    pthread_rwlock_unlock(r->gate);
    r->begin = clock_now();
    r->code = read_once(&r->file, &seconds, &r->err);
    r->end = clock_now();
    return NULL;
}

/* Reads n files at once. each (n): the time of each; *seconds: from the first start to the last end. */
static int read_together(struct reader *r, int n, double *each, double *seconds, struct err *err)
{
    pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
    double begin = HUGE_VAL, end = 0;
    int started = 0, code = 0;

    for (int i = 0; i < n; i++)
        drop_pages(&r[i].file);
    pthread_rwlock_wrlock(&gate);
    for (; started < n && !code; started += !code) {
        r[started].gate = &gate;
        if (pthread_create(&r[started].thread, NULL, read_behind_gate, &r[started]))
            code = err_set(err, ERR_FAIL, "cannot start %d threads", n);
    }
    pthread_rwlock_unlock(&gate);
    for (int i = 0; i < started; i++) {
        pthread_join(r[i].thread, NULL);
        if (!code && r[i].code) {
            *err = r[i].err;
            code = r[i].code;
        }
        begin = fmin(begin, r[i].begin);
        end = fmax(end, r[i].end);
        each[i] = r[i].end - r[i].begin;
    }
    pthread_rwlock_destroy(&gate);
    *seconds = end - begin;
    return code;
}

static int measure_load(struct reader *r, struct tier_load *load, struct err *err)
{
    double *each = calloc((size_t)load->reads, REPEATS * sizeof(*each)), seconds[REPEATS];
    int code = each ? 0 : err_nomem(err);

    for (int k = 0; k < REPEATS && !code; k++)
        code = read_together(r, load->reads, each + k * load->reads, &seconds[k], err);
    if (!code) {
        load->spread = spread(each, REPEATS * load->reads);
        load->bytes_per_s = round((double)(r->file.blocks * BLOCK) * load->reads / median(seconds, REPEATS));
    }
    free(each);
    return code;
}

int probe_parallel(struct tier_load *load, int n, const char *dir, uint64_t bytes, struct err *err)
{
    int max = 0, opened = 0, code = 0;
    double seconds;

    for (int i = 0; i < n; i++)
        max = load[i].reads > max ? load[i].reads : max;
    struct reader *r = calloc((size_t)max + 1, sizeof(*r));
    if (!r)
        return err_nomem(err);
    for (; opened < max && !code; opened++) {
        code = open_file(&r[opened].file, dir, bytes, err);
        if (!code)
            code = write_once(&r[opened].file, &seconds, err);
    }
    for (int i = 0; i < n && !code; i++)
        code = measure_load(r, &load[i], err);
    for (int i = 0; i < opened; i++)
        close_file(&r[i].file);
    free(r);
    return code;
}
