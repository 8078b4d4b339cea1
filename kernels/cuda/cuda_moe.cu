/* cuda_moe.cu - a mixture of experts: chooses each row's experts and computes their two products, all experts at once.
 *
 * Nothing comes back to the host: only the device knows how many rows an expert has. A pair is a row and one of its
 * experts. The pairs are sorted by expert, then by row, and cut into tiles of TILE_ROWS pairs of one expert. The grid
 * of a product has a block for every possible tile; blocks without a tile return.
 *
 *     route_rows      logits -> the experts of each row, ascending, and their weights
 *     count_pairs     how many pairs each expert has
 *     sort_pairs      the pairs in order, the position of each, and the tiles
 *     expert product  hidden = silu(gate) * up, in the order of the pairs: input rows are read in place
 *     expert product  out = down(hidden)
 *     add_experts     x += weight * out, expert after expert
 *
 * Products sum along a row in one order, whatever tile the row is in, and add_experts adds in ascending order of the
 * experts' numbers: so a row's bits depend only on the row.
 */
#include "kernels/cuda/cuda_expert.h"

enum {
    MOE_THREADS = 256,
    MOE_ROWS = 2048, // at a time: bounds the memory
};

/* Memory of the op in progress. */
struct moe {
    float *logit;         // (rows, E)
    int32_t *chosen;      // (rows, U): ascending
    float *weight;        // (rows, U): of the chosen
    int32_t *n_pairs;     // (E)
    int32_t *pair, *spot; // (rows * U): the pairs in order; pair i belongs to row i / U, spot[i]: its position in order
    struct expert_tile *tile;
    void *hidden; // (rows * U, F)
    float *out;   // (rows * U, D)
};

/* The most tiles of n_pairs pairs: each expert can have one that is not full. */
static int max_tiles(int n_pairs, int n_experts)
{
    return n_pairs / TILE_ROWS + min(n_pairs, n_experts);
}

static struct moe place(char **at, const struct work_shape *s, enum dtype dtype)
{
    const size_t rows = (size_t)s->rows, E = (size_t)s->n_experts, pairs = rows * (size_t)s->n_used;
    const size_t tiles = (size_t)max_tiles((int)pairs, s->n_experts);
    struct moe m;

    m.logit = static_cast<float *>(cuda_take(at, rows * E * sizeof(float)));
    m.chosen = static_cast<int32_t *>(cuda_take(at, pairs * sizeof(int32_t)));
    m.weight = static_cast<float *>(cuda_take(at, pairs * sizeof(float)));
    m.n_pairs = static_cast<int32_t *>(cuda_take(at, E * sizeof(int32_t)));
    m.pair = static_cast<int32_t *>(cuda_take(at, pairs * sizeof(int32_t)));
    m.spot = static_cast<int32_t *>(cuda_take(at, pairs * sizeof(int32_t)));
    m.tile = static_cast<struct expert_tile *>(cuda_take(at, tiles * sizeof(struct expert_tile)));
    m.hidden = cuda_take(at, pairs * (size_t)s->expert_width * dtype_size(dtype));
    m.out = static_cast<float *>(cuda_take(at, pairs * (size_t)s->width * sizeof(float)));
    return m;
}

static size_t place_bytes(const struct work_shape *shape, enum dtype dtype)
{
    char *at = NULL;

    place(&at, shape, dtype);
    return (size_t)at;
}

/* ---- which experts ------------------------------------------------------- */

/* The rank of an expert: experts with larger ranks are chosen first. Larger logits rank higher, then lower numbers. */
static __device__ __forceinline__ uint64_t rank_of(float logit, int e)
{
    return (uint64_t)order_of(logit) << 32 | (0x7fffffffu - (uint32_t)e);
}

