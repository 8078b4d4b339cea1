/* cuda_attend_internal.h - shared by the kernels of attention: the rows and keys of a block, their copies to shared
 * memory, and the destination of results.
 *
 * Work. A pair is a span and a kv head. Its rows are cut into tiles of consecutive query rows, its keys into pieces.
 * One piece of one tile is an item of the list that the host makes (cuda_attend_list.cu). A block takes one item; in
 * cuda_attend_wgmma.cu one after the other.
 *
 * Bits. A row's result depends only on its query, its keys and the positions of the pieces' first keys: every kernel
 * goes through a piece in blocks of a fixed number of keys, and a block without a key that the row sees leaves the
 * row's state unchanged: its weights are 0, its factor is 1. The number and choice of rows in a tile change nothing.
 * Pieces are merged from the first to the last.
 */
#ifndef EVP_CUDA_ATTEND_INTERNAL_H
#define EVP_CUDA_ATTEND_INTERNAL_H

#include "kernels/cuda/cuda_internal.h"

#define LOG2_E 1.44269504f
#define LN_2   0.693147181f

enum {
    MERGE_ROWS = 16,   // whose pieces a block merges; every tile's rows are a multiple
    FULL_ROWS = 16384, // a span with this many query rows, over all heads, keeps a device busy by its tiles alone
};

/* A launch over n_items items. */
struct attend_args {
    struct attn_job job;
    struct attn_span only; // the only span, when spans.device is NULL
    int group;             // query heads of a kv head
    int n_items, most_pieces;
    const struct attend_item *item;
    float scale; // of scores, times log2(e)
    float cap;   // of scores before they are scaled; 0: none
    /* States of the rows of items with several pieces: n_pieces for each row, one row after the other. */
    float *sum;          // (states, K): values weighted by 2^(score - max)
    float *max, *weight; // (states): in units of log2; the sum of the weights
};

/* One piece of one tile. */
struct attend_task {
    struct attn_span span;
    const void *k, *v;
    size_t row;       // the pair's first row of q, part and lse
    int head, n_rows; // kv head; rows of the pair
    int first;        // the tile's first row in the pair
    int begin, end;   // keys
    bool causal;
    int state, n_pieces; // of the item
};

/* Keys of a piece, of at most `most`. Depends on the number of keys and, where the contract allows it, on the size of
 * the row's own span: a long text's tiles keep a device busy without pieces, and a sequence's own keys and those in a
 * window are few. */
__host__ __device__ static inline int attend_piece_keys(const struct attn_job &job, const struct attn_span &span,
                                                        int n_keys, int most)
{
    bool full = job.kind != ATTN_SHARED && (int64_t)span.n_rows * job.n_heads >= FULL_ROWS;
    int keys = ATTN_SPLIT;

    if (job.kind == ATTN_OWN || job.window || full || n_keys <= ATTN_SPLIT)
        return n_keys > 0 ? n_keys : 1;
    while ((n_keys - 1) / keys >= most)
        keys *= 2;
    return keys;
}

/* At least one piece: it writes the results of rows without keys. */
__host__ __device__ static inline int attend_n_pieces(const struct attn_job &job, const struct attn_span &span,
                                                      int n_keys, int most)
{
    return n_keys > 0 ? (n_keys - 1) / attend_piece_keys(job, span, n_keys, most) + 1 : 1;
}

/* The entry of a pair in the table of caches. */
__host__ __device__ static inline size_t attend_entry(const struct attn_job &job, const struct attn_span &span,
                                                      int head)
{
    return ((size_t)span.first * (size_t)job.table.n_layers + (size_t)job.layer) * (size_t)job.n_kv_heads +
           (size_t)head;
}

/* Fills the fields that depend only on the pair, not on the tile or the piece. */
template <class T>
__device__ __forceinline__ void attend_pair_of(const struct attend_args &a, int pair, struct attend_task *t,
                                               int *n_keys)
{
    const struct attn_job &job = a.job;

    t->head = pair % job.n_kv_heads;
    t->span = job.spans.device ? job.spans.device[pair / job.n_kv_heads] : a.only;
    t->n_rows = t->span.n_rows * a.group;
    t->row = ((size_t)t->head * (size_t)job.n_tokens + (size_t)t->span.row) * (size_t)a.group;
    t->causal = job.kind == ATTN_TEXT || job.kind == ATTN_OWN;
    if (job.kind == ATTN_SHARED) {
        const struct kv_rows &rows = job.table.device[attend_entry(job, t->span, t->head)];
        t->k = rows.k, t->v = rows.v, *n_keys = rows.n;
    } else {
        size_t head = (size_t)(job.layer * job.n_kv_heads + t->head);
        size_t from = (head * job.store.head_rows + (size_t)t->span.first) * (size_t)job.head_dim;
        t->k = (const T *)job.store.k + from, t->v = (const T *)job.store.v + from, *n_keys = t->span.n_keys;
    }
}

