/* host.c - memory of backends that compute on the host: aligned_alloc, memcpy, and /proc/meminfo for what is free. */
#include "kernels/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; // a cache line, and the widest vector

void *host_alloc(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

static void *alloc(struct backend *be, size_t bytes, struct err *err)
{
    (void)be;
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

/* Total memory, and what the kernel says is available without swapping. */
static struct device_memory memory(struct backend *be)
{
    struct device_memory m = { 0 };
    char line[128];

    (void)be;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f)
        return m;
    while (fgets(line, sizeof(line), f)) {
        uint64_t kib;
        if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
            m.total = kib << 10;
        else if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            m.free = kib << 10;
    }
    fclose(f);
    return m;
}

void host_memory_ops(struct backend *be)
{
    be->alloc = alloc;
    be->free = release;
    be->write = move;
    be->read = move;
    be->copy = move;
    be->memory = memory;
}
