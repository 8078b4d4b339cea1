/* dequant.c - one function per format over whole blocks, and one table of formats. To read another format, add its
 * function, its row, and its number in the table of engine/model/gguf.c.
 *
 * Bytes of a block are not aligned. Formats with nibbles share one loop over them. The search for non-finite numbers
 * first scans without branches, which becomes vector code, and locates the first one only if there is any.
 */
#include "engine/model/dequant.h"

#include "codes/half.h"
#include "engine/model/dequant_grid.h"

#include <string.h>

enum { BLOCK = 32, SUPER = 256 }; // elements of a block of the legacy formats, and of the K formats

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

/* x = d * (q - zero) + m */
struct line {
    float d, m;
    int zero;
};

/* 16 bytes of nibbles; bit j of `fifth` is the fifth bit of element j. */
static inline void nibbles(const uint8_t *p, uint32_t fifth, struct line x, float *to /* (32) */)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        uint32_t low = (p[j] & 15u) | (fifth >> j & 1) << 4, high = (p[j] >> 4 & 15u) | (fifth >> (j + 16) & 1) << 4;
        to[j] = x.d * (float)((int)low - x.zero) + x.m;
        to[j + BLOCK / 2] = x.d * (float)((int)high - x.zero) + x.m;
    }
}

static void q4_0(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 18, to += BLOCK)
        nibbles(p + 2, 0, (struct line){ f16_to_f32(u16_at(p)), -0.0f, 8 }, to); // -0 changes no number
}

static void q4_1(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 20, to += BLOCK)
        nibbles(p + 4, 0, (struct line){ f16_to_f32(u16_at(p)), f16_to_f32(u16_at(p + 2)), 0 }, to);
}

static void q5_0(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 22, to += BLOCK)
        nibbles(p + 6, u32_at(p + 2), (struct line){ f16_to_f32(u16_at(p)), -0.0f, 16 }, to);
}

static void q5_1(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 24, to += BLOCK)
        nibbles(p + 8, u32_at(p + 4), (struct line){ f16_to_f32(u16_at(p)), f16_to_f32(u16_at(p + 2)), 0 }, to);
}

/* 16 bytes of nibbles, each the number of a value. */
static inline void nibble_values(const uint8_t *p, const float value[16], float d, float *to /* (32) */)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        to[j] = d * value[p[j] & 15];
        to[j + BLOCK / 2] = d * value[p[j] >> 4];
    }
}

static const float iq4_value[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

static void iq4_nl(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 18, to += BLOCK)
        nibble_values(p + 2, iq4_value, f16_to_f32(u16_at(p)), to);
}

static void iq4_xs(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 136, to += SUPER) {
        float d = f16_to_f32(u16_at(p));
        for (int b = 0; b < 8; b++) {
            int scale = (p[4 + b / 2] >> (b % 2 * 4) & 15) | (u16_at(p + 2) >> (2 * b) & 3) << 4;
            nibble_values(p + 8 + 16 * b, iq4_value, d * (float)(scale - 32), to + BLOCK * b);
        }
    }
}

static void mxfp4(const uint8_t *p, size_t n, float *to)
{
    static const float doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

    for (; n > 0; n--, p += 17, to += BLOCK) // 2^(e - 128), finite for all e
        nibble_values(p + 1, doubled, half_float(p[0] < 2 ? 0x200000u << p[0] : (p[0] - 1u) << 23), to);
}

/* Four numbers of a grid's entry, one for each octal digit; negative where the bit of `signs` is set. */
static inline void grid_values(uint16_t entry, uint32_t signs, const float value[8], float d, float *to /* (4) */)
{
    for (int j = 0; j < 4; j++)
        to[j] = d * value[entry >> (3 * j) & 7] * (signs >> j & 1 ? -1.0f : 1.0f);
}

/* Seven signs of eight numbers; the eighth makes the count of negative ones even. */
static inline uint32_t even_signs(uint32_t seven)
{
    return seven | ((uint32_t)__builtin_popcount(seven) & 1) << 7;
}

static void iq3_xxs(const uint8_t *p, size_t n, float *to)
{
    static const float value[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };

    for (; n > 0; n--, p += 98, to += SUPER)
        for (int b = 0; b < 8; b++) {
            uint32_t word = u32_at(p + 66 + 4 * b);
            float d = f16_to_f32(u16_at(p)) * (0.5f + (float)(word >> 28)) * 0.5f;
            for (int i = 0; i < 8; i++)
                grid_values(iq3_xxs_grid[p[2 + 8 * b + i]], even_signs(word >> (i / 2 * 7) & 127) >> (i % 2 * 4), value,
                            d, to + BLOCK * b + 4 * i);
        }
}

static void iq3_s(const uint8_t *p, size_t n, float *to)
{
    static const float value[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };

    for (; n > 0; n--, p += 110, to += SUPER)
        for (int b = 0; b < 8; b++) {
            float d = f16_to_f32(u16_at(p)) * (float)(1 + 2 * (p[106 + b / 2] >> (b % 2 * 4) & 15));
            for (int i = 0; i < 8; i++) {
                int entry = p[2 + 8 * b + i] | (p[66 + b] >> i & 1) << 8;
                grid_values(iq3_s_grid[entry], (uint32_t)p[74 + 4 * b + i / 2] >> (i % 2 * 4), value, d,
                            to + BLOCK * b + 4 * i);
            }
        }
}

