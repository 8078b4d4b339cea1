/* reference_compress.c - compression as the contracts in backend.h define it, one element at a time. */
#include "kernels/reference/reference.h"

#include "kernels/half.h"
#include "kernels/order.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- scores ------------------------------------------------------------ */

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static const float *key(const struct kv_rows *head, int t, int K)
{
    return (const float *)head->k + (size_t)t * (size_t)K;
}

void reference_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    (void)be;
    for (int h = 0; h < n_heads; h++)
        for (int t = 0; t < heads[h].n; t++, score++)
            *score = (float)-sqrt(dot(key(&heads[h], t, head_dim), key(&heads[h], t, head_dim), head_dim));
}

/* Coordinate c of the mean direction of a head's keys. */
static double mean_direction(const struct kv_rows *head, int c, int K)
{
    double sum = 0;

    for (int t = 0; t < head->n; t++) {
        const float *k = key(head, t, K);
        sum += (double)k[c] / fmax(sqrt(dot(k, k, K)), 1e-12);
    }
    return sum / head->n;
}

void reference_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    (void)be;
    for (int h = 0; h < n_heads; h++) {
        float mean[1024];
        assert(head_dim <= 1024);
        for (int c = 0; c < head_dim; c++)
            mean[c] = (float)mean_direction(&heads[h], c, head_dim);
        double norm = fmax(sqrt(dot(mean, mean, head_dim)), 1e-8);
        for (int t = 0; t < heads[h].n; t++, score++) {
            const float *k = key(&heads[h], t, head_dim);
            *score = (float)(-dot(k, mean, head_dim) / (fmax(sqrt(dot(k, k, head_dim)), 1e-8) * norm));
        }
    }
}

/* Adds row i's attention to its columns. */
static void add_row(float *score, const struct attn_item *item, int i, int K, double scale)
{
    const float *q = (const float *)item->q + (size_t)i * (size_t)item->q_pitch;
    int n = item->causal < 0 ? item->kv.n : item->causal + i / item->group + 1;
    double max = -(double)INFINITY, total = 0;

    n = n < item->kv.n ? n : item->kv.n;
    for (int j = 0; j < n; j++)
        max = fmax(max, scale * dot(q, key(&item->kv, j, K), K));
    for (int j = 0; j < n; j++)
        total += exp(scale * dot(q, key(&item->kv, j, K), K) - max);
    for (int j = 0; j < n; j++)
        score[j] += (float)(exp(scale * dot(q, key(&item->kv, j, K), K) - max) / total / item->n_q);
}

void reference_mean_attention(struct backend *be, float *score, const struct attn_item *item, int n_items, int head_dim,
                              float scale)
{
    (void)be;
    for (int it = 0; it < n_items; it++, score += item[0].kv.n) {
        memset(score, 0, (size_t)item[it].kv.n * sizeof(*score));
        for (int i = 0; i < item[it].n_q; i++)
            add_row(score, &item[it], i, head_dim, (double)scale);
    }
}

void reference_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width)
{
    int half = width / 2;

    (void)be;
    for (int h = 0; h < n_heads; h++, score += pitch) {
        float before[4096]; // a ring: what the last `half` places held before
        assert(half < 4096);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = i - half; j <= i + half; j++)
                sum += j < 0 || j >= n ? 0 : (double)(j < i ? before[j % 4096] : score[j]);
            before[i % 4096] = score[i];
            score[i] = (float)(sum / width);
        }
    }
}

/* ---- selection --------------------------------------------------------- */

/* The number of places that come before place i when larger scores, then lower places, come first. */
static int rank(const float *score, int n, int i)
{
    uint32_t mine = score_order(score[i]);
    int before = 0;

    for (int j = 0; j < n; j++)
        before += score_order(score[j]) > mine || (score_order(score[j]) == mine && j < i);
    return before;
}

void reference_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, int k)
{
    (void)be;
    for (int h = 0; h < n_heads; h++, score += n)
        for (int i = 0; i < n; i++)
            if (rank(score, n, i) < k)
                *kept++ = i;
}

