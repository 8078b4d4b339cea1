/* host.h - the memory ops of backends whose device is the host itself.
 *
 * Addresses are ordinary pointers, copies happen at once, and nothing is ever queued.
 */
#ifndef EVP_HOST_H
#define EVP_HOST_H

#include "kernels/backend.h"

/* Fills alloc, free, write, read, copy and memory. */
void host_memory_ops(struct backend *be);

/* 64-byte aligned, as alloc; NULL without memory. Freed with free(). */
void *host_alloc(size_t bytes);

#endif
