/* cuda_moments.cu - sums of products of queries, forms of keys, and sums of rows.
 *
 * Both kinds of products are f32 FMA on tiles of 64 x 64: a thread has 4 x 4 numbers of a tile, and the factors go
 * through shared memory 32 columns or tokens at a time. A sum runs over these steps in order.
 */
#include "kernels/cuda/cuda_lanes.h"

enum {
    FORM_THREADS = 256,
    TILE = 64,
    STEP = 32,
    EACH = 4,                    // rows and columns of a thread
    ACROSS = TILE / EACH,        // threads side by side
    PITCH = TILE + EACH,         // of a step in shared memory
    STEP_NUMBERS = STEP * PITCH, // of one factor
};
static_assert(ACROSS * ACROSS == (int)FORM_THREADS && (int)ACROSS <= LANES,
              "a thread for every 4 x 4 numbers of a tile");

/* sum += the product of both factors of a step, for this thread's rows and columns. */
static __device__ __forceinline__ void add_step(float (&sum)[EACH][EACH], const float *rows, const float *columns)
{
    const int row = (int)threadIdx.x / ACROSS * EACH, column = (int)threadIdx.x % ACROSS * EACH;

    for (int s = 0; s < STEP; s++)
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                sum[i][j] += rows[s * PITCH + row + i] * columns[s * PITCH + column + j];
}

/* ---- moments ------------------------------------------------------------- */

/* Columns `column` .. + TILE - 1 of a query head's tokens t .. t + STEP - 1; 0 beyond the last of either. */
template <typename T>
__device__ __forceinline__ void load_queries(float *step, const struct moment_job &job, int t, int column)
{
    const int group = job.n_heads / job.n_kv_heads, h = (int)blockIdx.y, K = job.head_dim;
    const size_t first = (size_t)(h / group) * (size_t)job.n_tokens;

    for (int x = (int)threadIdx.x; x < STEP * TILE; x += FORM_THREADS) {
        const int token = t + x / TILE, c = column + x % TILE;
        const size_t row = (first + (size_t)token) * (size_t)group + (size_t)(h % group);
        step[x / TILE * PITCH + x % TILE] =
            token < job.n_tokens && c < K ? load_as_float(static_cast<const T *>(job.q) + row * (size_t)K + c) : 0;
    }
}

/* Adds tile blockIdx.x of the products of query head blockIdx.y; the tiles at the top also add the sums of queries. */
/* registers <= 96 */
template <typename T> __global__ void __launch_bounds__(FORM_THREADS) add_products(const struct moment_job job)
{
    SHARED_ARRAY(float, rows, STEP_NUMBERS);
    SHARED_ARRAY(float, columns, STEP_NUMBERS);
    const int K = job.head_dim, tiles = (K + TILE - 1) / TILE, tid = (int)threadIdx.x;
    const int top = (int)blockIdx.x / tiles * TILE, left = (int)blockIdx.x % tiles * TILE;
    float all[EACH][EACH] = {}, ones = 0;

    for (int t = job.first; t < job.n_tokens; t += STEP) {
        float sum[EACH][EACH] = {}, one = 0;
        __syncthreads();
        load_queries<T>(rows, job, t, top);
        load_queries<T>(columns, job, t, left);
        __syncthreads();
        add_step(sum, rows, columns);
        for (int s = 0; s < STEP && tid < TILE; s++)
            one += columns[s * PITCH + tid];
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                all[i][j] += sum[i][j];
        ones += one;
    }
    float *into = job.into + blockIdx.y * (size_t)(K + 1) * (size_t)K;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int row = top + tid / ACROSS * EACH + i, column = left + tid % ACROSS * EACH + j;
            if (row < K && column < K)
                into[(size_t)row * (size_t)K + (size_t)column] += all[i][j];
        }
    if (top == 0 && tid < TILE && left + tid < K)
        into[(size_t)K * (size_t)K + (size_t)(left + tid)] += ones;
}

void cuda_moments(struct backend *be, const struct moment_job *job)
{
    struct cuda *c = cuda_of(be);
    const unsigned tiles = cuda_pieces((size_t)job->head_dim, TILE);
    const dim3 grid(tiles * tiles, (unsigned)job->n_heads);

    if (be->dtype == DTYPE_F32)
        LAUNCH(c, (add_products<float>), grid, FORM_THREADS, 0, *job);
    else
        LAUNCH(c, (add_products<uint16_t>), grid, FORM_THREADS, 0, *job);
}

