/* quant_row.h - the formats in which rows of keys or values are quantised one by one, and the arithmetic of a row. C
 * and CUDA share this file, so that codes have the same bits on every backend and numbers the same bits in
 * libevicpress.
 *
 * Every step is one rounding that IEEE 754 defines: quant_mul() and quant_add() keep compilers from making one of two.
 *
 *     QUANT_E4M3     a byte per number, e4m3(x / scale); x becomes code * scale. The scale is largest |x| / 448: of all
 *                    rows of the head in f32 (QUANT_SCALE_HEAD), or of the row in f16 (QUANT_SCALE_TOKEN); or it is 1.
 *     QUANT_NVFP4    4 bits per number, two to a byte, the first in the lower half. scale = largest |x| of the head /
 *                    448, f32; of 16 numbers: e4m3(largest |x| / 6 / scale); code = e2m1(x / (e4m3 * scale)), and x
 *                    becomes code * (e4m3 * scale).
 *     QUANT_LLOYD    3 or 4 bits per number. The row is multiplied by sqrt(columns) times a rotation and divided by its
 *                    norm; a code is the nearest level of a Lloyd-Max quantiser of N(0, 1). Back: the levels, scaled to
 *                    the norm, times the inverse rotation. The norm is f16; or f32, and levels are not scaled to
 *                    exactly it, but divided by sqrt(columns) and multiplied by it (f32_norms).
 *     QUANT_UNIFORM  3 or 4 bits per number. zero = min, scale = (max - zero) / (2^bits - 1), both f16; code = (x -
 *                    zero) / scale to nearest even, and x becomes code * scale + zero.
 *
 * Where a scale is 0, codes are 0. LLOYD and UNIFORM pack eight codes in `bits` bytes, the first in the lowest bits.
 * LLOYD can take the columns with the largest sums of squares apart (outliers): they come first, have a norm and a
 * rotation of their own, and one more bit.
 */
#ifndef EVP_QUANT_ROW_H
#define EVP_QUANT_ROW_H

#include "codes/half.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum quant_format { QUANT_MINMAX, QUANT_E4M3, QUANT_NVFP4, QUANT_LLOYD, QUANT_UNIFORM }; // MINMAX: kernels/backend.h
enum quant_scale { QUANT_SCALE_HEAD, QUANT_SCALE_TOKEN, QUANT_SCALE_ONE };
enum {
    QUANT_BLOCK = 16,  // numbers of NVFP4 that share an e4m3
    QUANT_WIDTH = 256, // the most columns of LLOYD
    QUANT_PARTS = 8,   // a head's rows are looked at in so many parts: row i is in part i % 8
};

