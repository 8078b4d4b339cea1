/* packed.h - a matrix of a Hugging Face folder that is stored as codes of 4 or 8 bits, with scales of groups of them,
 * or as numbers in another order.
 *
 *     FP8, INT8, INT4 and INT8 in words, MXFP4, NVFP4     codes of a row side by side, the low ones of a byte first
 *     GPTQ    (cols * bits / 32, rows) words: 32 / bits columns of a row
 *     AWQ     (cols, rows / 8) words: a column of 8 rows, in the order 0, 2, 4, 6, 1, 3, 5, 7
 *     F32, F16, BF16    numbers of gpt-oss' experts, whose rows and columns are so many numbers apart
 *
 * A number is (value - zero) * scale in f32, rounded to the scales' type if that has 16 bits, as compressed-tensors,
 * AutoGPTQ, AutoAWQ and transformers do it. Zeros are codes, packed like scales' rows (GPTQ, AWQ) or columns (INT4).
 * NVFP4's scale is in e4m3, times or by the tensor's own scale; MXFP4's is a power of two.
 */
#ifndef EVP_PACKED_H
#define EVP_PACKED_H

#include "base/safetensors.h"
#include "engine/model/dequant.h"

#include <stdbool.h>

struct packed {
    enum weight_type type;
    int bits; // of a code
    int64_t rows, cols;
    int64_t block_rows, block_cols; // of the codes that share a scale, a group
    int64_t n_groups;               // along a row
    const uint8_t *codes;
    const uint8_t *group;           // (cols), int32: the group of each column; NULL: column / block_cols
    const uint8_t *scale;           // all pointers are borrowed from the files, without alignment
    enum st_type scale_type;        // F32, F16, BF16, F8_E4M3, F8_E8M0 or U8, the same
    int64_t scale_row, scale_group; // distance of scales
    float factor, divisor;          // NVFP4: of the matrix; one of them is 1
    const uint8_t *zeros;           // NULL: all are `zero`
    int zero;                       // with zeros: to be added
    int64_t first, every;           // the rows in the file: first + every * row; every 0: all. Without codes the next:
    int64_t matrix, row, col;       // numbers from one matrix of `rows` rows, row or column to the next
};

enum {
    PACKED_TILE = 8192,  // numbers that are unpacked at once
    PACKED_GROUPS = 2048 // along a row, where `group` tells a column's
};

/* Rows that are best unpacked at once, in tiles of PACKED_TILE / rows columns. */
int packed_tile_rows(const struct packed *p);

/* Unpacks n_rows x n_cols numbers, at most PACKED_TILE. Rows begin at a multiple of the tile's, columns too. */
struct packed_tile {
    int64_t row, col;
    int n_rows, n_cols;
};
void packed_read(const struct packed *p, struct packed_tile t, float *to);

#endif
