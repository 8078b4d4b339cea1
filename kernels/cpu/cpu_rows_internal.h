/* cpu_rows_internal.h - the loops of cpu_rows.h, included by cpu_rows.c, cpu_rows_avx2.c and cpu_rows_avx512.c, which
 * differ in compiler flags and in ROWS, the name of the table.
 *
 * Plain C that the compiler turns into vectors: `omp simd` allows partial sums, and only there (no -ffast-math). A
 * function for several types is an inline one with the type as an argument; each of its callers gives a constant. Only
 * the two kernels of attention by dot products, at the end, name vectors.
 */
#include "kernels/cpu/cpu_exp2.h"
#include "kernels/cpu/cpu_rows.h"

#include <math.h>
#include <string.h>

/* ---- types --------------------------------------------------------------- */

/* Rows of a mapped file may lie anywhere. */
typedef uint16_t half_anywhere __attribute__((aligned(1), may_alias));
typedef float float_anywhere __attribute__((aligned(1), may_alias));

INLINE float get(const void *x, enum dtype type, int i)
{
    return type == DTYPE_BF16  ? bf16_to_f32(((const half_anywhere *)x)[i])
           : type == DTYPE_F16 ? f16_to_f32(((const half_anywhere *)x)[i])
                               : ((const float_anywhere *)x)[i];
}

INLINE void put(void *x, enum dtype type, int i, float value)
{
    if (type == DTYPE_BF16)
        ((uint16_t *)x)[i] = bf16_from_f32(value);
    else
        ((float *)x)[i] = value;
}

INLINE void copy_as(void *to, enum dtype type, const void *from, enum dtype was, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        put(to, type, i, get(from, was, i));
}

static void widen(float *to, const void *from, enum dtype type, int n)
{
    if (type == DTYPE_BF16)
        copy_as(to, DTYPE_F32, from, DTYPE_BF16, n);
    else if (type == DTYPE_F16)
        copy_as(to, DTYPE_F32, from, DTYPE_F16, n);
    else
        memcpy(to, from, (size_t)n * sizeof(*to));
}

static void narrow(void *to, const float *from, enum dtype type, int n)
{
    if (type == DTYPE_BF16)
        copy_as(to, DTYPE_BF16, from, DTYPE_F32, n);
    else
        memcpy(to, from, (size_t)n * sizeof(*from));
}

/* ---- exponentials -------------------------------------------------------- */

static float max(const float *x, int n)
{
    float m = x[0];
#pragma omp simd reduction(max : m)
    for (int i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

INLINE float exp2_sum_as(void *p, enum dtype type, const float *x, int n, float shift, float scale)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        float e = exp2_of((x[i] - shift) * scale);
        if (type == DTYPE_BF16)
            ((uint16_t *)p)[i] = (uint16_t)exp2_bf16(e);
        else
            ((float *)p)[i] = e;
        sum += e;
    }
    return sum;
}

static float exp2_sum(void *p, enum dtype type, const float *x, int n, float shift, float scale)
{
    return type == DTYPE_BF16 ? exp2_sum_as(p, DTYPE_BF16, x, n, shift, scale)
                              : exp2_sum_as(p, DTYPE_F32, x, n, shift, scale);
}

static void exp2_add(float *column, const float *x, int n, float scale, float shift)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        column[i] += exp2_of(x[i] * scale - shift);
}

static void exp2_max(float *column, const float *x, int n, float scale, float shift)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float e = exp2_of(x[i] * scale - shift);
        column[i] = e > column[i] ? e : column[i];
    }
}

/* ---- sums of rows -------------------------------------------------------- */

INLINE float dot_as(const void *a, const void *b, enum dtype type, int n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += get(a, type, i) * get(b, type, i);
    return sum;
}

static float dot(const float *a, const float *b, int n)
{
    return dot_as(a, b, DTYPE_F32, n);
}

static void blend(float *a, float wa, const float *b, float wb, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        a[i] = a[i] * wa + b[i] * wb;
}

