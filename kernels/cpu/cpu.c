/* cpu.c - the cpu backend: its table of ops, its threads and its scratch memory. */
#include "kernels/cpu/cpu.h"

#include "kernels/host.h"

#include <omp.h>
#include <stdlib.h>

void *cpu_scratch(struct cpu *c, struct scratch *s, size_t bytes)
{
    if (bytes <= s->bytes)
        return s->at;
    free(s->at);
    s->bytes = 0;
    s->at = host_alloc(bytes);
    if (s->at) {
        s->bytes = bytes;
        return s->at;
    }
    struct err err;
    err_nomem(&err);
    cpu_fail(c, &err);
    return NULL;
}

void cpu_fail(struct cpu *c, const struct err *err)
{
#pragma omp critical(cpu_fail)
    if (c->failure.code == 0)
        c->failure = *err;
}

int cpu_thread(void)
{
    return omp_get_thread_num();
}

int cpu_threads_for(const struct cpu *c, int n_rows)
{
    enum { WORTH_THREADS = 8 }; // waking a thread costs some microseconds, as much as about 8 rows
    return n_rows >= WORTH_THREADS ? c->n_threads : 1;
}

static int sync_failure(struct backend *be, struct err *err)
{
    struct cpu *c = cpu_of(be);
    int code = c->failure.code;
    if (code != 0)
        *err = c->failure;
    c->failure.code = 0;
    return code;
}

static void close_cpu(struct backend *be)
{
    struct cpu *c = cpu_of(be);
    for (int i = 0; i < c->n_threads && c->tile; i++)
        free(c->tile[i].at);
    free(c->tile);
    free(c->list.at);
    free(c->partial.at);
    matmul_close(c->matmul);
    free(c);
}

struct backend *cpu_open(int n_threads, struct err *err)
{
    struct cpu *c = calloc(1, sizeof(*c));
    if (!c) {
        err_nomem(err);
        return NULL;
    }
    c->base = (struct backend){
        .name = "cpu",
        .sync = sync_failure,
        .weight_new = cpu_weight_new,
        .weight_free = cpu_weight_free,
        .gemm = cpu_gemm,
        .attend = cpu_attend,
        .embed = cpu_embed,
        .rmsnorm = cpu_rmsnorm,
        .rope = cpu_rope,
        .merge = cpu_merge,
        .silu_mul = cpu_silu_mul,
        .argmax = cpu_argmax,
        .layernorm = cpu_layernorm,
        .gelu = cpu_gelu,
        .key_norms = cpu_key_norms,
        .key_cosines = cpu_key_cosines,
        .mean_attention = cpu_mean_attention,
        .avg_pool = cpu_avg_pool,
        .top_k = cpu_top_k,
        .gather = cpu_gather,
        .quantise = cpu_quantise,
        .dequantise = cpu_dequantise,
        .close = close_cpu,
    };
    host_memory_ops(&c->base);
    c->n_threads = n_threads > 0 ? n_threads : omp_get_num_procs();
    c->rows = rows_best();
    c->tile = calloc((size_t)c->n_threads, sizeof(*c->tile));
    c->matmul = c->tile ? matmul_open(c->n_threads, err) : NULL;
    if (!c->tile)
        err_nomem(err);
    if (c->matmul)
        return &c->base;
    close_cpu(&c->base);
    return NULL;
}
