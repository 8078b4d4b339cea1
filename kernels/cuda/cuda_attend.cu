/* cuda_attend.cu - attention on the device: turns a job into launches, and merges a row's pieces.
 *
 * A list (cuda_attend_list.cu) says what the blocks do. If every row has one piece, the job is one launch; otherwise a
 * second one merges the pieces, and if their states exceed the memory for them, both are repeated, turn by turn.
 * cuda_attend_internal.h defines tiles, pairs and pieces.
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum { WARPS = 4 }; // of a block that merges pieces

/* ---- the merge of pieces --------------------------------------------------- */

/* Merges the n pieces of row r of the pair, whose states begin at `state`. */
template <class T>
__device__ __forceinline__ void merge_row(const struct attend_args &a, const struct attend_task &t, int r, int n,
                                          size_t state)
{
    int lane = (int)threadIdx.x % 32, K = a.job.head_dim;
    const float *piece_max = a.max + state, *piece_weight = a.weight + state, *sum = a.sum + state * (size_t)K;
    float max = -INFINITY, weight = 0, factor[MAX_PIECES];

    for (int i = 0; i < n; i++)
        max = fmaxf(max, piece_max[i]);
#pragma unroll
    for (int i = 0; i < MAX_PIECES; i++) {
        factor[i] = i < n && max > -INFINITY ? exp2_fast(piece_max[i] - max) : 0;
        weight += i < n ? piece_weight[i] * factor[i] : 0;
    }
    struct attend_row<T> row = attend_finish<T>(a, t, r, max, weight, lane == 0);
    for (int column = lane; column < K && (row.part || row.out); column += 32) {
        float x = 0;
#pragma unroll
        for (int i = 0; i < MAX_PIECES; i++)
            x += i < n ? sum[i * K + column] * factor[i] : 0;
        x *= row.factor;
        if (row.part)
            row.part[column] = x;
        if (row.out)
            put(row.out + column, attend_merged(row, column, x));
    }
}

/* A warp takes every WARPS-th row of an item. */
/* registers <= 64 */
template <class T> __global__ void __launch_bounds__(WARPS * 32) attend_merge_pieces(const struct attend_args a)
{
    const struct attend_item item = a.item[blockIdx.x];
    int end = item.first + MERGE_ROWS, n_keys;
    struct attend_task t;

    attend_pair_of<T>(a, item.pair, &t, &n_keys);
    int keys = attend_piece_keys(a.job, t.span, n_keys, a.most_pieces);
    t.end = n_keys;
    t.state = -1; // results are written
    end = end < t.n_rows ? end : t.n_rows;
    for (int r = item.first + (int)threadIdx.x / 32; r < end; r += WARPS) {
        int seen = attend_seen(a, t, r), n = seen > 0 ? (seen - 1) / keys + 1 : 0; // pieces with keys that it sees
        merge_row<T>(a, t, r, n, (size_t)(item.state + (r - item.first) * item.n_pieces));
    }
}

/* ---- launches -------------------------------------------------------------- */

static void launch_tiles(struct cuda *c, const struct attend_args *a, int tile_rows)
{
    if (attend_has_wgmma(c, a->job))
        attend_launch_wgmma(c, a);
    else if (attend_has_tensor(c))
        attend_launch_tensor(c, a, tile_rows);
    else
        attend_launch_plain(c, a);
}

static void launch_merge(struct cuda *c, const struct attend_args *a)
{
    if (c->base.dtype == DTYPE_BF16)
        LAUNCH(c, (attend_merge_pieces<uint16_t>), (unsigned)a->n_items, WARPS * 32, 0, *a);
    else
        LAUNCH(c, (attend_merge_pieces<float>), (unsigned)a->n_items, WARPS * 32, 0, *a);
}

static size_t states_bytes(int K, size_t n)
{
    return n * (size_t)(K + 2) * sizeof(float) + 3 * CUDA_ALIGN;
}

/* The most states in that many bytes. */
static size_t states_in(int K, size_t bytes)
{
    return bytes > 3 * CUDA_ALIGN ? (bytes - 3 * CUDA_ALIGN) / ((size_t)(K + 2) * sizeof(float)) : 0;
}

static void place_states(struct attend_args *a, char *at, size_t n)
{
    a->sum = (float *)cuda_take(&at, n * (size_t)a->job.head_dim * sizeof(float));
    a->max = (float *)cuda_take(&at, n * sizeof(float));
    a->weight = (float *)cuda_take(&at, n * sizeof(float));
}

static void run_turn(struct cuda *c, struct attend_args *a, const struct attend_list *l, const struct attend_turn *turn,
                     int tile_rows)
{
    a->item = l->device + turn->first;
    a->n_items = turn->end - turn->first;
    launch_tiles(c, a, tile_rows);
    a->item = l->device + l->n_items + turn->first_merge;
    a->n_items = turn->end_merge - turn->first_merge;
    launch_merge(c, a);
}

bool cuda_attend_fits(struct cuda *c, int K)
{
    bool whole = c->base.dtype != DTYPE_BF16 || K % 8 == 0;

    if (K > MAX_COLUMNS || !whole)
        cuda_fail(c, ERR_DEVICE, "the cuda backend has attention heads of up to %d columns%s, not of %d", MAX_COLUMNS,
                  c->base.dtype == DTYPE_BF16 ? ", in bf16 a multiple of 8" : "", K);
    return K <= MAX_COLUMNS && whole;
}

void cuda_attend(struct backend *be, const struct attn_job *job)
{
    struct cuda *c = cuda_of(be);
    struct attend_args a = {};
    int rows = 0, K = job->head_dim;

    if (!cuda_attend_fits(c, K))
        return;
    a.job = *job;
    a.only = job->spans.n > 0 ? job->spans.host[0] : a.only;
    a.group = job->n_heads / job->n_kv_heads;
    a.scale = job->scale * LOG2_E;
    a.cap = job->cap / job->scale;
    a.most_pieces = c->most_pieces;
    for (int i = 0; i < job->spans.n; i++) {
        int n = job->spans.host[i].n_rows * a.group;
        rows = n > rows ? n : rows;
    }
    int tile_rows = attend_has_wgmma(c, *job) ? WGMMA_ROWS
                    : attend_has_tensor(c)    ? attend_tensor_rows(rows, K)
                                              : PLAIN_ROWS;
    size_t bytes = c->state_planned > 0 ? c->state_planned : c->state_bytes;
    const struct attend_list *l = cuda_attend_list(c, job, tile_rows, states_in(K, bytes));
    char *states = l && l->n_states > 0 ? (char *)cuda_scratch(c, states_bytes(K, l->n_states)) : NULL;
    if (!l || (l->n_states > 0 && !states))
        return;
    if (states)
        place_states(&a, states, l->n_states);
    for (int i = 0; i < l->n_turns; i++)
        run_turn(c, &a, l, &l->turn[i], tile_rows);
}

/* Bytes for states; at least one tile's. */
size_t cuda_attend_bytes(const struct cuda *c, const struct work_shape *shape)
{
    int K = shape->head_dim, rows = attend_has_tensor(c) ? attend_tensor_rows(INT32_MAX, K) : PLAIN_ROWS;
    size_t tile = states_bytes(K, (size_t)(rows * MAX_PIECES));
    size_t all = states_bytes(K, (size_t)shape->rows * (size_t)shape->n_heads * MAX_PIECES);

    if (shape->n_keys <= ATTN_SPLIT)
        return 0;
    return tile > c->state_bytes || all < tile ? tile : all < c->state_bytes ? all : c->state_bytes;
}
