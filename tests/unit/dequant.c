/* Block formats of GGUF files, bit by bit: random blocks against digests of what the gguf Python package makes of them.
 * tests/data/blocks.py made the digests, from the same bytes. */
#include "base/digest.h"
#include "engine/model/dequant.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 500 };

/* The formats, their number in GGUF files, and where a block has f16 numbers; -1: no second. */
static const struct {
    enum weight_type type;
    uint32_t id;
    int f16[2];
} formats[] = {
    { WEIGHT_Q8_0, 8, { 0, -1 } },     { WEIGHT_Q4_0, 2, { 0, -1 } },    { WEIGHT_Q4_1, 3, { 0, 2 } },
    { WEIGHT_Q5_0, 6, { 0, -1 } },     { WEIGHT_Q5_1, 7, { 0, 2 } },     { WEIGHT_IQ4_NL, 20, { 0, -1 } },
    { WEIGHT_Q2_K, 10, { 80, 82 } },   { WEIGHT_Q3_K, 11, { 108, -1 } }, { WEIGHT_Q4_K, 12, { 0, 2 } },
    { WEIGHT_Q5_K, 13, { 0, 2 } },     { WEIGHT_Q6_K, 14, { 208, -1 } }, { WEIGHT_IQ4_XS, 23, { 0, -1 } },
    { WEIGHT_IQ3_XXS, 18, { 0, -1 } }, { WEIGHT_IQ3_S, 21, { 0, -1 } },  { WEIGHT_MXFP4, 39, { -1, -1 } },
};
enum { FORMATS = sizeof(formats) / sizeof(*formats) };

static void make_blocks(uint8_t *out, int format)
{
    size_t size = weight_block_bytes(formats[format].type);
    uint32_t state = formats[format].id;

    for (size_t i = 0; i < BLOCKS * size; i++) {
        state = state * 1664525 + 1013904223;
        out[i] = (uint8_t)(state >> 24);
        for (int j = 0; j < 2; j++)
            if (formats[format].f16[j] >= 0 && i % size == (size_t)formats[format].f16[j] + 1)
                out[i] &= 0xbf;
    }
}

Test(dequant, gives_the_bits_of_the_gguf_package)
{
    FILE *f = fopen("tests/data/blocks.txt", "r");
    char name[32], want[80], hex[DIGEST_HEX];
    struct err err;

    cr_assert(f, "run from the top folder");
    for (int i = 0; i < FORMATS; i++) {
        size_t n = BLOCKS * (size_t)weight_block(formats[i].type);
        uint8_t *blocks = malloc(BLOCKS * weight_block_bytes(formats[i].type) + 1);
        float *x = malloc(n * sizeof(*x));
        cr_assert(blocks && x && fscanf(f, "%31s %79s", name, want) == 2);
        cr_assert_str_eq(name, weight_type_name(formats[i].type));
        make_blocks(blocks + 1, i); // at an odd address
        dequant(formats[i].type, blocks + 1, n, x);
        cr_assert_eq(digest_sha256(x, n * sizeof(*x), hex, &err), 0);
        cr_assert_str_eq(hex, want, "%s", name);
        free(blocks);
        free(x);
    }
    fclose(f);
}
