/* cpu_matmul_internal.h - shared by cpu_matmul.c (primitives) and cpu_weight.c (packed weights). */
#ifndef EVP_CPU_MATMUL_INTERNAL_H
#define EVP_CPU_MATMUL_INTERNAL_H

#include "kernels/cpu/cpu_matmul.h"
#include "kernels/cpu/cpu_product.h"
#include "kernels/cpu/onednn.h"

#include <pthread.h>

enum { MATMUL_TABLE = 4096 }; // entries

struct packed_weight {
    struct weight base; // first: every weight of this backend is a packed_weight
    enum dtype type;
    struct desc desc; // (in, out); unused where products are our own
};

/* Memory that only grows. */
struct matmul_memory {
    void *at;
    size_t bytes;
};

struct thread_state {
    dnnl_stream_t stream;
    struct matmul_memory scratch;
};

struct matmul {
    dnnl_engine_t engine;
    int n_threads;
    int row_block; // rows of a product; 0: any number
    bool has_amx;  // oneDNN uses it for products in bf16
    struct thread_state *thread;
    struct matmul_memory padded;      // for the current product by a packed weight
    struct primitive *_Atomic *table; // [MATMUL_TABLE]
    int n_primitives;
    pthread_mutex_t making;
};

/* Does cpu_product.h multiply by a packed weight of `in` columns? */
static inline bool matmul_is_ours(const struct matmul *m, int in, enum dtype type)
{
#if defined(__x86_64__)
    return m->has_amx && type == DTYPE_BF16 && in % PRODUCT_STEP == 0;
#else // without cpu_product_amx.c
    return (void)m, (void)in, (void)type, false;
#endif
}

static inline dnnl_data_type_t matmul_type(enum dtype type)
{
    return type == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static inline void *matmul_writable(const void *at) // oneDNN takes sources without const
{
    union {
        const void *in;
        void *out;
    } u = { at };
    return u.out;
}

/* Elements from one row of a plain weight (in, out) to the next. Rows a multiple of 4 KiB apart would compete for the
 * same cache sets. */
static inline int weight_pitch(int out)
{
    enum { MORE = 16 };
    return out + MORE;
}

int matmul_failure(struct err *err, const char *what, dnnl_status_t status);

/* Fills w->desc for the (out, in) and type that *w has. */
dnnl_status_t weight_layout(const struct matmul *m, struct packed_weight *w);

/* The name of the fast code for many rows by a weight in that code's preferred layout; NULL: there is no fast code.
 * *layout (may be NULL) gets the layout. */
const char *weight_code(const struct matmul *m, const struct packed_weight *w, struct desc *layout);

#endif
