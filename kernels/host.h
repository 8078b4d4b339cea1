/* host.h - the memory ops of backends whose device is the host itself.
 *
 * Addresses are ordinary pointers, copies happen at once, and nothing is ever queued.
 */
#ifndef EVP_HOST_H
#define EVP_HOST_H

#include "kernels/backend.h"

/* Fills alloc, free, write, read, copy, repeat, clock and memory; read reports what the backend's sync does. */
void host_memory_ops(struct backend *be);

/* 64-byte aligned, as alloc; an address for 0 bytes too; NULL without memory. Freed with free(). */
void *host_alloc(size_t bytes);

/* host_memory.c: the machine's memory and what this process may still take of it: the least of what the kernel calls
 * available, what every control group above the process has left (version 1 and 2), and the process's own limits on
 * address space and data. The files that say so are read below the folder `root`: "" for the machine's own. A file that
 * is missing or malformed sets no limit; without meminfo both are 0. */
struct device_memory host_memory(const char *root);

#endif