/* The task of an item. */
template <class T>
__device__ __forceinline__ void attend_task_of(const struct attend_args &a, int i, struct attend_task *t)
{
    const struct attend_item item = a.item[i];
    int n_keys;

    attend_pair_of<T>(a, item.pair, t, &n_keys);
    int keys = attend_piece_keys(a.job, t->span, n_keys, a.most_pieces);
    t->first = item.first;
    t->begin = item.piece * keys;
    t->end = n_keys - t->begin < keys ? n_keys : t->begin + keys;
    t->state = item.state;
    t->n_pieces = item.n_pieces;
}

/* The j-th item of block b of n that share the items. These have ever fewer keys, so every second round goes the other
 * way. */
__host__ __device__ static inline int attend_item_of(int b, int n, int j)
{
    return j * n + (j % 2 ? n - 1 - b : b);
}

/* The first key of the piece that row r of the pair does not see; at most the piece's end, also for rows beyond the
 * pair's last. */
__device__ __forceinline__ int attend_seen(const struct attend_args &a, const struct attend_task &t, int r)
{
    int seen = t.causal ? t.span.n_keys - t.span.n_rows + r / a.group + 1 : t.end;
    return seen < t.end ? seen : t.end;
}

/* The largest attend_seen() of rows first .. first + n - 1. */
__device__ __forceinline__ int attend_max_seen(const struct attend_args &a, const struct attend_task &t, int first,
                                               int n)
{
    int last = first + n <= t.n_rows ? first + n - 1 : t.n_rows - 1;
    return first < t.n_rows ? attend_seen(a, t, last) : 0;
}

/* The first key that row r of the pair sees; r may be beyond its last. With a window a pair has one piece. */
__device__ __forceinline__ int attend_first(const struct attend_args &a, const struct attend_task &t, int r)
{
    int row = r < t.n_rows ? r : t.n_rows - 1;
    int before = t.causal ? 0 : a.job.since[t.span.row + row / a.group] + 1;
    int first = attend_seen(a, t, row) + before - a.job.window;
    return first < 0 ? 0 : first < t.end ? first : t.end;
}

/* The start of the first block of `keys` keys that the tile needs, in its piece. */
__device__ __forceinline__ int attend_skipped(const struct attend_args &a, const struct attend_task &t, int keys)
{
    return a.job.window && t.causal ? attend_first(a, t, t.first) / keys * keys : 0;
}

/* Caps n scores, where there is a cap. */
template <int N> __device__ __forceinline__ void attend_cap(float (&score)[N], float cap)
{
    if (cap == 0)
        return;
#pragma unroll
    for (int i = 0; i < N; i++)
        score[i] = cap * tanhf(score[i] / cap);
}

/* Destinations of a row's weighted sums, (K) each; NULL: not wanted. */
template <class T> struct attend_row {
    float *sum;  // of a state: unscaled
    float *part; // times factor, like out
    T *out;
    float factor;
    const float *other; // of the result over other keys, merged into out; NULL: none
    float share;        // of it
};

/* Column `column` of out, of the row's own result x. */
template <class T> __device__ __forceinline__ float attend_merged(const struct attend_row<T> &row, int column, float x)
{
    return row.other ? row.share * row.other[column] + (1 - row.share) * x : x;
}

