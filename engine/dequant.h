/* dequant.h - a tensor of a model file, and the number formats of weights turned into f32.
 *
 * F32, F16 and BF16 are plain numbers. The others are blocks of 32 elements (ggml's "legacy" quantisations),
 * little-endian, unaligned:
 *
 *     Q8_0  f16 d, 32 int8                  x = d * q
 *     Q4_0  f16 d, 16 bytes of nibbles      x = d * (q - 8)
 *     Q4_1  f16 d, f16 m, 16 bytes          x = d * q + m
 *     Q5_0  f16 d, u32 fifth bits, 16 bytes x = d * (q - 16)
 *     Q5_1  f16 d, f16 m, u32, 16 bytes     x = d * q + m
 *
 * The low nibble of byte j is element j, the high one element j + 16.
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
    WEIGHT_TYPES
};

enum { TENSOR_DIMS = 4 };

const char *weight_type_name(enum weight_type type);
int weight_block(enum weight_type type);          // elements a block holds: 1 or 32
size_t weight_block_bytes(enum weight_type type); // bytes a block takes

/* n elements (a multiple of the block) at `from` into `to` (n). */
void dequant(enum weight_type type, const void *from, size_t n, float *to);

/* How many numbers at the start of n are finite, of type F32, F16 or BF16: n when all are. */
size_t weight_finite(enum weight_type type, const void *at, size_t n);

/* A tensor of either container. dim[n_dims - 1] is the fastest. */
struct tensor {
    const char *name; // as in the file; borrowed from the container
    enum weight_type type;
    int n_dims;
    int64_t dim[TENSOR_DIMS];
    const void *at;
    uint64_t bytes;
    int paired_heads; // > 0: rows in Llama's interleaved rotary order, over so many heads
};

#endif
