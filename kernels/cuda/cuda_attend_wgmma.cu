/* cuda_attend_wgmma.cu - attention of bf16 heads of 64 and 128 columns on compute capability 9.0, by products of whole
 * warpgroups (wgmma): texts, shared caches, whole texts. There are as many blocks as multiprocessors, and each goes
 * through items of the list: one piece of one tile of 128 rows, then the next.
 *
 * Warpgroup 0 copies, warpgroups 1 and 2 have 64 rows each. The piece's keys come in blocks of 128, from its first key
 * on; shared memory holds the tile's q and three blocks each of keys and of values, so that copies of the next blocks,
 * also of the next item's, run beside the products of this one. Two barriers of phases go with each block's place and
 * with q: `full` (the copies are there) and `empty` (all warps of both warpgroups are done with it). A warpgroup goes
 * through its blocks like this:
 *
 *     wait for its turn
 *     start scores = q k^T of block i                  q and k in shared memory
 *     start sum += weights v of block i - 1            weights in registers, v in shared memory
 *     it is the other one's turn
 *     wait for the scores; maximum, weights = 2^(scores - max)
 *     wait for the sum; sum *= factor
 *
 * So the tensor cores have work while the weights are computed, and while one warpgroup waits for its scores the other
 * computes weights. A warpgroup whose rows see nothing of a block only passes it on.
 *
 * Copies are boxes of 64 columns and 128 rows by the tensor memory accelerator; one warp copies q and keys, another
 * values. One tensor map covers all rows of a kind (q, keys, values), from the first head of the job to the last,
 * wherever in between heads begin. So the last block of a head holds rows of others, or what nobody wrote: scores of
 * such keys are masked; such values are cleared, since their weight is 0, and 0 times NaN would be NaN.
 *
 * Per 128 keys a tile takes 4 * 128 * 128 D FLOP and 512 D bytes of keys and values; it has 1,792 D bytes of shared
 * memory:
 *
 *     D    MFLOP  bytes read  shared bytes
 *     64   4.19   32,768      114,688
 *     128  8.39   65,536      229,376
 */
#include "kernels/cuda/cuda_attend_internal.h"

#include <assert.h>

enum {
    BLOCK_KEYS = 128,
    STAGES = 3,
    GROUP = 128, // threads of a warpgroup
    GROUP_ROWS = 64,
    THREADS = GROUP * (1 + WGMMA_ROWS / GROUP_ROWS),
    CONSUMER_WARPS = WGMMA_ROWS / GROUP_ROWS * GROUP / 32,
    PANEL = 64, // columns; wgmma_tile()
    PANEL_BYTES = BLOCK_KEYS * PANEL * 2,
    ALIGN = 1024,
    GIVE = 56, // registers of a copying thread, and of the others: as many in all as the launch bound leaves
    TAKE = 224,
};
static_assert((int)WGMMA_ROWS == (int)BLOCK_KEYS, "q has the layout of keys");

/* Tiles in the layout of wgmma_tile(). */
template <int D> struct tiles {
    uint16_t q[WGMMA_ROWS * D];
    uint16_t k[STAGES][BLOCK_KEYS * D], v[STAGES][BLOCK_KEYS * D];
};

/* Of the keys' or the values' places. */
struct phases {
    uint64_t full[STAGES], empty[STAGES];
};

/* What the warps of a block share besides tiles. */
struct together {
    struct phases keys, values;
    uint64_t q_full, q_empty;   // of q and the item's task
    uint64_t landed;            // the last block of values, not cleared yet
    uint64_t turn[2];           // a warpgroup's turn to start products
    struct attend_task task[2]; // of items by turns
};

/* Tensor maps of the job's rows of q, keys and values; where the first row of keys, and of values, lies. */
struct attend_maps {
    CUtensorMap q, k, v;
    const uint16_t *k_at, *v_at;
};

/* The state of 16 rows of a warp, in the layout of products. */
template <int D> struct group_rows {
    float sum[D / 8][4];
    float max[2], weight[2]; // max: times scale; weight: of this lane's columns
    int seen[2];             // keys
};

/* ---- copies, by a warp ---------------------------------------------------------------- */

__device__ __forceinline__ bool is_leader()
{
    return threadIdx.x % 32 == 0;
}

/* For all lanes of a warp: one that is two phases behind would wait for ever. */
__device__ __forceinline__ void wait_together(uint64_t *at, unsigned parity)
{
    phase_wait(at, parity);
    __syncwarp();
}

/* Starts copying a block of rows to a tile. */
template <int D>
__device__ __forceinline__ void copy_rows(uint16_t *to, const CUtensorMap *map, size_t row, uint64_t *full)
{
    if (!is_leader())
        return;
    phase_arrive_bytes(full, BLOCK_KEYS * D * 2);
#pragma unroll
    for (int c = 0; c < D; c += PANEL)
        copy_box(to + c / PANEL * (PANEL_BYTES / 2), map, c, (int)row, full);
}

