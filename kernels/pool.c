/* pool.c - a stack of device memory is one counter. */
#include "kernels/pool.h"

#include "kernels/backend.h"

int pool_open(struct pool *p, struct backend *be, size_t bytes, struct err *err)
{
    *p = (struct pool){ .backend = be, .at = be->alloc(be, bytes, err), .bytes = bytes };
    return p->at ? 0 : err->code;
}

void pool_close(struct pool *p)
{
    if (p->backend)
        p->backend->free(p->backend, p->at);
    *p = (struct pool){ 0 };
}

void *pool_take(struct pool *p, size_t bytes, struct err *err)
{
    size_t size = pool_size(bytes);

    if (size < bytes || size > p->bytes - p->used) {
        err_set(err, ERR_NOMEM, "%zu bytes of device memory are needed, but %zu of the planned %zu are left", bytes,
                p->bytes - p->used, p->bytes);
        return NULL;
    }
    char *at = p->at + p->used;
    p->used += size;
    return at;
}
