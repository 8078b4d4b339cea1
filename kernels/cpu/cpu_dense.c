/* cpu_dense.c - products with packed weights, and the ops that go row by row. */
#include "kernels/cpu/cpu.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

static float *row(struct mat m, int i)
{
    assert(m.type == DTYPE_F32);
    return (float *)m.at + (size_t)i * (size_t)m.pitch;
}

struct weight *cpu_weight_new(struct backend *be, const struct mat *host, int n_parts, enum dtype type, struct err *err)
{
    assert(type == DTYPE_F32);
    return matmul_pack(cpu_of(be)->matmul, host, n_parts, err);
}

void cpu_weight_free(struct backend *be, struct weight *w)
{
    (void)be;
    matmul_weight_free(w);
}

void cpu_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
              enum gemm_into into)
{
    struct cpu *c = cpu_of(be);
    struct matmul_shape shape = { .m = x.rows,
                                  .n = w->out,
                                  .k = w->in,
                                  .lda = x.pitch,
                                  .ldc = w->out,
                                  .right = RIGHT_PACKED,
                                  .into = into,
                                  .bias = bias };
    struct err err;

    assert(x.cols == shape.k && x.pitch == x.cols && out.rows == x.rows && out.cols == shape.n &&
           out.pitch == out.cols);
    if (x.rows == 0)
        return;
    matmul_trim(c->matmul);
    int before = omp_get_max_threads();
    omp_set_num_threads(c->n_threads);
    if (matmul_run(c->matmul, &shape, out.at, x.at, NULL, w, bias, 0, &err))
        cpu_fail(c, &err);
    omp_set_num_threads(before);
}

void cpu_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    (void)be;
    for (int t = 0; t < out.rows; t++)
        memcpy(row(out, t), row(table, ids[t]), (size_t)out.cols * sizeof(float));
}

void cpu_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->rmsnorm(row(out, t), row(x, t), w, eps, x.cols);
}

/* One token: its query heads go to their kv head's rows, its keys and values to their slot. */
static void rope_token(const struct row_ops *rows, const struct rope_job *job, int t)
{
    int K = job->head_dim, H = job->n_heads, G = job->n_kv_heads, group = H / G;
    size_t n_tokens = (size_t)job->qkv.rows, angle = (size_t)job->position[t] * (size_t)(K / 2);
    const float *from = row(job->qkv, t), *cos = job->cos + angle, *sin = job->sin + angle;

    for (int h = 0; h < H; h++) {
        size_t at = ((size_t)(h / group) * n_tokens + (size_t)t) * (size_t)group + (size_t)(h % group);
        rows->rotate((float *)job->q + at * (size_t)K, from + h * K, cos, sin, K);
    }
    for (int g = 0; g < G; g++) {
        size_t at = ((size_t)g * job->head_rows + (size_t)job->slot[t]) * (size_t)K;
        rows->rotate((float *)job->k + at, from + (H + g) * K, cos, sin, K);
        memcpy((float *)job->v + at, from + (H + G + g) * K, (size_t)K * sizeof(float));
    }
}

void cpu_rope(struct backend *be, const struct rope_job *job)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, job->qkv.rows))
    for (int t = 0; t < job->qkv.rows; t++)
        rope_token(c->rows, job, t);
}

void cpu_silu_mul(struct backend *be, struct mat out, struct mat gate_up)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, out.rows))
    for (int t = 0; t < out.rows; t++)
        c->rows->silu_mul(row(out, t), row(gate_up, t), row(gate_up, t) + out.cols, out.cols);
}

void cpu_argmax(struct backend *be, int32_t *id, struct mat x)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        id[t] = c->rows->argmax(row(x, t), x.cols);
}
