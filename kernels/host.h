/* host.h - the memory ops of backends that compute on the host itself.
 *
 * Addresses are ordinary pointers, copies happen at once, and nothing is ever queued.
 */
#ifndef EVP_HOST_H
#define EVP_HOST_H

#include "kernels/backend.h"

/* Fills alloc, free, write, read, copy, repeat, clock, the stopwatch and memory. read returns the result of the
 * backend's sync. */
void host_memory_ops(struct backend *be);

/* 64-byte aligned, as alloc; 0 bytes give an address too; NULL when memory runs out. Release with free(). */
void *host_alloc(size_t bytes);

/* host_memory.c: total: the machine's memory, or the lowest limit on it. free: what the process may still take. Limits:
 * the kernel's "available" memory, every control group above the process (version 1 and 2), the process's own limits on
 * address space and data. Reads the kernel's files below the folder `root`; "" is the machine's root. A missing or
 * malformed file sets no limit; without meminfo both are 0. */
struct device_memory host_memory(const char *root);

#endif
