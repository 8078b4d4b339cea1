/* cuda_attend_tensor.cu - attention of bf16 heads of 8 to 256 columns on tensor cores: one block, one piece of one
 * tile.
 *
 * A warp has 16 MT query rows; their sums stay in its registers. The block goes through its piece 64 keys at a time.
 * Values are copied while it computes with the keys, the first ones together with the first keys, and the next keys
 * while it computes with the values:
 *
 *     wait for the keys, barrier: the values before are used up; start copying the values, but the first
 *     scores = q k^T                              q and k by ldmatrix
 *     wait for the values, barrier: the keys are used up; start copying the next keys
 *     weights = 2^(scores - max), sums = sums * factor + weights v
 *
 * Weights never leave registers: an mma's result has the layout of the next mma's left operand. Rows of shared memory
 * are D + 8 numbers apart, an odd number of 16-byte units, so the 8 rows of an ldmatrix are in different banks. Columns
 * from head_dim to D and keys after the last are zeros. Per 64 keys a tile of R rows takes 256 R D FLOP and 256 D bytes
 * of keys and values; its q, keys and values take 2 (R + 128) (D + 8) bytes of shared memory:
 *
 *     D    R    threads  MFLOP  bytes read  shared bytes
 *     64   128  128      2.10   16,384      36,864
 *     128  16   32       0.52   32,768      39,168
 *     128  64   64       2.10   32,768      52,224
 *     128  128  128      4.19   32,768      69,632   two blocks on a multiprocessor: 8 warps of 32 rows
 *     256  64   128      4.19   65,536      101,376  two blocks: 8 warps of 16 rows
 *
 * A warp of 32 rows reads each number of k and v from shared memory once for two products; with 16 rows shared memory,
 * not the tensor cores, would be the limit. Tiles of 16 rows are for decoding, which is bound by device memory.
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum { BLOCK_KEYS = 64, N_TILES = BLOCK_KEYS / 8 };

/* The state of MT * 16 rows, in the layout of mma results: sum[m][j][2h] and [2h + 1] are columns 8j + 2 (lane % 4) and
 * + 1 of row 16 m + 8 h + lane / 4. */
template <int D, int MT> struct warp_rows {
    float sum[MT][D / 8][4];
    float max[MT][2], weight[MT][2]; // max: times scale; weight: of this lane's columns
};

/* score = q k^T; q: this warp's rows, k: the block's keys. */
template <int D, int MT>
__device__ __forceinline__ void block_scores(float (&score)[MT][N_TILES][4], const uint16_t *q, const uint16_t *k)
{
    int lane = (int)threadIdx.x % 32;

    q += lane % 16 * (D + 8) + lane / 16 * 8;
    k += (lane % 8 + lane / 16 * 8) * (D + 8) + lane / 8 % 2 * 8;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int j = 0; j < N_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                score[m][j][e] = 0;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
        uint32_t left[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
            ldmatrix_x4<false>(left[m], q + m * 16 * (D + 8) + c * 16);
#pragma unroll
        for (int j = 0; j < N_TILES; j += 2) {
            uint32_t right[4];
            ldmatrix_x4<false>(right, k + j * 8 * (D + 8) + c * 16);
            const uint32_t first[2] = { right[0], right[1] }, second[2] = { right[2], right[3] };
#pragma unroll
            for (int m = 0; m < MT; m++) {
                mma_bf16(score[m][j], left[m], first);
                mma_bf16(score[m][j + 1], left[m], second);
            }
        }
    }
}

/* Sets the scores of keys that a row does not see to -INFINITY. left: keys from the block's first on; hidden: how many
 * of the last ones each of the warp's rows does not see. */
template <int MT>
__device__ __forceinline__ void block_mask(float (&score)[MT][N_TILES][4], const int *hidden, int left)
{
    int lane = (int)threadIdx.x % 32;

    if (left - hidden[0] >= BLOCK_KEYS) // later rows see no fewer
        return;
    left -= lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int end = left - hidden[m * 16 + h * 8 + lane / 4];
#pragma unroll
            for (int j = 0; j < N_TILES; j++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (j * 8 + e >= end)
                        score[m][j][2 * h + e] = -INFINITY;
        }
}

/* The same for keys before the first that a row sees: first[r] keys from the block's first on. */
template <int MT>
__device__ __forceinline__ void block_mask_first(float (&score)[MT][N_TILES][4], const int *first, int key)
{
    int lane = (int)threadIdx.x % 32;

    key += lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int end = first[m * 16 + h * 8 + lane / 4] - key;
#pragma unroll
            for (int j = 0; j < N_TILES; j++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (j * 8 + e < end)
                        score[m][j][2 * h + e] = -INFINITY;
        }
}