struct quant_row {
    enum quant_format format;
    int columns;
    enum quant_scale scale; // of E4M3
    int bits, outliers;     // of LLOYD and UNIFORM; of LLOYD: multiples of 8
    bool f32_norms;
    const float *rotation; // codes/quant_rotation.h; NULL: random signs and a Walsh-Hadamard transform of 2^i columns
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

HALF_INLINE struct quant_bytes quant_row_bytes(const struct quant_row *q)
{
    const size_t n = (size_t)q->columns, outliers = (size_t)q->outliers, bits = (size_t)q->bits;
    struct quant_bytes bytes = { 0, 0, 0 };

    if (q->format == QUANT_E4M3) {
        bytes.codes = n;
        bytes.scales = q->scale == QUANT_SCALE_TOKEN ? sizeof(uint16_t) : 0;
        bytes.head = q->scale == QUANT_SCALE_HEAD ? sizeof(float) : 0;
    } else if (q->format == QUANT_NVFP4) {
        bytes.codes = n / 2;
        bytes.scales = n / QUANT_BLOCK;
        bytes.head = sizeof(float);
    } else {
        bytes.codes = (n * bits + outliers) / 8;
        bytes.scales =
            (q->f32_norms ? sizeof(float) : sizeof(uint16_t)) * (outliers || q->format == QUANT_UNIFORM ? 2 : 1);
        bytes.head = outliers;
    }
    return bytes;
}

/* Numbers of memory that quant_row_pack() and quant_row_unpack() take at x. */
HALF_INLINE size_t quant_row_work(const struct quant_row *q)
{
    return (size_t)q->columns * (q->format == QUANT_LLOYD ? 2 : 1);
}

/* Numbers in the matrices of quant_rotation_new(). */
HALF_INLINE size_t quant_rotation_size(const struct quant_row *q)
{
    const size_t rest = (size_t)(q->columns - q->outliers), outliers = (size_t)q->outliers;

    return 2 * (rest * rest + outliers * outliers);
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

/* ---- what the rows of a head share --------------------------------------- */

/* What is known of a column after one more number of it. */
HALF_INLINE float quant_column(const struct quant_row *q, float so_far, float x)
{
    if (q->format == QUANT_LLOYD)
        return quant_add(so_far, quant_mul(x, x));
    return fabsf(x) > so_far ? fabsf(x) : so_far;
}

/* The columns with the largest sums, ascending; of equal ones the first. */
HALF_INLINE void quant_outliers(const struct quant_row *q, uint8_t *outlier, const float *sum)
{
    for (int i = 0, n = 0; i < q->columns && n < q->outliers; i++) {
        int before = 0;
        for (int j = 0; j < q->columns; j++)
            before += sum[j] > sum[i] || (sum[j] == sum[i] && j < i);
        if (before < q->outliers)
            outlier[n++] = (uint8_t)i;
    }
}

/* From the columns of all parts (QUANT_PARTS, columns), which it overwrites. */
HALF_INLINE void quant_head_pack(const struct quant_row *q, void *head, float *column)
{
    if (q->format == QUANT_LLOYD) {
        for (int i = q->columns; i < QUANT_PARTS * q->columns; i++)
            column[i % q->columns] = quant_add(column[i % q->columns], column[i]);
        quant_outliers(q, (uint8_t *)head, column);
    } else {
        *(float *)head = quant_largest(column, QUANT_PARTS * q->columns) / 448;
    }
}

/* ---- E4M3 and NVFP4 ------------------------------------------------------- */

HALF_INLINE float quant_e4m3_scale(const struct quant_row *q, const struct quant_at *at)
{
    return q->scale == QUANT_SCALE_ONE    ? 1.0f
           : q->scale == QUANT_SCALE_HEAD ? *(const float *)at->head
                                          : f16_to_f32(*(const uint16_t *)at->scales);
}

HALF_INLINE void quant_e4m3_pack(const struct quant_row *q, const struct quant_at *at, const float *x)
{
    if (q->scale == QUANT_SCALE_TOKEN)
        *(uint16_t *)at->scales = f16_from_f32_finite(quant_largest(x, q->columns) / 448);
    const float scale = quant_e4m3_scale(q, at);
    for (int i = 0; i < q->columns; i++)
        at->codes[i] = scale > 0 ? e4m3_from_f32(x[i] / scale) : (uint8_t)0;
}

HALF_INLINE void quant_e4m3_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    const float scale = quant_e4m3_scale(q, at);

    for (int i = 0; i < q->columns; i++)
        x[i] = quant_mul(e4m3_to_f32(at->codes[i]), scale);
}

HALF_INLINE void quant_nvfp4_pack(const struct quant_row *q, const struct quant_at *at, const float *x)
{
    const float scale = *(const float *)at->head;

    for (int b = 0; b < q->columns / QUANT_BLOCK; b++, x += QUANT_BLOCK) {
        uint8_t *of_block = (uint8_t *)at->scales + b, *code = at->codes + b * QUANT_BLOCK / 2;
        *of_block = scale > 0 ? e4m3_from_f32(quant_largest(x, QUANT_BLOCK) / 6 / scale) : (uint8_t)0;
        const float step = quant_mul(e4m3_to_f32(*of_block), scale);
        for (int i = 0; i < QUANT_BLOCK; i += 2)
            code[i / 2] = (uint8_t)(step > 0 ? e2m1_from_f32(x[i] / step) | e2m1_from_f32(x[i + 1] / step) << 4 : 0);
    }
}

HALF_INLINE void quant_nvfp4_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    for (int i = 0; i < q->columns; i++) {
        const float step =
            quant_mul(e4m3_to_f32(((const uint8_t *)at->scales)[i / QUANT_BLOCK]), *(const float *)at->head);
        x[i] = quant_mul(e2m1_to_f32(at->codes[i / 2] >> i % 2 * 4 & 15), step);
    }
}

/* ---- bits ------------------------------------------------------------------ */

/* Eight codes to `bits` bytes, and back. */
HALF_INLINE void quant_bits_pack(uint8_t *to, const uint32_t *code, int bits)
{
    uint32_t word = 0;

    for (int i = 0; i < 8; i++)
        word |= code[i] << i * bits;
    for (int i = 0; i < bits; i++)
        to[i] = (uint8_t)(word >> i * 8);
}

HALF_INLINE uint32_t quant_bits_word(const uint8_t *from, int bits)
{
    uint32_t word = 0;

    for (int i = 0; i < bits; i++)
        word |= (uint32_t)from[i] << i * 8;
    return word;
}

/* ---- LLOYD ----------------------------------------------------------------- */

