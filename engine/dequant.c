/* dequant.c - one table of formats, one loop over nibbles for the four that have them. Bytes are read one by one, since
 * tensors in a file are not aligned.
 */
#include "engine/dequant.h"

#include "kernels/half.h"

#include <string.h>

enum { BLOCK = 32 };

static const struct {
    const char *name;
    int block;
    size_t bytes;
} types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = { "F32", 1, 4 },        [WEIGHT_F16] = { "F16", 1, 2 },        [WEIGHT_BF16] = { "BF16", 1, 2 },
    [WEIGHT_Q8_0] = { "Q8_0", BLOCK, 34 }, [WEIGHT_Q4_0] = { "Q4_0", BLOCK, 18 }, [WEIGHT_Q4_1] = { "Q4_1", BLOCK, 20 },
    [WEIGHT_Q5_0] = { "Q5_0", BLOCK, 22 }, [WEIGHT_Q5_1] = { "Q5_1", BLOCK, 24 },
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

static uint16_t u16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)u16_at(p) | (uint32_t)u16_at(p + 2) << 16;
}

/* x = d * q + m for 16 bytes of nibbles; bit j of `fifth` is the fifth bit of element j. */
static void nibbles(const uint8_t *p, uint32_t fifth, float d, float m, float *to /* (32) */)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        uint32_t low = (p[j] & 15u) | (fifth >> j & 1) << 4, high = (p[j] >> 4 & 15u) | (fifth >> (j + 16) & 1) << 4;
        to[j] = d * (float)low + m;
        to[j + BLOCK / 2] = d * (float)high + m;
    }
}

static void block(enum weight_type type, const uint8_t *p, float *to /* (32) */)
{
    float d = f16_to_f32(u16_at(p));

    if (type == WEIGHT_Q8_0)
        for (int j = 0; j < BLOCK; j++)
            to[j] = d * (float)(int8_t)p[2 + j];
    else if (type == WEIGHT_Q4_0)
        nibbles(p + 2, 0, d, -8 * d, to);
    else if (type == WEIGHT_Q4_1)
        nibbles(p + 4, 0, d, f16_to_f32(u16_at(p + 2)), to);
    else if (type == WEIGHT_Q5_0)
        nibbles(p + 6, u32_at(p + 2), d, -16 * d, to);
    else
        nibbles(p + 8, u32_at(p + 4), d, f16_to_f32(u16_at(p + 2)), to);
}

void dequant(enum weight_type type, const void *from, size_t n, float *to)
{
    const uint8_t *p = from;

    if (type == WEIGHT_F32) {
        memcpy(to, p, n * sizeof(float));
    } else if (type == WEIGHT_F16) {
        for (size_t i = 0; i < n; i++)
            to[i] = f16_to_f32(u16_at(p + 2 * i));
    } else if (type == WEIGHT_BF16) {
        for (size_t i = 0; i < n; i++)
            to[i] = bf16_to_f32(u16_at(p + 2 * i));
    } else {
        for (size_t i = 0; i < n; i += BLOCK, p += types[type].bytes)
            block(type, p, to + i);
    }
}
