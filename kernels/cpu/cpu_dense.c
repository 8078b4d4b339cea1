/* cpu_dense.c - products by packed weights, and ops that go row by row. */
#include "kernels/cpu/cpu.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

/* Rows of logits at a time: 97 % of the speed of 512 rows, in a quarter of the memory. */
enum { LOGIT_ROWS = 128 };

void cpu_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
              enum gemm_into into)
{
    struct cpu *c = cpu_of(be);
    const struct matmul_shape shape = { .m = x.rows,
                                        .n = w->out,
                                        .k = w->in,
                                        .in = x.type,
                                        .out = out.type,
                                        .right = RIGHT_PACKED,
                                        .into = into,
                                        .bias = bias };
    const struct operands at = { .c = out.at, .a = x.at, .weight = w, .bias = bias };
    struct err err;

    assert(x.cols == shape.k && x.pitch == x.cols && out.rows == x.rows && out.cols == shape.n &&
           out.pitch == out.cols && x.type == be->dtype && (into == GEMM_SET || out.type == DTYPE_F32));
    if (x.rows == 0)
        return;
    matmul_trim(c->matmul);
    int before = omp_get_max_threads();
    omp_set_num_threads(c->n_threads);
    if (matmul_run(c->matmul, &shape, &at, 0, &err))
        cpu_fail(c, &err);
    omp_set_num_threads(before);
}

void cpu_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, out.rows))
    for (int t = 0; t < out.rows; t++)
        c->rows->widen(cpu_row(out, t), cpu_row(table, ids[t]), table.type, out.cols);
}

void cpu_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->rmsnorm(cpu_row(out, t), out.type, cpu_row(x, t), DTYPE_F32, w, eps, x.cols);
}

/* Writes one head of a token to `to`: normalised unless norm is NULL, its first columns rotated. */
static void place_head(const struct row_ops *rows, const struct rope_job *job, void *to, const void *from,
                       const float *norm, int position)
{
    int K = job->head_dim, rotated = job->cos ? job->rotary : 0;
    enum dtype type = job->qkv.type, given = type;
    size_t angle = (size_t)position * (size_t)(rotated / 2), done = (size_t)rotated * dtype_size(type);
    float normed[ROWS_HEAD];

    if (norm) {
        rows->rmsnorm(normed, DTYPE_F32, from, type, norm, job->norm_eps, K);
        from = normed, given = DTYPE_F32;
    }
    if (rotated)
        rows->rotate(to, type, from, given, job->cos + angle, job->sin + angle, rotated);
    if (rotated == K)
        return;
    if (norm)
        rows->narrow((char *)to + done, normed + rotated, type, K - rotated);
    else
        memcpy((char *)to + done, (const char *)from + done, (size_t)K * dtype_size(type) - done);
}

/* One token: query heads go to their kv head's rows of q, keys and values to their slot. */
static void rope_token(const struct row_ops *rows, const struct rope_job *job, int t)
{
    int H = job->n_heads, G = job->n_kv_heads, group = H / G, position = job->position ? job->position[t] : 0;
    size_t head = (size_t)job->head_dim * dtype_size(job->qkv.type);
    const char *from = cpu_row(job->qkv, t);

    for (int h = 0; h < H; h++, from += head) {
        size_t at = ((size_t)(h / group) * (size_t)job->qkv.rows + (size_t)t) * (size_t)group + (size_t)(h % group);
        place_head(rows, job, (char *)job->q + at * head, from, job->q_norm, position);
    }
    for (int g = 0; g < G; g++, from += head) {
        size_t at = (size_t)(job->layer * G + g) * job->store.head_rows + (size_t)job->slot[t];
        place_head(rows, job, (char *)job->store.k + at * head, from, job->k_norm, position);
        memcpy((char *)job->store.v + at * head, from + (size_t)G * head, head);
    }
}

void cpu_rope(struct backend *be, const struct rope_job *job)
{
    const struct cpu *c = cpu_of(be);

    assert(job->head_dim <= ROWS_HEAD);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, job->qkv.rows))
    for (int t = 0; t < job->qkv.rows; t++)
        rope_token(c->rows, job, t);
}

void cpu_silu_mul(struct backend *be, struct mat out, struct mat gate_up)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, out.rows))
    for (int t = 0; t < out.rows; t++) {
        const char *gate = cpu_row(gate_up, t);
        c->rows->silu_mul(cpu_row(out, t), gate, gate + (size_t)out.cols * dtype_size(out.type), out.type, out.cols);
    }
}

void cpu_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    struct cpu *c = cpu_of(be);
    int tile = x.rows < LOGIT_ROWS ? x.rows : LOGIT_ROWS;
    float *logit = cpu_scratch(c, &c->work, (size_t)tile * (size_t)head->out * sizeof(*logit)); // (tile, V)

    for (int row = 0; row < x.rows && logit; row += tile) {
        int n = x.rows - row < tile ? x.rows - row : tile;
        const struct mat some = { cpu_row(x, row), x.type, n, x.cols, x.pitch };
        cpu_gemm(be, (struct mat){ logit, DTYPE_F32, n, head->out, head->out }, some, head, NULL, GEMM_SET);
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
        for (int i = 0; i < n; i++)
            best[row + i] = c->rows->best(logit + (size_t)i * (size_t)head->out, head->out);
    }
}

void cpu_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                    const struct slot_copy *copy)
{
    const struct cpu *c = cpu_of(be);
    size_t row = (size_t)shape->head_dim * dtype_size(be->dtype);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int head = 0; head < shape->n_layers * shape->n_kv_heads; head++) {
        char *k = (char *)store->k + (size_t)head * store->head_rows * row;
        char *v = (char *)store->v + (size_t)head * store->head_rows * row;
        for (int i = 0; i < copy->n_to; i++) {
            memcpy(k + (size_t)copy->to[i] * row, k + (size_t)copy->from * row, (size_t)copy->n * row);
            memcpy(v + (size_t)copy->to[i] * row, v + (size_t)copy->from * row, (size_t)copy->n * row);
        }
    }
}

struct cpu_needs cpu_dense_needs(const struct cpu *c, const struct work_shape *shape)
{
    int rows = shape->rows < LOGIT_ROWS ? shape->rows : LOGIT_ROWS;

    (void)c;
    return (struct cpu_needs){ .work = (size_t)rows * (size_t)shape->n_vocab * sizeof(float) };
}
