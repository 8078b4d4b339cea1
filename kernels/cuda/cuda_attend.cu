/* cuda_attend.cu - attention on the device: turns a job into launches, merges a row's pieces; and the op merge.
 *
 * If every row has one piece, the job is one launch. Otherwise it is a series of turns; the states of a turn's tiles
 * fit in STATE_BYTES. Each turn is a launch for the pieces and a launch that merges them. cuda_attend_internal.h
 * defines tiles, pairs and pieces.
 */
#include "kernels/cuda/cuda_attend_internal.h"

enum { WARPS = 4 };                       // of a block that merges pieces
constexpr size_t STATE_BYTES = 128 << 20; // some 1,000 blocks of 128 rows of 128 columns

/* ---- the merge of pieces --------------------------------------------------- */

/* A warp takes a row. tile_rows * n_tiles rows of a pair have states, and tile_rows is a multiple of WARPS. */
/* registers <= 48 */
template <class T>
__global__ void __launch_bounds__(WARPS * 32) attend_merge_pieces(const struct attend_args a, int tile_rows)
{
    int at = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int rows = a.n_tiles * tile_rows, pair = at / rows, K = a.job.head_dim, n_keys;
    struct attend_task t;

    attend_pair_of<T>(a, a.first_pair + pair, &t, &n_keys);
    int r = a.first_tile * tile_rows + at % rows, n = attend_n_pieces(a.job, t.span, n_keys);
    if (r >= t.n_rows || n == 1)
        return;
    size_t state = (size_t)at * (size_t)a.n_pieces;
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
            put(row.out + column, x);
    }
}

/* ---- launches -------------------------------------------------------------- */

static void launch_tiles(struct cuda *c, const struct attend_args *a, int tile_rows)
{
    if (attend_has_tensor(c))
        attend_launch_tensor(c, a, tile_rows);
    else
        attend_launch_plain(c, a);
}

static void launch_merge(struct cuda *c, const struct attend_args *a, int tile_rows)
{
    unsigned blocks = cuda_pieces((size_t)a->n_pairs * (size_t)(a->n_tiles * tile_rows), WARPS);

    if (c->base.dtype == DTYPE_BF16)
        LAUNCH(c, (attend_merge_pieces<uint16_t>), blocks, WARPS * 32, 0, *a, tile_rows);
    else
        LAUNCH(c, (attend_merge_pieces<float>), blocks, WARPS * 32, 0, *a, tile_rows);
}

static size_t states_bytes(int K, size_t n)
{
    return n * (size_t)(K + 2) * sizeof(float) + 3 * CUDA_ALIGN;
}

static void place_states(struct attend_args *a, char *at, size_t n)
{
    a->sum = (float *)cuda_take(&at, n * (size_t)a->job.head_dim * sizeof(float));
    a->max = (float *)cuda_take(&at, n * sizeof(float));
    a->weight = (float *)cuda_take(&at, n * sizeof(float));
}

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* All tiles of all pairs, in turns. A turn is some pairs, or some tiles of one pair; its states fit in the planned
 * scratch. */
static void run_in_turns(struct cuda *c, struct attend_args *a, int tile_rows)
{
    const int n_tiles = a->n_tiles, n_pairs = a->n_pairs, K = a->job.head_dim;
    size_t bytes = c->scratch_planned > 0 && c->scratch_planned < STATE_BYTES ? c->scratch_planned : STATE_BYTES;
    size_t tile = (size_t)(tile_rows * a->n_pieces), fit = bytes / states_bytes(K, tile);
    int tiles = min_of(fit > 0 ? (int)fit : 1, n_tiles), pairs = min_of(fit > 0 ? (int)fit / tiles : 1, n_pairs);
    size_t n = tile * (size_t)tiles * (size_t)pairs;
    char *states = (char *)cuda_scratch(c, states_bytes(K, n));

    if (!states)
        return;
    place_states(a, states, n);
    for (a->first_pair = 0; a->first_pair < n_pairs; a->first_pair += pairs)
        for (a->first_tile = 0; a->first_tile < n_tiles; a->first_tile += tiles) {
            a->n_pairs = min_of(pairs, n_pairs - a->first_pair);
            a->n_tiles = min_of(tiles, n_tiles - a->first_tile);
            launch_tiles(c, a, tile_rows);
            launch_merge(c, a, tile_rows);
        }
}

