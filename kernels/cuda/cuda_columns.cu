/* cuda_columns.cu - the attention that each key gets: statistics of attention's columns, without storing the matrix.
 *
 * A block has some keys of one kv head and goes through the span's query rows, from the first row that sees any of its
 * keys to the last, so a column is summed in the order of the rows and nothing is stored per row.
 *
 * In bf16 the keys are the left operand of the products: their fragments stay in registers. The rows come through two
 * buffers of 64, with one barrier for each: while one is used, the other is filled.
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum { WARPS = 4, BLOCK_ROWS = 64, N_TILES = BLOCK_ROWS / 8 };

struct column_args {
    struct column_job job; // attn.spans is unused
    struct attn_span span;
    int group;
    float scale; // of scores, times log2(e)
    float cap;   // of scores before they are scaled; 0: none
};

/* The keys and rows of a block. */
struct column_task {
    int head, key, n_rows, first; // first: the first row that sees key `key`
    size_t row;                   // of q and lse
    size_t from;                  // index of the first key's first number in the store
};

__device__ __forceinline__ struct column_task column_task_of(const struct column_args &a, int block_keys)
{
    const struct attn_job &job = a.job.attn;
    int blocks = (a.span.n_keys + block_keys - 1) / block_keys, head = (int)blockIdx.x / blocks;
    int key = (int)blockIdx.x % blocks * block_keys, token = key - (a.span.n_keys - a.span.n_rows);
    size_t slot = (size_t)(job.layer * job.n_kv_heads + head) * job.store.head_rows + (size_t)(a.span.first + key);

    return { head,
             key,
             a.span.n_rows * a.group,
             token > 0 ? token * a.group : 0,
             ((size_t)head * (size_t)job.n_tokens + (size_t)a.span.row) * (size_t)a.group,
             slot * (size_t)job.head_dim };
}

/* The first key that row r does not see. */
__device__ __forceinline__ int column_seen(const struct column_args &a, int r)
{
    return a.span.n_keys - a.span.n_rows + r / a.group + 1;
}

/* The log-sum-exp of row r, times log2(e). INFINITY beyond the last row, so that weights are 0. */
__device__ __forceinline__ float column_lse(const struct column_args &a, const struct column_task &t, int r)
{
    return r < t.n_rows ? a.job.attn.lse[t.row + (size_t)r] * LOG2_E : INFINITY;
}

template <bool MAX> __device__ __forceinline__ float column_add(float x, float weight)
{
    return MAX ? fmaxf(x, weight) : x + weight;
}

template <bool MAX>
__device__ __forceinline__ void column_put(const struct column_args &a, const struct column_task &t, int key, float x)
{
    float *to = a.job.column + (size_t)t.head * a.job.pitch + key;

    if (key >= a.span.n_keys)
        return;
    if (a.job.stat == COLUMN_MEAN)
        x /= (float)t.n_rows;
    *to = a.job.into == COLUMN_SET ? x : column_add<MAX>(*to, x);
}

/* ---- tensor cores ------------------------------------------------------------ */

/* The data of BLOCK_ROWS query rows, apart from their columns. */
struct row_facts {
    float lse[BLOCK_ROWS];
    int seen[BLOCK_ROWS];
};

__device__ __forceinline__ void take_facts(struct row_facts *to, const struct column_args &a,
                                           const struct column_task &t, int first)
{
    if (threadIdx.x < BLOCK_ROWS) {
        to->lse[threadIdx.x] = column_lse(a, t, first + (int)threadIdx.x);
        to->seen[threadIdx.x] = column_seen(a, first + (int)threadIdx.x);
    }
}

/* score (keys, rows) for 16 query rows: two groups of 8. */
template <int D, int MT>
__device__ __forceinline__ void row_scores(float (&score)[MT][2][4], const uint32_t (&key)[MT][D / 16][4],
                                           const uint16_t *q)
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            score[m][0][e] = score[m][1][e] = 0;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
        uint32_t right[4];
        ldmatrix_x4<false>(right, q + c * 16);
        const uint32_t first[2] = { right[0], right[1] }, second[2] = { right[2], right[3] };
