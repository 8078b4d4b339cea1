/* cuda_expert.h - the products of all experts of a layer in one launch, for cuda_moe.cu.
 *
 * cuda_gemm() cannot compute these: only the device knows which rows, and how many, each expert has. A tile is rows of
 * one expert; a block computes one tile by some columns, and returns when the tile has no rows.
 */
#ifndef EVP_CUDA_EXPERT_H
#define EVP_CUDA_EXPERT_H

#include "kernels/cuda/cuda_lanes.h"

#include <stdlib.h>

enum { TILE_ROWS = 128 };

/* Pairs first .. first + n - 1 of the order, all of one expert; n 0: no tile. */
struct expert_tile {
    int32_t expert, first, n;
};

/* Row i of the result belongs to pair i of the order. Its input is row pair[i] / n_used of x, or row i when pair is
 * NULL. */
struct expert_product {
    const void *x; // of the backend's dtype
    int x_pitch;
    const int32_t *pair;
    int n_used;
    const void *const *weight; // (E): gate_up (2 * n_out, n_in) or down (n_out, n_in)
    const float *bias;         // (E, 2 * n_out) or (E, n_out); NULL: none
    bool clamped;              // gate: GATE_CLAMPED, or GATE_SILU
    int n_in, n_out;
    void *out; // (pairs, n_out)
    const struct expert_tile *tile;
    int n_tiles;
};

enum expert_stage {
    EXPERT_GATE_UP, // out, of the backend's dtype = gate(gate x) * (up x), both products rounded to that dtype first
    EXPERT_DOWN,    // out, f32 = weight x
};

void cuda_expert_product(struct cuda *c, const struct expert_product *p, enum expert_stage stage);

#endif
