/* cpu_compress.c - compression on the CPU: scores of keys, selection, group-wise quantising.
 *
 * Sums over many keys or many queries are cut at fixed places and added in order, so that no bit depends on the number
 * of threads or on what else is computed.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/half.h"
#include "kernels/order.h"

#include <math.h>
#include <string.h>

enum {
    KEYS = 1024,     // keys a thread takes at once
    QUERY_ROWS = 32, // query rows of one product; their scores over 8k keys fill 1 MiB
    RADIX_BITS = 8,  // of a score looked at in one pass of the selection
    RADIX = 1 << RADIX_BITS,
};
static const float LOG2_E = 1.44269504f;

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int pieces(int n, int size)
{
    return (n + size - 1) / size;
}

/* ---- scores from keys -------------------------------------------------- */

static float dot(const struct cpu *c, const float *a, const float *b, int K)
{
    float sum;

    c->rows->dots(&sum, 1, a, K, 1, b, 1, K);
    return sum;
}

static const float *key(const struct kv_rows *head, int t, int K)
{
    return (const float *)head->k + (size_t)t * (size_t)K;
}

/* Where the scores of each head begin, and where the last ones end. */
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
        for (int t = 0; t < heads[h].n; t++) {
            const float *k = key(&heads[h], t, head_dim);
            score[start[h] + (size_t)t] = -sqrtf(dot(c, k, k, head_dim));
        }
    }
}

/* mean (K) = the average of the head's keys as unit vectors. Each piece is summed alone, then added to the total, so
 * that a long sum loses little. part: scratch (K) */
static void mean_direction(const struct cpu *c, float *mean, float *part, const struct kv_rows *head, int K)
{
    size_t bytes = (size_t)K * sizeof(*mean);

    memset(mean, 0, bytes);
    for (int first = 0; first < head->n; first += KEYS) {
        memset(part, 0, bytes);
        for (int t = first; t < min(first + KEYS, head->n); t++) {
            const float *k = key(head, t, K);
            c->rows->blend(part, 1, k, 1 / fmaxf(sqrtf(dot(c, k, k, K)), 1e-12f), K);
        }
        c->rows->blend(mean, 1, part, 1 / (float)head->n, K);
    }
}

static void head_cosines(struct cpu *c, float *score, const struct kv_rows *head, int K)
{
    float *mean = cpu_scratch(c, &c->tile[cpu_thread()], 2 * (size_t)K * sizeof(*mean)); // (2, K)

    if (!mean)
        return;
    mean_direction(c, mean, mean + K, head, K);
    float norm = fmaxf(sqrtf(dot(c, mean, mean, K)), 1e-8f);
    for (int t = 0; t < head->n; t++) {
        const float *k = key(head, t, K);
        score[t] = -dot(c, k, mean, K) / (fmaxf(sqrtf(dot(c, k, k, K)), 1e-8f) * norm);
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

/* ---- scores from attention --------------------------------------------- */

/* sum (n) = the attention of QUERY_ROWS rows of an item, summed per key. */
static void add_attention(struct cpu *c, float *sum, const struct attn_item *item, int first, int K, float scale)
{
    int n = item->kv.n, n_rows = min(item->n_q - first, QUERY_ROWS);
    float *score = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)n_rows * (size_t)n * sizeof(*score)); // (n_rows, n)
    const float *q = (const float *)item->q + (size_t)first * (size_t)item->q_pitch;
    const struct matmul_shape qk = { n_rows, n, K, item->q_pitch, K, n, RIGHT_TRANSPOSED, GEMM_SET, false };
    struct err err;

    memset(sum, 0, (size_t)n * sizeof(*sum));
    if (!score)
        return;
    if (matmul_run(c->matmul, &qk, score, q, item->kv.k, NULL, NULL, cpu_thread(), &err)) {
        cpu_fail(c, &err);
        return;
    }
    for (int r = 0; r < n_rows; r++, score += n) {
        int seen = item->causal < 0 ? n : min(n, item->causal + (first + r) / item->group + 1);
        float total = c->rows->exp2_sum(score, seen, c->rows->max(score, seen), scale * LOG2_E);
        c->rows->blend(sum, 1, score, 1 / total, seen);
    }
}

