/* softmax.h - the weights by which op draw takes tokens, with the same bits on every backend: backends that agree on
 * the logits of a row draw the same token. C and CUDA share this file.
 *
 * Every step is one rounding that IEEE 754 defines, on a processor and on a GPU: fmaf() where a product is added to
 * something, so that no compiler chooses, and no number is subnormal.
 */
#ifndef EVP_SOFTMAX_H
#define EVP_SOFTMAX_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus // CUDA: for kernels
#define SOFTMAX_INLINE static __device__ __forceinline__
#else
#define SOFTMAX_INLINE static inline __attribute__((always_inline))
#endif

/* Tokens whose weights are added one after the other; then their sums are. */
enum { SOFTMAX_BLOCK = 512 };

/* e^x for x <= 0, at most 1.02 ulp off; 0 below -87. x = n ln 2 + r, and e^r is Cephes' polynomial for |r| up
 * to half of ln 2. */
SOFTMAX_INLINE float softmax_exp(float x)
{
    const float round = 12582912.0f; // adding 1.5 * 2^23 rounds to a whole number, in the lowest bits of the sum
    const float bounded = x < -87.0f ? -87.0f : x;
    const float whole = fmaf(bounded, 1.44269504f, round), n = whole - round;
    const float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, bounded));
    float p = 1.9875691500e-4f, power;
    uint32_t bits;

    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    memcpy(&bits, &whole, sizeof(bits));
    bits = (bits << 23) + 0x3f800000; // of 2^n
    memcpy(&power, &bits, sizeof(power));
    return x < -87.0f ? 0.0f : p * power;
}

/* The weight of a token: e^((logit - largest logit) / temperature). */
SOFTMAX_INLINE float softmax_weight(float logit, float largest, float inverse)
{
    return softmax_exp((logit - largest) * inverse);
}

/* 1 / temperature, as softmax_weight() takes it: neither 0 nor infinite. */
static inline float softmax_inverse(double temperature)
{
    return (float)fmin(fmax(1 / temperature, (double)FLT_MIN), (double)FLT_MAX);
}

#endif