/* The destinations of row r of the pair. The lane with `leader` also writes the rest of the row's state, or its lse. */
template <class T>
__device__ __forceinline__ struct attend_row<T> attend_finish(const struct attend_args &a, const struct attend_task &t,
                                                              int r, float max, float weight, bool leader) {
    const struct attn_job &job = a.job;
    size_t row = t.row + (size_t)r, K = (size_t)job.head_dim;

    if (t.state >= 0) {
        size_t state = (size_t)(t.state + (r - t.first) * t.n_pieces);
        if (leader)
            a.max[state] = max, a.weight[state] = weight;
        return { a.sum + state * K, NULL, NULL, 1, NULL, 0 };
    }
    float lse = weight > 0 ? (max + log2f(weight)) * LN_2 : -INFINITY, share = 0;
    if (job.sinks) {
        float sink = job.sinks[t.head * a.group + r % a.group], own = lse;
        lse = fmaxf(own, sink) + log1pf(exp2_fast(-fabsf(own - sink) * LOG2_E));
        weight *= weight > 0 ? exp2_fast((lse - own) * LOG2_E) : 1;
    }
    if (leader && job.lse)
        job.lse[row] = lse;
    if (job.other_part) {
        float other = job.other_lse[row];
        share = other == lse ? 0.5f : 1 / (1 + exp2_fast((lse - other) * LOG2_E)); // both may be -INFINITY
    }
    size_t token = (size_t)(t.span.row + r / a.group), column = (size_t)(t.head * a.group + r % a.group) * K;
    return { NULL,
             job.part ? job.part + row *K : NULL,
             job.out.at ? (T *)job.out.at + token *(size_t)job.out.pitch + column : NULL,
             weight > 0 ? 1 / weight : 0,
             job.other_part ? job.other_part + row *K : NULL,
             share };
}

/* ---- the tensor cores' tiles ---------------------------------------------------- */

/* Starts copying n rows of K columns to ROWS rows of D columns, D + 8 numbers apart; pads with 0. */
template <int D, int ROWS, int THREADS>
__device__ __forceinline__ void copy_tile(uint16_t *to, const uint16_t *from, int n, int K)
{
    constexpr int CHUNKS = D / 8;

#pragma unroll 4
    for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
        constexpr bool EVEN = THREADS % CHUNKS == 0;
        int at = EVEN ? (int)threadIdx.x : i * THREADS + (int)threadIdx.x, column = at % CHUNKS * 8;
        int row = at / CHUNKS + (EVEN ? i * (THREADS / CHUNKS) : 0);
        bool valid = row < n && column < K;
        copy_async_16(to + row * (D + 8) + column, from + (valid ? row * K + column : 0), valid);
    }
}

/* ---- results of either dtype ------------------------------------------------ */

__device__ __forceinline__ void put(float *at, float x)
{
    *at = x;
}

__device__ __forceinline__ void put(uint16_t *at, float x)
{
    *at = float_to_bf16(x);
}

/* Writes columns `column` and + 1 of a row of out: as a word where the row is aligned for it. */
__device__ __forceinline__ void put_pair(uint16_t *out, int column, float x, float y)
{
    uint32_t both = pack_bf16(x, y);

    if ((uintptr_t)out % sizeof(both) == 0) {
        *(uint32_t *)(out + column) = both;
    } else {
        out[column] = (uint16_t)both;
        out[column + 1] = (uint16_t)(both >> 16);
    }
}

/* Writes columns `column` and + 1 of a row's destinations, of its sums x and y. */
__device__ __forceinline__ void put_sums(const struct attend_row<uint16_t> &row, int column, float x, float y)
{
    if (row.sum)
        *(float2 *)(row.sum + column) = make_float2(x, y);
    if (row.part)
        *(float2 *)(row.part + column) = make_float2(x * row.factor, y * row.factor);
    if (row.out)
        put_pair(row.out, column, attend_merged(row, column, x * row.factor),
                 attend_merged(row, column + 1, y * row.factor));
}

/* ---- plain kernels, f32: a warp has 4 query rows, a lane one of 32 keys -------- */

enum {
    PLAIN_WARPS = 4,
    PLAIN_ROWS = PLAIN_WARPS * 4, // of a tile
    PLAIN_KEYS = 32,
    PLAIN_COLUMNS = 64,              // in shared memory at a time
    PLAIN_PITCH = PLAIN_COLUMNS + 1, // puts a column of 32 rows in 32 banks
    MAX_COLUMNS = 256,               // of a head, in all kernels
};

/* Shared memory for heads of up to C * PLAIN_COLUMNS columns. */
template <int C> struct plain_memory {
    float4 q[C * PLAIN_COLUMNS][PLAIN_WARPS]; // column by column
    float4 weight[PLAIN_WARPS][PLAIN_KEYS];   // of a warp's 4 rows
    float tile[PLAIN_KEYS * PLAIN_PITCH];     // some columns of the keys or values
};

