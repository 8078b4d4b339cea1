/* cpu_rows_internal.h - the loops of cpu_rows.h, included by cpu_rows.c and cpu_rows_avx512.c, which differ in compiler
 * flags and in ROWS, the name of the table.
 *
 * Plain C that the compiler turns into vectors: `omp simd` allows partial sums, and only there (no -ffast-math).
 */
#include "kernels/cpu/cpu_rows.h"

#include <math.h>
#include <string.h>

/* 2^x for x <= 0, at most 2 ulp off; 2^-126 for x < -126. The polynomial is 2^f on [-0.5, 0.5] (minimax). */
static inline float exp2_below(float x)
{
    const float round = 12582912.0f; // adding 1.5 * 2^23 rounds to a whole number
    float bounded = x < -126.0f ? -126.0f : x, whole = bounded + round - round, f = bounded - whole;
    float p = 1.535336188e-4f;
    p = p * f + 1.339887440e-3f;
    p = p * f + 9.618437357e-3f;
    p = p * f + 5.550332471e-2f;
    p = p * f + 2.402264791e-1f;
    p = p * f + 6.931472028e-1f;
    p = p * f + 1.0f;
    uint32_t bits = (uint32_t)((int32_t)whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof(power));
    return p * power;
}

static float max(const float *x, int n)
{
    float m = x[0];
#pragma omp simd reduction(max : m)
    for (int i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static float exp2_sum(float *x, int n, float shift, float scale)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        x[i] = exp2_below((x[i] - shift) * scale);
        sum += x[i];
    }
    return sum;
}

static inline float dot(const float *a, const float *b, int n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void dots(float *out, int out_pitch, const float *q, int q_pitch, int n_q, const float *k, int n, int K)
{
    for (int j = 0; j < n; j++, k += K)
        for (int i = 0; i < n_q; i++)
            out[i * out_pitch + j] = dot(q + i * q_pitch, k, K);
}

static void weigh(float *out, const float *p, int p_pitch, int n_q, const float *v, int n, int K)
{
    memset(out, 0, (size_t)n_q * (size_t)K * sizeof(*out));
    for (int j = 0; j < n; j++, v += K)
        for (int i = 0; i < n_q; i++) {
            float w = p[i * p_pitch + j];
#pragma omp simd
            for (int c = 0; c < K; c++)
                out[i * K + c] += w * v[c];
        }
}

static void blend(float *a, float wa, const float *b, float wb, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        a[i] = a[i] * wa + b[i] * wb;
}

static void rmsnorm(float *out, const float *x, const float *w, float eps, int n)
{
    float scale = 1 / sqrtf(dot(x, x, n) / (float)n + eps);
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = x[i] * scale * w[i];
}

static void rotate(float *out, const float *x, const float *cos, const float *sin, int K)
{
    int half = K / 2;
#pragma omp simd
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        out[i] = a * cos[i] - b * sin[i];
        out[i + half] = b * cos[i] + a * sin[i];
    }
}

static void silu_mul(float *out, const float *gate, const float *up, int n)
{
    const float log2_e = 1.44269504f;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float g = gate[i], e = exp2_below((g < 0 ? g : -g) * log2_e); // e^-|g|
        out[i] = (g < 0 ? g * e : g) / (1 + e) * up[i];
    }
}

static int argmax(const float *x, int n)
{
    float m = max(x, n);
    for (int i = 0; i < n; i++)
        if (x[i] == m)
            return i;
    return 0; // nothing but nan
}

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

const struct row_ops ROWS = {
    .max = max,
    .exp2_sum = exp2_sum,
    .dots = dots,
    .weigh = weigh,
    .blend = blend,
    .rmsnorm = rmsnorm,
    .rotate = rotate,
    .silu_mul = silu_mul,
    .argmax = argmax,
    .layernorm = layernorm,
    .gelu = gelu,
};
