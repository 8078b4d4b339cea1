/* cuda_best.cu - the most likely token of each row, and tokens drawn by chance: logits by cuda_gemm() in blocks of
 * rows, then one pass over each row of logits, or two for draw.
 *
 * The number of rows in a block depends only on the vocabulary size, and a product gives a row the same bits in any
 * block, so a row's result does not depend on the other rows. The search is exact: the largest logit, its lowest id,
 * and the largest of the rest are the same in any order. The sums of draw have the order that backend.h says.
 */
#include "kernels/cuda/cuda_lanes.h"

#include "kernels/softmax.h"

#include <limits.h>

enum {
    BEST_THREADS = 512,
    MAX_ROWS = 512,   // of a block
    WHOLE_ROWS = 256, // a product computes tiles of up to so many rows in full
};

/* Logits at a time. With 128,256 tokens that is 512 rows, and 256 with up to 262,144: enough for a product to be bound
 * by arithmetic, not by reading its weights. */
constexpr size_t LOGIT_BYTES = (size_t)256 << 20;

/* The best of some logits; id INT_MAX: of none. `top`: their largest bit pattern without sign; from 0x7f800000 on a
 * logit is not finite. */
struct candidate {
    int32_t id;
    float value, second;
    uint32_t top;
};

static __device__ __forceinline__ void see(struct candidate &best, float logit, int32_t id)
{
    const uint32_t bits = __float_as_uint(logit) & 0x7fffffff;

    best.top = bits > best.top ? bits : best.top;
    if (logit > best.value) { // ids ascend, so the first of equals stays
        best.second = best.value;
        best.value = logit;
        best.id = id;
    } else if (logit > best.second) {
        best.second = logit;
    }
}

static __device__ __forceinline__ struct candidate better(const struct candidate &a, const struct candidate &b)
{
    const bool first = a.value > b.value || (a.value == b.value && a.id < b.id);
    const float second = first ? fmaxf(a.second, b.value) : fmaxf(b.second, a.value);

    return { first ? a.id : b.id, first ? a.value : b.value, second, a.top > b.top ? a.top : b.top };
}

static __device__ __forceinline__ struct candidate best_of_warp(struct candidate mine)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const struct candidate other = { __shfl_xor_sync(ALL_LANES, mine.id, distance),
                                         __shfl_xor_sync(ALL_LANES, mine.value, distance),
                                         __shfl_xor_sync(ALL_LANES, mine.second, distance),
                                         __shfl_xor_sync(ALL_LANES, mine.top, distance) };
        mine = better(mine, other);
    }
    return mine;
}