/* The largest number of pieces of a span's rows, over all kv heads. */
static int max_pieces(const struct attn_job *job, const struct attn_span *span)
{
    int max = 1;

    if (job->kind != ATTN_SHARED)
        return attend_n_pieces(*job, *span, span->n_keys);
    for (int g = 0; g < job->n_kv_heads; g++) {
        int n = attend_n_pieces(*job, *span, job->table.host[attend_entry(*job, *span, g)].n);
        max = n > max ? n : max;
    }
    return max;
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
    int rows = 0;

    if (!cuda_attend_fits(c, job->head_dim))
        return;
    a.job = *job;
    a.only = job->spans.n > 0 ? job->spans.host[0] : a.only;
    a.group = job->n_heads / job->n_kv_heads;
    a.scale = job->scale * LOG2_E;
    a.n_pieces = 1;
    for (int i = 0; i < job->spans.n; i++) {
        int n = job->spans.host[i].n_rows * a.group, pieces = max_pieces(job, &job->spans.host[i]);
        rows = n > rows ? n : rows;
        a.n_pieces = pieces > a.n_pieces ? pieces : a.n_pieces;
    }
    int tile_rows = attend_has_tensor(c) ? attend_tensor_rows(rows) : PLAIN_ROWS;
    a.n_tiles = (rows + tile_rows - 1) / tile_rows;
    a.n_pairs = job->spans.n * job->n_kv_heads;
    if (a.n_pieces == 1)
        launch_tiles(c, &a, tile_rows);
    else
        run_in_turns(c, &a, tile_rows);
}

/* Bytes for states; at least one tile's. */
size_t cuda_attend_bytes(const struct cuda *c, const struct work_shape *shape)
{
    int K = shape->head_dim, rows = attend_has_tensor(c) ? attend_tensor_rows(INT32_MAX) : PLAIN_ROWS;
    size_t tile = states_bytes(K, (size_t)(rows * MAX_PIECES));
    size_t all = states_bytes(K, (size_t)shape->rows * (size_t)shape->n_heads * MAX_PIECES);

    if (shape->n_keys <= ATTN_SPLIT)
        return 0;
    return tile > STATE_BYTES || all < tile ? tile : all < STATE_BYTES ? all : STATE_BYTES;
}

/* ---- merging two sets of keys ---------------------------------------------- */

/* Four columns, aligned. */
__device__ __forceinline__ void put_four(float *at, const float (&x)[4])
{
    *(float4 *)at = make_float4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void put_four(uint16_t *at, const float (&x)[4])
{
    *(uint2 *)at = make_uint2(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]));
}

/* A thread takes N columns, 1 or 4, of a row of job.part; the first n threads have work. */
/* registers <= 40 */
template <class T, int N>
__global__ void __launch_bounds__(256) merge_parts(const struct merge_job job, unsigned group, unsigned n)
{
    unsigned at = blockIdx.x * 256 + threadIdx.x, K = (unsigned)job.head_dim, row = at / (K / N),
             column = at % (K / N) * N;
    unsigned token = row / group % (unsigned)job.out.rows,
             head = row / group / (unsigned)job.out.rows * group + row % group;

    if (at >= n)
        return;
    float first = job.lse[0][row], second = job.lse[1][row];
    float share = first == second ? 0.5f : 1 / (1 + exp2_fast((second - first) * LOG2_E)); // both may be -INFINITY
    T *out = (T *)job.out.at + (size_t)token * (size_t)job.out.pitch + head * K + column;
    if (N == 4) {
        float4 a = ((const float4 *)job.part[0])[at], b = ((const float4 *)job.part[1])[at];
        const float x[4] = { share * a.x + (1 - share) * b.x, share * a.y + (1 - share) * b.y,
                             share * a.z + (1 - share) * b.z, share * a.w + (1 - share) * b.w };
        put_four(out, x);
    } else {
        put(out, share * job.part[0][at] + (1 - share) * job.part[1][at]);
    }
}

template <class T> static void launch_parts(struct cuda *c, const struct merge_job *job)
{
    unsigned group = (unsigned)(job->out.cols / job->head_dim / job->n_kv_heads);
    unsigned n = (unsigned)job->out.rows * (unsigned)job->out.cols;

    if (job->head_dim % 4 == 0 && job->out.pitch % 4 == 0 && (uintptr_t)job->out.at % (4 * sizeof(T)) == 0)
        LAUNCH(c, (merge_parts<T, 4>), cuda_pieces(n / 4, 256), 256, 0, *job, group, n / 4);
    else
        LAUNCH(c, (merge_parts<T, 1>), cuda_pieces(n, 256), 256, 0, *job, group, n);
}

void cuda_merge(struct backend *be, const struct merge_job *job)
{
    struct cuda *c = cuda_of(be);

    if (be->dtype == DTYPE_BF16)
        launch_parts<uint16_t>(c, job);
    else
        launch_parts<float>(c, job);
}