/* Clears the rows of a tile from row n on. */
template <int D> __device__ __forceinline__ void clear_rows(uint16_t *tile, int n)
{
    constexpr int UNITS = PANEL / 8; // of 16 bytes, of a row

#pragma unroll
    for (int c = 0; c < D; c += PANEL)
        for (int i = n * UNITS + (int)threadIdx.x % 32; i < BLOCK_KEYS * UNITS; i += 32)
            shared_clear_16(tile + c / PANEL * (PANEL_BYTES / 2) + i * 8);
}

/* The q and all blocks of keys of this block's items, and for each the task. */
template <int D>
__device__ __forceinline__ void copy_keys(const struct attend_args &a, const struct attend_maps &maps,
                                          struct tiles<D> *m, struct together *s)
{
    unsigned at = 0; // block of keys

    for (int j = 0, item; (item = attend_item_of((int)blockIdx.x, (int)gridDim.x, j)) < a.n_items; j++) {
        struct attend_task t;
        attend_task_of<uint16_t>(a, item, &t);
        wait_together(&s->q_empty, (unsigned)(j + 1) % 2);
        if (is_leader())
            s->task[j % 2] = t;
        copy_rows<D>(m->q, &maps.q, t.row + (size_t)t.first, &s->q_full);
        size_t row = (size_t)((const uint16_t *)t.k - maps.k_at) / D;
        for (int key = t.begin, end = attend_max_seen(a, t, t.first, WGMMA_ROWS); key < end; key += BLOCK_KEYS, at++) {
            unsigned stage = at % STAGES;
            wait_together(&s->keys.empty[stage], (at / STAGES + 1) % 2);
            copy_rows<D>(m->k[stage], &maps.k, row + (size_t)key, &s->keys.full[stage]);
        }
    }
}

/* The values of the same items. Those after the last key that the tile sees are cleared. */
template <int D>
__device__ __forceinline__ void copy_values(const struct attend_args &a, const struct attend_maps &maps,
                                            struct tiles<D> *m, struct together *s)
{
    unsigned at = 0, n_cleared = 0; // blocks

