/* cuda_expert.cu - the products of all experts of a layer in one launch: bf16 on tensor cores, f32 by plain sums.
 *
 * A block takes one tile of rows by a panel of the expert's weight. For gate and up the panel is half gate rows and
 * half up rows, for the same columns of the result, laid out so that a thread holds the gate and the up of one column:
 * silu is computed in registers and neither product goes to memory.
 *
 *     x (TILE_ROWS)    STEP columns at a time          shared memory, STAGES steps in flight,
 *     weight (PANEL)   by asynchronous copies    ->    rows PITCH apart: ldmatrix meets no bank twice
 *                                                      8 warps, 4 x 2, each 32 rows by PANEL / 2 of the weight
 *
 * The bandwidth of the L2 cache bounds it: of an expert's weight each tile reads all, so a tile has as many rows as an
 * expert usually gets from 2,000 (128 experts, 8 of them for each row). Warps without rows multiply nothing.
 *
 * A row's sum goes step by step from the first column to the last, whatever else is in the tile. Numbers beyond the
 * last row or column count as 0.
 */
#include "kernels/cuda/cuda_expert.h"

/* ---- bf16 ---------------------------------------------------------------- */

enum {
    MMA_THREADS = 256,
    PANEL = 128,      // rows of the weight
    STEP = 32,        // columns of a step
    PITCH = STEP + 8, // of a row in shared memory
    STAGES = 3,
    CHUNK = 8, // numbers of an asynchronous copy
    CHUNKS = STEP / CHUNK,
    ROWS_AT_ONCE = MMA_THREADS / CHUNKS, // rows that the block copies with one chunk per thread
    X_ROWS = TILE_ROWS / ROWS_AT_ONCE,   // rows of which a thread copies a chunk
    W_ROWS = PANEL / ROWS_AT_ONCE,
    STAGE_NUMBERS = (TILE_ROWS + PANEL) * PITCH,
    WARP_ROWS = 32,
    WARP_PANEL = PANEL / 2,
};

/* Columns of the result that a block computes. */
static constexpr __host__ __device__ int columns_of(enum expert_stage stage, int panel)
{
    return stage == EXPERT_GATE_UP ? panel / 2 : panel;
}

/* The row of the weight that is row r of the panel for columns from `first` on; -1: none. In each group of `part` rows
 * of a panel the first half are gate rows. */
template <enum expert_stage stage>
static __device__ __forceinline__ int weight_row(const struct expert_product &p, int first, int r, int part)
{
    const int in_part = r % part, half = part / 2;
    int column = first + r;

    if (stage == EXPERT_GATE_UP)
        column = first + r / part * half + in_part % half;
    if (column >= p.n_out)
        return -1;
    return stage == EXPERT_GATE_UP && in_part >= half ? p.n_out + column : column;
}

/* The row of x that row r of a tile reads; NULL: none. */
template <typename T>
static __device__ __forceinline__ const T *input_row(const struct expert_product &p, const struct expert_tile &tile,
                                                     int r)
{
    if (r >= tile.n)
        return NULL;
    const int at = tile.first + r, row = p.pair ? p.pair[at] / p.n_used : at;
    return static_cast<const T *>(p.x) + (size_t)row * (size_t)p.x_pitch;
}

/* The rows that a thread copies from; NULL: zeros. */
struct mma_source {
    const uint16_t *x[X_ROWS], *w[W_ROWS];
    int n_in;
};

/* Copies one chunk to shared memory. */
template <bool ALIGNED>
static __device__ __forceinline__ void copy_chunk(uint16_t *to, const uint16_t *row, int column, int n_in,
                                                  const uint16_t *some)
{
    if constexpr (ALIGNED) {
        const bool valid = row && column < n_in;
        copy_async_16(to, valid ? row + column : some, valid);
    } else {
        for (int i = 0; i < CHUNK; i++)
            to[i] = row && column + i < n_in ? row[column + i] : (uint16_t)0;
    }
}