/* One warp per row. */
/* registers <= 32 */
__global__ void __launch_bounds__(MOE_THREADS)
    route_rows(const struct moe m, int n_rows, int n_experts, int n_used, bool renormalise)
{
    const int row = (int)(blockIdx.x * (MOE_THREADS / LANES) + threadIdx.x / LANES), lane = (int)threadIdx.x % LANES;
    const float *logit = m.logit + (size_t)row * (size_t)n_experts;
    uint64_t last = UINT64_MAX; // the rank of the expert chosen last
    float max = -INFINITY, total = 0;
    int n = 0;

    if (row >= n_rows) // the same for the whole warp
        return;
    for (int u = 0; u < n_used; u++) {
        uint64_t best = 0;
        for (int e = lane; e < n_experts; e += LANES) {
            const uint64_t rank = rank_of(logit[e], e);
            best = rank < last && rank > best ? rank : best;
        }
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            const uint64_t other = __shfl_xor_sync(ALL_LANES, best, distance);
            best = other > best ? other : best;
        }
        last = best;
    }
    for (int e = lane; e < n_experts; e += LANES)
        max = fmaxf(max, logit[e]);
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, distance));
    for (int e = lane; e < n_experts; e += LANES)
        total += !renormalise || rank_of(logit[e], e) >= last ? expf(logit[e] - max) : 0;
    total = lanes_sum(total, LANES);
    for (int first = 0; first < n_experts; first += LANES) {
        const int e = first + lane;
        const bool mine = e < n_experts && rank_of(logit[e], e) >= last;
        const unsigned all = __ballot_sync(ALL_LANES, mine);
        if (mine) {
            const size_t at = (size_t)row * (size_t)n_used + (size_t)(n + __popc(all & ((1u << lane) - 1)));
            m.chosen[at] = e;
            m.weight[at] = expf(logit[e] - max) / total;
        }
        n += __popc(all);
    }
}

/* ---- pairs in order ------------------------------------------------------ */

/* The pair of row `row` with expert e; -1: none. */
static __device__ __forceinline__ int pair_of(const struct moe &m, int row, int n_rows, int n_used, int e)
{
    for (int u = 0; row < n_rows && u < n_used; u++)
        if (m.chosen[row * n_used + u] == e)
            return row * n_used + u;
    return -1;
}