#pragma unroll
        for (int m = 0; m < MT; m++) {
            mma_bf16(score[m][0], key[m][c], first);
            mma_bf16(score[m][1], key[m][c], second);
        }
    }
}

/* Adds to total[m][h] (COLUMN_MAX: the larger of both) the weights that key 16 m + 8 h + lane / 4 of the warp gets from
 * BLOCK_ROWS rows. */
template <int D, int MT, bool MAX>
__device__ __forceinline__ void add_rows(float (&total)[MT][2], const struct column_args &a,
                                         const uint32_t (&key)[MT][D / 16][4], const uint16_t *q,
                                         const struct row_facts *facts, int first_key)
{
    int lane = (int)threadIdx.x % 32;
    float part[MT][2] = {};

    q += (lane % 8 + lane / 16 * 8) * (D + 8) + lane / 8 % 2 * 8;
    first_key += lane / 4;
#pragma unroll
    for (int j = 0; j < N_TILES; j += 2) {
        float score[MT][2][4];
        row_scores<D, MT>(score, key, q + j * 8 * (D + 8));
#pragma unroll
        for (int m = 0; m < 2 * MT; m++)
            attend_cap(score[m / 2][m % 2], a.cap);
#pragma unroll
        for (int i = 0; i < 4; i++) { // this lane's rows of the 16
            int row = (j + i / 2) * 8 + lane % 4 * 2 + i % 2, seen = facts->seen[row];
            float lse = facts->lse[row];
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float weight = exp2_fast(fmaf(score[m][i / 2][2 * h + i % 2], a.scale, -lse));
                    part[m][h] = column_add<MAX>(part[m][h], first_key + m * 16 + h * 8 < seen ? weight : 0);
                }
        }
    }
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            total[m][h] = column_add<MAX>(total[m][h], part[m][h]);
}

/* registers <= 144 */
template <int D, int MT, bool MAX>
__global__ void __launch_bounds__(WARPS * 32) columns_tensor(const struct column_args a)
{
    constexpr int KEYS = WARPS * MT * 16, PITCH = D + 8;
    int lane = (int)threadIdx.x % 32, K = a.job.attn.head_dim, warp_key = (int)threadIdx.x / 32 * MT * 16, stage = 0;
    struct column_task t = column_task_of(a, KEYS);
    const uint16_t *q = (const uint16_t *)a.job.attn.q + t.row * (size_t)K;
    uint32_t key[MT][D / 16][4];
    float total[MT][2] = {};

    SHARED_DYNAMIC(uint16_t, memory); // the keys, then 2 buffers of rows
    SHARED_ARRAY(struct row_facts, facts, 2);
    copy_tile<D, KEYS, WARPS * 32>(memory, (const uint16_t *)a.job.attn.store.k + t.from, a.span.n_keys - t.key, K);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int c = 0; c < D / 16; c++)
            ldmatrix_x4<false>(key[m][c], memory + (warp_key + m * 16 + lane % 16) * PITCH + c * 16 + lane / 16 * 8);
    __syncthreads();
    copy_tile<D, BLOCK_ROWS, WARPS * 32>(memory, q + (size_t)t.first * (size_t)K, t.n_rows - t.first, K);
    copy_async_commit();
    take_facts(&facts[0], a, t, t.first);
    for (int row = t.first; row < t.n_rows; row += BLOCK_ROWS, stage ^= 1) {
        int next = row + BLOCK_ROWS;
        copy_async_wait<0>();
        __syncthreads();
        if (next < t.n_rows) {
            copy_tile<D, BLOCK_ROWS, WARPS * 32>(memory + (stage ^ 1) * BLOCK_ROWS * PITCH,
                                                 q + (size_t)next * (size_t)K, t.n_rows - next, K);
            copy_async_commit();
            take_facts(&facts[stage ^ 1], a, t, next);
        }
        add_rows<D, MT, MAX>(total, a, key, memory + stage * BLOCK_ROWS * PITCH, &facts[stage], t.key + warp_key);
    }
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float x = total[m][h];
            x = column_add<MAX>(x, __shfl_xor_sync(0xffffffffu, x, 1));
            x = column_add<MAX>(x, __shfl_xor_sync(0xffffffffu, x, 2));
            if (lane % 4 == 0)
                column_put<MAX>(a, t, t.key + warp_key + m * 16 + h * 8 + lane / 4, x);
        }
}

