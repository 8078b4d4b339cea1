/* cpu_dense.c - products by packed weights, and ops that go row by row. */
#include "kernels/cpu/cpu.h"

#include "kernels/softmax.h"

#include <assert.h>
#include <math.h>
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

void cpu_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++) {
        void *to = into == GEMM_ADD ? cpu_row(x, t) : cpu_row(out, t);
        c->rows->rmsnorm(to, out.type, cpu_row(x, t), DTYPE_F32, w, eps, x.cols);
        if (into == GEMM_ADD)
            c->rows->blend(cpu_row(out, t), 1, to, 1, x.cols);
    }
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

void cpu_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, out.rows))
    for (int t = 0; t < out.rows; t++) {
        const char *x = cpu_row(gate_up, t);
        c->rows->gate_mul(cpu_row(out, t), x, x + (size_t)out.cols * dtype_size(out.type), out.type, out.cols, gate);
    }
}

/* The logits of rows from `row` on, LOGIT_ROWS at most, in memory of the op; no rows when there is none. */
static struct mat some_logits(struct backend *be, struct mat x, int row, const struct weight *head)
{
    struct cpu *c = cpu_of(be);
    const int n = x.rows - row < LOGIT_ROWS ? x.rows - row : LOGIT_ROWS;
    const struct mat some = { cpu_row(x, row), x.type, n, x.cols, x.pitch };
    void *logit = cpu_scratch(c, &c->work, (size_t)n * (size_t)head->out * sizeof(float));
    const struct mat out = { logit, DTYPE_F32, logit ? n : 0, head->out, head->out };

    if (logit)
        cpu_gemm(be, out, some, head, NULL, GEMM_SET);
    return out;
}

void cpu_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    const struct cpu *c = cpu_of(be);

    for (int row = 0; row < x.rows; row += LOGIT_ROWS) {
        const struct mat logits = some_logits(be, x, row, head);
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
        for (int i = 0; i < logits.rows; i++)
            best[row + i] = c->rows->best(cpu_row(logits, i), logits.cols);
    }
}

/* The first token up to which the sum of weights exceeds `point`, which is below the sum of all n. */
static int32_t find_token(const struct row_ops *rows, const float *logit, int n, float largest, float inverse,
                          double point)
{
    float weight[SOFTMAX_BLOCK];
    double before = 0, sum = 0;
    int first = 0, i = 0;

    for (;; before += sum, first += SOFTMAX_BLOCK) {
        const int some = n - first < SOFTMAX_BLOCK ? n - first : SOFTMAX_BLOCK;
        assert(some > 0);
        sum = rows->weights(weight, logit + first, some, largest, inverse);
        if (before + sum > point)
            break;
    }
    for (sum = (double)weight[0]; before + sum <= point; sum += (double)weight[i])
        i++;
    return first + i;
}

static struct drawn_token draw_row(const struct row_ops *rows, const float *logit, int n, const struct draw_job *job,
                                   int t)
{
    const float inverse = softmax_inverse(job->temperature);
    const struct best best = rows->best(logit, n);
    float weight[SOFTMAX_BLOCK];
    double sum = 0;

    if (best.id < 0)
        return (struct drawn_token){ -1, 0, (double)NAN };
    for (int first = 0; first < n; first += SOFTMAX_BLOCK)
        sum += rows->weights(weight, logit + first, n - first < SOFTMAX_BLOCK ? n - first : SOFTMAX_BLOCK, best.value,
                             inverse);
    const int32_t id = job->given ? job->given[t] : find_token(rows, logit, n, best.value, inverse, job->unit[t] * sum);
    return (struct drawn_token){ id, best.value - logit[id], sum };
}

void cpu_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
              const struct draw_job *job)
{
    const struct cpu *c = cpu_of(be);

    for (int row = 0; row < x.rows; row += LOGIT_ROWS) {
        const struct mat logits = some_logits(be, x, row, head);
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
        for (int i = 0; i < logits.rows; i++) {
            if (job->cap > 0)
                c->rows->soft_cap(cpu_row(logits, i), logits.cols, job->cap);
            drawn[row + i] = draw_row(c->rows, cpu_row(logits, i), logits.cols, job, row + i);
        }
    }
}

void cpu_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                    const struct slot_copy *copy)
{
    const struct cpu *c = cpu_of(be);
    size_t row = (size_t)shape->head_dim * dtype_size(be->dtype);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int head = 0; head < kv_all_layers(shape) * shape->n_kv_heads; head++) {
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
