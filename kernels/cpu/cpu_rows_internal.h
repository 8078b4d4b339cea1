/* cpu_rows_internal.h - the loops of cpu_rows.h, included by cpu_rows.c, cpu_rows_avx2.c and cpu_rows_avx512.c. These
 * differ in compiler flags and in ROWS, the name of the table.
 *
 * Plain C that the compiler turns into vectors: only `omp simd` loops may use partial sums (no -ffast-math). A function
 * for several types is inline and has the type as an argument; every caller passes a constant. Only the two kernels of
 * attention by dot products, at the end, use vector types.
 */
#include "kernels/cpu/cpu_exp2.h"
#include "kernels/cpu/cpu_rows.h"
#include "kernels/softmax.h"

#include <math.h>
#include <string.h>

/* ---- types --------------------------------------------------------------- */

/* Rows of a mapped file may have any alignment. */
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

/* tanh on -7.9 .. 7.9, beyond which it is 1 in f32, as an odd polynomial over an even one (Eigen's); 6 ulp off. */
static void soft_cap(float *x, int n, float cap)
{
    static const float odd[] = { -2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                                 5.12229709037114e-08f,  1.48572235717979e-05f, 6.37261928875436e-04f,
                                 4.89352455891786e-03f };
    static const float even[] = { 1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f,
                                  4.89352518554385e-03f };
    const float limit = 7.90531110763549805f, steep = 1 / cap;

#pragma omp simd
    for (int i = 0; i < n; i++) {
        float y = x[i] * steep, p = odd[0], q = even[0];
        y = y > limit ? limit : y < -limit ? -limit : y;
        const float square = y * y;
        for (int j = 1; j < 7; j++)
            p = p * square + odd[j];
        for (int j = 1; j < 4; j++)
            q = q * square + even[j];
        x[i] = cap * (y * p / q);
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

INLINE void gate_mul_as(void *out, const void *x, const void *up, enum dtype type, int n, enum gate gate)
{
    const float log2_e = 1.44269504f, steep = (float)GELU_STEEP, cube = (float)GELU_CUBE;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float g = get(x, type, i), u = get(up, type, i), y = g;
        if (gate == GATE_GELU)
            y = steep * (g + cube * g * g * g);
        if (gate == GATE_CLAMPED) {
            g = g > CLAMPED_AT ? CLAMPED_AT : g;
            u = (u > CLAMPED_AT ? CLAMPED_AT : u < -CLAMPED_AT ? -CLAMPED_AT : u) + 1;
            y = (float)CLAMPED_STEEP * g;
        }
        float e = exp2_of((y < 0 ? y : -y) * log2_e); // e^-|y|
        put(out, type, i, (g < 0 ? g * e : g) / (1 + e) * u);
    }
}

static void gate_mul(void *out, const void *x, const void *up, enum dtype type, int n, enum gate gate)
{
#define EACH_TYPE(gate)                                                                                                \
    if (type == DTYPE_BF16)                                                                                            \
        gate_mul_as(out, x, up, DTYPE_BF16, n, gate);                                                                  \
    else                                                                                                               \
        gate_mul_as(out, x, up, DTYPE_F32, n, gate)
    switch (gate) {
    case GATE_SILU: EACH_TYPE(GATE_SILU); break;
    case GATE_GELU: EACH_TYPE(GATE_GELU); break;
    case GATE_CLAMPED: EACH_TYPE(GATE_CLAMPED); break;
    }
#undef EACH_TYPE
}

/* The largest and second largest of each of BEST_LANES interleaved sequences; best() reduces them. */
enum { BEST_LANES = 64 };
struct lanes {
    float first[BEST_LANES], second[BEST_LANES];
    uint32_t bits[BEST_LANES]; // the largest bit pattern without sign; from 0x7f800000 on a number is not finite
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

static double weights(float *weight, const float *logit, int n, float largest, float inverse)
{
    double sum = 0;

#pragma omp simd
    for (int i = 0; i < n; i++)
        weight[i] = softmax_weight(logit[i], largest, inverse);
    for (int i = 0; i < n; i++)
        sum += (double)weight[i];
    return sum;
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

/* erf(x), at most 4e-7 off: x times a rational function of x^2 on [-4, 4]; beyond, erf rounds to +-1 in f32. The
 * coefficients come from Eigen's generic_fast_erf_float. */
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
enum { WEIGH_VECS = 4 }; // vectors of a row of v at once

/* Shuffles that interleave two vectors: lanes 0 .. LANES/2 - 1 of both, and the other lanes. */
#if defined(__AVX512F__)
#define LOW_BY_TURNS  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_BY_TURNS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
#define LOW_BY_TURNS  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_BY_TURNS 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW_BY_TURNS  0, 4, 1, 5
#define HIGH_BY_TURNS 2, 6, 3, 7
#endif

/* Lane i of the result is the sum of the lanes of part[i]: adds halves to halves, then quarters to quarters, ... */
INLINE vec sums_of(vec part[LANES])
{
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            part[i] = __builtin_shufflevector(part[i], part[i + half], LOW_BY_TURNS) +
                      __builtin_shufflevector(part[i], part[i + half], HIGH_BY_TURNS);
    return part[0];
}

typedef uint32_t bits __attribute__((vector_size(LANES * sizeof(uint32_t))));
typedef uint16_t halves __attribute__((vector_size(LANES * sizeof(uint16_t)), aligned(2), may_alias));

/* A vector of row `row` of x (rows, K) from `column` on; 0 beyond the row's end. */
INLINE vec load_row(const void *x, enum dtype type, int row, int column, int K)
{
    size_t size = dtype_size(type);
    const char *at = (const char *)x + ((size_t)row * (size_t)K + (size_t)column) * size;
    char end[sizeof(vec)] = { 0 };

    if (column + LANES > K)
        at = memcpy(end, at, (size_t)(K - column) * size);
    if (type == DTYPE_BF16)
        return (vec)(__builtin_convertvector(*(const halves *)at, bits) << 16);
    return *(const vec *)at;
}

/* n_q <= ROWS_FEW rows against n <= LANES keys: sums in vectors of columns, then adds up the lanes. */
INLINE void dots_block(const struct dots *d, int row, int key, int n_q, int n, enum dtype type, int K)
{
    const float *q = d->q + (size_t)row * (size_t)K;
    float *score = d->score + (size_t)row * d->pitch + (size_t)key;
    vec part[ROWS_FEW][LANES];

    for (int j = 0; j < n; j++) {
        vec sum[ROWS_FEW] = { 0 };
        for (int c = 0; c < K; c += LANES) {
            vec y = load_row(d->keys, type, key + j, c, K);
            for (int i = 0; i < n_q; i++)
                sum[i] += load_row(q, DTYPE_F32, i, c, K) * y;
        }
        for (int i = 0; i < n_q; i++)
            part[i][j] = sum[i];
    }
    for (int i = 0; i < n_q; i++) {
        for (int j = n; j < LANES; j++)
            part[i][j] = (vec){ 0 };
        *(vec *)(score + (size_t)i * d->pitch) = sums_of(part[i]);
    }
}

INLINE void dots_of(const struct dots *d, enum dtype type, int K)
{
    for (int key = 0; key < d->n; key += LANES) {
        int n = d->n - key < LANES ? d->n - key : LANES;
        for (int row = 0; row < d->n_q; row += ROWS_FEW) {
            switch (d->n_q - row) {
            case 1: dots_block(d, row, key, 1, n, type, K); break;
            case 2: dots_block(d, row, key, 2, n, type, K); break;
            default: dots_block(d, row, key, ROWS_FEW, n, type, K);
            }
        }
    }
}

/* With common widths as constants a block's rows stay in registers. */
INLINE void dots_as(const struct dots *d, enum dtype type)
{
    switch (d->K) {
    case 64: dots_of(d, type, 64); break;
    case 128: dots_of(d, type, 128); break;
    default: dots_of(d, type, d->K);
    }
}

static void dots(const struct dots *d)
{
    if (d->type == DTYPE_BF16)
        dots_as(d, DTYPE_BF16);
    else
        dots_as(d, DTYPE_F32);
}

/* n_vecs vectors of columns in each of n_q rows of out. */
INLINE void weigh_block(const struct weigh *w, int row, int column, int n_q, int n_vecs, enum dtype type)
{
    float *out = w->out + (size_t)row * (size_t)w->K + (size_t)column;
    const float *p = w->p + (size_t)row * w->pitch;
    vec sum[ROWS_FEW][WEIGH_VECS];

    for (int i = 0; i < n_q; i++)
        for (int c = 0; c < n_vecs; c++)
            sum[i][c] = *(const vec *)(out + i * w->K + c * LANES);
    for (int j = 0; j < w->n; j++) {
        vec x[WEIGH_VECS];
        for (int c = 0; c < n_vecs; c++)
            x[c] = load_row(w->v, type, j, column + c * LANES, w->K);
        for (int i = 0; i < n_q; i++)
            for (int c = 0; c < n_vecs; c++)
                sum[i][c] += p[(size_t)i * w->pitch + (size_t)j] * x[c];
    }
    for (int i = 0; i < n_q; i++)
        for (int c = 0; c < n_vecs; c++)
            *(vec *)(out + i * w->K + c * LANES) = sum[i][c];
}

/* The last columns, fewer than a vector; the vector's other lanes are 0. */
INLINE void weigh_end(const struct weigh *w, int row, int column, int n_q, enum dtype type)
{
    float *out = w->out + (size_t)row * (size_t)w->K + (size_t)column;
    const float *p = w->p + (size_t)row * w->pitch;
    size_t bytes = (size_t)(w->K - column) * sizeof(float);
    vec sum[ROWS_FEW] = { 0 };

    for (int i = 0; i < n_q; i++)
        memcpy(&sum[i], out + i * w->K, bytes);
    for (int j = 0; j < w->n; j++) {
        vec x = load_row(w->v, type, j, column, w->K);
        for (int i = 0; i < n_q; i++)
            sum[i] += p[(size_t)i * w->pitch + (size_t)j] * x;
    }
    for (int i = 0; i < n_q; i++)
        memcpy(out + i * w->K, &sum[i], bytes);
}

/* All columns of n_q rows: four vectors at a time, then one, then the rest. */
INLINE void weigh_rows(const struct weigh *w, int row, int n_q, enum dtype type)
{
    int column = 0;

    for (; column + WEIGH_VECS * LANES <= w->K; column += WEIGH_VECS * LANES)
        weigh_block(w, row, column, n_q, WEIGH_VECS, type);
    for (; column + LANES <= w->K; column += LANES)
        weigh_block(w, row, column, n_q, 1, type);
    if (column < w->K)
        weigh_end(w, row, column, n_q, type);
}

INLINE void weigh_as(const struct weigh *w, enum dtype type)
{
    for (int row = 0; row < w->n_q; row += ROWS_FEW) {
        switch (w->n_q - row) {
        case 1: weigh_rows(w, row, 1, type); break;
        case 2: weigh_rows(w, row, 2, type); break;
        default: weigh_rows(w, row, ROWS_FEW, type);
        }
    }
}

static void weigh(const struct weigh *w)
{
    if (w->type == DTYPE_BF16)
        weigh_as(w, DTYPE_BF16);
    else
        weigh_as(w, DTYPE_F32);
}

const struct row_ops ROWS = {
    .widen = widen,
    .narrow = narrow,
    .dot = dot,
    .max = max,
    .exp2_sum = exp2_sum,
    .exp2_add = exp2_add,
    .exp2_max = exp2_max,
    .soft_cap = soft_cap,
    .dots = dots,
    .weigh = weigh,
    .blend = blend,
    .blend_to = blend_to,
    .scale_to = scale_to,
    .rmsnorm = rmsnorm,
    .rotate = rotate,
    .gate_mul = gate_mul,
    .best = best,
    .weights = weights,
    .layernorm = layernorm,
    .gelu = gelu,
};
