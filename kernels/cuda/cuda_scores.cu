/* cuda_scores.cu - computes scores of keys, and pools, scales and averages rows of scores.
 *
 * A sum over a head's keys is cut at fixed positions (KEYS) and added in order by a second kernel, so no bit depends on
 * the device or on other heads. `lanes` neighbouring lanes read a key, eight columns each at a time.
 */
#include "kernels/cuda/cuda_lanes.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SCORE_THREADS = 256,
    KEYS = 1024,      // keys of a head that one block sums
    KEYS_IN_TURN = 8, // keys that a group of lanes takes one after the other
    HEADS = 256,      // at a time
    MAX_EIGHTS = 4,   // of a lane: heads of at most 32 * 8 * 4 columns
};

/* Scratch of an op of this file; one head, or one row of scores, may take more. */
constexpr size_t WORK_BYTES = (size_t)4 << 20;

/* ---- heads --------------------------------------------------------------- */

struct key_head {
    const void *k;
    size_t start; // of its scores
    int n;
};

/* The heads of an op, on the device. */
struct key_heads {
    const struct key_head *head; // NULL: failed
    int longest, K, lanes;
    bool aligned;
};

static struct key_heads upload_heads(struct cuda *c, const struct kv_rows *heads, int n, int K)
{
    const size_t row = (size_t)K * dtype_size(c->base.dtype);
    struct key_head *list = static_cast<struct key_head *>(calloc((size_t)n + 1, sizeof(*list)));
    struct key_heads up = { NULL, 0, K, 1, true };
    size_t start = 0;

    if (!list) {
        cuda_fail(c, ERR_NOMEM, "out of memory");
        return up;
    }
    for (int h = 0; h < n; h++) {
        list[h] = { heads[h].k, start, heads[h].n };
        start += (size_t)heads[h].n;
        up.longest = max(up.longest, heads[h].n);
        up.aligned = up.aligned && is_aligned(heads[h].k, row);
    }
    while (up.lanes < LANES && up.lanes * EIGHT < K)
        up.lanes *= 2;
    up.head = cuda_upload_list(c, list, n);
    free(list);
    return up;
}

/* This thread's columns of key t: EIGHTS times eight, lanes * 8 apart; 0 beyond the last key or column. */
template <typename T, int EIGHTS>
__device__ __forceinline__ void load_key(float (&x)[EIGHTS][EIGHT], const struct key_heads &heads,
                                         const struct key_head &head, int t)
{
    const T *key = static_cast<const T *>(head.k) + (size_t)t * (size_t)heads.K;

    for (int e = 0; e < EIGHTS; e++) {
        const int column = ((int)threadIdx.x % heads.lanes + e * heads.lanes) * EIGHT;
        load_some(x[e], key + column, t < head.n ? heads.K - column : 0, heads.aligned);
    }
}

template <int EIGHTS>
__device__ __forceinline__ float dot(const float (&a)[EIGHTS][EIGHT], const float (&b)[EIGHTS][EIGHT], int lanes)
{
    float sum = 0;

    for (int e = 0; e < EIGHTS; e++)
        for (int j = 0; j < EIGHT; j++)
            sum += a[e][j] * b[e][j];
    return lanes_sum(sum, lanes);
}

/* ---- norms --------------------------------------------------------------- */

/* KEYS_IN_TURN keys of head blockIdx.y for each group of lanes. */
/* registers <= 64 */
template <typename T, int EIGHTS>
__global__ void __launch_bounds__(SCORE_THREADS) norms_of_keys(float *score, const struct key_heads heads)
{
    const struct key_head head = heads.head[blockIdx.y];
    const int groups = SCORE_THREADS / heads.lanes, group = (int)threadIdx.x / heads.lanes;
    const int first = (int)blockIdx.x * groups * KEYS_IN_TURN;
    float x[EIGHTS][EIGHT];

    for (int i = 0; i < KEYS_IN_TURN; i++) {
        const int t = first + i * groups + group;
        load_key<T>(x, heads, head, t);
        const float norm = sqrtf(dot(x, x, heads.lanes));
        if (t < head.n && (int)threadIdx.x % heads.lanes == 0)
            score[head.start + (size_t)t] = -norm;
    }
}

static dim3 keys_grid(const struct key_heads &heads, int n_heads)
{
    return dim3(cuda_pieces((size_t)heads.longest, (size_t)(SCORE_THREADS / heads.lanes * KEYS_IN_TURN)),
                (unsigned)n_heads);
}