/* Level i above 0 of a quantiser of N(0, 1) with so many bits: the levels and the borders half way between them are
 * each other's means (Max 1960; the last digits by Lloyd's iteration, tests/golden/quant/model.py). */
HALF_INLINE float quant_level(int bits, int i)
{
    const float level[2][8] = { { 0.245094179f, 0.756005281f, 1.34390928f, 2.1519457f, 0, 0, 0, 0 },
                                { 0.12839503f, 0.388048299f, 0.656759119f, 0.942340456f, 1.2562312f, 1.61804639f,
                                  2.06901723f, 2.73258957f } };
    return level[bits - 3][i];
}

HALF_INLINE uint32_t quant_level_of(float x, int bits)
{
    const int half = 1 << (bits - 1);
    int above = 0;

    for (int i = 0; i + 1 < half; i++)
        above += fabsf(x) > quant_mul(quant_add(quant_level(bits, i), quant_level(bits, i + 1)), 0.5f);
    return (uint32_t)(x > 0 ? half + above : half - 1 - above);
}

/* The sign of column i: the first bits of pi after the point. */
HALF_INLINE float quant_signed(float x, int i)
{
    const uint32_t pi[QUANT_WIDTH / 32] = { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344,
                                            0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89 };
    return pi[i / 32] >> i % 32 & 1 ? -x : x;
}

HALF_INLINE void quant_hadamard(float *x, int n)
{
    for (int half = 1; half < n; half *= 2)
        for (int first = 0; first < n; first += 2 * half)
            for (int i = first; i < first + half; i++) {
                const float a = x[i], b = x[i + half];
                x[i] = quant_add(a, b);
                x[i + half] = quant_add(a, -b);
            }
}

/* x = the sum of x[i] times row i of the matrix (n, n). work: (n) */
HALF_INLINE void quant_mix(float *x, float *work, const float *matrix, int n)
{
    for (int j = 0; j < n; j++)
        work[j] = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            work[j] = quant_add(work[j], quant_mul(x[i], matrix[i * n + j]));
    for (int j = 0; j < n; j++)
        x[j] = work[j];
}

/* Numbers that are rotated together. */
struct quant_part {
    int n, bits;
    bool f32_norm;
    const float *rotation; // of this part
    uint8_t *codes;
    void *norm;
};

/* The outliers of a row (which 0), or its other numbers (1). */
HALF_INLINE struct quant_part quant_part_of(const struct quant_row *q, const struct quant_at *at, int which)
{
    const int outliers = q->outliers, rest = q->columns - outliers;
    const int size = q->f32_norms ? (int)sizeof(float) : (int)sizeof(uint16_t);
    const bool second = which == 1 && outliers > 0;
    const struct quant_part part = { which == 0 ? outliers : rest,
                                     which == 0 ? q->bits + 1 : q->bits,
                                     q->f32_norms,
                                     which == 0 && q->rotation ? q->rotation + 2 * rest * rest : q->rotation,
                                     at->codes + (second ? outliers * (q->bits + 1) / 8 : 0),
                                     (char *)at->scales + (second ? size : 0) };
    return part;
}

HALF_INLINE float quant_norm(const float *x, int n)
{
    float sum = 0;

    for (int i = 0; i < n; i++)
        sum = quant_add(sum, quant_mul(x[i], x[i]));
    return sqrtf(sum);
}

HALF_INLINE void quant_part_pack(const struct quant_part *p, float *x, float *work)
{
    const float norm = quant_norm(x, p->n);

    if (p->f32_norm)
        *(float *)p->norm = norm;
    else
        *(uint16_t *)p->norm = f16_from_f32_finite(norm);
    for (int i = 0; i < p->n && !p->rotation; i++)
        x[i] = quant_signed(x[i], i);
    if (p->rotation)
        quant_mix(x, work, p->rotation, p->n);
    else
        quant_hadamard(x, p->n);
    for (int i = 0; i < p->n; i += 8) {
        uint32_t code[8];
        for (int j = 0; j < 8; j++)
            code[j] = quant_level_of(norm > 0 ? x[i + j] / norm : 0, p->bits);
        quant_bits_pack(p->codes + i / 8 * p->bits, code, p->bits);
    }
}

