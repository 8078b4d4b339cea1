/* pool.h - device memory that was planned before the work: one block, given out and taken back as a stack.
 *
 *     size_t mark = pool_mark(p);
 *     float *scores = pool_take(p, bytes, &err);
 *     ...
 *     pool_reset(p, mark);   // everything taken since the mark is free again
 *
 * Not a backend: what is queued on the device may still use a piece that was taken back, because later ops come after
 * it in the same stream.
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

/* One allocation of the backend's. */
int pool_open(struct pool *p, struct backend *be, size_t bytes, struct err *err) MUST_CHECK;
void pool_close(struct pool *p); // zeroed is fine

/* 64-byte aligned; contents undefined. NULL with ERR_NOMEM: more than was planned. */
void *pool_take(struct pool *p, size_t bytes, struct err *err);

/* What a piece takes of the pool. */
static inline size_t pool_size(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
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