template <typename T> static void run_norms(struct cuda *c, float *score, const struct key_heads &heads, int n_heads)
{
    const dim3 grid = keys_grid(heads, n_heads);

    if (heads.K <= LANES * EIGHT)
        LAUNCH(c, (norms_of_keys<T, 1>), grid, SCORE_THREADS, 0, score, heads);
    else
        LAUNCH(c, (norms_of_keys<T, MAX_EIGHTS>), grid, SCORE_THREADS, 0, score, heads);
}

void cuda_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    struct cuda *c = cuda_of(be);
    const struct key_heads up = upload_heads(c, heads, n_heads, head_dim);

    assert(head_dim <= LANES * EIGHT * MAX_EIGHTS);
    if (!up.head)
        return;
    if (be->dtype == DTYPE_F32)
        run_norms<float>(c, score, up, n_heads);
    else
        run_norms<uint16_t>(c, score, up, n_heads);
}

/* ---- cosines ------------------------------------------------------------- */

/* Memory for some heads. A piece is KEYS keys; pieces: of the longest head. */
struct directions {
    float *part; // (heads, pieces, K): sums of unit keys
    float *mean; // (heads, K)
    float *norm; // (heads)
    int pieces;
};

/* Sums the unit keys of piece blockIdx.x of head blockIdx.y. */
/* registers <= 80 */
template <typename T, int EIGHTS>
__global__ void __launch_bounds__(SCORE_THREADS) sum_unit_keys(const struct directions d, const struct key_heads heads)
{
    SHARED_DYNAMIC(float, warps); // (warps, K)
    const struct key_head head = heads.head[blockIdx.y];
    const int groups = SCORE_THREADS / heads.lanes, tid = (int)threadIdx.x, K = heads.K;
    const int first = (int)blockIdx.x * KEYS, end = min(first + KEYS, head.n);
    float x[EIGHTS][EIGHT], sum[EIGHTS][EIGHT] = {};

    if (first >= head.n)
        return;
    for (int base = first; base < end; base += groups) {
        load_key<T>(x, heads, head, base + tid / heads.lanes);
        const float scale = 1 / fmaxf(sqrtf(dot(x, x, heads.lanes)), 1e-12f);
        for (int e = 0; e < EIGHTS; e++)
            for (int j = 0; j < EIGHT; j++)
                sum[e][j] += x[e][j] * scale;
    }
    for (int e = 0; e < EIGHTS; e++)
        for (int j = 0; j < EIGHT; j++) {
            const int column = (tid % heads.lanes + e * heads.lanes) * EIGHT + j;
            for (int distance = heads.lanes; distance < LANES; distance *= 2)
                sum[e][j] += __shfl_xor_sync(ALL_LANES, sum[e][j], distance);
            if (tid % LANES < heads.lanes && column < K)
                warps[tid / LANES * K + column] = sum[e][j];
        }
    __syncthreads();
    for (int column = tid; column < K; column += SCORE_THREADS) {
        float total = 0;
        for (int w = 0; w < SCORE_THREADS / LANES; w++)
            total += warps[w * K + column];
        d.part[((size_t)blockIdx.y * (size_t)d.pieces + blockIdx.x) * (size_t)K + (size_t)column] = total;
    }
}

/* The mean direction of head blockIdx.x and its norm. */
/* registers <= 40 */
__global__ void __launch_bounds__(SCORE_THREADS) mean_direction(const struct directions d, const struct key_heads heads)
{
    SHARED_ARRAY(float, squares, SCORE_THREADS / LANES);
    const struct key_head head = heads.head[blockIdx.x];
    const size_t K = (size_t)heads.K;
    const float *part = d.part + blockIdx.x * (size_t)d.pieces * K;
    float mine = 0;

    for (size_t column = threadIdx.x; column < K; column += SCORE_THREADS) {
        float sum = 0;
        for (int first = 0, piece = 0; first < head.n; first += KEYS, piece++)
            sum += part[(size_t)piece * K + column];
        sum /= (float)head.n;
        d.mean[blockIdx.x * K + column] = sum;
        mine += sum * sum;
    }
    const float total = block_sum<SCORE_THREADS>(mine, squares);
    if (threadIdx.x == 0)
        d.norm[blockIdx.x] = fmaxf(sqrtf(total), 1e-8f);
}

