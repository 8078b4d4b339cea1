/* gemm_rate.c - one product of oneDNN's, again and again; the weight in the layout that it prefers. */
#include "tests/bench/gemm_rate.h"

#include "base/clock.h"
#include "kernels/cpu/onednn.h"
#include "kernels/host.h"

#include <stdlib.h>

enum { ROWS = 512, A = 0, B = 1, C = 2 };

struct product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t run;
    struct desc desc[3];
    dnnl_memory_t memory[3];
    void *at[3];
};

/* Memory of operand i, filled from numbers in f32; C is not filled. */
static dnnl_status_t fill(struct product *p, int i, const int64_t dims[2])
{
    size_t n = (size_t)(dims[0] * dims[1]);
    struct desc plain = { 0 };
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    float *host = malloc(n * sizeof(*host));

    p->at[i] = host_alloc(dnnl_memory_desc_get_size(DESC(&p->desc[i])));
    for (size_t j = 0; j < n && host; j++)
        host[j] = (float)(j * 7919 % 997) * 0.001f - 0.4f; // how fast AMX is depends on the numbers
    dnnl_status_t status =
        host && p->at[i] ? desc_strided(&plain, dnnl_f32, dims, (int64_t[]){ dims[1], 1 }) : dnnl_out_of_memory;
    if (status == dnnl_success)
        status = dnnl_memory_create(&p->memory[i], DESC(&p->desc[i]), p->engine, p->at[i]);
    if (status == dnnl_success)
        status = dnnl_memory_create(&from, DESC(&plain), p->engine, host);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&pd, DESC(&plain), p->engine, DESC(&p->desc[i]), p->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&reorder, pd);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, p->memory[i] } };
        status = dnnl_primitive_execute(reorder, p->stream, 2, arg);
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(p->stream);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(from);
    desc_release(&plain);
    free(host);
    return status;
}

static dnnl_status_t make(struct product *p, dnnl_data_type_t type, int64_t out, int64_t in)
{
    const int64_t dims[3][2] = { { ROWS, in }, { in, out }, { ROWS, out } };
    struct desc any = { 0 };
    dnnl_primitive_desc_t pd = NULL;

    dnnl_status_t status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = desc_strided(&p->desc[A], type, dims[A], (int64_t[]){ in, 1 });
    if (status == dnnl_success)
        status = desc_any(&any, type, dims[B]);
    if (status == dnnl_success)
        status = desc_strided(&p->desc[C], type, dims[C], (int64_t[]){ out, 1 });
    if (status == dnnl_success)
        status = matmul_desc(&pd, p->engine, &p->desc[A], &any, NULL, &p->desc[C], NULL);
    if (status == dnnl_success)
        status = desc_query(&p->desc[B], pd, dnnl_query_weights_md, 0);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&p->run, pd);
    for (int i = A; i <= C && status == dnnl_success; i++)
        status = fill(p, i, dims[i]);
    dnnl_primitive_desc_destroy(pd);
    desc_release(&any);
    return status;
}

static void release(struct product *p)
{
    for (int i = A; i <= C; i++) {
        dnnl_memory_destroy(p->memory[i]);
        desc_release(&p->desc[i]);
        free(p->at[i]);
    }
    dnnl_primitive_destroy(p->run);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

/* Seconds of one product, the best of many; 0: it failed. */
static double best_of(const struct product *p)
{
    const dnnl_exec_arg_t arg[] = { { DNNL_ARG_SRC, p->memory[A] },
                                    { DNNL_ARG_WEIGHTS, p->memory[B] },
                                    { DNNL_ARG_DST, p->memory[C] } };
    double best = 1e9, begin = clock_now();

    while (clock_now() - begin < 0.6) {
        double start = clock_now();
        if (dnnl_primitive_execute(p->run, p->stream, 3, arg) != dnnl_success ||
            dnnl_stream_wait(p->stream) != dnnl_success)
            return 0;
        double taken = clock_now() - start;
        best = taken < best ? taken : best;
    }
    return best;
}

double gemm_rate(enum dtype dtype, int out, int in)
{
    struct product p = { 0 };
    double seconds = 0;

    if (make(&p, dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32, out, in) == dnnl_success)
        seconds = best_of(&p);
    release(&p);
    return seconds > 0 ? 2.0 * ROWS * out * in / seconds : 0;
}
