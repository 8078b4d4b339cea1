/* host.c - memory of backends that compute on the host: aligned_alloc and memcpy; the clock is the host's. */
#include "kernels/host.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; // a cache line, and the widest vector

void *host_alloc(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT); // never 0
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
    be->memory = memory;
}
