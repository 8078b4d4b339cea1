/* cuda_attend_wgmma.cu - attention of bf16 heads of 64 and 128 columns on compute capability 9.0, by products of whole
 * warpgroups (wgmma): texts, shared caches, whole texts. A block takes one piece of one tile of 128 rows.
 *
 * Warpgroup 0 copies, warpgroups 1 and 2 have 64 rows each. The piece's keys come in blocks of 128, from its first key
 * on; shared memory holds the tile's q and two blocks each of keys and of values, so that copies of the next blocks run
 * beside the products of this one. Two barriers of phases go with each block's place: `full` (the copies are there) and
 * `empty` (all warps of both warpgroups are done with it). A warpgroup goes through its blocks like this:
 *
 *     start scores = q k^T of block i                  q and k in shared memory
 *     start sum += weights v of block i - 1            weights in registers, v in shared memory
 *     wait for the scores; maximum, weights = 2^(scores - max)
 *     wait for the sum; sum *= factor
 *
 * So the tensor cores have work while the weights are computed, and while one warpgroup waits for its scores the other
 * computes weights. A warpgroup whose rows see nothing of a block only passes it on.
 *
 * Copies are cp.async, by two warps for keys and two for values: it fills what is beyond the last key with zeros and
 * takes any address. Caches are ragged, each head has its own address and length, so TMA would need a tensor map per
 * head, layer and cache, made anew for every variant. What cp.async wrote is fenced before wgmma may read it.
 *
 * Per 128 keys a tile takes 4 * 128 * 128 D FLOP and 512 D bytes of keys and values; it has 1,280 D bytes of shared
 * memory:
 *
 *     D    MFLOP  bytes read  shared bytes
 *     64   4.19   32,768      81,920
 *     128  8.39   65,536      163,840
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum {
    BLOCK_KEYS = 128,
    STAGES = 2,
    GROUP = 128, // threads of a warpgroup
    GROUP_ROWS = 64,
    THREADS = GROUP * (1 + WGMMA_ROWS / GROUP_ROWS),
    CONSUMER_WARPS = WGMMA_ROWS / GROUP_ROWS * GROUP / 32,
    COPY_THREADS = GROUP / 2, // of keys; as many of values
    PANEL = 64,               // columns; wgmma_tile()
    PANEL_BYTES = BLOCK_KEYS * PANEL * 2,
    ALIGN = 1024,
    GIVE = 40, // registers of a copying thread, and of the others: as many in all as the launch bound leaves
    TAKE = 232,
};
static_assert((int)WGMMA_ROWS == (int)BLOCK_KEYS, "q has the layout of keys");

/* Tiles in the layout of wgmma_tile(). */
template <int D> struct tiles {
    uint16_t q[WGMMA_ROWS * D];
    uint16_t k[STAGES][BLOCK_KEYS * D], v[STAGES][BLOCK_KEYS * D];
};

/* Of the keys' and the values' places. */
struct phases {
    uint64_t full[STAGES], empty[STAGES];
};

/* The state of 16 rows of a warp, in the layout of products. */
template <int D> struct group_rows {
    float sum[D / 8][4];
    float max[2], weight[2]; // max: times scale; weight: of this lane's columns
    int seen[2];             // keys
};

/* ---- copies ----------------------------------------------------------------------------- */

/* Starts copying n rows to a tile; pads with 0. For COPY_THREADS threads, this one is `thread`. */
template <int D> __device__ __forceinline__ void copy_panels(uint16_t *to, const uint16_t *from, int n, int thread)
{
    constexpr int UNITS = D / 8, ROWS = COPY_THREADS / UNITS; // 16-byte units of a row; rows at a time
    int unit = thread % UNITS, first = thread / UNITS;

    to += unit / 8 * (PANEL_BYTES / 2);
#pragma unroll 4
    for (int i = 0; i < BLOCK_KEYS / ROWS; i++) {
        int row = first + i * ROWS;
        bool valid = row < n;
        copy_async_16(to + row * PANEL + (unit ^ row) % 8 * 8, from + (valid ? row * D + unit * 8 : 0), valid);
    }
}