/* Turns scores into weights and rescales the sums so far to the new maximum. */
template <int D, int MT>
__device__ __forceinline__ void block_weights(struct warp_rows<D, MT> &rows, float (&score)[MT][N_TILES][4],
                                              float scale)
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float max = -INFINITY, weight = 0;
#pragma unroll
            for (int j = 0; j < N_TILES; j++)
                max = fmaxf(max, fmaxf(score[m][j][2 * h], score[m][j][2 * h + 1]));
            max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 1));
            max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 2));
            max = fmaxf(rows.max[m][h], max * scale);
            float from = max == -INFINITY ? 0 : max, factor = exp2_fast(rows.max[m][h] - from);
            rows.max[m][h] = max;
#pragma unroll
            for (int j = 0; j < N_TILES; j++)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    score[m][j][e] = exp2_fast(fmaf(score[m][j][e], scale, -from));
                    weight += score[m][j][e];
                }
            rows.weight[m][h] = rows.weight[m][h] * factor + weight;
#pragma unroll
            for (int j = 0; j < D / 8; j++) {
                rows.sum[m][j][2 * h] *= factor;
                rows.sum[m][j][2 * h + 1] *= factor;
            }
        }
}

/* sum += weight v */
template <int D, int MT>
__device__ __forceinline__ void block_values(struct warp_rows<D, MT> &rows, const float (&weight)[MT][N_TILES][4],
                                             const uint16_t *v)
{
    int lane = (int)threadIdx.x % 32;

    v += lane % 16 * (D + 8) + lane / 16 * 8;
#pragma unroll
    for (int j = 0; j < N_TILES; j += 2) {
        uint32_t left[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                left[m][e] = pack_bf16(weight[m][j + e / 2][e % 2 * 2], weight[m][j + e / 2][e % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
            uint32_t right[4];
            ldmatrix_x4<true>(right, v + j * 8 * (D + 8) + c * 16);
            const uint32_t first[2] = { right[0], right[1] }, second[2] = { right[2], right[3] };
#pragma unroll
            for (int m = 0; m < MT; m++) {
                mma_bf16(rows.sum[m][2 * c], left[m], first);
                mma_bf16(rows.sum[m][2 * c + 1], left[m], second);
            }
        }
    }
}

/* Writes half h of the lane's columns, `column` + 8 j and + 1, of the K columns of a row. */
template <int D>
__device__ __forceinline__ void put_row(const struct attend_row<uint16_t> &row, const float (&sum)[D / 8][4], int h,
                                        int column, int K)
{
#pragma unroll
    for (int j = 0; j < D / 8; j++)
        if (j * 8 < K)
            put_sums(row, j * 8 + column, sum[j][2 * h], sum[j][2 * h + 1]);
}

/* Writes the rows of a warp; the first is row `first` of the pair. */
template <int D, int MT>
__device__ __forceinline__ void put_rows(const struct attend_args &a, const struct attend_task &t,
                                         struct warp_rows<D, MT> &rows, int first)
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = first + m * 16 + h * 8 + lane / 4;
            float weight = rows.weight[m][h];
            weight += __shfl_xor_sync(0xffffffffu, weight, 1);
            weight += __shfl_xor_sync(0xffffffffu, weight, 2);
            if (r >= t.n_rows)
                continue;
            struct attend_row<uint16_t> row = attend_finish<uint16_t>(a, t, r, rows.max[m][h], weight, lane % 4 == 0);
            put_row<D>(row, rows.sum[m], h, lane % 4 * 2, a.job.head_dim);
        }
}

template <int D, int MT> __device__ __forceinline__ void no_keys(struct warp_rows<D, MT> &rows)
{
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int j = 0; j < D / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                rows.sum[m][j][e] = 0;
#pragma unroll
        for (int h = 0; h < 2; h++)
            rows.max[m][h] = -INFINITY, rows.weight[m][h] = 0;
    }
}

/* Asks for what the tile's rows are merged with, where a warp alone has it: it is read when there is nothing else to
 * wait for. */
template <int ROWS>
__device__ __forceinline__ void ask_for_others(const struct attend_args &a, const struct attend_task &t)
{
    constexpr int LINE = 128 / sizeof(float);

    if (ROWS > 16 || !a.job.other_part || t.state >= 0)
        return;
    size_t row = t.row + (size_t)t.first;
    int numbers = min(t.n_rows - t.first, ROWS) * a.job.head_dim;
    for (int i = (int)threadIdx.x * LINE; i < numbers; i += 32 * LINE)
        prefetch_l2(a.job.other_part + row * (size_t)a.job.head_dim + i);
    if (threadIdx.x == 0)
        prefetch_l2(a.job.other_lse + row);
}

