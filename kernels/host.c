/* host.c - memory of backends that compute on the host: posix_memalign and memcpy; the clock is the host's.
 *
 * Large blocks ask for huge pages: attention reads keys and values of a few pages each from all over a store of
 * gigabytes. With small pages it would wait for address translation.
 */
#include "kernels/host.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 }; // a cache line, and the widest vector

void *host_alloc(size_t bytes)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;

    if (bytes > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    void *p = NULL;
    if (posix_memalign(&p, align, bytes + ALIGNMENT) != 0)
        return NULL;
    if (align == HUGE_PAGE) // only whole pages: nothing beyond the block is touched
        madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return p;
}

static void *alloc(struct backend *be, size_t bytes, struct err *err)
{
    void *p = host_alloc(bytes);

    if (!p)
        err_set(err, ERR_NOMEM, "out of memory: %zu bytes for the '%s' backend", bytes, be->name);
    return p;
}

static void release(struct backend *be, void *at)
{
    (void)be;
    free(at);
}

static void move(struct backend *be, void *dst, const void *src, size_t bytes)
{
    (void)be;
    if (bytes)
        memcpy(dst, src, bytes);
}

static int read_back(struct backend *be, void *host, const void *src, size_t bytes, struct err *err)
{
    move(be, host, src, bytes);
    return be->sync(be, err);
}

static void repeat(struct backend *be, void *dst, size_t pitch, int n, const void *host, size_t bytes)
{
    for (int i = 0; i < n; i++)
        move(be, (char *)dst + (size_t)i * pitch, host, bytes);
}

static double now(struct backend *be)
{
    (void)be;
    return clock_now();
}

static void watch_start(struct backend *be)
{
    be->watch_began = clock_now();
}

static void watch_stop(struct backend *be, int hand)
{
    be->watch_s[hand] += clock_now() - be->watch_began;
}

static double watched(struct backend *be, int hand)
{
    double seconds = be->watch_s[hand];

    be->watch_s[hand] = 0;
    return seconds;
}

static struct device_memory memory(struct backend *be)
{
    (void)be;
    return host_memory("");
}

void host_memory_ops(struct backend *be)
{
    be->alloc = alloc;
    be->free = release;
    be->write = move;
    be->read = read_back;
    be->copy = move;
    be->repeat = repeat;
    be->clock = now;
    be->watch_start = watch_start;
    be->watch_stop = watch_stop;
    be->watched = watched;
    be->memory = memory;
}
