/* half.h - conversion between f32 and floats of 16, 8 and 4 bits, rounding to nearest even.
 *
 * f16: 1 sign, 5 exponent, 10 fraction bits. bf16: the upper half of an f32. Infinities and nan keep their kind; an f32
 * beyond f16's largest number (65504) becomes infinity, as IEEE 754 rounds. e4m3: 1 sign, 4 exponent, 3 fraction bits,
 * without infinities (Micikevicius et al. 2022, arXiv 2209.05433; torch.float8_e4m3fn); a larger number becomes the
 * largest, 448. e2m1 (OCP Microscaling Formats 1.0, 2023): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign; a larger number
 * becomes 6, nan becomes 0. C and CUDA share this file.
 */
#ifndef EVP_HALF_H
#define EVP_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HALF_INLINE static __host__ __device__ __forceinline__
#else
#define HALF_INLINE static inline
#endif

HALF_INLINE uint32_t half_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof(u));
    return u;
}

HALF_INLINE float half_float(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof(x));
    return x;
}

HALF_INLINE float bf16_to_f32(uint16_t b)
{
    return half_float((uint32_t)b << 16);
}

HALF_INLINE uint16_t bf16_from_f32(float x)
{
    uint32_t u = half_bits(x);

    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40); // nan stays nan, even when its payload is all in the lower half
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

HALF_INLINE float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff, top = magnitude < 0x7c00 ? 0 : 0x7f800000;

    /* Read as an f32, f16's exponent bits make the number 2^112 too small. The product also normalises subnormals. */
    return half_float(half_bits(half_float(magnitude << 13) * 0x1p112f) | top | sign);
}

HALF_INLINE uint16_t f16_from_f32(float x)
{
    uint32_t u = half_bits(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x47800000) // 2^16 and more
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) // below 2^-14 f16 is subnormal: a sum with 1/2 rounds at its last bit, 2^-24
        return (uint16_t)(sign | (half_bits(half_float(magnitude) + 0.5f) - half_bits(0.5f)));
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

/* Like f16_from_f32(), but a number beyond 65504 becomes 65504. */
HALF_INLINE uint16_t f16_from_f32_finite(float x)
{
    uint16_t h = f16_from_f32(x);

    return (h & 0x7fff) == 0x7c00 ? h - 1 : h;
}

HALF_INLINE uint8_t e4m3_from_f32(float x)
{
    uint32_t u = half_bits(x), sign = u >> 24 & 0x80, magnitude = u & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    if (magnitude >= 0x43e00000) // 448
        return (uint8_t)(sign | 0x7e);
    if (magnitude < 0x3c800000) // below 2^-6 e4m3 is subnormal: a sum with 2^14 rounds at its last bit, 2^-9
        return (uint8_t)(sign | (half_bits(half_float(magnitude) + 0x1p14f) - half_bits(0x1p14f)));
    magnitude += 0x7ffff + (magnitude >> 20 & 1);
    return (uint8_t)(sign | (magnitude - 0x3c000000) >> 20);
}

HALF_INLINE float e4m3_to_f32(uint8_t e)
{
    uint32_t sign = (uint32_t)(e & 0x80) << 24, magnitude = e & 0x7f;

    if (magnitude == 0x7f)
        return half_float(sign | 0x7fc00000);
    if (magnitude < 8) // subnormal
        return half_float(half_bits((float)magnitude * 0x1p-9f) | sign);
    return half_float(sign | ((magnitude << 20) + 0x3c000000));
}

HALF_INLINE uint8_t e2m1_from_f32(float x)
{
    float a = half_float(half_bits(x) & 0x7fffffff); // at each border the even code
    int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5);

    return (uint8_t)((half_bits(x) >> 28 & 8) | (uint32_t)code);
}

HALF_INLINE float e2m1_to_f32(uint8_t e)
{
    const float magnitude[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };

    return e & 8 ? -magnitude[e & 7] : magnitude[e & 7];
}

#endif