HALF_INLINE void quant_part_unpack(const struct quant_part *p, float *x, float *work)
{
    const int half = 1 << (p->bits - 1);
    const float norm = p->f32_norm ? *(const float *)p->norm : f16_to_f32(*(const uint16_t *)p->norm);

    for (int i = 0; i < p->n; i++) {
        const uint32_t word = quant_bits_word(p->codes + i / 8 * p->bits, p->bits);
        const int code = (int)(word >> i % 8 * p->bits & (uint32_t)(2 * half - 1));
        x[i] = code < half ? -quant_level(p->bits, half - 1 - code) : quant_level(p->bits, code - half);
    }
    const float length = p->f32_norm ? sqrtf((float)p->n) : quant_norm(x, p->n);
    const float scale = norm / quant_mul(length, sqrtf((float)p->n));
    if (p->rotation)
        quant_mix(x, work, p->rotation + p->n * p->n, p->n);
    else
        quant_hadamard(x, p->n);
    for (int i = 0; i < p->n; i++)
        x[i] = quant_mul(p->rotation ? x[i] : quant_signed(x[i], i), scale);
}

/* Where column i is after the outliers were put first; *next: outliers before it. */
HALF_INLINE int quant_place(const struct quant_row *q, const uint8_t *outlier, int i, int *next)
{
    if (*next < q->outliers && outlier[*next] == i)
        return (*next)++;
    const int at = q->outliers + i - *next;
    return at < q->columns ? at : q->columns - 1; // a list that does not ascend
}

HALF_INLINE void quant_lloyd_pack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    float *turned = x + q->columns;

    for (int i = 0, next = 0; i < q->columns; i++)
        turned[quant_place(q, (const uint8_t *)at->head, i, &next)] = x[i];
    for (int which = q->outliers ? 0 : 1; which < 2; which++) {
        const struct quant_part part = quant_part_of(q, at, which);
        quant_part_pack(&part, turned + (which ? q->outliers : 0), x);
    }
}

HALF_INLINE void quant_lloyd_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    float *turned = x + q->columns;

    for (int which = q->outliers ? 0 : 1; which < 2; which++) {
        const struct quant_part part = quant_part_of(q, at, which);
        quant_part_unpack(&part, turned + (which ? q->outliers : 0), x);
    }
    for (int i = 0, next = 0; i < q->columns; i++)
        x[i] = turned[quant_place(q, (const uint8_t *)at->head, i, &next)];
}

/* ---- UNIFORM --------------------------------------------------------------- */

HALF_INLINE void quant_uniform_pack(const struct quant_row *q, const struct quant_at *at, const float *x)
{
    const float round = 12582912.0f, top = (float)((1 << q->bits) - 1); // adding 1.5 * 2^23 rounds to a whole number
    uint16_t *scales = (uint16_t *)at->scales;
    float low = x[0], high = x[0];

    for (int i = 1; i < q->columns; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    scales[1] = f16_from_f32_finite(low);
    const float zero = f16_to_f32(scales[1]);
    scales[0] = f16_from_f32_finite((high - zero) / top);
    const float scale = f16_to_f32(scales[0]);
    for (int i = 0; i < q->columns; i += 8) {
        uint32_t code[8];
        for (int j = 0; j < 8; j++) {
            const float y = scale > 0 ? (x[i + j] - zero) / scale : 0;
            code[j] = (uint32_t)quant_add(quant_add(y > 0 ? (y < top ? y : top) : 0, round), -round);
        }
        quant_bits_pack(at->codes + i / 8 * q->bits, code, q->bits);
    }
}

HALF_INLINE void quant_uniform_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    const uint16_t *scales = (const uint16_t *)at->scales;
    const float scale = f16_to_f32(scales[0]), zero = f16_to_f32(scales[1]);

    for (int i = 0; i < q->columns; i++) {
        const uint32_t word = quant_bits_word(at->codes + i / 8 * q->bits, q->bits);
        x[i] = quant_add(quant_mul((float)(word >> i % 8 * q->bits & ((1u << q->bits) - 1)), scale), zero);
    }
}

/* ---- any format ------------------------------------------------------------ */

/* x (columns) to codes and scales, and back. Both overwrite all quant_row_work() numbers at x. */
HALF_INLINE void quant_row_pack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    if (q->format == QUANT_E4M3)
        quant_e4m3_pack(q, at, x);
    else if (q->format == QUANT_NVFP4)
        quant_nvfp4_pack(q, at, x);
    else if (q->format == QUANT_LLOYD)
        quant_lloyd_pack(q, at, x);
    else
        quant_uniform_pack(q, at, x);
}

HALF_INLINE void quant_row_unpack(const struct quant_row *q, const struct quant_at *at, float *x)
{
    if (q->format == QUANT_E4M3)
        quant_e4m3_unpack(q, at, x);
    else if (q->format == QUANT_NVFP4)
        quant_nvfp4_unpack(q, at, x);
    else if (q->format == QUANT_LLOYD)
        quant_lloyd_unpack(q, at, x);
    else
        quant_uniform_unpack(q, at, x);
}

#endif