INLINE void blend_as(void *out, enum dtype type, const float *a, float wa, const float *b, float wb, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        put(out, type, i, a[i] * wa + b[i] * wb);
}

static void blend_to(void *out, enum dtype type, const float *a, float wa, const float *b, float wb, int n)
{
    if (type == DTYPE_BF16)
        blend_as(out, DTYPE_BF16, a, wa, b, wb, n);
    else
        blend_as(out, DTYPE_F32, a, wa, b, wb, n);
}

INLINE void scale_as(void *out, enum dtype type, const float *x, float by, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        put(out, type, i, x[i] * by);
}

static void scale_to(void *out, enum dtype type, const float *x, float by, int n)
{
    if (type == DTYPE_BF16)
        scale_as(out, DTYPE_BF16, x, by, n);
    else
        scale_as(out, DTYPE_F32, x, by, n);
}

/* ---- Llama --------------------------------------------------------------- */

INLINE void rmsnorm_as(void *out, enum dtype to, const void *x, enum dtype from, const float *w, float eps, int n)
{
    float scale = 1 / sqrtf(dot_as(x, x, from, n) / (float)n + eps);
#pragma omp simd
    for (int i = 0; i < n; i++)
        put(out, to, i, get(x, from, i) * scale * w[i]);
}

static void rmsnorm(void *out, enum dtype to, const void *x, enum dtype from, const float *w, float eps, int n)
{
    if (to == DTYPE_BF16)
        rmsnorm_as(out, DTYPE_BF16, x, DTYPE_F32, w, eps, n);
    else if (from == DTYPE_BF16)
        rmsnorm_as(out, DTYPE_F32, x, DTYPE_BF16, w, eps, n);
    else
        rmsnorm_as(out, DTYPE_F32, x, DTYPE_F32, w, eps, n);
}

INLINE void rotate_as(void *out, enum dtype to, const void *x, enum dtype from, const float *cos, const float *sin,
                      int K)
{
    int half = K / 2;
#pragma omp simd
    for (int i = 0; i < half; i++) {
        float a = get(x, from, i), b = get(x, from, i + half);
        put(out, to, i, a * cos[i] - b * sin[i]);
        put(out, to, i + half, b * cos[i] + a * sin[i]);
    }
}

static void rotate(void *out, enum dtype to, const void *x, enum dtype from, const float *cos, const float *sin, int K)
{
    if (from == DTYPE_BF16)
        rotate_as(out, DTYPE_BF16, x, DTYPE_BF16, cos, sin, K);
    else if (to == DTYPE_BF16)
        rotate_as(out, DTYPE_BF16, x, DTYPE_F32, cos, sin, K);
    else
        rotate_as(out, DTYPE_F32, x, DTYPE_F32, cos, sin, K);
}

INLINE void silu_mul_as(void *out, const void *gate, const void *up, enum dtype type, int n)
{
    const float log2_e = 1.44269504f;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float g = get(gate, type, i), e = exp2_of((g < 0 ? g : -g) * log2_e); // e^-|g|
        put(out, type, i, (g < 0 ? g * e : g) / (1 + e) * get(up, type, i));
    }
}

static void silu_mul(void *out, const void *gate, const void *up, enum dtype type, int n)
{
    if (type == DTYPE_BF16)
        silu_mul_as(out, gate, up, DTYPE_BF16, n);
    else
        silu_mul_as(out, gate, up, DTYPE_F32, n);
}

/* The largest and second largest of each of BEST_LANES interleaved sequences; then of all. */
enum { BEST_LANES = 64 };
struct lanes {
    float first[BEST_LANES], second[BEST_LANES];
    uint32_t bits[BEST_LANES]; // the largest bit pattern without its sign: not finite from 0x7f800000
};

INLINE void best_block(struct lanes *l, const float *x, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        uint32_t bits = half_bits(x[i]) & 0x7fffffff;
        float lower = x[i] < l->first[i] ? x[i] : l->first[i];
        l->first[i] = x[i] > l->first[i] ? x[i] : l->first[i];
        l->second[i] = lower > l->second[i] ? lower : l->second[i];
        l->bits[i] = bits > l->bits[i] ? bits : l->bits[i];
    }
}

