/* cpu.c - the cpu backend: its table of ops, its threads and its scratch memory. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/cpu_level.h"
#include "kernels/host.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_LINE = 64,
    LIST_BYTES = 1 << 16, // a number for each layer and head of any model
    PASS_ROWS = 512,      // products run at full speed; a pass's activations stay in the third-level cache
};

void *cpu_scratch(struct cpu *c, struct scratch *s, size_t bytes)
{
    if (bytes <= s->bytes && s->at)
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

void *cpu_take(char **at, size_t bytes)
{
    char *start = *at + (CACHE_LINE - (uintptr_t)*at % CACHE_LINE) % CACHE_LINE;
    *at = start + bytes;
    return start;
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

static struct weight *weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err)
{
    return matmul_pack(cpu_of(be)->matmul, host, n_parts, be->dtype, err);
}

static void weight_free(struct backend *be, struct weight *w)
{
    (void)be;
    matmul_weight_free(w);
}

static struct weight_bytes weight_bytes(struct backend *be, int out, int in)
{
    return matmul_weight_bytes(cpu_of(be)->matmul, out, in, be->dtype);
}

/* The largest products of each kind. */
static size_t product_scratch(struct cpu *c, const struct work_shape *s)
{
    enum dtype dtype = c->base.dtype;
    enum { TILE = 192 };
    int K = s->head_dim, rows = matmul_rows(c->matmul, s->n_heads > TILE ? s->n_heads : TILE, K, dtype);
    int qkv = (s->n_heads + 2 * s->n_kv_heads) * K, mlp = s->mlp > s->expert_width ? s->mlp : s->expert_width;
    const struct matmul_shape shape[] = {
        { rows, ATTN_SPLIT, K, dtype, DTYPE_F32, RIGHT_TRANSPOSED, GEMM_SET, false, 0 },
        { rows, K, ATTN_SPLIT, dtype, DTYPE_F32, RIGHT_ROWS, GEMM_SET, false, 0 },
        { s->rows, qkv, s->width, dtype, dtype, RIGHT_PACKED, GEMM_SET, false, 0 },
        { s->rows, s->width, s->n_heads * K, dtype, DTYPE_F32, RIGHT_PACKED, GEMM_ADD, false, 0 },
        { s->rows, 2 * mlp, s->width, dtype, dtype, RIGHT_PACKED, GEMM_SET, false, 0 },
        { s->rows, s->width, mlp, dtype, DTYPE_F32, RIGHT_PACKED, GEMM_ADD, false, 0 },
        { s->rows, s->width, mlp, dtype, DTYPE_F32, RIGHT_PACKED, GEMM_SET, false, 0 },
        { s->rows, s->n_vocab, s->width, dtype, DTYPE_F32, RIGHT_PACKED, GEMM_SET, false, 0 },
    };
    return matmul_scratch(c->matmul, shape, sizeof(shape) / sizeof(*shape));
}

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t scratch(struct backend *be, const struct work_shape *shape)
{
    struct cpu *c = cpu_of(be);
    const struct cpu_needs all[] = { cpu_attend_needs(c, shape), cpu_dense_needs(c, shape), cpu_moe_needs(c, shape),
                                     cpu_scores_needs(c, shape), cpu_moments_needs(c, shape) };
    struct cpu_needs max_of = { .list = LIST_BYTES };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        max_of.tile = max(max_of.tile, all[i].tile);
        max_of.list = max(max_of.list, all[i].list);
        max_of.tasks = max(max_of.tasks, all[i].tasks);
        max_of.work = max(max_of.work, all[i].work);
    }
    return max_of.tile * (size_t)c->n_threads + max_of.list + max_of.tasks + max_of.work + product_scratch(c, shape);
}

static void close_cpu(struct backend *be)
{
    struct cpu *c = cpu_of(be);
    for (int i = 0; i < c->n_threads && c->tile; i++)
        free(c->tile[i].at);
    free(c->tile);
    free(c->list.at);
    free(c->tasks.at);
    free(c->work.at);
    matmul_close(c->matmul);
    free(c);
}

static void fill_ops(struct backend *be)
{
    host_memory_ops(be);
    be->sync = sync_failure;
    be->scratch = scratch;
    be->weight_new = weight_new;
    be->weight_free = weight_free;
    be->weight_bytes = weight_bytes;
    be->gemm = cpu_gemm;
    be->attend = cpu_attend;
    be->embed = cpu_embed;
    be->rmsnorm = cpu_rmsnorm;
    be->rope = cpu_rope;
    be->gate_mul = cpu_gate_mul;
    be->moe = cpu_moe;
    be->best = cpu_best;
    be->draw = cpu_draw;
    be->copy_slots = cpu_copy_slots;
    be->key_norms = cpu_key_norms;
    be->key_cosines = cpu_key_cosines;
    be->column_stats = cpu_column_stats;
    be->moments = cpu_moments;
    be->key_forms = cpu_key_forms;
    be->abs_sums = cpu_abs_sums;
    be->avg_pool = cpu_avg_pool;
    be->scale_columns = cpu_scale_columns;
    be->mean_heads = cpu_mean_heads;
    be->joint_counts = cpu_joint_counts;
    be->top_k = cpu_top_k;
    be->gather = cpu_gather;
    be->quantise = cpu_quantise;
    be->dequantise = cpu_dequantise;
    be->layernorm = cpu_layernorm;
    be->gelu = cpu_gelu;
    be->close = close_cpu;
}

struct backend *cpu_open(const struct backend_options *options, struct err *err)
{
    if (cpu_level_limit(err))
        return NULL;
    struct cpu *c = calloc(1, sizeof(*c));
    if (!c) {
        err_nomem(err);
        return NULL;
    }
    c->base = (struct backend){ .name = "cpu", .pass_rows = PASS_ROWS };
    fill_ops(&c->base);
    c->n_threads = options->n_threads > 0 ? options->n_threads : omp_get_num_procs();
    c->rows = rows_best();
    c->tile = calloc((size_t)c->n_threads, sizeof(*c->tile));
    c->matmul = c->tile ? matmul_open(c->n_threads, err) : NULL;
    if (!c->tile)
        err_nomem(err);
    if (c->matmul && cpu_choose(c, options->dtype, err) == 0) {
        bool amx = c->base.dtype == DTYPE_BF16 && strcmp(c->base.kind, "cpu-amx") == 0;
        c->shared = shared_best(c->base.dtype, amx);
        c->text = amx ? c->shared : NULL;
        return &c->base;
    }
    close_cpu(&c->base);
    return NULL;
}
