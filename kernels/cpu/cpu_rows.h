/* cpu_rows.h - loops over the elements of one row or a few rows: all arithmetic outside matrix products.
 *
 * The loops are written once, in cpu_rows_internal.h, and compiled three times: cpu_rows.c for any processor,
 * cpu_rows_avx2.c and cpu_rows_avx512.c for processors with these instructions. The backend chooses a table when it
 * opens. The order of a sum depends only on the lengths.
 *
 * Where a function takes a `type`, the untyped rows are f32 or bf16 (widen: f16 too); arithmetic is f32.
 */
#ifndef EVP_CPU_ROWS_H
#define EVP_CPU_ROWS_H

#include "kernels/backend.h"

enum {
    ROWS_FEW = 3,     // query rows that dots and weigh multiply at once
    ROWS_HEAD = 1024, // the widest head
};

/* score (n_q, n) = q (n_q, K) times the transpose of keys (n, K). Score rows are `pitch` apart; n rounded up to a
 * multiple of 16 numbers of each may be written. */
struct dots {
    float *score;
    size_t pitch;
    const float *q;
    const void *keys;
    enum dtype type; // of keys
    int n_q, n, K;
};

/* out (n_q, K) += p (n_q, n) times v (n, K). Rows of p are `pitch` apart. */
struct weigh {
    float *out;
    const float *p;
    size_t pitch;
    const void *v;
    enum dtype type; // of v
    int n_q, n, K;
};

struct row_ops {
    void (*widen)(float *to, const void *from, enum dtype type, int n);
    void (*narrow)(void *to, const float *from, enum dtype type, int n);
    float (*dot)(const float *a, const float *b, int n);
    float (*max)(const float *x, int n); // n > 0
    /* p = 2^((x - shift) * scale), at most 2 ulp off before rounding to `type`; returns the sum before rounding; an f32
     * p may be x */
    float (*exp2_sum)(void *p, enum dtype type, const float *x, int n, float shift, float scale);
    /* column[j] += 2^(x[j] * scale - shift); exp2_max: column[j] = the larger of both */
    void (*exp2_add)(float *column, const float *x, int n, float scale, float shift);
    void (*exp2_max)(float *column, const float *x, int n, float scale, float shift);
    void (*soft_cap)(float *x, int n, float cap); // x = cap * tanh(x / cap); nan stays nan
    /* each dot product of dots and each sum of weigh has one fixed order, whatever the other rows and keys are */
    void (*dots)(const struct dots *d);
    void (*weigh)(const struct weigh *w);
    /* a = a * wa + b * wb */
    void (*blend)(float *a, float wa, const float *b, float wb, int n);
    void (*blend_to)(void *out, enum dtype type, const float *a, float wa, const float *b, float wb, int n);
    void (*scale_to)(void *out, enum dtype type, const float *x, float by, int n);
    /* out = x / sqrt(mean(x^2) + eps) * w; x or out may be bf16, not both */
    void (*rmsnorm)(void *out, enum dtype to, const void *x, enum dtype from, const float *w, float eps, int n);
    /* pairs are columns i and i + K/2; cos and sin (K / 2); an f32 row may become bf16 */
    void (*rotate)(void *out, enum dtype to, const void *x, enum dtype from, const float *cos, const float *sin, int K);
    void (*gate_mul)(void *out, const void *x, const void *up, enum dtype type, int n, enum gate gate);
    struct best (*best)(const float *x, int n);
    /* weight = softmax_weight() of each logit; returns their sum, added in order */
    double (*weights)(float *weight, const float *logit, int n, float largest, float inverse);
    /* out = (x - mean) / sqrt(variance + eps) * w + b; out may be x */
    void (*layernorm)(float *out, const float *x, const float *w, const float *b, float eps, int n);
    void (*gelu)(float *x, int n); // x = x * (1 + erf(x / sqrt(2))) / 2
};

extern const struct row_ops rows_portable, rows_avx2, rows_avx512;

/* The fastest of these that this processor can run. */
const struct row_ops *rows_best(void);

#endif