INLINE bool contains(const float *x, int n, float value)
{
    int found = 0;
#pragma omp simd reduction(| : found)
    for (int i = 0; i < n; i++)
        found |= x[i] == value;
    return found;
}

static int first_of(const float *x, int n, float value)
{
    int i = 0;
    while (i + BEST_LANES <= n && !contains(x + i, BEST_LANES, value))
        i += BEST_LANES;
    while (i < n && x[i] != value)
        i++;
    return i;
}

static struct best best(const float *x, int n)
{
    struct lanes l;
    struct best b = { .id = -1, .value = -INFINITY, .second = -INFINITY };
    int i = 0;

    for (int j = 0; j < BEST_LANES; j++)
        l.first[j] = l.second[j] = -INFINITY, l.bits[j] = 0;
    for (; i + BEST_LANES <= n; i += BEST_LANES)
        best_block(&l, x + i, BEST_LANES);
    best_block(&l, x + i, n - i);
    for (int j = 0; j < BEST_LANES; j++) {
        float lower = l.first[j] < b.value ? l.first[j] : b.value;
        if (l.bits[j] >= 0x7f800000)
            return (struct best){ .id = -1, .value = NAN, .second = NAN };
        b.value = l.first[j] > b.value ? l.first[j] : b.value;
        b.second = fmaxf(b.second, fmaxf(lower, l.second[j]));
    }
    b.id = first_of(x, n, b.value);
    return b;
}

/* ---- BERT ---------------------------------------------------------------- */

static void layernorm(float *out, const float *x, const float *w, const float *b, float eps, int n)
{
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[i];
    float mean = sum / (float)n;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    float scale = 1 / sqrtf(squares / (float)n + eps);
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = (x[i] - mean) * scale * w[i] + b[i];
}

/* erf(x), at most 4e-7 off: x times a rational function of x^2 on [-4, 4], beyond which an f32 knows only 1. The
 * coefficients are those of Eigen's generic_fast_erf_float. */
static inline float erf_rational(float x)
{
    float bounded = x > 4.0f ? 4.0f : x < -4.0f ? -4.0f : x, x2 = bounded * bounded;
    float p = -2.72614225801306e-10f;
    p = p * x2 + 2.77068142495902e-08f;
    p = p * x2 - 2.10102402082508e-06f;
    p = p * x2 - 5.69250639462346e-05f;
    p = p * x2 - 7.34990630326855e-04f;
    p = p * x2 - 2.95459980854025e-03f;
    p = p * x2 - 1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * x2 - 2.13374055278905e-04f;
    q = q * x2 - 1.68282697438203e-03f;
    q = q * x2 - 7.37332916720468e-03f;
    q = q * x2 - 1.42647390514189e-02f;
    float y = bounded * p / q;
    return y > 1.0f ? 1.0f : y < -1.0f ? -1.0f : y;
}

static void gelu(float *x, int n)
{
    const float root_half = 0.70710678f;
#pragma omp simd
    for (int i = 0; i < n; i++)
        x[i] = 0.5f * x[i] * (1.0f + erf_rational(x[i] * root_half));
}

/* ---- attention by dot products ------------------------------------------- */

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
enum { BLOCK_ROWS = 4, BLOCK_VECS = 4 }; // rows of q or p at once; vectors of a row of v at once

