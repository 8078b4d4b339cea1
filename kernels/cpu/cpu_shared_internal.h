/* cpu_shared_internal.h - the code of cpu_shared.h, included by files that differ in compiler flags, in SHARED (the
 * name of the function) and in SHARED_PAIRS (defined: bf16).
 *
 * The unit is a word of 32 bits: an f32 or a pair of bf16. A vector of words is multiplied by one word and added to a
 * vector of f32 sums. In bf16 q and k pair neighbouring columns as they lie in memory; weights and values pair
 * neighbouring keys. Every sum is added in the order of its words, in a register or in the memory that saved it.
 */
#include "kernels/cpu/cpu_exp2.h"
#include "kernels/cpu/cpu_shared.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16, SCORE_KEYS = 16, SCORE_KEYS_2 = 12, SCORE_KEYS_3 = 8, COLUMN_VECS = 4 };
#elif defined(__AVX2__)
enum { LANES = 8, SCORE_KEYS = 8, SCORE_KEYS_2 = 4, SCORE_KEYS_3 = 4, COLUMN_VECS = 2 };
#else
enum { LANES = 4, SCORE_KEYS = 8, SCORE_KEYS_2 = 4, SCORE_KEYS_3 = 4, COLUMN_VECS = 2 };
#endif
enum { SCORE_VECS = 3, WEIGH_ROWS = 6 }; // the most at once
enum { CACHE_LINE = 64 };
typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

typedef int32_t mask __attribute__((vector_size(LANES * sizeof(int32_t))));

INLINE vec larger(vec a, vec b)
{
    mask first = a > b;
    return (vec)(((mask)a & first) | ((mask)b & ~first));
}

#if defined(SHARED_PAIRS)

#include <immintrin.h>

enum { PER_WORD = 2 };
typedef int word __attribute__((aligned(1), may_alias));

INLINE vec multiply_add(vec sum, word x, vec y)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(x), (__m512bh)y);
}

/* Turns the weights of n keys into pairs, in place: (n / 2 rounded up, lanes). */
INLINE void pair_weights(float *p, int n, int lanes)
{
    for (int lane = 0; lane < lanes; lane += LANES)
        for (int j = 0; j < n; j += 2) {
            const float *first = p + j * lanes + lane, *second = first + lanes;
            uint32_t pair[LANES];
#pragma omp simd
            for (int i = 0; i < LANES; i++)
                pair[i] = exp2_bf16(first[i]);
            if (j + 1 < n)
#pragma omp simd
                for (int i = 0; i < LANES; i++)
                    pair[i] |= exp2_bf16(second[i]) << 16;
            memcpy(p + j / 2 * lanes + lane, pair, sizeof(pair));
        }
}

/* The values of n keys as pairs: (n / 2 rounded up, K). */
INLINE const float *values(const struct shared_piece *s, int first, int n)
{
    const uint16_t *v = (const uint16_t *)s->v + (size_t)first * (size_t)s->K;
    uint16_t place[2 * LANES]; // alternately column i of the first key and of the second, whose columns count from 32
    for (int i = 0; i < LANES; i++)
        place[2 * i] = (uint16_t)i, place[2 * i + 1] = (uint16_t)(i + 32);
    const __m512i low = _mm512_loadu_si512(place), high = _mm512_add_epi16(low, _mm512_set1_epi16(LANES));
    float *to = s->v_at;

    for (int j = 0; j < n; j += 2, v += 2 * s->K)
        for (int c = 0; c < s->K; c += SHARED_COLUMNS, to += SHARED_COLUMNS) {
            __m512i a = _mm512_loadu_si512(v + c);
            __m512i b = j + 1 < n ? _mm512_loadu_si512(v + s->K + c) : _mm512_setzero_si512();
            _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, low, b));
            _mm512_storeu_si512(to + LANES, _mm512_permutex2var_epi16(a, high, b));
        }
    return s->v_at;
}

#else

enum { PER_WORD = 1 };
typedef float word __attribute__((aligned(1), may_alias));

INLINE vec multiply_add(vec sum, word x, vec y)
{
    return sum + x * y;
}

INLINE void pair_weights(float *p, int n, int lanes)
{
    (void)p, (void)n, (void)lanes;
}

INLINE const float *values(const struct shared_piece *s, int first, int n)
{
    (void)n;
    return (const float *)s->v + (size_t)first * (size_t)s->K;
}