/* ---- plain kernels ------------------------------------------------------------- */

/* registers <= 112 */
template <int C, bool MAX>
__global__ void __launch_bounds__(PLAIN_WARPS * 32, 2) columns_plain(const struct column_args a)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, K = a.job.attn.head_dim;
    struct column_task t = column_task_of(a, PLAIN_KEYS);
    const float *q = (const float *)a.job.attn.q + t.row * (size_t)K;
    float total = 0;

    SHARED_DYNAMIC(struct plain_memory<C>, m);
    SHARED_ARRAY(float, part, PLAIN_WARPS * 32);
    for (int row = t.first; row < t.n_rows; row += PLAIN_ROWS) {
        float score[4];
        __syncthreads();
        plain_rows(m, q + (size_t)row * (size_t)K, t.n_rows - row, K);
        plain_scores(score, m, (const float *)a.job.attn.store.k + t.from, a.span.n_keys - t.key, K);
        attend_cap(score, a.cap);
        for (int r = 0; r < 4; r++) {
            int at = row + warp * 4 + r;
            float weight = exp2_fast(fmaf(score[r], a.scale, -column_lse(a, t, at)));
            total = column_add<MAX>(total, t.key + lane < column_seen(a, at) ? weight : 0);
        }
    }
    part[threadIdx.x] = total;
    __syncthreads();
    if (warp == 0) {
        for (int w = 1; w < PLAIN_WARPS; w++)
            total = column_add<MAX>(total, part[w * 32 + lane]);
        column_put<MAX>(a, t, t.key + lane, total);
    }
}

/* ---- launches ------------------------------------------------------------------ */

static unsigned n_blocks(const struct column_args *a, int block_keys)
{
    return cuda_pieces((size_t)a->span.n_keys, (size_t)block_keys) * (unsigned)a->job.attn.n_kv_heads;
}

template <int D, int MT> static void launch_tensor(struct cuda *c, const struct column_args *a)
{
    constexpr int KEYS = WARPS * MT * 16, ROWS = KEYS > 2 * BLOCK_ROWS ? KEYS : 2 * BLOCK_ROWS;
    const unsigned blocks = n_blocks(a, KEYS);
    const size_t shared = (size_t)ROWS * (D + 8) * sizeof(uint16_t);

    if (a->job.stat == COLUMN_MAX)
        LAUNCH(c, (columns_tensor<D, MT, true>), blocks, WARPS * 32, shared, *a);
    else
        LAUNCH(c, (columns_tensor<D, MT, false>), blocks, WARPS * 32, shared, *a);
}

template <int C> static void launch_plain(struct cuda *c, const struct column_args *a)
{
    const unsigned blocks = n_blocks(a, PLAIN_KEYS);

    if (a->job.stat == COLUMN_MAX)
        LAUNCH(c, (columns_plain<C, true>), blocks, PLAIN_WARPS * 32, sizeof(struct plain_memory<C>), *a);
    else
        LAUNCH(c, (columns_plain<C, false>), blocks, PLAIN_WARPS * 32, sizeof(struct plain_memory<C>), *a);
}

void cuda_column_stats(struct backend *be, const struct column_job *job)
{
    struct cuda *c = cuda_of(be);
    int K = job->attn.head_dim;
    struct column_args a = {};

    a.job = *job;
    a.span = job->attn.spans.host[0];
    a.group = job->attn.n_heads / job->attn.n_kv_heads;
    a.scale = job->attn.scale * LOG2_E;
    a.cap = job->attn.cap / job->attn.scale;
    if (!cuda_attend_fits(c, K))
        return;
    if (attend_has_tensor(c))
        tensor_for(K, [&](auto width) {
            constexpr int D = decltype(width)::n;
            launch_tensor<D, D <= 128 ? 2 : 1>(c, &a);
        });
    else
        plain_for(K, [&](auto columns) { launch_plain<decltype(columns)::n>(c, &a); });
}