void cpu_mean_attention(struct backend *be, float *score, const struct attn_item *item, int n_items, int head_dim,
                        float scale)
{
    struct cpu *c = cpu_of(be);
    int n = item[0].kv.n, n_parts = pieces(item[0].n_q, QUERY_ROWS);
    float *part = cpu_scratch(c, &c->partial, (size_t)n_items * (size_t)n_parts * (size_t)n * sizeof(*part));

    matmul_trim(c->matmul);
    if (!part)
        return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_threads)
    for (int i = 0; i < n_items * n_parts; i++)
        add_attention(c, part + (size_t)i * (size_t)n, &item[i / n_parts], i % n_parts * QUERY_ROWS, head_dim, scale);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, n_items))
    for (int i = 0; i < n_items; i++) {
        const float *from = part + (size_t)i * (size_t)n_parts * (size_t)n;
        float *to = score + (size_t)i * (size_t)n, share = 1 / (float)item[i].n_q;
        memset(to, 0, (size_t)n * sizeof(*to));
        for (int p = 0; p < n_parts; p++)
            c->rows->blend(to, 1, from + (size_t)p * (size_t)n, share, n);
    }
}

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

/* ---- selection --------------------------------------------------------- */

/* Returns the k-th largest score of a row, as score_order numbers it; *equals: how many scores equal to it belong to
 * the k largest. Finds it byte by byte from the top, among the scores that share the bytes found so far. */
static uint32_t nth_largest(const float *score, int n, int k, int *equals)
{
    uint32_t found = 0;

    for (int shift = 32 - RADIX_BITS; shift >= 0; shift -= RADIX_BITS) {
        uint32_t above = shift + RADIX_BITS == 32 ? 0 : ~0u << (shift + RADIX_BITS); // the bits found so far
        int count[RADIX] = { 0 }, digit = RADIX - 1;
        for (int i = 0; i < n; i++) {
            uint32_t order = score_order(score[i]);
            if ((order & above) == found)
                count[order >> shift & (RADIX - 1)]++;
        }
        for (; count[digit] < k; digit--)
            k -= count[digit];
        found |= (uint32_t)digit << shift;
    }
    *equals = k;
    return found;
}

static void select_row(int32_t *kept, const float *score, int n, int k)
{
    int equals, n_kept = 0;
    uint32_t lowest = nth_largest(score, n, k, &equals); // of the scores that are kept

    for (int i = 0; i < n && n_kept < k; i++) {
        uint32_t order = score_order(score[i]);
        if (order > lowest || (order == lowest && equals-- > 0))
            kept[n_kept++] = i;
    }
}

void cpu_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, int k)
{
    const struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++)
        select_row(kept + (size_t)h * (size_t)k, score + (size_t)h * (size_t)n, n, k);
}

void cpu_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                int n_heads, int head_dim)
{
    const struct cpu *c = cpu_of(be);
    size_t row = (size_t)head_dim * sizeof(float);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++) {
        const int32_t *from = kept + (size_t)h * (size_t)dst[h].n;
        for (size_t i = 0; i < (size_t)dst[h].n; i++) {
            memcpy((char *)dst[h].k + i * row, (const char *)src[h].k + (size_t)from[i] * row, row);
            memcpy((char *)dst[h].v + i * row, (const char *)src[h].v + (size_t)from[i] * row, row);
        }
    }
}

/* ---- quantising -------------------------------------------------------- */