/* Like norms_of_keys. */
/* registers <= 96 */
template <typename T, int EIGHTS>
__global__ void __launch_bounds__(SCORE_THREADS)
    cosines_of_keys(float *score, const struct directions d, const struct key_heads heads)
{
    const struct key_head head = heads.head[blockIdx.y];
    const int groups = SCORE_THREADS / heads.lanes, group = (int)threadIdx.x / heads.lanes;
    const int first = (int)blockIdx.x * groups * KEYS_IN_TURN;
    const struct key_head mean_head = { d.mean + blockIdx.y * (size_t)heads.K, 0, 1 };
    struct key_heads as_floats = heads;
    float x[EIGHTS][EIGHT], mean[EIGHTS][EIGHT];

    as_floats.aligned = heads.K % 4 == 0;
    load_key<float>(mean, as_floats, mean_head, 0);
    const float mean_norm = d.norm[blockIdx.y];
    for (int i = 0; i < KEYS_IN_TURN; i++) {
        const int t = first + i * groups + group;
        load_key<T>(x, heads, head, t);
        const float norm = fmaxf(sqrtf(dot(x, x, heads.lanes)), 1e-8f), along = dot(x, mean, heads.lanes);
        if (t < head.n && (int)threadIdx.x % heads.lanes == 0)
            score[head.start + (size_t)t] = -along / (norm * mean_norm);
    }
}

static struct directions place(char **at, int n_heads, int n_keys, int K)
{
    const int pieces = (int)cuda_pieces((size_t)n_keys, KEYS);
    const size_t means = (size_t)n_heads * (size_t)K * sizeof(float);
    struct directions d = { NULL, NULL, NULL, pieces };

    d.part = static_cast<float *>(cuda_take(at, means * (size_t)pieces));
    d.mean = static_cast<float *>(cuda_take(at, means));
    d.norm = static_cast<float *>(cuda_take(at, (size_t)n_heads * sizeof(float)));
    return d;
}

static size_t place_bytes(int n_heads, int n_keys, int K)
{
    char *at = NULL;

    place(&at, n_heads, n_keys, K);
    return (size_t)at;
}

/* The heads that fit in WORK_BYTES, at least one and at most HEADS. */
static int heads_at_once(int n_heads, int n_keys, int K)
{
    int n = 1;

    while (n < min(n_heads, (int)HEADS) && place_bytes(n + 1, n_keys, K) <= WORK_BYTES)
        n++;
    return n;
}

template <typename T, int EIGHTS>
static void run_cosines(struct cuda *c, float *score, struct key_heads heads, int n_heads)
{
    const int K = heads.K, some = heads_at_once(n_heads, heads.longest, K);
    const size_t shared = (size_t)(SCORE_THREADS / LANES * K) * sizeof(float);
    char *at = static_cast<char *>(cuda_scratch(c, place_bytes(some, heads.longest, K)));

    if (!at)
        return;
    const struct directions d = place(&at, some, heads.longest, K);
    for (int first = 0; first < n_heads; first += some, heads.head += some) {
        const int n = min(n_heads - first, some);
        LAUNCH(c, (sum_unit_keys<T, EIGHTS>), dim3((unsigned)d.pieces, (unsigned)n), SCORE_THREADS, shared, d, heads);
        LAUNCH(c, mean_direction, dim3((unsigned)n), SCORE_THREADS, 0, d, heads);
        LAUNCH(c, (cosines_of_keys<T, EIGHTS>), keys_grid(heads, n), SCORE_THREADS, 0, score, d, heads);
    }
}

void cuda_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    struct cuda *c = cuda_of(be);
    const struct key_heads up = upload_heads(c, heads, n_heads, head_dim);
    const bool narrow = head_dim <= LANES * EIGHT;

    assert(head_dim <= LANES * EIGHT * MAX_EIGHTS);
    if (!up.head || up.longest == 0)
        return;
    if (be->dtype == DTYPE_F32)
        narrow ? run_cosines<float, 1>(c, score, up, n_heads) : run_cosines<float, MAX_EIGHTS>(c, score, up, n_heads);
    else
        narrow ? run_cosines<uint16_t, 1>(c, score, up, n_heads)
               : run_cosines<uint16_t, MAX_EIGHTS>(c, score, up, n_heads);
}

/* ---- rows of scores ------------------------------------------------------ */

/* This thread's position in row blockIdx.y. */
static __device__ __forceinline__ int my_place()
{
    return (int)(blockIdx.x * SCORE_THREADS + threadIdx.x);
}