/* ---- forms --------------------------------------------------------------- */

struct form_args {
    float *score;      // (H, n)
    const float *form; // (H, K + 1, K)
    const struct kv_rows *heads;
    int n, group, K;
};

/* Number `column` of key t; 0 beyond the last of either. */
template <typename T>
__device__ __forceinline__ float key_number(const struct form_args &a, const T *keys, int t, int column)
{
    return t < a.n && column < a.K ? load_as_float(keys + (size_t)t * (size_t)a.K + column) : 0;
}

/* The forms of keys TILE * blockIdx.x and on under form blockIdx.y: key times form, then that times the key. */
/* registers <= 96 */
template <typename T> __global__ void __launch_bounds__(FORM_THREADS) forms_of_keys(const struct form_args a)
{
    SHARED_ARRAY(float, rows, STEP_NUMBERS);
    SHARED_ARRAY(float, columns, STEP_NUMBERS);
    const T *keys = static_cast<const T *>(a.heads[blockIdx.y / (unsigned)a.group].k);
    const float *form = a.form + blockIdx.y * (size_t)(a.K + 1) * (size_t)a.K;
    const int tid = (int)threadIdx.x, K = a.K, t = (int)blockIdx.x * TILE, mine = t + tid / ACROSS * EACH;
    float total[EACH] = {};

    for (int left = 0; left < K; left += TILE) {
        float sum[EACH][EACH] = {};
        for (int i = 0; i < K; i += STEP) {
            __syncthreads();
            for (int x = tid; x < STEP * TILE; x += FORM_THREADS) {
                const int row = i + x / TILE, column = left + x % TILE;
                rows[x % STEP * PITCH + x / STEP] = key_number(a, keys, t + x / STEP, i + x % STEP);
                columns[x / TILE * PITCH + x % TILE] = row < K && column < K ? form[row * K + column] : 0;
            }
            __syncthreads();
            add_step(sum, rows, columns);
        }
        for (int j = 0; j < EACH; j++) {
            const int column = left + tid % ACROSS * EACH + j;
            const float linear = column < K ? form[K * K + column] : 0;
            for (int e = 0; e < EACH; e++)
                total[e] += (sum[e][j] + linear) * key_number(a, keys, mine + e, column);
        }
    }
    for (int e = 0; e < EACH; e++) {
        const float score = lanes_sum(total[e], ACROSS);
        if (tid % ACROSS == 0 && mine + e < a.n)
            a.score[blockIdx.y * (size_t)a.n + (size_t)(mine + e)] = score;
    }
}

void cuda_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                    int group, int head_dim)
{
    struct cuda *c = cuda_of(be);
    const struct kv_rows *list = n_heads > 0 ? cuda_upload_list(c, heads, n_heads) : NULL;

    if (!list)
        return;
    const struct form_args a = { score, form, list, heads->n, group, head_dim };
    const dim3 grid(cuda_pieces((size_t)a.n, TILE), (unsigned)(n_heads * group));
    if (be->dtype == DTYPE_F32)
        LAUNCH(c, (forms_of_keys<float>), grid, FORM_THREADS, 0, a);
    else
        LAUNCH(c, (forms_of_keys<uint16_t>), grid, FORM_THREADS, 0, a);
}

/* ---- rows of numbers ----------------------------------------------------- */

/* One block per row. */
/* registers <= 32 */
__global__ void __launch_bounds__(FORM_THREADS) abs_sum_of_row(float *sum, const struct mat x, bool aligned)
{
    SHARED_ARRAY(float, part, FORM_THREADS / LANES);
    const float *from = row_of<float>(x, blockIdx.x);
    float v[EIGHT], mine = 0;

    for (int i = (int)threadIdx.x * EIGHT; i < x.cols; i += FORM_THREADS * EIGHT) {
        load_some(v, from + i, x.cols - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            mine += fabsf(v[j]);
    }
    const float all = block_sum<FORM_THREADS>(mine, part);
    if (threadIdx.x == 0)
        sum[blockIdx.x] = all;
}

void cuda_abs_sums(struct backend *be, float *sum, struct mat x)
{
    struct cuda *c = cuda_of(be);

    LAUNCH(c, abs_sum_of_row, dim3((unsigned)x.rows), FORM_THREADS, 0, sum, x, is_aligned(x));
}
