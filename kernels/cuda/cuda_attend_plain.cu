/* cuda_attend_plain.cu - attention in plain FMA, in f32.
 *
 * A block has a tile of PLAIN_ROWS rows and one piece, and goes through the piece 32 keys at a time. For scores a lane
 * takes a key, for values every 32nd column. Keys and values come through shared memory, 64 columns at a time, and each
 * number read from there serves 4 query rows. This is for parity with the CPU and for the embedder, not for speed.
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum { LANE_COLUMNS = PLAIN_COLUMNS / 32 };

/* The state of a warp's rows; a lane has columns lane, lane + 32, ... of their sums. */
template <int C> struct plain_state {
    float sum[4][C * LANE_COLUMNS];
    float max[4], weight[4]; // max: times scale; weight: of this lane's keys
    int first[4], seen[4];
};

/* Turns the scores of keys from `key` on into weights in shared memory; rescales the sums so far to the new maximum. */
template <int C>
__device__ __forceinline__ void plain_weights(struct plain_state<C> &rows, struct plain_memory<C> *m, float (&score)[4],
                                              int key, float scale)
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int r = 0; r < 4; r++) {
        bool sees = key + lane < rows.seen[r] && key + lane >= rows.first[r];
        float x = sees ? score[r] : -INFINITY, max = x;
        for (int far = 16; far > 0; far /= 2)
            max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, far));
        max = fmaxf(max * scale, rows.max[r]);
        float from = max == -INFINITY ? 0 : max, factor = exp2_fast(rows.max[r] - from);
        rows.max[r] = max;
        score[r] = exp2_fast(fmaf(x, scale, -from));
        rows.weight[r] = rows.weight[r] * factor + score[r];
#pragma unroll
        for (int i = 0; i < C * LANE_COLUMNS; i++)
            rows.sum[r][i] *= factor;
    }
    m->weight[threadIdx.x / 32][lane] = make_float4(score[0], score[1], score[2], score[3]);
}

/* sum += weight v, for the n values at `v`. */
template <int C>
__device__ __forceinline__ void plain_values(struct plain_state<C> &rows, struct plain_memory<C> *m, const float *v,
                                             int n, int K)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int c = 0; c < C; c++) {
        plain_tile(m, v, n, K, c);
#pragma unroll 4
        for (int j = 0; j < PLAIN_KEYS; j++) {
            float4 weight = m->weight[warp][j];
#pragma unroll
            for (int i = 0; i < LANE_COLUMNS; i++) {
                float x = m->tile[j * PLAIN_PITCH + lane + 32 * i];
                rows.sum[0][c * LANE_COLUMNS + i] = fmaf(weight.x, x, rows.sum[0][c * LANE_COLUMNS + i]);
                rows.sum[1][c * LANE_COLUMNS + i] = fmaf(weight.y, x, rows.sum[1][c * LANE_COLUMNS + i]);
                rows.sum[2][c * LANE_COLUMNS + i] = fmaf(weight.z, x, rows.sum[2][c * LANE_COLUMNS + i]);
                rows.sum[3][c * LANE_COLUMNS + i] = fmaf(weight.w, x, rows.sum[3][c * LANE_COLUMNS + i]);
            }
        }
    }
}

__device__ __forceinline__ void put_one(const struct attend_row<float> &row, int column, float x)
{
    if (row.sum)
        row.sum[column] = x;
    if (row.part)
        row.part[column] = x * row.factor;
    if (row.out)
        row.out[column] = attend_merged(row, column, x * row.factor);
}

/* registers <= 255 */
template <int C> __global__ void __launch_bounds__(PLAIN_WARPS * 32, 2) attend_plain(const struct attend_args a)
{
    int lane = (int)threadIdx.x % 32, K = a.job.head_dim;
    bool weighed = a.job.out.at || a.job.part; // else only the log-sum-exp is wanted
    struct attend_task t;
    struct plain_state<C> rows = {
    };

    SHARED_DYNAMIC(struct plain_memory<C>, m);
    attend_task_of<float>(a, (int)blockIdx.x, &t);
    const float *q = (const float *)a.job.q + (t.row + (size_t)t.first) * (size_t)K;
    int first = t.first + (int)threadIdx.x / 32 * 4, end = attend_max_seen(a, t, t.first, PLAIN_ROWS);
    for (int r = 0; r < 4; r++) {
        rows.max[r] = -INFINITY;
        rows.seen[r] = attend_seen(a, t, first + r);
        rows.first[r] = a.job.window ? attend_first(a, t, first + r) : 0;
    }
    plain_rows(m, q, t.n_rows - t.first, K);
    for (int key = t.begin + attend_skipped(a, t, PLAIN_KEYS); key < end; key += PLAIN_KEYS) {
        size_t from = (size_t)key * (size_t)K;
        float score[4];
        plain_scores(score, m, (const float *)t.k + from, end - key, K);
        attend_cap(score, a.cap);
        plain_weights(rows, m, score, key, a.scale);
        if (weighed)
            plain_values(rows, m, (const float *)t.v + from, end - key, K);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        for (int far = 16; far > 0; far /= 2)
            rows.weight[r] += __shfl_xor_sync(0xffffffffu, rows.weight[r], far);
        if (first + r >= t.n_rows)
            continue;
        struct attend_row<float> row = attend_finish<float>(a, t, first + r, rows.max[r], rows.weight[r], lane == 0);
#pragma unroll
        for (int i = 0; i < C * LANE_COLUMNS; i++)
            if (lane + 32 * i < K)
                put_one(row, lane + 32 * i, rows.sum[r][i]);
    }
}

/* ---- launches -------------------------------------------------------------- */

template <int C> static void launch(struct cuda *c, const struct attend_args *a)
{
    LAUNCH(c, (attend_plain<C>), (unsigned)a->n_items, PLAIN_WARPS * 32, sizeof(struct plain_memory<C>), *a);
}

void attend_launch_plain(struct cuda *c, const struct attend_args *a)
{
    plain_for(a->job.head_dim, [&](auto columns) { launch<decltype(columns)::n>(c, a); });
}