/* registers <= 32 */
__global__ void __launch_bounds__(SCORE_THREADS) copy_rows(float *copy, const float *score, int n, int pitch)
{
    const int i = my_place();

    if (i < n)
        copy[blockIdx.y * (size_t)n + (size_t)i] = score[blockIdx.y * (size_t)pitch + (size_t)i];
}

/* was: a copy of the rows before pooling, n apart. */
/* registers <= 32 */
__global__ void __launch_bounds__(SCORE_THREADS) pool_rows(float *score, const float *was, int n, int pitch, int width)
{
    const int i = my_place(), half = width / 2;
    const int first = max(i - half, 0), last = min(i + half, n - 1);
    float sum = 0;

    if (i >= n)
        return;
    was += blockIdx.y * (size_t)n;
    for (int j = first; j <= last; j++)
        sum += was[j];
    score[blockIdx.y * (size_t)pitch + (size_t)i] = sum / (float)width;
}

void cuda_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width)
{
    struct cuda *c = cuda_of(be);
    const size_t row = (size_t)n * sizeof(float);
    const int some = (int)min(WORK_BYTES / max(row, (size_t)1) + 1, (size_t)n_heads);
    float *was = static_cast<float *>(cuda_scratch(c, (size_t)some * row)); // (some, n)
    for (int first = 0; first < n_heads && was; first += some) {
        const int rows = min(n_heads - first, some);
        const dim3 grid(cuda_pieces((size_t)n, SCORE_THREADS), (unsigned)rows);
        float *at = score + (size_t)first * (size_t)pitch;
        LAUNCH(c, copy_rows, grid, SCORE_THREADS, 0, was, at, n, pitch);
        LAUNCH(c, pool_rows, grid, SCORE_THREADS, 0, at, was, n, pitch, width);
    }
}

/* Eight positions of row blockIdx.y. */
/* registers <= 32 */
__global__ void __launch_bounds__(SCORE_THREADS) scale_row(float *score, int n, const float *factor, bool aligned)
{
    const int i = my_place() * EIGHT;
    float x[EIGHT], by[EIGHT];

    if (i >= n)
        return;
    score += blockIdx.y * (size_t)n + (size_t)i;
    load_some(x, score, n - i, aligned);
    load_some(by, factor + i, n - i, aligned);
    for (int j = 0; j < EIGHT; j++)
        x[j] *= by[j];
    store_some(score, x, n - i, aligned);
}

void cuda_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor)
{
    struct cuda *c = cuda_of(be);
    const dim3 grid(cuda_pieces((size_t)n, SCORE_THREADS * EIGHT), (unsigned)n_heads);

    LAUNCH(c, scale_row, grid, SCORE_THREADS, 0, score, n, factor,
           is_aligned(score, (size_t)n * sizeof(float)) && is_aligned(factor, 0));
}

/* Eight positions of the `group` rows of layer blockIdx.y. */
/* registers <= 32 */
__global__ void __launch_bounds__(SCORE_THREADS) mean_rows(float *score, int n, int group, bool aligned)
{
    const int i = my_place() * EIGHT;
    float x[EIGHT], mean[EIGHT] = {};

    if (i >= n)
        return;
    score += blockIdx.y * (size_t)group * (size_t)n + (size_t)i;
    for (int h = 0; h < group; h++) {
        load_some(x, score + (size_t)h * (size_t)n, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            mean[j] += x[j];
    }
    for (int j = 0; j < EIGHT; j++)
        mean[j] /= (float)group;
    for (int h = 0; h < group; h++)
        store_some(score + (size_t)h * (size_t)n, mean, n - i, aligned);
}

void cuda_mean_heads(struct backend *be, float *score, int n_heads, int n, int group)
{
    struct cuda *c = cuda_of(be);
    const dim3 grid(cuda_pieces((size_t)n, SCORE_THREADS * EIGHT), (unsigned)(n_heads / group));

    LAUNCH(c, mean_rows, grid, SCORE_THREADS, 0, score, n, group, is_aligned(score, (size_t)n * sizeof(float)));
}

size_t cuda_scores_bytes(const struct cuda *c, const struct work_shape *shape)
{
    const size_t row = (size_t)shape->n_keys * sizeof(float), head = place_bytes(1, shape->n_keys, shape->head_dim);

    (void)c;
    return WORK_BYTES + max(row, head);
}