/* One block per row of n logits. */
/* registers <= 32 */
__global__ void __launch_bounds__(BEST_THREADS) best_of_row(struct best *best, const float *logit, int n, bool aligned)
{
    SHARED_ARRAY(struct candidate, warps, BEST_THREADS / LANES);
    const int tid = (int)threadIdx.x;
    const float *row = logit + (size_t)blockIdx.x * (size_t)n;
    struct candidate mine = { INT_MAX, -INFINITY, -INFINITY, 0 };
    float x[EIGHT];

    for (int i = tid * EIGHT; i < n; i += BEST_THREADS * EIGHT) {
        load_some(x, row + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            if (i + j < n)
                see(mine, x[j], i + j);
    }
    mine = best_of_warp(mine);
    if (tid % LANES == 0)
        warps[tid / LANES] = mine;
    __syncthreads();
    if (tid > 0)
        return;
    for (int i = 1; i < BEST_THREADS / LANES; i++)
        mine = better(mine, warps[i]);
    if (mine.top >= 0x7f800000)
        mine.id = -1;
    best[blockIdx.x] = { mine.id, mine.value, mine.second };
}

/* registers <= 32 */
__global__ void __launch_bounds__(BEST_THREADS) cap_logits(float *logit, size_t n, float cap)
{
    const size_t i = (size_t)blockIdx.x * BEST_THREADS + threadIdx.x;

    if (i < n)
        logit[i] = cap * tanhf(logit[i] / cap);
}

/* ---- draw ---------------------------------------------------------------- */

/* Where a drawn token is: among the tokens from `first` on, whose weights come after a sum of `before`. */
struct place {
    double before, point;
    int first;
};

/* Sum of the weights of n tokens, in order. */
static __device__ __forceinline__ double sum_weights(const float *logit, int n, float largest, float inverse,
                                                     bool aligned)
{
    double sum = 0;
    float x[EIGHT];

    for (int i = 0; i < n; i += EIGHT) {
        load_some(x, logit + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            if (i + j < n)
                sum += (double)softmax_weight(x[j], largest, inverse);
    }
    return sum;
}

/* The block of tokens in which the sum of weights exceeds `point`. */
static __device__ struct place find_block(const double *sums, double point)
{
    double before = 0;
    int i = 0;

    for (; before + sums[i] <= point; i++)
        before += sums[i];
    return { before, point, i * SOFTMAX_BLOCK };
}

/* One block per row of n logits; best: of the row. A thread adds up SOFTMAX_BLOCK weights at a time. */
/* registers <= 64 */
__global__ void __launch_bounds__(SOFTMAX_BLOCK)
    draw_of_row(struct drawn_token *drawn, const struct best *best, const float *logit, int n, const double *unit,
                const int32_t *given, float inverse, bool aligned)
{
    SHARED_DYNAMIC(double, sums); // of the blocks of tokens
    SHARED_ARRAY(float, weight, SOFTMAX_BLOCK);
    SHARED_ARRAY(struct place, place, 1);
    const int tid = (int)threadIdx.x, n_blocks = (n + SOFTMAX_BLOCK - 1) / SOFTMAX_BLOCK;
    const float *row = logit + (size_t)blockIdx.x * (size_t)n, largest = best[blockIdx.x].value;
    double sum = 0;

    if (best[blockIdx.x].id < 0) {
        if (tid == 0)
            drawn[blockIdx.x] = { -1, 0, (double)NAN };
        return;
    }
    for (int i = tid; i < n_blocks; i += SOFTMAX_BLOCK)
        sums[i] = sum_weights(row + i * SOFTMAX_BLOCK, min(n - i * SOFTMAX_BLOCK, (int)SOFTMAX_BLOCK), largest, inverse,
                              aligned);
    __syncthreads();
    for (int i = 0; i < n_blocks && tid == 0; i++)
        sum += sums[i];
    if (given) {
        if (tid == 0)
            drawn[blockIdx.x] = { given[blockIdx.x], largest - row[given[blockIdx.x]], sum };
        return;
    }
    if (tid == 0)
        *place = find_block(sums, unit[blockIdx.x] * sum);
    __syncthreads();
    if (place->first + tid < n)
        weight[tid] = softmax_weight(row[place->first + tid], largest, inverse);
    __syncthreads();
    if (tid > 0)
        return;
    int i = 0;
    for (double within = (double)weight[0]; place->before + within <= place->point; within += (double)weight[i])
        i++;
    drawn[blockIdx.x] = { place->first + i, largest - row[place->first + i], sum };
}

/* ---- blocks of rows ------------------------------------------------------ */

/* Rows of a block: a multiple of WHOLE_ROWS, or what fits when that is less, at least one. */
static int block_rows(int n_vocab)
{
    const size_t fit = LOGIT_BYTES / ((size_t)n_vocab * sizeof(float)), rows = min(fit, (size_t)MAX_ROWS);

    return (int)max(rows < WHOLE_ROWS ? rows : rows / WHOLE_ROWS * WHOLE_ROWS, (size_t)1);
}

/* The scratch memory of an op. */
struct block {
    float *logit;      // (rows of a block, V)
    struct best *best; // (rows of a block), for draw
};

static struct block block_at(char **at, int rows, int n_vocab)
{
    const size_t n = (size_t)min(rows, block_rows(n_vocab));
    struct block block = { static_cast<float *>(cuda_take(at, n * (size_t)n_vocab * sizeof(float))), NULL };

    block.best = static_cast<struct best *>(cuda_take(at, n * sizeof(struct best)));
    return block;
}

static size_t block_bytes(int rows, int n_vocab)
{
    char *at = NULL;

    block_at(&at, rows, n_vocab);
    return (size_t)at;
}

/* The logits of rows from `row` on, of one block at most. */
static struct mat block_logits(struct backend *be, float *logit, struct mat x, int row, const struct weight *head)
{
    const int n = min(x.rows - row, block_rows(head->out));
    const struct mat some = { cuda_row(x, row), x.type, n, x.cols, x.pitch };
    const struct mat out = { logit, DTYPE_F32, n, head->out, head->out };

    cuda_gemm(be, out, some, head, NULL, GEMM_SET);
    return out;
}

static void find_best(struct cuda *c, struct best *best, struct mat logits)
{
    LAUNCH(c, best_of_row, dim3((unsigned)logits.rows), BEST_THREADS, 0, best, static_cast<const float *>(logits.at),
           logits.cols, is_aligned(logits));
}

void cuda_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    struct cuda *c = cuda_of(be);
    char *at = static_cast<char *>(cuda_scratch(c, block_bytes(x.rows, head->out)));
    int n = 0;

    if (!at)
        return;
    const struct block block = block_at(&at, x.rows, head->out);
    for (int row = 0; row < x.rows; row += n) {
        const struct mat logits = block_logits(be, block.logit, x, row, head);
        find_best(c, best + row, logits);
        n = logits.rows;
    }
}

void cuda_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
               const struct draw_job *job)
{
    struct cuda *c = cuda_of(be);
    char *at = static_cast<char *>(cuda_scratch(c, block_bytes(x.rows, head->out)));
    const double *unit = job->given ? NULL : cuda_upload_list(c, job->unit, x.rows);
    const int32_t *given = job->given ? cuda_upload_list(c, job->given, x.rows) : NULL;
    const size_t sums = cuda_pieces((size_t)head->out, SOFTMAX_BLOCK) * sizeof(double);
    int n = 0;

    if (!at || (!unit && !given))
        return;
    const struct block block = block_at(&at, x.rows, head->out);
    for (int row = 0; row < x.rows; row += n) {
        const struct mat logits = block_logits(be, block.logit, x, row, head);
        const size_t numbers = (size_t)logits.rows * (size_t)logits.cols;
        if (job->cap > 0)
            LAUNCH(c, cap_logits, cuda_pieces(numbers, BEST_THREADS), BEST_THREADS, 0, block.logit, numbers, job->cap);
        find_best(c, block.best, logits);
        n = logits.rows;
        LAUNCH(c, draw_of_row, dim3((unsigned)n), SOFTMAX_BLOCK, sums, drawn + row, block.best, block.logit,
               logits.cols, unit ? unit + row : NULL, given ? given + row : NULL, softmax_inverse(job->temperature),
               is_aligned(logits));
    }
}

size_t cuda_best_bytes(const struct cuda *c, const struct work_shape *shape)
{
    (void)c;
    return shape->n_vocab > 0 ? block_bytes(shape->rows, shape->n_vocab) : 0;
}
