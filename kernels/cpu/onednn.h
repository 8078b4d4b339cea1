/* onednn.h - one set of names for the functions of oneDNN's C interface that changed between 2.x (Debian 12) and 3.x.
 *
 * Only cpu_matmul.c and cpu_weight.c include it. In 2.x a memory descriptor is a plain struct and operations have their
 * own descriptors; in 3.x descriptors are handles with an owner, and one call makes a primitive descriptor.
 */
#ifndef EVP_ONEDNN_H
#define EVP_ONEDNN_H

#include <dnnl.h>
#include <stdbool.h>
#include <stdint.h>

/* A two-dimensional memory descriptor. Release with desc_release(); zeroed is fine. */
struct desc {
    dnnl_memory_desc_t md;
};

#if DNNL_VERSION_MAJOR < 3

#define DESC(d) (&(d)->md)

/* The fewest rows whose bits do not depend on their number, by a packed weight without AMX. */
enum { ONEDNN_ALIKE_ROWS = 1 };

static inline dnnl_status_t desc_strided(struct desc *d, dnnl_data_type_t type, const int64_t dims[2],
                                         const int64_t steps[2])
{
    return dnnl_memory_desc_init_by_strides(&d->md, 2, (dnnl_dims_t){ dims[0], dims[1] }, type,
                                            (dnnl_dims_t){ steps[0], steps[1] });
}

static inline dnnl_status_t desc_any(struct desc *d, dnnl_data_type_t type, const int64_t dims[2])
{
    return dnnl_memory_desc_init_by_tag(&d->md, 2, (dnnl_dims_t){ dims[0], dims[1] }, type, dnnl_format_tag_any);
}

static inline dnnl_status_t desc_bias(struct desc *d, int64_t cols)
{
    return dnnl_memory_desc_init_by_tag(&d->md, 2, (dnnl_dims_t){ 1, cols }, dnnl_f32, dnnl_ab);
}

/* Columns first .. first + n - 1 of `whole`. Fails where the layout cannot be cut there. */
static inline dnnl_status_t desc_columns(struct desc *d, const struct desc *whole, int64_t first, int64_t n)
{
    return dnnl_memory_desc_init_submemory(&d->md, &whole->md, (dnnl_dims_t){ whole->md.dims[0], n },
                                           (dnnl_dims_t){ 0, first });
}

static inline dnnl_status_t desc_query(struct desc *d, const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, index);
    if (!md)
        return dnnl_unimplemented;
    d->md = *md;
    return dnnl_success;
}

static inline void desc_release(struct desc *d)
{
    (void)d;
}

static inline dnnl_status_t post_ops_add_sum(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_sum(post, 1.0f);
}

static inline dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct desc *a,
                                        const struct desc *b, const struct desc *bias, const struct desc *c,
                                        dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, &a->md, &b->md, bias ? &bias->md : NULL, &c->md);
    return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

#else

#define DESC(d) ((d)->md)

/* A row alone has code of its own here (3.7), with other bits. */
enum { ONEDNN_ALIKE_ROWS = 2 };

static inline dnnl_status_t desc_strided(struct desc *d, dnnl_data_type_t type, const int64_t dims[2],
                                         const int64_t steps[2])
{
    return dnnl_memory_desc_create_with_strides(&d->md, 2, (dnnl_dims_t){ dims[0], dims[1] }, type,
                                                (dnnl_dims_t){ steps[0], steps[1] });
}

static inline dnnl_status_t desc_any(struct desc *d, dnnl_data_type_t type, const int64_t dims[2])
{
    return dnnl_memory_desc_create_with_tag(&d->md, 2, (dnnl_dims_t){ dims[0], dims[1] }, type, dnnl_format_tag_any);
}

static inline dnnl_status_t desc_bias(struct desc *d, int64_t cols)
{
    return dnnl_memory_desc_create_with_tag(&d->md, 2, (dnnl_dims_t){ 1, cols }, dnnl_f32, dnnl_ab);
}

static inline dnnl_status_t desc_columns(struct desc *d, const struct desc *whole, int64_t first, int64_t n)
{
    const dnnl_dims_t *dims;
    dnnl_status_t status = dnnl_memory_desc_query(whole->md, dnnl_query_dims, (void *)&dims);
    return status != dnnl_success ? status
                                  : dnnl_memory_desc_create_submemory(&d->md, whole->md, (dnnl_dims_t){ (*dims)[0], n },
                                                                      (dnnl_dims_t){ 0, first });
}

static inline dnnl_status_t desc_query(struct desc *d, const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, what, index);
    return md ? dnnl_memory_desc_clone(&d->md, md) : dnnl_unimplemented;
}

static inline void desc_release(struct desc *d)
{
    if (d->md)
        dnnl_memory_desc_destroy(d->md);
    d->md = NULL;
}

static inline dnnl_status_t post_ops_add_sum(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_sum(post, 1.0f, 0, dnnl_data_type_undef);
}

static inline dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct desc *a,
                                        const struct desc *b, const struct desc *bias, const struct desc *c,
                                        dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, a->md, b->md, bias ? bias->md : NULL, c->md, attr);
}

#endif
#endif