#endif

/* ---- scores -------------------------------------------------------------- */

/* s->q_lanes (words, lanes) = the rows of q as columns, then columns of zeros. */
static void transpose_rows(const struct shared_piece *s, int words, int lanes)
{
    const word *q = s->q;
    word *to = (word *)s->q_lanes;

    for (int j = 0; j < words; j++) {
        for (int r = 0; r < s->n_rows; r++)
            to[j * lanes + r] = q[(size_t)r * (size_t)words + (size_t)j];
        memset(to + j * lanes + s->n_rows, 0, (size_t)(lanes - s->n_rows) * sizeof(*to));
    }
}

/* n_keys keys against n_vecs vectors of rows. The first rows prefetch the keys SHARED_KEYS further on, because the
 * processor does not predict this access pattern. */
INLINE void score_block(const struct shared_piece *s, int key, int lane, int n_keys, int n_vecs, int words)
{
    int lanes = shared_lanes(s->n_rows);
    const word *k = (const word *)s->k + (size_t)key * (size_t)words;
    const float *q = s->q_lanes + lane;
    float *score = s->score + (size_t)key * (size_t)lanes + (size_t)lane;
    const word *next = k + (lane == 0 ? SHARED_KEYS * words : 0);
    vec sum[SCORE_KEYS][SCORE_VECS] = { 0 };

    for (int j = 0; j < words; j++, q += lanes, next += n_keys) {
        __builtin_prefetch(next);
        vec y[SCORE_VECS];
        for (int c = 0; c < n_vecs; c++)
            y[c] = *(const vec *)(q + c * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < n_keys; i++)
            for (int c = 0; c < n_vecs; c++)
                sum[i][c] = multiply_add(sum[i][c], k[i * words + j], y[c]);
    }
    for (int c = 0; c < n_vecs; c++) {
        vec max = *(const vec *)(s->max + lane + c * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < n_keys; i++) {
            max = larger(sum[i][c], max);
            *(vec *)(score + i * lanes + c * LANES) = sum[i][c];
        }
        *(vec *)(s->max + lane + c * LANES) = max;
    }
}

/* Keys first .. end - 1, `block` at a time. */
INLINE void score_keys(const struct shared_piece *s, int first, int end, int lane, int n_vecs, int block, int words)
{
    int key = first;

    for (; key + block <= end; key += block)
        score_block(s, key, lane, block, n_vecs, words);
    for (; key < end; key++)
        score_block(s, key, lane, 1, n_vecs, words);
}

INLINE void scores_of(const struct shared_piece *s, int words)
{
    int lanes = shared_lanes(s->n_rows);

    for (int key = 0; key < s->n_keys; key += SHARED_KEYS) {
        int end = s->n_keys - key < SHARED_KEYS ? s->n_keys : key + SHARED_KEYS, lane = 0;
        for (; lanes - lane >= 3 * LANES; lane += 3 * LANES)
            score_keys(s, key, end, lane, 3, SCORE_KEYS_3, words);
        if (lanes - lane == 2 * LANES)
            score_keys(s, key, end, lane, 2, SCORE_KEYS_2, words);
        else if (lanes - lane == LANES)
            score_keys(s, key, end, lane, 1, SCORE_KEYS, words);
    }
}

/* With common numbers of words as constants all keys of a block share one address register. */
static void scores(const struct shared_piece *s, int words)
{
    switch (words) {
    case 32: scores_of(s, 32); break;
    case 64: scores_of(s, 64); break;
    case 128: scores_of(s, 128); break;
    default: scores_of(s, words);
    }
}

/* ---- weights and values -------------------------------------------------- */

/* Turns the scores of n keys into weights and adds them to s->weight. Prefetches the keys' values. */
static void weights(const struct shared_piece *s, int first, int n, int lanes)
{
    const int row = s->K * (int)sizeof(word) / PER_WORD;
    const char *v = (const char *)s->v + (size_t)first * (size_t)row;
    float *p = s->score + (size_t)first * (size_t)lanes;

    for (int lane = 0; lane < lanes; lane += LANES) {
        const float *max = s->max + lane;
        vec sum = { 0 };
        for (int j = 0; j < n; j++) {
            float *x = p + j * lanes + lane;
            for (int c = 0; c < row && lane == 0; c += CACHE_LINE)
                __builtin_prefetch(v + j * row + c);
#pragma omp simd
            for (int i = 0; i < LANES; i++)
                x[i] = exp2_of((x[i] - max[i]) * s->scale);
            sum += *(const vec *)x;
        }
        *(vec *)(s->weight + lane) += sum;
    }
}

