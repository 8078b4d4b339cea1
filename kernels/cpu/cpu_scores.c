/* cpu_scores.c - computes scores of keys, and pools, scales and averages rows of scores.
 *
 * A sum over many keys is cut at fixed positions and added in order, so no bit depends on the number of threads.
 */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { KEYS = 1024 }; // keys of a partial sum

static int min(int a, int b)
{
    return a < b ? a : b;
}

static float norm(const struct cpu *c, const float *x, int K)
{
    return sqrtf(c->rows->dot(x, x, K));
}

/* Key t of a head in f32; copy: scratch (K). */
static const float *key(const struct cpu *c, const struct kv_rows *head, int t, int K, float *copy)
{
    enum dtype dtype = c->base.dtype;
    const void *at = (const char *)head->k + (size_t)t * (size_t)K * dtype_size(dtype);

    if (dtype == DTYPE_F32)
        return at;
    c->rows->widen(copy, at, dtype, K);
    return copy;
}

/* The start of each head's scores. */
static size_t *row_starts(struct cpu *c, const struct kv_rows *heads, int n_heads)
{
    size_t *start = cpu_scratch(c, &c->list, ((size_t)n_heads + 1) * sizeof(*start));

    if (!start)
        return NULL;
    start[0] = 0;
    for (int h = 0; h < n_heads; h++)
        start[h + 1] = start[h] + (size_t)heads[h].n;
    return start;
}

void cpu_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    struct cpu *c = cpu_of(be);
    const size_t *start = row_starts(c, heads, n_heads);

    if (!start)
        return;
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++) {
        float *copy = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)head_dim * sizeof(*copy)); // (K)
        for (int t = 0; t < heads[h].n && copy; t++)
            score[start[h] + (size_t)t] = -norm(c, key(c, &heads[h], t, head_dim, copy), head_dim);
    }
}

/* mean (K) = the average of the head's keys as unit vectors. Sums KEYS keys at a time into `part`, then adds that to
 * the total, so that a long sum loses little. part, copy: scratch (K). */
static void mean_direction(const struct cpu *c, float *mean, const struct kv_rows *head, int K, float *part,
                           float *copy)
{
    size_t bytes = (size_t)K * sizeof(*mean);

    memset(mean, 0, bytes);
    for (int first = 0; first < head->n; first += KEYS) {
        memset(part, 0, bytes);
        for (int t = first; t < min(first + KEYS, head->n); t++) {
            const float *k = key(c, head, t, K, copy);
            c->rows->blend(part, 1, k, 1 / fmaxf(norm(c, k, K), 1e-12f), K);
        }
        c->rows->blend(mean, 1, part, 1 / (float)head->n, K);
    }
}

static void head_cosines(struct cpu *c, float *score, const struct kv_rows *head, int K)
{
    float *mean = cpu_scratch(c, &c->tile[cpu_thread()], 3 * (size_t)K * sizeof(*mean)); // (3, K)

    if (!mean)
        return;
    mean_direction(c, mean, head, K, mean + K, mean + 2 * K);
    float mean_norm = fmaxf(norm(c, mean, K), 1e-8f);
    for (int t = 0; t < head->n; t++) {
        const float *k = key(c, head, t, K, mean + 2 * K);
        score[t] = -c->rows->dot(k, mean, K) / (fmaxf(norm(c, k, K), 1e-8f) * mean_norm);
    }
}

void cpu_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    struct cpu *c = cpu_of(be);
    const size_t *start = row_starts(c, heads, n_heads);

    if (!start)
        return;
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++)
        head_cosines(c, score + start[h], &heads[h], head_dim);
}

/* ---- rows of scores ------------------------------------------------------ */

static void avg_pool_row(struct cpu *c, float *score, int n, int width)
{
    float *was = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)n * sizeof(*was)); // (n)

    if (!was)
        return;
    memcpy(was, score, (size_t)n * sizeof(*was));
    for (int i = 0; i < n; i++) {
        int first = i - width / 2 > 0 ? i - width / 2 : 0, last = min(i + width / 2, n - 1);
        float sum = 0;
        for (int j = first; j <= last; j++)
            sum += was[j];
        score[i] = sum / (float)width;
    }
}

void cpu_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width)
{
    struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++)
        avg_pool_row(c, score + (size_t)h * (size_t)pitch, n, width);
}

void cpu_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor)
{
    const struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++)
        for (int t = 0; t < n; t++)
            score[(size_t)h * (size_t)n + (size_t)t] *= factor[t];
}

/* Averages columns first .. end - 1 of `group` rows of n numbers. */
static void mean_columns(float *score, int group, int n, int first, int end)
{
    for (int t = first; t < end; t++) {
        float sum = 0;
        for (int h = 0; h < group; h++)
            sum += score[(size_t)h * (size_t)n + (size_t)t];
        sum /= (float)group;
        for (int h = 0; h < group; h++)
            score[(size_t)h * (size_t)n + (size_t)t] = sum;
    }
}

void cpu_mean_heads(struct backend *be, float *score, int n_heads, int n, int group)
{
    const struct cpu *c = cpu_of(be);
    int per_layer = (n + KEYS - 1) / KEYS;

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int i = 0; i < n_heads / group * per_layer; i++) {
        int first = i % per_layer * KEYS;
        mean_columns(score + (size_t)(i / per_layer * group) * (size_t)n, group, n, first, min(first + KEYS, n));
    }
}

struct cpu_needs cpu_scores_needs(const struct cpu *c, const struct work_shape *shape)
{
    size_t keys = (size_t)shape->n_keys, head = 3 * (size_t)shape->head_dim;

    (void)c;
    return (struct cpu_needs){ .tile = (keys > head ? keys : head) * sizeof(float) };
}
