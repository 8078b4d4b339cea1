/* cpu_exp2.h - 2^x for loops that the compiler turns into vectors. */
#ifndef EVP_CPU_EXP2_H
#define EVP_CPU_EXP2_H

#include "codes/half.h"

#define INLINE static inline __attribute__((always_inline))

/* 2^x for x < 127, at most 2 ulp off; 2^-126 for x < -126. The polynomial is 2^f on [-0.5, 0.5] (minimax). */
INLINE float exp2_of(float x)
{
    const float round = 12582912.0f; // adding 1.5 * 2^23 rounds to a whole number, in the lowest bits of the sum
    float bounded = x < -126.0f ? -126.0f : x, whole = bounded + round, f = bounded - (whole - round);
    float p = 1.535336188e-4f;
    p = p * f + 1.339887440e-3f;
    p = p * f + 9.618437357e-3f;
    p = p * f + 5.550332471e-2f;
    p = p * f + 2.402264791e-1f;
    p = p * f + 6.931472028e-1f;
    p = p * f + 1.0f;
    return p * half_float((half_bits(whole) << 23) + 0x3f800000);
}

/* The bf16 number nearest to e, for finite e. The result for others is of no use, but a nan shows in the sums. */
INLINE uint32_t exp2_bf16(float e)
{
    return (half_bits(e) + 0x7fff + (half_bits(e) >> 16 & 1)) >> 16;
}

#endif