/* Weighted values of some keys. */
struct weighing {
    float *sum;     // (rows, K), added to
    const float *p; // (n, lanes) words
    const float *v; // (n, K) words
    int n, lanes, K;
};

/* n_vecs vectors of columns in each of n_rows rows. */
INLINE void weigh_block(const struct weighing *w, int row, int column, int n_rows, int n_vecs)
{
    float *out = w->sum + (size_t)row * (size_t)w->K + (size_t)column;
    const word *p = (const word *)w->p + row;
    const float *v = w->v + column;
    vec sum[WEIGH_ROWS][COLUMN_VECS];

    for (int i = 0; i < n_rows; i++)
        for (int c = 0; c < n_vecs; c++)
            sum[i][c] = *(const vec *)(out + i * w->K + c * LANES);
    for (int j = 0; j < w->n; j++, v += w->K, p += w->lanes) {
        vec y[COLUMN_VECS];
        for (int c = 0; c < n_vecs; c++)
            y[c] = *(const vec *)(v + c * LANES);
        for (int i = 0; i < n_rows; i++)
            for (int c = 0; c < n_vecs; c++)
                sum[i][c] = multiply_add(sum[i][c], p[i], y[c]);
    }
    for (int i = 0; i < n_rows; i++)
        for (int c = 0; c < n_vecs; c++)
            *(vec *)(out + i * w->K + c * LANES) = sum[i][c];
}

/* The last columns of a row, fewer than a vector; the vector's other lanes are 0. */
static void weigh_end(const struct weighing *w, int row, int column)
{
    size_t bytes = (size_t)(w->K - column) * sizeof(float);
    float *out = w->sum + (size_t)row * (size_t)w->K + (size_t)column;
    vec sum = { 0 }, y = { 0 };

    memcpy(&sum, out, bytes);
    for (int j = 0; j < w->n; j++) {
        memcpy(&y, w->v + (size_t)j * (size_t)w->K + (size_t)column, bytes);
        sum = multiply_add(sum, ((const word *)w->p)[j * w->lanes + row], y);
    }
    memcpy(out, &sum, bytes);
}

INLINE void weigh_rows(const struct weighing *w, int row, int n_rows)
{
    int column = 0;

    for (; column + COLUMN_VECS * LANES <= w->K; column += COLUMN_VECS * LANES)
        weigh_block(w, row, column, n_rows, COLUMN_VECS);
    for (; column + LANES <= w->K; column += LANES)
        weigh_block(w, row, column, n_rows, 1);
    for (int i = 0; i < n_rows && column < w->K; i++)
        weigh_end(w, row + i, column);
}

static void weigh(const struct weighing *w, int n_rows)
{
    for (int row = 0; row < n_rows; row += WEIGH_ROWS) {
        switch (n_rows - row) {
        case 1: weigh_rows(w, row, 1); break;
        case 2: weigh_rows(w, row, 2); break;
        case 3: weigh_rows(w, row, 3); break;
        case 4: weigh_rows(w, row, 4); break;
        case 5: weigh_rows(w, row, 5); break;
        default: weigh_rows(w, row, WEIGH_ROWS);
        }
    }
}

void SHARED(const struct shared_piece *s)
{
    int lanes = shared_lanes(s->n_rows), words = s->K / PER_WORD;

    for (int i = 0; i < lanes; i++)
        s->max[i] = -INFINITY, s->weight[i] = 0;
    if (s->sum)
        memset(s->sum, 0, (size_t)s->n_rows * (size_t)s->K * sizeof(*s->sum));
    transpose_rows(s, words, lanes);
    scores(s, words);
    for (int key = 0; key < s->n_keys; key += SHARED_KEYS) {
        int n = s->n_keys - key < SHARED_KEYS ? s->n_keys - key : SHARED_KEYS;
        weights(s, key, n, lanes);
        if (!s->sum)
            continue;
        float *p = s->score + (size_t)key * (size_t)lanes;
        pair_weights(p, n, lanes);
        weigh(&(struct weighing){ s->sum, p, values(s, key, n), (n + PER_WORD - 1) / PER_WORD, lanes, s->K },
              s->n_rows);
    }
}