/* Copies q and all blocks of keys, or of values, of keys t.begin to end - 1. */
template <int D>
__device__ __forceinline__ void copy_blocks(const struct attend_args &a, const struct attend_task &t,
                                            struct tiles<D> *m, struct phases *phases, int end)
{
    int thread = (int)threadIdx.x % COPY_THREADS;
    bool values = threadIdx.x >= COPY_THREADS;
    const uint16_t *from = (const uint16_t *)(values ? t.v : t.k) + (size_t)t.begin * D;
    uint16_t *to = values ? m->v[0] : m->k[0];

    if (!values && t.begin < end)
        copy_panels<D>(m->q, (const uint16_t *)a.job.q + (t.row + (size_t)t.first) * D, t.n_rows - t.first, thread);
    for (int i = 0, n = end - t.begin; n > 0; i++, n -= BLOCK_KEYS) {
        int stage = i % STAGES;
        phase_wait(&phases[values].empty[stage], (unsigned)(i / STAGES + 1) % 2);
        copy_panels<D>(to + stage * BLOCK_KEYS * D, from, n, thread);
        copy_async_commit();
        copy_async_wait<0>();
        shared_fence_async();
        phase_arrive(&phases[values].full[stage]);
        from += BLOCK_KEYS * D;
    }
}

/* ---- one block of keys -------------------------------------------------------------------- */

/* Sets the scores of keys from `key` on that a row does not see to -INFINITY. */
__device__ __forceinline__ void mask_scores(float (&score)[BLOCK_KEYS / 8][4], const int (&seen)[2], int key)
{
    if (seen[0] >= key + BLOCK_KEYS) // the other row sees no fewer
        return;
    key += (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < BLOCK_KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (key + j * 8 + e % 2 >= seen[e / 2])
                score[j][e] = -INFINITY;
}

/* Turns scores into weights; factor: what brings the sums so far to the new maximum. */
template <int D>
__device__ __forceinline__ void weigh(struct group_rows<D> &rows, float (&score)[BLOCK_KEYS / 8][4], float (&factor)[2],
                                      float scale)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float max = -INFINITY, weight = 0;
#pragma unroll
        for (int j = 0; j < BLOCK_KEYS / 8; j++)
            max = fmaxf(max, fmaxf(score[j][2 * h], score[j][2 * h + 1]));
        max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 1));
        max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, 2));
        max = fmaxf(rows.max[h], max * scale);
        float from = max == -INFINITY ? 0 : max;
        factor[h] = exp2_fast(rows.max[h] - from);
        rows.max[h] = max;
#pragma unroll
        for (int j = 0; j < BLOCK_KEYS / 8; j++) {
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; e++)
                score[j][e] = exp2_fast(fmaf(score[j][e], scale, -from));
            weight += score[j][2 * h] + score[j][2 * h + 1];
        }
        rows.weight[h] = rows.weight[h] * factor[h] + weight;
    }
}

