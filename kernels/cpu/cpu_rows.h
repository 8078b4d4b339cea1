/* cpu_rows.h - loops over the elements of one row or a few rows: all arithmetic that is not a matrix product.
 *
 * The loops are written once, in cpu_rows_internal.h, and compiled twice: cpu_rows.c for any processor,
 * cpu_rows_avx512.c for those with AVX-512. The backend chooses a table when it opens. The order of a sum depends on
 * the lengths alone.
 */
#ifndef EVP_CPU_ROWS_H
#define EVP_CPU_ROWS_H

#include <stdint.h>

struct row_ops {
    float (*max)(const float *x, int n); // n > 0
    /* x = 2^((x - shift) * scale), at most 2 ulp off; returns their sum */
    float (*exp2_sum)(float *x, int n, float shift, float scale);
    /* out[i][j] = q_i . k_j for n_q rows of q and n rows of k, both K wide */
    void (*dots)(float *out, int out_pitch, const float *q, int q_pitch, int n_q, const float *k, int n, int K);
    /* out_i = sum over j of p[i][j] * v_j: (n_q, K) dense from p (n_q, n) and v (n, K) */
    void (*weigh)(float *out, const float *p, int p_pitch, int n_q, const float *v, int n, int K);
    /* a = a * wa + b * wb */
    void (*blend)(float *a, float wa, const float *b, float wb, int n);
    void (*rmsnorm)(float *out, const float *x, const float *w, float eps, int n);
    /* pairs are columns i and i + K/2; cos and sin (K / 2) */
    void (*rotate)(float *out, const float *x, const float *cos, const float *sin, int K);
    void (*silu_mul)(float *out, const float *gate, const float *up, int n);
    int (*argmax)(const float *x, int n); // the first of the largest
    /* out = (x - mean) / sqrt(variance + eps) * w + b; out may be x */
    void (*layernorm)(float *out, const float *x, const float *w, const float *b, float eps, int n);
    void (*gelu)(float *x, int n); // x = x * (1 + erf(x / sqrt(2))) / 2
};

extern const struct row_ops rows_portable, rows_avx512;

/* The faster of the two that this processor can run. */
const struct row_ops *rows_best(void);

#endif