/* Two bits of element i of a super-block: four elements per byte, 32 apart, in halves of 128 elements. */
static inline int crumb(const uint8_t *p, int i)
{
    return p[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

static void q2_k(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 84, to += SUPER) {
        float d = f16_to_f32(u16_at(p + 80)), base = f16_to_f32(u16_at(p + 82));
        for (int b = 0; b < 16; b++) {
            float scale = d * (float)(p[b] & 15), min = base * (float)(p[b] >> 4);
            for (int i = 16 * b; i < 16 * b + 16; i++)
                to[i] = scale * (float)crumb(p + 16, i) - min;
        }
    }
}

/* Scale b of 16, each of 6 bits, in 12 bytes: low nibbles in 8 bytes, then four pairs of high bits per byte. */
static inline int q3_scale(const uint8_t *p, int b)
{
    return ((b < 8 ? p[b] & 15 : p[b - 8] >> 4) | (p[8 + b % 4] >> (b / 4 * 2) & 3) << 4) - 32;
}

static void q3_k(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 110, to += SUPER) {
        float d = f16_to_f32(u16_at(p + 108));
        for (int b = 0; b < 16; b++) {
            float scale = d * (float)q3_scale(p + 96, b);
            for (int i = 16 * b; i < 16 * b + 16; i++) {
                int has = p[i % 32] >> (i / 32) & 1; // the third bit
                to[i] = scale * (float)(crumb(p + 32, i) - (has ? 0 : 4));
            }
        }
    }
}

/* Scale and minimum of block b of 8, each of 6 bits, in 12 bytes: first the scales, then the minimums of blocks 0 to 3,
 * a byte each, with the two highest bits of blocks 4 to 7 on top; then the nibbles of blocks 4 to 7. */
static inline int k_scale(const uint8_t *p, int b)
{
    return b < 4 ? p[b] & 63 : (p[b + 4] & 15) | (p[b - 4] >> 2 & 48);
}

static inline int k_min(const uint8_t *p, int b)
{
    return b < 4 ? p[b + 4] & 63 : p[b + 4] >> 4 | (p[b] >> 2 & 48);
}

/* x = scale * q - min; q has 4 bits, and a fifth unless `fifth` is NULL. */
static inline void k_blocks(const uint8_t *p, const uint8_t *fifth, const uint8_t *q, float *to)
{
    float d = f16_to_f32(u16_at(p)), base = f16_to_f32(u16_at(p + 2));

    for (int b = 0; b < 8; b++) {
        float scale = d * (float)k_scale(p + 4, b), min = base * (float)k_min(p + 4, b);
        for (int j = 0; j < 32; j++) {
            int nibble = q[b / 2 * 32 + j] >> (b % 2 * 4) & 15, high = fifth ? fifth[j] >> b & 1 : 0;
            to[32 * b + j] = scale * (float)(nibble | high << 4) - min;
        }
    }
}

static void q4_k(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 144, to += SUPER)
        k_blocks(p, NULL, p + 16, to);
}

static void q5_k(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 176, to += SUPER)
        k_blocks(p, p + 16, p + 48, to);
}

static void q6_k(const uint8_t *p, size_t n, float *to)
{
    for (; n > 0; n--, p += 210, to += SUPER) {
        float d = f16_to_f32(u16_at(p + 208));
        for (int b = 0; b < 16; b++) {
            float scale = d * (float)(int8_t)p[192 + b];
            for (int i = 16 * b; i < 16 * b + 16; i++) {
                int low = p[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
                to[i] = scale * (float)((low | crumb(p + 128, i) << 4) - 32);
            }
        }
    }
}

static const struct {
    const char *name;
    int block;
    size_t bytes;                                          // of a block
    void (*blocks)(const uint8_t *p, size_t n, float *to); // n blocks
} types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = { "F32", 1, 4, f32 },
    [WEIGHT_F16] = { "F16", 1, 2, f16 },
    [WEIGHT_BF16] = { "BF16", 1, 2, bf16 },
    [WEIGHT_Q8_0] = { "Q8_0", BLOCK, 34, q8_0 },
    [WEIGHT_Q4_0] = { "Q4_0", BLOCK, 18, q4_0 },
    [WEIGHT_Q4_1] = { "Q4_1", BLOCK, 20, q4_1 },
    [WEIGHT_Q5_0] = { "Q5_0", BLOCK, 22, q5_0 },
    [WEIGHT_Q5_1] = { "Q5_1", BLOCK, 24, q5_1 },
    [WEIGHT_IQ4_NL] = { "IQ4_NL", BLOCK, 18, iq4_nl },
    [WEIGHT_IQ4_XS] = { "IQ4_XS", SUPER, 136, iq4_xs },
    [WEIGHT_IQ3_XXS] = { "IQ3_XXS", SUPER, 98, iq3_xxs },
    [WEIGHT_IQ3_S] = { "IQ3_S", SUPER, 110, iq3_s },
    [WEIGHT_MXFP4] = { "MXFP4", BLOCK, 17, mxfp4 },
    [WEIGHT_Q2_K] = { "Q2_K", SUPER, 84, q2_k },
    [WEIGHT_Q3_K] = { "Q3_K", SUPER, 110, q3_k },
    [WEIGHT_Q4_K] = { "Q4_K", SUPER, 144, q4_k },
    [WEIGHT_Q5_K] = { "Q5_K", SUPER, 176, q5_k },
    [WEIGHT_Q6_K] = { "Q6_K", SUPER, 210, q6_k },
    [WEIGHT_FP8] = { "FP8", 0, 0, NULL },
    [WEIGHT_INT8] = { "INT8", 0, 0, NULL },
    [WEIGHT_INT] = { "INT", 0, 0, NULL },
    [WEIGHT_GPTQ] = { "GPTQ", 0, 0, NULL },
    [WEIGHT_AWQ] = { "AWQ", 0, 0, NULL },
    [WEIGHT_MXFP4_ROWS] = { "MXFP4", 0, 0, NULL },
    [WEIGHT_NVFP4] = { "NVFP4", 0, 0, NULL },
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
