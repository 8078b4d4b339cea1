/* cpu_moments.c - sums over queries and forms of keys, a block of rows at a time; sums of rows.
 *
 * Blocks begin at fixed rows, and one thread adds up a head, so no bit depends on the number of threads.
 */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64, WIDE = 16 }; // rows of a block; numbers that dots() may write at once

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* Memory of a thread: a block's rows (BLOCK, K) in f32; these as columns, with a column of 1 (K + 1, BLOCK); and their
 * products (K + 1, K), or (BLOCK, K + 1) in rows of `pitch`. */
struct tile {
    float *row, *column, *product;
    size_t pitch;
};

static size_t tile_bytes(int K)
{
    size_t k = (size_t)K, products = k + WIDE > BLOCK ? k + WIDE : BLOCK;

    return (BLOCK * k + (k + 1) * BLOCK + products * (k + WIDE)) * sizeof(float);
}

/* row NULL: out of memory. */
static struct tile take_tile(struct cpu *c, int K)
{
    size_t k = (size_t)K;
    float *at = cpu_scratch(c, &c->tile[cpu_thread()], tile_bytes(K));

    return at ? (struct tile){ at, at + BLOCK * k, at + BLOCK * k + (k + 1) * BLOCK, (k + WIDE) / WIDE * WIDE }
              : (struct tile){ 0 };
}

/* ---- moments ------------------------------------------------------------- */

/* Copies the queries of n tokens from `first` on to the tile. */
static void load_queries(const struct cpu *c, const struct tile *tile, const struct moment_job *job, int h, int first,
                         int n)
{
    int K = job->head_dim, group = job->n_heads / job->n_kv_heads;

    for (int i = 0; i < n; i++) {
        size_t at = ((size_t)(h / group) * (size_t)job->n_tokens + (size_t)(first + i)) * (size_t)group;
        float *row = tile->row + i * K;
        c->rows->widen(row, (const char *)job->q + (at + (size_t)(h % group)) * (size_t)K * dtype_size(c->base.dtype),
                       c->base.dtype, K);
        for (int j = 0; j < K; j++)
            tile->column[j * BLOCK + i] = row[j];
        tile->column[K * BLOCK + i] = 1;
    }
}

/* Sums a block first, then adds it to the total, so that a long sum loses little. */
static void add_head(struct cpu *c, const struct moment_job *job, int h)
{
    int K = job->head_dim, n_products = (K + 1) * K;
    const struct tile tile = take_tile(c, K);

    for (int first = job->first; first < job->n_tokens && tile.row; first += BLOCK) {
        int n = min(BLOCK, job->n_tokens - first);
        load_queries(c, &tile, job, h, first, n);
        memset(tile.product, 0, (size_t)n_products * sizeof(float));
        c->rows->weigh(&(struct weigh){ .out = tile.product,
                                        .p = tile.column,
                                        .pitch = BLOCK,
                                        .v = tile.row,
                                        .type = DTYPE_F32,
                                        .n_q = K + 1,
                                        .n = n,
                                        .K = K });
        c->rows->blend(job->into + (size_t)h * (size_t)n_products, 1, tile.product, 1, n_products);
    }
}

void cpu_moments(struct backend *be, const struct moment_job *job)
{
    struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(dynamic) num_threads(c->n_threads)
    for (int h = 0; h < job->n_heads; h++)
        add_head(c, job, h);
}

/* ---- forms --------------------------------------------------------------- */

/* The forms of a block of a head's keys, from `first` on. */
static void block_forms(struct cpu *c, float *score, const float *form, const struct kv_rows *head, int first, int K)
{
    const struct tile tile = take_tile(c, K);
    int n = min(BLOCK, head->n - first);

    if (!tile.row)
        return;
    c->rows->widen(tile.row, (const char *)head->k + (size_t)first * (size_t)K * dtype_size(c->base.dtype),
                   c->base.dtype, n * K);
    c->rows->dots(&(struct dots){ .score = tile.product,
                                  .pitch = tile.pitch,
                                  .q = tile.row,
                                  .keys = form,
                                  .type = DTYPE_F32,
                                  .n_q = n,
                                  .n = K + 1,
                                  .K = K });
    for (int i = 0; i < n; i++) {
        const float *product = tile.product + (size_t)i * tile.pitch;
        score[first + i] = c->rows->dot(product, tile.row + i * K, K) + product[K];
    }
}

void cpu_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                   int group, int head_dim)
{
    struct cpu *c = cpu_of(be);
    int n = n_heads > 0 ? heads->n : 0, per_head = (n + BLOCK - 1) / BLOCK;
    size_t one = ((size_t)head_dim + 1) * (size_t)head_dim;

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int i = 0; i < n_heads * group * per_head; i++) {
        size_t h = (size_t)(i / per_head);
        block_forms(c, score + h * (size_t)n, form + h * one, &heads[h / (size_t)group], i % per_head * BLOCK,
                    head_dim);
    }
}

struct cpu_needs cpu_moments_needs(const struct cpu *c, const struct work_shape *shape)
{
    (void)c;
    return (struct cpu_needs){ .tile = tile_bytes(shape->head_dim) };
}

/* ---- rows of numbers ----------------------------------------------------- */

/* WIDE sums side by side, then these in order. */
static float abs_sum(const float *x, int n)
{
    float part[WIDE] = { 0 }, sum = 0;
    int i = 0;

    for (; i + WIDE <= n; i += WIDE)
        for (int j = 0; j < WIDE; j++)
            part[j] += fabsf(x[i + j]);
    for (; i < n; i++)
        part[i % WIDE] += fabsf(x[i]);
    for (int j = 0; j < WIDE; j++)
        sum += part[j];
    return sum;
}

void cpu_abs_sums(struct backend *be, float *sum, struct mat x)
{
    const struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        sum[t] = abs_sum(cpu_row(x, t), x.cols);
}