void reference_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                      int n_heads, int head_dim)
{
    size_t row = (size_t)head_dim * sizeof(float);

    (void)be;
    for (int h = 0; h < n_heads; h++) {
        for (int i = 0; i < dst[h].n; i++, kept++) {
            memcpy((char *)dst[h].k + (size_t)i * row, (const char *)src[h].k + (size_t)*kept * row, row);
            memcpy((char *)dst[h].v + (size_t)i * row, (const char *)src[h].v + (size_t)*kept * row, row);
        }
    }
}

/* ---- quantising -------------------------------------------------------- */

/* One group: `group` numbers, `stride` apart. */
struct quant_group {
    float *x;
    size_t stride;
    int32_t *codes; // group * bits / 32 words
    uint16_t *scale, *zero;
};

/* Group j of line i. */
static struct quant_group get_group(const struct quant_item *q, int i, int j)
{
    int n = q->lines == QUANT_COLUMNS ? q->rows : q->cols; // length of a line
    size_t group = (size_t)i * (size_t)(n / q->group) + (size_t)j;
    size_t along = q->lines == QUANT_COLUMNS ? (size_t)q->cols : 1,
           across = q->lines == QUANT_COLUMNS ? 1 : (size_t)q->cols;

    return (struct quant_group){
        .x = (float *)q->x + (size_t)i * across + (size_t)(j * q->group) * along,
        .stride = along,
        .codes = q->codes + group * (size_t)(q->group * q->bits / 32),
        .scale = q->scales + group,
        .zero = q->zeros + group,
    };
}

static void quantise_group(const struct quant_group *s, int group, int bits)
{
    float min = s->x[0], max = s->x[0], top = (float)((1 << bits) - 1);
    int per_word = 32 / bits;

    for (int i = 1; i < group; i++) {
        min = fminf(min, s->x[(size_t)i * s->stride]);
        max = fmaxf(max, s->x[(size_t)i * s->stride]);
    }
    *s->zero = f16_from_f32_finite(min);
    *s->scale = f16_from_f32_finite((max - f16_to_f32(*s->zero)) / top);
    float zero = f16_to_f32(*s->zero), scale = f16_to_f32(*s->scale);
    memset(s->codes, 0, (size_t)(group / per_word) * sizeof(*s->codes));
    for (int i = 0; i < group && scale > 0; i++) {
        float code = rintf(fminf(fmaxf((s->x[(size_t)i * s->stride] - zero) / scale, 0), top));
        s->codes[i / per_word] = (int32_t)((uint32_t)s->codes[i / per_word] | (uint32_t)code << i % per_word * bits);
    }
}

static void dequantise_group(const struct quant_group *s, int group, int bits)
{
    float zero = f16_to_f32(*s->zero), scale = f16_to_f32(*s->scale);
    uint32_t mask = (1u << bits) - 1;
    int per_word = 32 / bits;

    for (int i = 0; i < group; i++) {
        uint32_t code = (uint32_t)s->codes[i / per_word] >> i % per_word * bits & mask;
        s->x[(size_t)i * s->stride] = (float)code * scale + zero;
    }
}

static void each_group(const struct quant_item *item, int n_items, void (*work)(const struct quant_group *, int, int))
{
    for (int it = 0; it < n_items; it++) {
        const struct quant_item *q = &item[it];
        bool columns = q->lines == QUANT_COLUMNS;
        int n_lines = columns ? q->cols : q->rows, n_groups = (columns ? q->rows : q->cols) / q->group;
        for (int i = 0; i < n_lines; i++) {
            for (int j = 0; j < n_groups; j++) {
                struct quant_group s = get_group(q, i, j);
                work(&s, q->group, q->bits);
            }
        }
    }
}

void reference_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    (void)be;
    each_group(item, n_items, quantise_group);
}

void reference_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    (void)be;
    each_group(item, n_items, dequantise_group);
}