/* Two blocks of four warps on a multiprocessor, or smaller blocks with the same number of warps. */
/* registers <= 255 */
template <int D, int MT, int WARPS>
__global__ void __launch_bounds__(WARPS * 32, 8 / WARPS) attend_tensor(const struct attend_args a)
{
    constexpr int ROWS = WARPS * MT * 16, THREADS = WARPS * 32;
    int K = a.job.head_dim;
    bool weighed = a.job.out.at || a.job.part; // else only the log-sum-exp is wanted
    struct attend_task t;
    struct warp_rows<D, MT> rows;

    SHARED_DYNAMIC(uint16_t, q);
    SHARED_ARRAY(int, row_hidden, ROWS);
    SHARED_ARRAY(int, row_first, ROWS);
    uint16_t *k = q + ROWS * (D + 8), *v = k + BLOCK_KEYS * (D + 8);
    attend_task_of<uint16_t>(a, (int)blockIdx.x, &t);
    t.begin += attend_skipped(a, t, BLOCK_KEYS);
    const uint16_t *keys = (const uint16_t *)t.k + (size_t)t.begin * (size_t)K;
    const uint16_t *values = (const uint16_t *)t.v + (size_t)t.begin * (size_t)K;
    int warp_row = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0) * MT * 16,
        end = attend_max_seen(a, t, t.first, ROWS);
    int warp_hidden = end - attend_max_seen(a, t, t.first + warp_row, MT * 16);
    if (threadIdx.x < ROWS)
        row_hidden[threadIdx.x] = end - attend_seen(a, t, t.first + (int)threadIdx.x);
    if (threadIdx.x < ROWS && a.job.window)
        row_first[threadIdx.x] = attend_first(a, t, t.first + (int)threadIdx.x);
    no_keys(rows);
    if (t.begin < end) {
        copy_tile<D, ROWS, THREADS>(q, (const uint16_t *)a.job.q + (t.row + (size_t)t.first) * (size_t)K,
                                    t.n_rows - t.first, K);
        copy_tile<D, BLOCK_KEYS, THREADS>(k, keys, end - t.begin, K);
        copy_async_commit();
        if (weighed)
            copy_tile<D, BLOCK_KEYS, THREADS>(v, values, end - t.begin, K);
        copy_async_commit();
    }
    ask_for_others<ROWS>(a, t);
    for (int left = end - t.begin; left > 0; left -= BLOCK_KEYS) {
        float score[MT][N_TILES][4];
        bool first = left == end - t.begin, seen = left > warp_hidden;
        if (first)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        if (weighed && !first)
            copy_tile<D, BLOCK_KEYS, THREADS>(v, values, left, K);
        copy_async_commit();
        if (seen)
            block_scores<D, MT>(score, q + warp_row * (D + 8), k);
        copy_async_wait<0>();
        __syncthreads();
        keys += BLOCK_KEYS * K, values += BLOCK_KEYS * K;
        if (left > BLOCK_KEYS)
            copy_tile<D, BLOCK_KEYS, THREADS>(k, keys, left - BLOCK_KEYS, K);
        copy_async_commit();
        if (seen) {
#pragma unroll
            for (int i = 0; i < MT * N_TILES; i++)
                attend_cap(score[i / N_TILES][i % N_TILES], a.cap);
            block_mask<MT>(score, row_hidden + warp_row, left);
            if (a.job.window)
                block_mask_first<MT>(score, row_first + warp_row, end - left);
            block_weights<D, MT>(rows, score, a.scale);
            if (weighed)
                block_values<D, MT>(rows, score, v);
        }
    }
    attend_task_of<uint16_t>(a, (int)blockIdx.x, &t); // computed again, to save registers until here
    put_rows(a, t, rows, t.first + (int)threadIdx.x / 32 * MT * 16);
}

/* ---- launches -------------------------------------------------------------- */

template <int D, int MT, int WARPS> static void launch(struct cuda *c, const struct attend_args *a)
{
    constexpr int ROWS = WARPS * MT * 16;
    size_t bytes = (size_t)(ROWS + 2 * BLOCK_KEYS) * (D + 8) * sizeof(uint16_t);

    LAUNCH(c, (attend_tensor<D, MT, WARPS>), (unsigned)a->n_items, WARPS * 32, bytes, *a);
}

void attend_launch_tensor(struct cuda *c, const struct attend_args *a, int tile_rows)
{
    tensor_for(a->job.head_dim, [&](auto width) {
        constexpr int D = decltype(width)::n;
        if (tile_rows == 16)
            launch<D, 1, 1>(c, a);
        else if constexpr (D > 128)
            launch<D, 1, 4>(c, a);
        else if (tile_rows == 64)
            launch<D, 2, 2>(c, a);
        else
            launch<D, 2, 4>(c, a);
    });
}

int attend_tensor_rows(int n_rows, int K)
{
    return n_rows <= 16 ? 16 : n_rows <= 64 || K > 128 ? 64 : 128;
}