enum { SQUARE = 8 }; // keys and columns that are transposed together
typedef float square_row __attribute__((vector_size(SQUARE * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef uint32_t square_bits __attribute__((vector_size(SQUARE * sizeof(uint32_t))));
typedef uint16_t square_halves __attribute__((vector_size(SQUARE * sizeof(uint16_t)), aligned(2), may_alias));

INLINE void load_row(square_row *r, const void *x, enum dtype type)
{
    if (type == DTYPE_BF16)
        *r = (square_row)(__builtin_convertvector(*(const square_halves *)x, square_bits) << 16);
    else
        *r = *(const square_row *)x;
}

/* Of the six bits of an element's place, three of the row and three of the column, the first becomes the last. Three
 * times that is the transposed square. */
INLINE void rotate_places(square_row r[SQUARE])
{
    square_row t[SQUARE];

    for (int i = 0; i < SQUARE / 2; i++) {
        t[2 * i] = __builtin_shufflevector(r[i], r[i + SQUARE / 2], 0, 8, 1, 9, 2, 10, 3, 11);
        t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + SQUARE / 2], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < SQUARE; i++)
        r[i] = t[i];
}

/* Columns of n keys, at most SQUARE, to the first places of rows of ROWS_KEYS; missing keys are 0. */
INLINE void transpose_keys(float *to, const void *k, enum dtype type, int n, int K)
{
    size_t size = dtype_size(type), pitch = (size_t)K * size;
    int c = 0;

    for (; c + SQUARE <= K; c += SQUARE) {
        square_row r[SQUARE] = { 0 };
        for (int i = 0; i < SQUARE; i++)
            if (i < n)
                load_row(&r[i], (const char *)k + (size_t)i * pitch + (size_t)c * size, type);
        for (int i = 0; i < 3; i++)
            rotate_places(r);
        for (int i = 0; i < SQUARE; i++)
            *(square_row *)(to + (c + i) * ROWS_KEYS) = r[i];
    }
    for (; c < K; c++)
        for (int i = 0; i < SQUARE; i++)
            to[c * ROWS_KEYS + i] = i < n ? get((const char *)k + (size_t)i * pitch, type, c) : 0;
}

INLINE void transpose_as(float *to, const void *k, enum dtype type, int n, int K)
{
    for (int first = 0; first < n; first += ROWS_KEYS, to += (size_t)K * ROWS_KEYS) {
        for (int j = 0; j < ROWS_KEYS; j += SQUARE) {
            const char *from = (const char *)k + (size_t)(first + j) * (size_t)K * dtype_size(type);
            if (n - first - j >= SQUARE)
                transpose_keys(to + j, from, type, SQUARE, K);
            else
                transpose_keys(to + j, from, type, n - first - j, K);
        }
    }
}

static void transpose(float *to, const void *k, enum dtype type, int n, int K)
{
    if (type == DTYPE_BF16)
        transpose_as(to, k, DTYPE_BF16, n, K);
    else
        transpose_as(to, k, DTYPE_F32, n, K);
}

/* n_q rows (at most BLOCK_ROWS) against two vectors of keys. */
INLINE void dots_block(float *score, size_t pitch, const float *q, const float *keys, int n_q, int K)
{
    vec sum[BLOCK_ROWS][2] = { 0 };

    for (int c = 0; c < K; c++) {
        vec a = *(const vec *)(keys + c * ROWS_KEYS), b = *(const vec *)(keys + c * ROWS_KEYS + LANES);
        for (int i = 0; i < n_q; i++) {
            float x = q[i * K + c];
            sum[i][0] += x * a;
            sum[i][1] += x * b;
        }
    }
    for (int i = 0; i < n_q; i++) {
        *(vec *)(score + (size_t)i * pitch) = sum[i][0];
        *(vec *)(score + (size_t)i * pitch + LANES) = sum[i][1];
    }
}

static void dots(const struct dots *d)
{
    size_t block = (size_t)d->K * ROWS_KEYS;

    for (int key = 0; key < d->n; key += ROWS_KEYS) {
        for (int row = 0; row < d->n_q; row += BLOCK_ROWS) {
            const float *q = d->q + (size_t)row * (size_t)d->K;
            for (int lane = 0; lane < ROWS_KEYS; lane += 2 * LANES) {
                float *to = d->score + (size_t)row * d->pitch + (size_t)(key + lane);
                const float *keys = d->keys + (size_t)(key / ROWS_KEYS) * block + (size_t)lane;
                switch (d->n_q - row) {
                case 1: dots_block(to, d->pitch, q, keys, 1, d->K); break;
                case 2: dots_block(to, d->pitch, q, keys, 2, d->K); break;
                case 3: dots_block(to, d->pitch, q, keys, 3, d->K); break;
                default: dots_block(to, d->pitch, q, keys, BLOCK_ROWS, d->K);
                }
            }
        }
    }
}

/* Columns of n_vecs vectors of n_q rows of out. */
INLINE void weigh_block(const struct weigh *w, int row, int column, int n_q, int n_vecs)
{
    float *out = w->out + (size_t)row * (size_t)w->K + (size_t)column;
    const float *p = w->p + (size_t)row * w->pitch, *v = w->v + column;
    vec sum[BLOCK_ROWS][BLOCK_VECS];

    for (int i = 0; i < n_q; i++)
        for (int c = 0; c < n_vecs; c++)
            sum[i][c] = *(const vec *)(out + i * w->K + c * LANES);
    for (int j = 0; j < w->n; j++, v += w->K) {
        vec x[BLOCK_VECS];
        for (int c = 0; c < n_vecs; c++)
            x[c] = *(const vec *)(v + c * LANES);
        for (int i = 0; i < n_q; i++)
            for (int c = 0; c < n_vecs; c++)
                sum[i][c] += p[(size_t)i * w->pitch + (size_t)j] * x[c];
    }
    for (int i = 0; i < n_q; i++)
        for (int c = 0; c < n_vecs; c++)
            *(vec *)(out + i * w->K + c * LANES) = sum[i][c];
}

/* The last n_columns columns, fewer than a vector: the same with what is beyond them 0. */
INLINE void weigh_end(const struct weigh *w, int row, int column, int n_q, int n_columns)
{
    float *out = w->out + (size_t)row * (size_t)w->K + (size_t)column;
    const float *p = w->p + (size_t)row * w->pitch, *v = w->v + column;
    size_t bytes = (size_t)n_columns * sizeof(float);
    vec sum[BLOCK_ROWS] = { 0 }, x = { 0 };

    for (int i = 0; i < n_q; i++)
        memcpy(&sum[i], out + i * w->K, bytes);
    for (int j = 0; j < w->n; j++, v += w->K) {
        memcpy(&x, v, bytes);
        for (int i = 0; i < n_q; i++)
            sum[i] += p[(size_t)i * w->pitch + (size_t)j] * x;
    }
    for (int i = 0; i < n_q; i++)
        memcpy(out + i * w->K, &sum[i], bytes);
}

/* All columns of n_q rows: by four vectors, by one, and the rest. */
INLINE void weigh_rows(const struct weigh *w, int row, int n_q)
{
    int column = 0;

    for (; column + BLOCK_VECS * LANES <= w->K; column += BLOCK_VECS * LANES)
        weigh_block(w, row, column, n_q, BLOCK_VECS);
    for (; column + LANES <= w->K; column += LANES)
        weigh_block(w, row, column, n_q, 1);
    if (column < w->K)
        weigh_end(w, row, column, n_q, w->K - column);
}

static void weigh(const struct weigh *w)
{
    for (int row = 0; row < w->n_q; row += BLOCK_ROWS) {
        switch (w->n_q - row) {
        case 1: weigh_rows(w, row, 1); break;
        case 2: weigh_rows(w, row, 2); break;
        case 3: weigh_rows(w, row, 3); break;
        default: weigh_rows(w, row, BLOCK_ROWS);
        }
    }
}

const struct row_ops ROWS = {
    .widen = widen,
    .narrow = narrow,
    .dot = dot,
    .max = max,
    .exp2_sum = exp2_sum,
    .exp2_add = exp2_add,
    .exp2_max = exp2_max,
    .transpose = transpose,
    .dots = dots,
    .weigh = weigh,
    .blend = blend,
    .blend_to = blend_to,
    .scale_to = scale_to,
    .rmsnorm = rmsnorm,
    .rotate = rotate,
    .silu_mul = silu_mul,
    .best = best,
    .layernorm = layernorm,
    .gelu = gelu,
};
