/* quant_row.h - the formats in which rows of keys or values are quantised one by one, and the arithmetic of a row. C and
 * CUDA share this file, so that codes have the same bits on every backend and numbers the same bits in libevicpress.
 *
 * Every step is one rounding that IEEE 754 defines: quant_mul() and quant_add() keep compilers from making one of two.
 *
 *     QUANT_E4M3   a byte per number, e4m3(x / scale); a number is code * scale. The scale is largest |x| / 448, in f32 of
 *                  all rows (QUANT_SCALE_HEAD), in f16 of the row (QUANT_SCALE_TOKEN), or 1 (QUANT_SCALE_ONE). A scale of 0 gives codes of 0.
 */
#ifndef EVP_QUANT_ROW_H
#define EVP_QUANT_ROW_H

#include "base/half.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum quant_format { QUANT_MINMAX, QUANT_E4M3 }; // MINMAX: groups of kernels/backend.h, not row by row
enum quant_scale { QUANT_SCALE_HEAD, QUANT_SCALE_TOKEN, QUANT_SCALE_ONE };

struct quant_row {
    enum quant_format format;
    int columns;
    enum quant_scale scale; // of QUANT_E4M3
};

/* Bytes: of a row's codes, of a row's scales, and of what all rows of a head share. */
struct quant_bytes {
    size_t codes, scales, head;
};

/* Where they are; scales and head are aligned for their numbers. */
struct quant_at {
    uint8_t *codes;
    void *scales, *head;
};

#define QUANT_E4M3_MAX 448.0f

HALF_INLINE struct quant_bytes quant_row_bytes(const struct quant_row *q)
{
    struct quant_bytes bytes = { (size_t)q->columns, 0, 0 };

    if (q->scale == QUANT_SCALE_TOKEN)
        bytes.scales = sizeof(uint16_t);
    else if (q->scale == QUANT_SCALE_HEAD)
        bytes.head = sizeof(float);
    return bytes;
}

HALF_INLINE size_t quant_row_work(const struct quant_row *q)
{
    return (size_t)q->columns;
}

/* Where those of row number `row` are. */
HALF_INLINE struct quant_at quant_row_at(const struct quant_row *q, const struct quant_at *first, size_t row)
{
    const struct quant_bytes bytes = quant_row_bytes(q);
    const struct quant_at at = { first->codes + row * bytes.codes, (char *)first->scales + row * bytes.scales,
                                 first->head };
    return at;
}

HALF_INLINE float quant_mul(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

HALF_INLINE float quant_add(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

HALF_INLINE float quant_largest(const float *x, int n)
{
    float largest = 0;

    for (int i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    return largest;
}

/* What all rows share, from the largest |x| of all of them. */
HALF_INLINE void quant_head_pack(const struct quant_row *q, void *head, float largest)
{
    if (quant_row_bytes(q).head)
        *(float *)head = largest / QUANT_E4M3_MAX;
}

HALF_INLINE float quant_scale_of(const struct quant_row *q, const struct quant_at *at)
{
    return q->scale == QUANT_SCALE_ONE    ? 1.0f
           : q->scale == QUANT_SCALE_HEAD ? *(const float *)at->head
                                          : f16_to_f32(*(const uint16_t *)at->scales);
}

/* x (columns) to codes and scales, and back. Both overwrite all quant_row_work() numbers at x. */
HALF_INLINE void quant_row_pack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    if (q->scale == QUANT_SCALE_TOKEN)
        *(uint16_t *)at->scales = f16_from_f32_finite(quant_largest(x, q->columns) / QUANT_E4M3_MAX);
    const float scale = quant_scale_of(q, at);
    for (int i = 0; i < q->columns; i++)
        at->codes[i] = scale > 0 ? e4m3_from_f32(x[i] / scale) : (uint8_t)0;
}

HALF_INLINE void quant_row_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    const float scale = quant_scale_of(q, at);

    for (int i = 0; i < q->columns; i++)
        x[i] = quant_mul(e4m3_to_f32(at->codes[i]), scale);
}

#endif