    for (int j = 0, item; (item = attend_item_of((int)blockIdx.x, (int)gridDim.x, j)) < a.n_items; j++) {
        struct attend_task t;
        attend_task_of<uint16_t>(a, item, &t);
        size_t row = (size_t)((const uint16_t *)t.v - maps.v_at) / D;
        for (int key = t.begin, end = attend_max_seen(a, t, t.first, WGMMA_ROWS); key < end; key += BLOCK_KEYS, at++) {
            unsigned stage = at % STAGES;
            bool whole = key + BLOCK_KEYS <= end;
            wait_together(&s->values.empty[stage], (at / STAGES + 1) % 2);
            copy_rows<D>(m->v[stage], &maps.v, row + (size_t)key, whole ? &s->values.full[stage] : &s->landed);
            if (whole)
                continue;
            wait_together(&s->landed, n_cleared++ % 2);
            clear_rows<D>(m->v[stage], end - key);
            shared_fence_async();
            __syncwarp();
            if (is_leader())
                phase_arrive(&s->values.full[stage]);
        }
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
__device__ __forceinline__ void leave(struct phases *phases, unsigned i)
{
    if (is_leader())
        phase_arrive(&phases->empty[i % STAGES]);
}

__device__ __forceinline__ void enter(struct phases *phases, unsigned i)
{
    phase_wait(&phases->full[i % STAGES], i / STAGES % 2);
}

/* Warpgroup g, 0 or 1, may start the products of block i; it has started them. 0 is first. */
__device__ __forceinline__ void take_turn(struct together *s, int g, unsigned i)
{
    phase_wait(&s->turn[g], (i + 1 - (unsigned)g) % 2);
}

__device__ __forceinline__ void pass_turn(struct together *s, int g)
{
    if (is_leader())
        phase_arrive(&s->turn[1 - g]);
}

/* Starts score = q k^T, of block i. q: the warpgroup's rows. */
template <int D>
__device__ __forceinline__ void start_scores(float (&score)[BLOCK_KEYS / 8][4], const uint16_t *q,
                                             const struct tiles<D> *m, struct phases *phases, unsigned i)
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
                                             const struct tiles<D> *m, struct phases *phases, unsigned i)
{
    const uint16_t *v = m->v[i % STAGES];

    enter(phases, i);
    wgmma_fence(rows.sum, weight);
#pragma unroll
    for (int j = 0; j < BLOCK_KEYS / 16; j++)
        wgmma_columns(rows.sum, weight[j], wgmma_tile(v + j * 16 * PANEL, PANEL_BYTES));
    wgmma_commit();
}

/* Blocks at to at + n - 1, of keys from `key` on, for warpgroup g. */
template <int D, bool WEIGHED>
__device__ __forceinline__ void go_through(struct group_rows<D> &rows, struct tiles<D> *m, struct together *s, int g,
                                           unsigned at, int n, int key, float scale)
{
    const uint16_t *q = m->q + g * GROUP_ROWS * PANEL;
    float score[BLOCK_KEYS / 8][4], factor[2];
    uint32_t weight[BLOCK_KEYS / 16][4];

    if (n > 0) {
        take_turn(s, g, at);
        start_scores(score, q, m, &s->keys, at);
        pass_turn(s, g);
        wgmma_wait<0>(score);
        leave(&s->keys, at);
        mask_scores(score, rows.seen, key);
        weigh(rows, score, factor, scale);
        if (WEIGHED)
            rescale(rows, weight, score, factor);
    }
    for (int i = 1; i < n; i++) {
        at++, key += BLOCK_KEYS;
        take_turn(s, g, at);
        start_scores(score, q, m, &s->keys, at);
        if (WEIGHED)
            start_values(rows, weight, m, &s->values, at - 1);
        pass_turn(s, g);
        if (WEIGHED)
            wgmma_wait<1>(score);
        else
            wgmma_wait<0>(score);
        leave(&s->keys, at);
        mask_scores(score, rows.seen, key);
        weigh(rows, score, factor, scale);
        if (WEIGHED) {
            computed_here(rows.weight[0] + rows.weight[1]); // beside the product of values
            wgmma_wait<0>(rows.sum, weight);
            leave(&s->values, at - 1);
            rescale(rows, weight, score, factor);
        }
    }
    __syncwarp(); // all lanes have read the task of the item before, whose place is the next one's
    if (is_leader())
        phase_arrive(&s->q_empty);
    if (WEIGHED && n > 0) {
        start_values(rows, weight, m, &s->values, at);
        wgmma_wait<0>(rows.sum, weight);
        leave(&s->values, at);
    }
}

/* Blocks at to end - 1, of which the warpgroup's rows see nothing: the copies wait for all warps. */
template <bool WEIGHED> __device__ __forceinline__ void pass_on(struct together *s, int g, unsigned at, unsigned end)
{
    for (; at != end; at++) {
        take_turn(s, g, at);
        __syncwarp();
        pass_turn(s, g);
        for (int values = 0; values <= WEIGHED; values++) {
            struct phases *phases = values ? &s->values : &s->keys;
            enter(phases, at);
            __syncwarp();
            leave(phases, at);
        }
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

/* Blocks of the keys from t.begin to end - 1. */
__device__ __forceinline__ int blocks_to(const struct attend_task &t, int end)
{
    return end > t.begin ? (end - t.begin + BLOCK_KEYS - 1) / BLOCK_KEYS : 0;
}

/* Warpgroup g's rows of all items. */
template <int D, bool WEIGHED>
__device__ __forceinline__ void attend_items(const struct attend_args &a, struct tiles<D> *m, struct together *s, int g)
{
    int group_row = g * GROUP_ROWS, row = group_row + (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
    unsigned at = 0; // block of keys

    for (int j = 0; attend_item_of((int)blockIdx.x, (int)gridDim.x, j) < a.n_items; j++) {
        struct group_rows<D> rows;
        const struct attend_task &t = s->task[j % 2];
        phase_wait(&s->q_full, (unsigned)j % 2);
        int n = blocks_to(t, attend_max_seen(a, t, t.first + group_row, GROUP_ROWS));
        unsigned end = at + (unsigned)blocks_to(t, attend_max_seen(a, t, t.first, WGMMA_ROWS));
        start_rows(rows, a, t, t.first + row);
        go_through<D, WEIGHED>(rows, m, s, g, at, n, t.begin, a.scale);
        pass_on<WEIGHED>(s, g, at + (unsigned)n, end);
        put_rows(a, t, rows, t.first + row);
        at = end;
    }
}

/* By one thread. */
__device__ __forceinline__ void begin_phases(struct together *s)
{
    for (int values = 0; values < 2; values++)
        for (int i = 0; i < STAGES; i++) {
            phase_init(values ? &s->values.full[i] : &s->keys.full[i], 1);
            phase_init(values ? &s->values.empty[i] : &s->keys.empty[i], CONSUMER_WARPS);
        }
    phase_init(&s->q_full, 1);
    phase_init(&s->q_empty, CONSUMER_WARPS);
    phase_init(&s->landed, 1);
    phase_init(&s->turn[0], GROUP / 32);
    phase_init(&s->turn[1], GROUP / 32);
    shared_fence_async();
}

/* WEIGHED: values are wanted, not only the log-sum-exp. 168: what 384 threads can have; GIVE and TAKE change it. */
/* registers <= 168 */
template <int D, bool WEIGHED>
__global__ void __launch_bounds__(THREADS, 1)
    attend_wgmma(const struct attend_args a, const __grid_constant__ struct attend_maps maps)
{
    SHARED_DYNAMIC(char, shared);
    SHARED_ARRAY(struct together, s, 1);
    struct tiles<D> *m = (struct tiles<D> *)(shared + (ALIGN - shared_address(shared) % ALIGN) % ALIGN);
    if (threadIdx.x == 0)
        begin_phases(s);
    __syncthreads();
    int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0), group = warp / (GROUP / 32);
    if (group == 0) {
        registers_give<GIVE>();
        if (warp == 0)
            copy_keys<D>(a, maps, m, s);
        else if (WEIGHED && warp == 1)
            copy_values<D>(a, maps, m, s);
    } else {
        registers_take<TAKE>();
        attend_items<D, WEIGHED>(a, m, s, group - 1);
    }
}

/* ---- launches ------------------------------------------------------------------------------ */

/* A map of n rows of D columns; its boxes are panels of tiles. */
static bool make_map(struct cuda *c, CUtensorMap *map, const void *at, size_t n, int D)
{
    const cuuint64_t size[] = { (cuuint64_t)D, n }, pitch[] = { (cuuint64_t)D * 2 };
    const cuuint32_t box[] = { PANEL, BLOCK_KEYS }, step[] = { 1, 1 };
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;

    if (!c->encode_map && !cuda_ok(c,
                                   cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &c->encode_map, 12000,
                                                                    cudaEnableDefault, &found),
                                   "looking for cuTensorMapEncodeTiled"))
        return false;
    CUresult code = found != cudaDriverEntryPointSuccess
                        ? CUDA_ERROR_NOT_FOUND
                        : ((decltype(&cuTensorMapEncodeTiled))c->encode_map)(
                              map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)at, size, pitch, box, step,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS)
        cuda_fail(c, ERR_LOST, "the GPU failed: a tensor map of %zu rows: error %d of the driver", n, (int)code);
    return code == CUDA_SUCCESS;
}

/* Sets *map and *at for the rows of keys, or values, of all heads of a job, and what lies between them. */
static bool map_heads(struct cuda *c, CUtensorMap *map, const uint16_t **at, const struct attn_job &job, bool values)
{
    const size_t D = (size_t)job.head_dim;
    const uint16_t *first = (const uint16_t *)(values ? job.store.v : job.store.k), *end = first;

    if (job.kind != ATTN_SHARED)
        end += (size_t)(job.layer + 1) * (size_t)job.n_kv_heads * job.store.head_rows * D;
    for (int i = 0; job.kind == ATTN_SHARED && i < job.spans.n * job.n_kv_heads; i++) {
        const struct attn_span &span = job.spans.host[i / job.n_kv_heads];
        const struct kv_rows &rows = job.table.host[attend_entry(job, span, i % job.n_kv_heads)];
        const uint16_t *mine = (const uint16_t *)(values ? rows.v : rows.k), *its_end = mine + (size_t)rows.n * D;
        if (rows.n == 0)
            continue;
        assert(!first || (mine - first) % job.head_dim == 0); // kernels/backend.h
        first = !first || mine < first ? mine : first;
        end = its_end > end ? its_end : end;
    }
    if (end == first) // nothing is copied
        first = (const uint16_t *)job.q, end = first + D;
    *at = first;
    return make_map(c, map, first, (size_t)(end - first) / D, job.head_dim);
}

template <int D, bool WEIGHED>
static void launch(struct cuda *c, const struct attend_args *a, const struct attend_maps *maps)
{
    unsigned grid = (unsigned)(a->n_items < c->n_multiprocessors ? a->n_items : c->n_multiprocessors);

    LAUNCH(c, (attend_wgmma<D, WEIGHED>), grid, THREADS, sizeof(struct tiles<D>) + ALIGN, *a, *maps);
}

void attend_launch_wgmma(struct cuda *c, const struct attend_args *a)
{
    const struct attn_job &job = a->job;
    bool weighed = job.out.at || job.part;
    struct attend_maps maps;

    if (cuda_failed(c) || !make_map(c, &maps.q, job.q, (size_t)job.n_tokens * (size_t)job.n_heads, job.head_dim) ||
        !map_heads(c, &maps.k, &maps.k_at, job, false) || !map_heads(c, &maps.v, &maps.v_at, job, true))
        return;
    if (job.head_dim == 64)
        weighed ? launch<64, true>(c, a, &maps) : launch<64, false>(c, a, &maps);
    else
        weighed ? launch<128, true>(c, a, &maps) : launch<128, false>(c, a, &maps);
}