/* Copies the STEP columns of a step to one stage. some: any readable address. */
template <bool ALIGNED>
static __device__ __forceinline__ void copy_step(uint16_t *stage, const struct mma_source &from, int step,
                                                 const uint16_t *some)
{
    const int tid = (int)threadIdx.x, chunk = tid % CHUNKS * CHUNK, column = step * STEP + chunk;
    uint16_t *to = stage + tid / CHUNKS * PITCH + chunk;

    for (int i = 0; i < X_ROWS; i++, to += ROWS_AT_ONCE * PITCH)
        copy_chunk<ALIGNED>(to, from.x[i], column, from.n_in, some);
    for (int i = 0; i < W_ROWS; i++, to += ROWS_AT_ONCE * PITCH)
        copy_chunk<ALIGNED>(to, from.w[i], column, from.n_in, some);
}

/* A warp's sums: 2 by 8 tiles of 16 rows by 8 columns. */
typedef float mma_sums[WARP_ROWS / 16][WARP_PANEL / 8][4];

/* Adds one stage's products to the sums. */
static __device__ __forceinline__ void multiply_stage(mma_sums &sum, const uint16_t *stage)
{
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const uint16_t *x = stage + (warp / 2 * WARP_ROWS + lane % 16) * PITCH + lane / 16 * 8;
    const uint16_t *w =
        stage + (TILE_ROWS + warp % 2 * WARP_PANEL + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8;

#pragma unroll
    for (int k = 0; k < STEP; k += 16) {
        uint32_t a[WARP_ROWS / 16][4], b[4];
        for (int m = 0; m < WARP_ROWS / 16; m++)
            ldmatrix_x4<false>(a[m], x + m * 16 * PITCH + k);
#pragma unroll
        for (int n = 0; n < WARP_PANEL / 8; n += 2) {
            ldmatrix_x4<false>(b, w + n * 8 * PITCH + k);
            const uint32_t first[2] = { b[0], b[1] }, second[2] = { b[2], b[3] };
            for (int m = 0; m < WARP_ROWS / 16; m++) {
                mma_bf16(sum[m][n], a[m], first);
                mma_bf16(sum[m][n + 1], a[m], second);
            }
        }
    }
}

static __device__ __forceinline__ float gate_mul(const struct expert_product &p, float gate, float up)
{
    if (!p.clamped)
        return gate / (1 + expf(-gate)) * up;
    gate = fminf(gate, CLAMPED_AT);
    return gate / (1 + expf(-(float)CLAMPED_STEEP * gate)) * (fminf(fmaxf(up, -CLAMPED_AT), CLAMPED_AT) + 1);
}

/* The bias of a column of gate or down, or, `up` columns further on, of up. */
static __device__ __forceinline__ float bias_of(const struct expert_product &p, int expert, int per_expert, int column)
{
    return p.bias ? p.bias[(size_t)expert * (size_t)per_expert + (size_t)column] : 0;
}

/* Writes the sums to memory. first: the block's first column of the result. */
template <enum expert_stage stage>
static __device__ __forceinline__ void write_sums(const struct expert_product &p, const struct expert_tile &tile,
                                                  const mma_sums &sum, int first)
{
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int n_tiles = stage == EXPERT_GATE_UP ? WARP_PANEL / 16 : WARP_PANEL / 8; // of 8 columns of the result

#pragma unroll
    for (int m = 0; m < WARP_ROWS / 16; m++)
#pragma unroll
        for (int n = 0; n < n_tiles; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = warp / 2 * WARP_ROWS + m * 16 + lane / 4 + i / 2 * 8;
                const int column = first + (warp % 2 * n_tiles + n) * 8 + lane % 4 * 2 + i % 2;
                const size_t at = (size_t)(tile.first + row) * (size_t)p.n_out + (size_t)column;
                if (row >= tile.n || column >= p.n_out)
                    continue;
                if (stage == EXPERT_DOWN) {
                    static_cast<float *>(p.out)[at] = sum[m][n][i] + bias_of(p, tile.expert, p.n_out, column);
                    continue;
                }
                const float of_gate = bias_of(p, tile.expert, 2 * p.n_out, column),
                            of_up = bias_of(p, tile.expert, 2 * p.n_out, p.n_out + column);
                const float gate = rounded_to<uint16_t>(sum[m][n][i] + of_gate),
                            up = rounded_to<uint16_t>(sum[m][n + n_tiles][i] + of_up);
                static_cast<uint16_t *>(p.out)[at] = float_to_bf16(gate_mul(p, gate, up));
            }
}

/* Panel blockIdx.x of tile blockIdx.y. ALIGNED: all rows of x and weight are 16-byte aligned. */
/* registers <= 128 */
template <enum expert_stage stage, bool ALIGNED>
__global__ void __launch_bounds__(MMA_THREADS, 2) expert_mma(const struct expert_product p)
{
    SHARED_DYNAMIC(uint16_t, stages); // STAGES * STAGE_NUMBERS
    const struct expert_tile tile = p.tile[blockIdx.y];
    const int first = (int)blockIdx.x * columns_of(stage, PANEL), copied = (int)threadIdx.x / CHUNKS;
    const int n_steps = (p.n_in + STEP - 1) / STEP;
    const uint16_t *weight = static_cast<const uint16_t *>(p.weight[tile.expert]);
    struct mma_source from;
    mma_sums sum = {};

    if (tile.n == 0)
        return;
    for (int i = 0; i < X_ROWS; i++)
        from.x[i] = input_row<uint16_t>(p, tile, copied + i * ROWS_AT_ONCE);
    for (int i = 0; i < W_ROWS; i++) {
        const int row = weight_row<stage>(p, first, copied + i * ROWS_AT_ONCE, WARP_PANEL);
        from.w[i] = row < 0 ? NULL : weight + (size_t)row * (size_t)p.n_in;
    }
    from.n_in = p.n_in;
    for (int step = 0; step < STAGES - 1; step++) {
        copy_step<ALIGNED>(stages + step * STAGE_NUMBERS, from, step, weight);
        copy_async_commit();
    }
    for (int step = 0; step < n_steps; step++) {
        copy_async_wait<STAGES - 2>();
        __syncthreads(); // this step is there for all, and all are done with the one before
        copy_step<ALIGNED>(stages + (step + STAGES - 1) % STAGES * STAGE_NUMBERS, from, step + STAGES - 1, weight);
        copy_async_commit();
        if ((int)threadIdx.x / LANES / 2 * WARP_ROWS < tile.n)
            multiply_stage(sum, stages + step % STAGES * STAGE_NUMBERS);
    }
    copy_async_wait<0>();
    write_sums<stage>(p, tile, sum, first);
}

/* ---- f32 ----------------------------------------------------------------- */

enum {
    FMA_THREADS = 256,
    FMA_ROWS = 64, // of a tile
    FMA_PANEL = 64,
    FMA_STEP = 16,
    FMA_PITCH = FMA_ROWS + 4,
    OF_THREAD = 4, // rows per thread, and columns, which are 16 apart
};

/* Panel blockIdx.x of part blockIdx.z of tile blockIdx.y; plain sums. A thread has columns c and c + 16 of both the
 * gate and the up. */
/* registers <= 64 */
template <enum expert_stage stage>
__global__ void __launch_bounds__(FMA_THREADS) expert_fma(const struct expert_product p)
{
    SHARED_ARRAY(float, x, FMA_STEP *FMA_PITCH); // (columns, rows), as w
    SHARED_ARRAY(float, w, FMA_STEP *FMA_PITCH);
    struct expert_tile tile = p.tile[blockIdx.y];
    const int tid = (int)threadIdx.x, first = (int)blockIdx.x * columns_of(stage, FMA_PANEL);
    const int my_row = tid / 16 * OF_THREAD, my_column = tid % 16;
    const float *weight = static_cast<const float *>(p.weight[tile.expert]);
    float sum[OF_THREAD][OF_THREAD] = {};

    tile.first += (int)blockIdx.z * FMA_ROWS;
    tile.n -= (int)blockIdx.z * FMA_ROWS;
    if (tile.n <= 0)
        return;
    for (int step = 0; step < p.n_in; step += FMA_STEP) {
        __syncthreads();
        for (int i = tid; i < FMA_STEP * FMA_ROWS; i += FMA_THREADS) {
            const int r = i / FMA_STEP, k = i % FMA_STEP, row = weight_row<stage>(p, first, r, FMA_PANEL);
            const float *from = input_row<float>(p, tile, r);
            const bool inside = step + k < p.n_in;
            x[k * FMA_PITCH + r] = inside && from ? from[step + k] : 0;
            w[k * FMA_PITCH + r] = inside && row >= 0 ? weight[(size_t)row * (size_t)p.n_in + (size_t)(step + k)] : 0;
        }
        __syncthreads();
        for (int k = 0; k < FMA_STEP; k++)
            for (int i = 0; i < OF_THREAD; i++)
                for (int j = 0; j < OF_THREAD; j++)
                    sum[i][j] += x[k * FMA_PITCH + my_row + i] * w[k * FMA_PITCH + my_column + 16 * j];
    }
    const int n = stage == EXPERT_GATE_UP ? OF_THREAD / 2 : OF_THREAD;
    for (int i = 0; i < OF_THREAD; i++)
        for (int j = 0; j < n; j++) {
            const int column = first + my_column + 16 * j;
            const size_t at = (size_t)(tile.first + my_row + i) * (size_t)p.n_out + (size_t)column;
            if (my_row + i >= tile.n || column >= p.n_out)
                continue;
            float *out = static_cast<float *>(p.out) + at;
            if (stage == EXPERT_DOWN)
                *out = sum[i][j] + bias_of(p, tile.expert, p.n_out, column);
            else
                *out = gate_mul(p, sum[i][j] + bias_of(p, tile.expert, 2 * p.n_out, column),
                                sum[i][j + OF_THREAD - n] + bias_of(p, tile.expert, 2 * p.n_out, p.n_out + column));
        }
}

/* ---- on the host --------------------------------------------------------- */

template <enum expert_stage stage> static void run_product(struct cuda *c, const struct expert_product *p)
{
    const bool f32 = c->base.dtype == DTYPE_F32;
    const int columns = f32 ? columns_of(stage, FMA_PANEL) : columns_of(stage, PANEL);
    const dim3 grid(cuda_pieces((size_t)p->n_out, (size_t)columns), (unsigned)p->n_tiles,
                    f32 ? TILE_ROWS / FMA_ROWS : 1);
    const size_t shared = STAGES * STAGE_NUMBERS * sizeof(uint16_t);
    const bool aligned = is_aligned(p->x, (size_t)p->x_pitch * sizeof(uint16_t)) && p->n_in % CHUNK == 0;

    if (f32)
        LAUNCH(c, (expert_fma<stage>), grid, FMA_THREADS, 0, *p);
    else if (aligned)
        LAUNCH(c, (expert_mma<stage, true>), grid, MMA_THREADS, shared, *p);
    else
        LAUNCH(c, (expert_mma<stage, false>), grid, MMA_THREADS, shared, *p);
}

void cuda_expert_product(struct cuda *c, const struct expert_product *p, enum expert_stage stage)
{
    if (stage == EXPERT_GATE_UP)
        run_product<EXPERT_GATE_UP>(c, p);
    else
        run_product<EXPERT_DOWN>(c, p);
}
