/* pool.h - device memory planned before the work: one block, used as a stack.
 *
 *     size_t mark = pool_mark(p);
 *     float *scores = pool_take(p, bytes, &err);
 *     ...
 *     pool_reset(p, mark);   // frees everything taken since the mark
 *
 * Queued ops may still use memory after its reset: ops that use it again come later in the same stream.
 */
#ifndef EVP_POOL_H
#define EVP_POOL_H

#include "base/err.h"

#include <stddef.h>

struct backend;

struct pool {
    struct backend *backend;
    char *at;
    size_t bytes, used;
};

/* Takes all memory in one allocation from the backend. */
int pool_open(struct pool *p, struct backend *be, size_t bytes, struct err *err) MUST_CHECK;
void pool_close(struct pool *p); // zeroed is fine

/* A multiple of 256 bytes from the beginning, so rows of 64 and 128 bf16 numbers are whole rows apart: kv_table of
 * kernels/backend.h. Contents undefined. NULL with ERR_NOMEM when the pool has less left. */
void *pool_take(struct pool *p, size_t bytes, struct err *err);

/* The bytes of the pool that pool_take() uses for this many. */
static inline size_t pool_size(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static inline size_t pool_mark(const struct pool *p)
{
    return p->used;
}

static inline void pool_reset(struct pool *p, size_t mark)
{
    p->used = mark;
}

#endif