/* Brings the sums to the new maximum, and rounds the weights: they are the left operand of the next product. */
template <int D>
__device__ __forceinline__ void rescale(struct group_rows<D> &rows, uint32_t (&weight)[BLOCK_KEYS / 16][4],
                                        const float (&score)[BLOCK_KEYS / 8][4], const float (&factor)[2])
{
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            rows.sum[j][e] *= factor[e / 2];
#pragma unroll
    for (int j = 0; j < BLOCK_KEYS / 16; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            weight[j][e] = pack_bf16(score[2 * j + e / 2][e % 2 * 2], score[2 * j + e / 2][e % 2 * 2 + 1]);
}

/* ---- a warpgroup's rows ------------------------------------------------------------------- */

/* This warp is done with block i's place. */
__device__ __forceinline__ void leave(struct phases *phases, int i)
{
    if (threadIdx.x % 32 == 0)
        phase_arrive(&phases->empty[i % STAGES]);
}

__device__ __forceinline__ void enter(struct phases *phases, int i)
{
    phase_wait(&phases->full[i % STAGES], (unsigned)(i / STAGES) % 2);
}

/* Starts score = q k^T, of block i. q: the warpgroup's rows. */
template <int D>
__device__ __forceinline__ void start_scores(float (&score)[BLOCK_KEYS / 8][4], const uint16_t *q,
                                             const struct tiles<D> *m, struct phases *phases, int i)
{
    const uint16_t *k = m->k[i % STAGES];

    enter(phases, i);
    wgmma_fence(score);
#pragma unroll
    for (int c = 0; c < D; c += 16) {
        int at = c / PANEL * (PANEL_BYTES / 2) + c % PANEL;
        uint64_t left = wgmma_tile(q + at), right = wgmma_tile(k + at);
        if (c == 0)
            wgmma_rows<false>(score, left, right);
        else
            wgmma_rows<true>(score, left, right);
    }
    wgmma_commit();
}

/* Starts sum += weights v, of block i. */
template <int D>
__device__ __forceinline__ void start_values(struct group_rows<D> &rows, uint32_t (&weight)[BLOCK_KEYS / 16][4],
                                             const struct tiles<D> *m, struct phases *phases, int i)
{
    const uint16_t *v = m->v[i % STAGES];

    enter(phases, i);
    wgmma_fence(rows.sum, weight);
#pragma unroll
    for (int j = 0; j < BLOCK_KEYS / 16; j++)
        wgmma_columns(rows.sum, weight[j], wgmma_tile(v + j * 16 * PANEL, PANEL_BYTES));
    wgmma_commit();
}

/* Blocks 0 to n - 1 of keys from `key` on. */
template <int D, bool WEIGHED>
__device__ __forceinline__ void go_through(struct group_rows<D> &rows, struct tiles<D> *m, const uint16_t *q,
                                           struct phases *phases, int n, int key, float scale)
{
    float score[BLOCK_KEYS / 8][4], factor[2];
    uint32_t weight[BLOCK_KEYS / 16][4];

    if (n == 0)
        return;
    start_scores(score, q, m, &phases[0], 0);
    wgmma_wait<0>(score);
    leave(&phases[0], 0);
    mask_scores(score, rows.seen, key);
    weigh(rows, score, factor, scale);
    if (WEIGHED)
        rescale(rows, weight, score, factor);
    for (int i = 1; i < n; i++) {
        start_scores(score, q, m, &phases[0], i);
        if (WEIGHED) {
            start_values(rows, weight, m, &phases[1], i - 1);
            wgmma_wait<1>(score);
        } else {
            wgmma_wait<0>(score);
        }
        leave(&phases[0], i);
        mask_scores(score, rows.seen, key + i * BLOCK_KEYS);
        weigh(rows, score, factor, scale);
        if (WEIGHED) {
            computed_here(rows.weight[0] + rows.weight[1]); // beside the product of values
            wgmma_wait<0>(rows.sum, weight);
            leave(&phases[1], i - 1);
            rescale(rows, weight, score, factor);
        }
    }
    if (WEIGHED) {
        start_values(rows, weight, m, &phases[1], n - 1);
        wgmma_wait<0>(rows.sum, weight);
        leave(&phases[1], n - 1);
    }
}

/* Blocks n to n_all - 1, of which the warpgroup's rows see nothing: the copies wait for all warps. */
template <bool WEIGHED> __device__ __forceinline__ void pass_on(struct phases *phases, int n, int n_all)
{
    for (int i = n; i < n_all; i++)
        for (int values = 0; values <= WEIGHED; values++) {
            enter(&phases[values], i);
            __syncwarp(); // a lane that is two phases behind would wait for ever; elsewhere wgmma keeps them together
            leave(&phases[values], i);
        }
}

template <int D>
__device__ __forceinline__ void start_rows(struct group_rows<D> &rows, const struct attend_args &a,
                                           const struct attend_task &t, int first)
{
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            rows.sum[j][e] = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        rows.max[h] = -INFINITY, rows.weight[h] = 0;
        rows.seen[h] = attend_seen(a, t, first + 8 * h);
    }
}