/* One group of consecutive numbers. */
static void quantise_group(const float *x, int group, int bits, int32_t *codes, uint16_t *scale16, uint16_t *zero16)
{
    const float round = 12582912.0f, top = (float)((1 << bits) - 1); // adding 1.5 * 2^23 rounds to a whole number
    float low = x[0], high = x[0];
    int per_word = 32 / bits;

    for (int i = 1; i < group; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *zero16 = f16_from_f32_finite(low);
    float zero = f16_to_f32(*zero16);
    *scale16 = f16_from_f32_finite((high - zero) / top);
    float scale = f16_to_f32(*scale16);
    for (int w = 0; w < group / per_word; w++, x += per_word) {
        uint32_t word = 0;
        for (int i = 0; i < per_word && scale > 0; i++) {
            float code = (x[i] - zero) / scale;
            code = code > 0 ? code : 0;
            code = (code < top ? code : top) + round - round;
            word |= (uint32_t)code << i * bits;
        }
        memcpy(&codes[w], &word, sizeof(word));
    }
}

static void dequantise_group(float *x, int group, int bits, const int32_t *codes, uint16_t scale16, uint16_t zero16)
{
    float scale = f16_to_f32(scale16), zero = f16_to_f32(zero16);
    uint32_t mask = (1u << bits) - 1;
    int per_word = 32 / bits;

    for (int w = 0; w < group / per_word; w++, x += per_word)
        for (int i = 0; i < per_word; i++)
            x[i] = (float)((uint32_t)codes[w] >> i * bits & mask) * scale + zero;
}

enum way { PACK, UNPACK };

static void group_at(const struct quant_item *q, enum way way, float *x, size_t group)
{
    int32_t *codes = q->codes + group * (size_t)(q->group * q->bits / 32);

    if (way == PACK)
        quantise_group(x, q->group, q->bits, codes, &q->scales[group], &q->zeros[group]);
    else
        dequantise_group(x, q->group, q->bits, codes, q->scales[group], q->zeros[group]);
}

/* `group` rows, all columns. Each column's numbers are first copied side by side; line: scratch (group). */
static void column_groups(const struct quant_item *q, enum way way, int block, float *line)
{
    float *x = (float *)q->x + (size_t)block * (size_t)q->group * (size_t)q->cols;
    size_t per_line = (size_t)(q->rows / q->group);

    for (int c = 0; c < q->cols; c++) {
        for (int i = 0; i < q->group && way == PACK; i++)
            line[i] = x[(size_t)i * (size_t)q->cols + (size_t)c];
        group_at(q, way, line, (size_t)c * per_line + (size_t)block);
        for (int i = 0; i < q->group && way == UNPACK; i++)
            x[(size_t)i * (size_t)q->cols + (size_t)c] = line[i];
    }
}

static void row_groups(const struct quant_item *q, enum way way, int row)
{
    size_t per_line = (size_t)(q->cols / q->group);
    float *x = (float *)q->x + (size_t)row * (size_t)q->cols;

    for (size_t g = 0; g < per_line; g++)
        group_at(q, way, x + g * (size_t)q->group, (size_t)row * per_line + g);
}

/* A thread's share of the blocks of one item. */
static void run_item(struct cpu *c, const struct quant_item *q, enum way way)
{
    bool columns = q->lines == QUANT_COLUMNS;
    int n_blocks = columns ? q->rows / q->group : q->rows;
    float *line = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)q->group * sizeof(*line));

#pragma omp for schedule(static) nowait
    for (int b = 0; b < n_blocks; b++) {
        if (!columns)
            row_groups(q, way, b);
        else if (line)
            column_groups(q, way, b, line);
    }
}

static void run_items(struct cpu *c, const struct quant_item *item, int n_items, enum way way)
{
#pragma omp parallel num_threads(c->n_threads)
    for (int i = 0; i < n_items; i++)
        run_item(c, &item[i], way);
}

void cpu_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_items(cpu_of(be), item, n_items, PACK);
}

void cpu_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_items(cpu_of(be), item, n_items, UNPACK);
}
