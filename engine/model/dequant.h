/* dequant.h - a tensor of a model file, and the conversion of weight formats to f32.
 *
 * F32, F16 and BF16 are plain numbers. The others are little-endian, unaligned blocks. Blocks of 32 elements:
 *
 *     Q8_0  f16 d, 32 int8                  x = d * q
 *     Q4_0  f16 d, 16 bytes of nibbles      x = d * (q - 8)
 *     Q4_1  f16 d, f16 m, 16 bytes          x = d * q + m
 *     Q5_0  f16 d, u32 fifth bits, 16 bytes x = d * (q - 16)
 *     Q5_1  f16 d, f16 m, u32, 16 bytes     x = d * q + m
 *     IQ4_NL  f16 d, 16 bytes of nibbles    x = d * table[q], 16 fixed numbers
 *     MXFP4   e8m0 d, 16 bytes of nibbles   x = d / 2 * table[q], e2m1 doubled
 *
 * The low nibble of byte j is element j, the high one element j + 16. Blocks of 256 elements are 16 sub-blocks of 16 or
 * 8 of 32, each with a scale s and, in some formats, a minimum m of 4, 6 or 8 bits:
 *
 *     Q2_K  16 s and m, 64 bytes, f16 d, f16 e              x = (d * s) * q - (e * m)
 *     Q3_K  32 bytes of third bits, 64, 12 of s, f16 d      x = (d * (s - 32)) * (q - 4)
 *     Q4_K  f16 d, f16 e, 12 of s and m, 128 bytes          x = (d * s) * q - (e * m)
 *     Q5_K  the same with 32 of fifth bits before the last  x = (d * s) * q - (e * m)
 *     Q6_K  128 bytes, 64 of high bits, 16 int8 s, f16 d    x = (d * s) * (q - 32)
 *     IQ4_XS   f16 d, 2 bytes of high bits of s, 4 of s, 128       x = (d * (s - 32)) * table[q]
 *     IQ3_XXS  f16 d, 64 entries of a grid, 8 u32: s, 4 * 7 signs  x = (d * (s + 1/2) / 2) * grid
 *     IQ3_S    f16 d, 64 and 8 of ninth bits, 32 of signs, 4 of s  x = (d * (2 s + 1)) * grid
 *
 * Results equal those of the `gguf` Python package bit for bit: products and sums in f32, in this order.
 */
#ifndef EVP_DEQUANT_H
#define EVP_DEQUANT_H

#include <stddef.h>
#include <stdint.h>

enum weight_type {
    WEIGHT_F32,
    WEIGHT_F16,
    WEIGHT_BF16,
    WEIGHT_Q8_0,
    WEIGHT_Q4_0,
    WEIGHT_Q4_1,
    WEIGHT_Q5_0,
    WEIGHT_Q5_1,
    WEIGHT_IQ4_NL,
    WEIGHT_IQ4_XS,
    WEIGHT_IQ3_XXS,
    WEIGHT_IQ3_S,
    WEIGHT_MXFP4,
    WEIGHT_Q2_K,
    WEIGHT_Q3_K,
    WEIGHT_Q4_K,
    WEIGHT_Q5_K,
    WEIGHT_Q6_K,
    /* of engine/model/packed.h; the functions here know only the names */
    WEIGHT_FP8,
    WEIGHT_INT8,
    WEIGHT_INT,
    WEIGHT_GPTQ,
    WEIGHT_AWQ,
    WEIGHT_MXFP4_ROWS,
    WEIGHT_NVFP4,
    WEIGHT_TYPES
};

enum { TENSOR_DIMS = 4 };

const char *weight_type_name(enum weight_type type);
int weight_block(enum weight_type type);          // elements a block holds: 1, 32 or 256
size_t weight_block_bytes(enum weight_type type); // bytes a block takes

/* n elements (a multiple of the block) at `from` into `to` (n). */
void dequant(enum weight_type type, const void *from, size_t n, float *to);

/* The count of finite numbers before the first non-finite one, of n numbers of type F32, F16 or BF16; n: all finite. */
size_t weight_finite(enum weight_type type, const void *at, size_t n);

/* A tensor of either container. dim[n_dims - 1] is the fastest. */
struct tensor {
    const char *name; // as in the file; borrowed from the container
    enum weight_type type;
    int n_dims;
    int64_t dim[TENSOR_DIMS];
    const void *at;
    uint64_t bytes;
    int paired_heads;            // > 0: rows are in Llama's interleaved rotary order, in this many heads
    const struct packed *packed; // codes with scales apart; NULL: none
    int64_t first_row;           // in `packed`
};

#endif