/* Writes the lane's columns of rows `first` and first + 8 of the pair. */
template <int D>
__device__ __forceinline__ void put_rows(const struct attend_args &a, const struct attend_task &t,
                                         const struct group_rows<D> &rows, int first)
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int h = 0; h < 2; h++) {
        int r = first + 8 * h;
        float weight = rows.weight[h];
        weight += __shfl_xor_sync(0xffffffffu, weight, 1);
        weight += __shfl_xor_sync(0xffffffffu, weight, 2);
        if (r >= t.n_rows)
            continue;
        struct attend_row<uint16_t> row = attend_finish<uint16_t>(a, t, r, rows.max[h], weight, lane % 4 == 0);
#pragma unroll
        for (int j = 0; j < D / 8; j++)
            put_sums(row, j * 8 + lane % 4 * 2, rows.sum[j][2 * h], rows.sum[j][2 * h + 1]);
    }
}

/* WEIGHED: values are wanted, not only the log-sum-exp. 168: what 384 threads can have; GIVE and TAKE change it. */
/* registers <= 168 */
template <int D, bool WEIGHED> __global__ void __launch_bounds__(THREADS, 1) attend_wgmma(const struct attend_args a)
{
    struct attend_task t;

    SHARED_DYNAMIC(char, shared);
    SHARED_ARRAY(struct phases, phases, 2);
    struct tiles<D> *m = (struct tiles<D> *)(shared + (ALIGN - shared_address(shared) % ALIGN) % ALIGN);
    attend_task_of<uint16_t>(a, &t);
    if (threadIdx.x < 2 * STAGES) {
        struct phases *its = &phases[threadIdx.x / STAGES];
        phase_init(&its->full[threadIdx.x % STAGES], COPY_THREADS);
        phase_init(&its->empty[threadIdx.x % STAGES], CONSUMER_WARPS);
    }
    __syncthreads();
    int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / GROUP, 0), end = attend_max_seen(a, t, t.first, WGMMA_ROWS);
    if (group == 0) {
        registers_give<GIVE>();
        if (WEIGHED || threadIdx.x < COPY_THREADS)
            copy_blocks<D>(a, t, m, phases, end);
        return;
    }
    registers_take<TAKE>();
    struct group_rows<D> rows;
    int group_row = (group - 1) * GROUP_ROWS, lane = (int)threadIdx.x % 32;
    int first = t.first + group_row + (int)threadIdx.x / 32 % 4 * 16 + lane / 4;
    int group_end = attend_max_seen(a, t, t.first + group_row, GROUP_ROWS);
    int n = (group_end - t.begin + BLOCK_KEYS - 1) / BLOCK_KEYS, n_all = (end - t.begin + BLOCK_KEYS - 1) / BLOCK_KEYS;
    start_rows(rows, a, t, first);
    go_through<D, WEIGHED>(rows, m, m->q + group_row * PANEL, phases, n < 0 ? 0 : n, t.begin, a.scale);
    pass_on<WEIGHED>(phases, n < 0 ? 0 : n, n_all);
    attend_task_of<uint16_t>(a, &t); // computed again, to save registers until here
    put_rows(a, t, rows, first);
}

/* ---- launches ------------------------------------------------------------------------------ */

template <int D, bool WEIGHED> static void launch(struct cuda *c, const struct attend_args *a)
{
    LAUNCH(c, (attend_wgmma<D, WEIGHED>), (unsigned)a->n_items, THREADS, sizeof(struct tiles<D>) + ALIGN, *a);
}

void attend_launch_wgmma(struct cuda *c, const struct attend_args *a)
{
    bool weighed = a->job.out.at || a->job.part;

    if (a->job.head_dim == 64)
        weighed ? launch<64, true>(c, a) : launch<64, false>(c, a);
    else
        weighed ? launch<128, true>(c, a) : launch<128, false>(c, a);
}
