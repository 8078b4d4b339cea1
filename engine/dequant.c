/* dequant.c - one function per format over whole blocks, and one table of formats. To read another format: its
 * function, its row, and its number in the table of engine/gguf.c.
 *
 * Bytes of a block are not aligned. Formats with nibbles share one loop over them. The search for numbers that are not
 * finite first asks a whole piece without branches, which becomes vector code, and looks closer only where it must.
 */
#include "engine/dequant.h"

#include "kernels/half.h"

#include <string.h>

enum { BLOCK = 32 }; // elements of a block of the formats that have blocks

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t u;

    memcpy(&u, p, sizeof(u));
    return u;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t u;

    memcpy(&u, p, sizeof(u));
    return u;
}

/* ---- formats -------------------------------------------------------------- */

static void f32(const uint8_t *p, size_t n, float *to)
{
    memcpy(to, p, n * sizeof(float));
}

static void f16(const uint8_t *p, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = f16_to_f32(u16_at(p + 2 * i));
}

static void bf16(const uint8_t *p, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = bf16_to_f32(u16_at(p + 2 * i));
}

static void q8_0(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 34, to += BLOCK) {
        float d = f16_to_f32(u16_at(p));
        for (int j = 0; j < BLOCK; j++)
            to[j] = d * (float)(int8_t)p[2 + j];
    }
}

/* x = d * q + m for 16 bytes of nibbles; bit j of `fifth` is the fifth bit of element j. */
static inline void nibbles(const uint8_t *p, uint32_t fifth, float d, float m, float *to /* (32) */)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        uint32_t low = (p[j] & 15u) | (fifth >> j & 1) << 4, high = (p[j] >> 4 & 15u) | (fifth >> (j + 16) & 1) << 4;
        to[j] = d * (float)low + m;
        to[j + BLOCK / 2] = d * (float)high + m;
    }
}

static void q4_0(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 18, to += BLOCK) {
        float d = f16_to_f32(u16_at(p));
        nibbles(p + 2, 0, d, -8 * d, to);
    }
}

static void q4_1(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 20, to += BLOCK)
        nibbles(p + 4, 0, f16_to_f32(u16_at(p)), f16_to_f32(u16_at(p + 2)), to);
}

static void q5_0(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 22, to += BLOCK) {
        float d = f16_to_f32(u16_at(p));
        nibbles(p + 6, u32_at(p + 2), d, -16 * d, to);
    }
}

static void q5_1(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 24, to += BLOCK)
        nibbles(p + 8, u32_at(p + 4), f16_to_f32(u16_at(p)), f16_to_f32(u16_at(p + 2)), to);
}

static const struct {
    const char *name;
    int block;
    size_t bytes;                                          // of a block
    void (*blocks)(const uint8_t *p, size_t n, float *to); // n blocks
} types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = { "F32", 1, 4, f32 },         [WEIGHT_F16] = { "F16", 1, 2, f16 },
    [WEIGHT_BF16] = { "BF16", 1, 2, bf16 },      [WEIGHT_Q8_0] = { "Q8_0", BLOCK, 34, q8_0 },
    [WEIGHT_Q4_0] = { "Q4_0", BLOCK, 18, q4_0 }, [WEIGHT_Q4_1] = { "Q4_1", BLOCK, 20, q4_1 },
    [WEIGHT_Q5_0] = { "Q5_0", BLOCK, 22, q5_0 }, [WEIGHT_Q5_1] = { "Q5_1", BLOCK, 24, q5_1 },
};

const char *weight_type_name(enum weight_type type)
{
    return types[type].name;
}

int weight_block(enum weight_type type)
{
    return types[type].block;
}

size_t weight_block_bytes(enum weight_type type)
{
    return types[type].bytes;
}

void dequant(enum weight_type type, const void *from, size_t n, float *to)
{
    types[type].blocks(from, n / (size_t)types[type].block, to);
}

/* ---- finite numbers -------------------------------------------------------- */

static size_t finite32(const uint8_t *p, size_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= (u32_at(p + 4 * i) & exponent) == exponent;
    if (!bad)
        return n;
    size_t i = 0;
    while ((u32_at(p + 4 * i) & exponent) != exponent)
        i++;
    return i;
}

static size_t finite16(const uint8_t *p, size_t n, uint16_t exponent)
{
    uint16_t bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= (u16_at(p + 2 * i) & exponent) == exponent;
    if (!bad)
        return n;
    size_t i = 0;
    while ((u16_at(p + 2 * i) & exponent) != exponent)
        i++;
    return i;
}

size_t weight_finite(enum weight_type type, const void *at, size_t n)
{
    if (type == WEIGHT_F32)
        return finite32(at, n);
    return finite16(at, n, type == WEIGHT_F16 ? 0x7c00 : 0x7f80);
}