/* Expert blockIdx.x. */
/* registers <= 32 */
__global__ void __launch_bounds__(MOE_THREADS) count_pairs(const struct moe m, int n_rows, int n_used)
{
    SHARED_ARRAY(int, n, 1);
    int mine = 0;

    if (threadIdx.x == 0)
        n[0] = 0;
    __syncthreads();
    for (int row = (int)threadIdx.x; row < n_rows; row += MOE_THREADS)
        mine += pair_of(m, row, n_rows, n_used, (int)blockIdx.x) >= 0;
    atomicAdd(n, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        m.n_pairs[blockIdx.x] = n[0];
}

/* Expert blockIdx.x: its pairs come after the pairs of lower experts. The last expert marks the unused tiles. */
/* registers <= 32 */
__global__ void __launch_bounds__(MOE_THREADS) sort_pairs(const struct moe m, int n_rows, int n_used, int n_tiles)
{
    SHARED_ARRAY(uint32_t, warp, 2 * (MOE_THREADS / LANES)); // one half is read while the other is written
    const int e = (int)blockIdx.x, tid = (int)threadIdx.x, mine = m.n_pairs[e];
    int start = 0, tile = 0;
    uint32_t n;

    for (int i = 0; i < e; i++) {
        start += m.n_pairs[i];
        tile += (m.n_pairs[i] + TILE_ROWS - 1) / TILE_ROWS;
    }
    static_assert(MOE_ROWS / TILE_ROWS <= MOE_THREADS, "a thread marks one tile at most");
    if (tid * TILE_ROWS < mine)
        m.tile[tile + tid] = { e, start + tid * TILE_ROWS, min(mine - tid * TILE_ROWS, (int)TILE_ROWS) };
    tile += (mine + TILE_ROWS - 1) / TILE_ROWS;
    for (int i = tile + tid; e == (int)gridDim.x - 1 && i < n_tiles; i += MOE_THREADS)
        m.tile[i] = { 0, 0, 0 };
    for (int first = 0; first < n_rows; first += MOE_THREADS) {
        const int pair = pair_of(m, first + tid, n_rows, n_used, e);
        uint32_t *half = warp + first / MOE_THREADS % 2 * (MOE_THREADS / LANES);
        const int at = start + (int)threads_before<MOE_THREADS>(pair >= 0, half, &n);
        if (pair >= 0) {
            m.pair[at] = pair;
            m.spot[pair] = at;
        }
        start += (int)n;
    }
}

/* ---- the sum ------------------------------------------------------------- */

/* Row blockIdx.x, eight columns per thread. */
/* registers <= 40 */
__global__ void __launch_bounds__(MOE_THREADS)
    add_experts(const struct mat x, const struct moe m, int n_used, bool aligned)
{
    const int i = ((int)blockIdx.y * MOE_THREADS + (int)threadIdx.x) * EIGHT, left = x.cols - i;
    float *to = row_of<float>(x, blockIdx.x) + i, sum[EIGHT], out[EIGHT];

    if (left <= 0)
        return;
    load_some(sum, to, left, aligned);
    for (int u = 0; u < n_used; u++) {
        const size_t pair = blockIdx.x * (size_t)n_used + (size_t)u;
        const float weight = m.weight[pair];
        load_some(out, m.out + (size_t)m.spot[pair] * (size_t)x.cols + (size_t)i, left, aligned);
        for (int j = 0; j < EIGHT; j++)
            sum[j] += weight * out[j];
    }
    store_some(to, sum, left, aligned);
}

/* ---- the op -------------------------------------------------------------- */

/* The addresses of all experts' weights, copied to the device: all gate_up, then all down. NULL: failed. */
static const void *const *upload_weights(struct cuda *c, const struct experts *experts)
{
    const size_t n = (size_t)experts->n, bytes = 2 * n * sizeof(void *);
    const void **at = static_cast<const void **>(calloc(2 * n + 1, sizeof(void *)));

    if (!at) {
        cuda_fail(c, ERR_NOMEM, "out of memory");
        return NULL;
    }
    for (size_t e = 0; e < n; e++) {
        at[e] = experts->gate_up[e]->at;
        at[n + e] = experts->down[e]->at;
    }
    const void *up = cuda_upload(c, at, bytes);
    free(at);
    return static_cast<const void *const *>(up);
}

/* At most MOE_ROWS rows. */
static void run_rows(struct cuda *c, struct mat x, struct mat normed, const struct experts *experts,
                     const struct moe &m, const void *const *weights)
{
    const int E = experts->n, U = experts->n_used, D = x.cols, F = experts->width, n = x.rows;
    const int tiles = max_tiles(n * U, E);
    const struct expert_product gate_up = {
        normed.at, normed.pitch, m.pair, U,    weights, experts->gate_up_bias, experts->gate == GATE_CLAMPED, D,
        F,         m.hidden,     m.tile, tiles
    };
    const struct expert_product down = { m.hidden, F, NULL, 1,     weights + E, experts->down_bias,
                                         false,    F, D,    m.out, m.tile,      tiles };

    cuda_gemm(&c->base, { m.logit, DTYPE_F32, n, E, E }, normed, experts->router, experts->router_bias, GEMM_SET);
    LAUNCH(c, route_rows, dim3(cuda_pieces((size_t)n, MOE_THREADS / LANES)), MOE_THREADS, 0, m, n, E, U,
           experts->renormalise);
    LAUNCH(c, count_pairs, dim3((unsigned)E), MOE_THREADS, 0, m, n, U);
    LAUNCH(c, sort_pairs, dim3((unsigned)E), MOE_THREADS, 0, m, n, U, tiles);
    cuda_expert_product(c, &gate_up, EXPERT_GATE_UP);
    cuda_expert_product(c, &down, EXPERT_DOWN);
    LAUNCH(c, add_experts, dim3((unsigned)n, cuda_pieces((size_t)D, MOE_THREADS * EIGHT)), MOE_THREADS, 0, x, m, U,
           is_aligned(x) && D % 4 == 0);
}

void cuda_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts)
{
    struct cuda *c = cuda_of(be);
    const int block = min(x.rows, (int)MOE_ROWS);
    struct work_shape shape = {};

    shape.rows = block;
    shape.width = x.cols;
    shape.expert_width = experts->width;
    shape.n_experts = experts->n;
    shape.n_used = experts->n_used;
    if (x.rows == 0)
        return;
    const void *const *weights = upload_weights(c, experts);
    char *at = static_cast<char *>(cuda_scratch(c, place_bytes(&shape, be->dtype)));
    if (!weights || !at)
        return;
    const struct moe m = place(&at, &shape, be->dtype);
    for (int first = 0; first < x.rows; first += block) {
        const int n = min(x.rows - first, block);
        run_rows(c, { cuda_row(x, first), x.type, n, x.cols, x.pitch },
                 { cuda_row(normed, first), normed.type, n, normed.cols, normed.pitch }, experts, m, weights);
    }
}

size_t cuda_moe_bytes(const struct cuda *c, const struct work_shape *shape)
{
    struct work_shape some = *shape;

    some.rows = min(shape->rows, (int)MOE_ROWS);
    return shape->n_experts > 0 ? place_bytes(&some, c->base.dtype) : 0;
}