/* m->q = n rows of K columns, padded with 0. A barrier must follow before it is read: plain_tile() has one. */
template <int C> __device__ __forceinline__ void plain_rows(struct plain_memory<C> *m, const float *q, int n, int K)
{
    float *to = (float *)m->q;

    for (int i = (int)threadIdx.x; i < PLAIN_ROWS * C * PLAIN_COLUMNS; i += PLAIN_WARPS * 32) {
        int row = i / (C * PLAIN_COLUMNS), column = i % (C * PLAIN_COLUMNS);
        to[column * PLAIN_ROWS + row] = row < n && column < K ? q[(size_t)row * (size_t)K + (size_t)column] : 0;
    }
}

/* m->tile = PLAIN_COLUMNS columns, from c * PLAIN_COLUMNS on, of n rows of K columns; padded with 0. */
template <int C>
__device__ __forceinline__ void plain_tile(struct plain_memory<C> *m, const float *from, int n, int K, int c)
{
    __syncthreads();
    for (int i = (int)threadIdx.x; i < PLAIN_KEYS * PLAIN_COLUMNS; i += PLAIN_WARPS * 32) {
        int row = i / PLAIN_COLUMNS, at = i % PLAIN_COLUMNS, column = c * PLAIN_COLUMNS + at;
        bool valid = row < n && column < K;
        m->tile[row * PLAIN_PITCH + at] = valid ? from[(size_t)row * (size_t)K + (size_t)column] : 0;
    }
    __syncthreads();
}

/* score[r] = q . k for the warp's row r and this lane's key, one of the n at `k`. */
template <int C>
__device__ __forceinline__ void plain_scores(float (&score)[4], struct plain_memory<C> *m, const float *k, int n, int K)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;

    for (int r = 0; r < 4; r++)
        score[r] = 0;
    for (int c = 0; c < C; c++) {
        plain_tile(m, k, n, K, c);
#pragma unroll 8
        for (int i = 0; i < PLAIN_COLUMNS; i++) {
            float4 q = m->q[c * PLAIN_COLUMNS + i][warp];
            float x = m->tile[lane * PLAIN_PITCH + i];
            score[0] = fmaf(q.x, x, score[0]);
            score[1] = fmaf(q.y, x, score[1]);
            score[2] = fmaf(q.z, x, score[2]);
            score[3] = fmaf(q.w, x, score[3]);
        }
    }
}

/* ---- launches ----------------------------------------------------------------- */

/* The list of a job for tiles of so many rows, on the device too; a turn has most_states states at most, or one tile.
 * Valid until the next job of its kind. NULL: failed and recorded. */
const struct attend_list *cuda_attend_list(struct cuda *c, const struct attn_job *job, int tile_rows,
                                           size_t most_states);

/* Queue one kernel over the items of `a`. */
void attend_launch_tensor(struct cuda *c, const struct attend_args *a, int tile_rows);
void attend_launch_wgmma(struct cuda *c, const struct attend_args *a);
void attend_launch_plain(struct cuda *c, const struct attend_args *a);

/* Calls launch(count<C>()) with the C for heads of K columns. */
template <int N> struct count {
    static constexpr int n = N;
};
template <class F> static inline void plain_for(int K, F launch)
{
    if (K <= PLAIN_COLUMNS)
        launch(count<1>());
    else if (K <= 2 * PLAIN_COLUMNS)
        launch(count<2>());
    else
        launch(count<MAX_COLUMNS / PLAIN_COLUMNS>());
}

/* Calls launch(count<D>()) with the tile width D of the tensor kernels for heads of K columns. */
template <class F> static inline void tensor_for(int K, F launch)
{
    if (K <= 32)
        launch(count<32>());
    else if (K <= 64)
        launch(count<64>());
    else if (K <= 96)
        launch(count<96>());
    else if (K <= 128)
        launch(count<128>());
    else
        launch(count<MAX_COLUMNS>());
}

/* Tensor kernels compute in bf16, plain ones in f32. */
static inline bool attend_has_tensor(const struct cuda *c)
{
    return c->base.dtype == DTYPE_BF16;
}

/* Is the job one for the kernels of compute capability 9.0? By the device and by what all jobs of a model share, never
 * by the batch. */
static inline bool attend_has_wgmma(const struct cuda *c, const struct attn_job &job)
{
    return c->wgmma && c->base.dtype == DTYPE_BF16 && job.kind != ATTN_OWN && !job.window && job.cap == 0 &&
           (job.head_dim == 64 || job.head_dim == 128);
}
enum { WGMMA_ROWS = 128 }; // of their tiles

/* Rows of a tensor kernel's tile when the longest pair has n_rows, of heads of K columns. */
int attend_tensor_rows(int n_rows, int K);

#endif
