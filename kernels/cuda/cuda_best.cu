/* cuda_best.cu - the most likely token of each row: logits by cuda_gemm() in blocks of rows, then one pass over each
 * row of logits.
 *
 * The number of rows in a block depends only on the vocabulary size, and a product gives a row the same bits in any
 * block, so a row's best does not depend on the other rows. The search is exact: the largest logit, its lowest id, and
 * the largest of the rest are the same in any order.
 */
#include "kernels/cuda/cuda_lanes.h"

#include <limits.h>

enum {
    BEST_THREADS = 512,
    MAX_ROWS = 512, // of a block
};

/* Logits at a time. With 128,256 tokens that is 261 rows: enough for a product to be bound by arithmetic, not by
 * reading its weights. */
constexpr size_t LOGIT_BYTES = (size_t)128 << 20;

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

/* Rows of a block, at least one. */
static int block_rows(int n_vocab)
{
    const size_t rows = LOGIT_BYTES / ((size_t)n_vocab * sizeof(float));

    return (int)max(min(rows, (size_t)MAX_ROWS), (size_t)1);
}

static size_t logit_bytes(int rows, int n_vocab)
{
    return (size_t)min(rows, block_rows(n_vocab)) * (size_t)n_vocab * sizeof(float);
}

void cuda_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    struct cuda *c = cuda_of(be);
    const int V = head->out, block = block_rows(V);
    float *logit = static_cast<float *>(cuda_scratch(c, logit_bytes(x.rows, V))); // (rows, V)

    for (int row = 0; row < x.rows && logit; row += block) {
        const int n = min(x.rows - row, block);
        const struct mat some = { cuda_row(x, row), x.type, n, x.cols, x.pitch };
        const struct mat out = { logit, DTYPE_F32, n, V, V };
        cuda_gemm(be, out, some, head, NULL, GEMM_SET);
        LAUNCH(c, best_of_row, dim3((unsigned)n), BEST_THREADS, 0, best + row, logit, V, is_aligned(out));
    }
}

size_t cuda_best_bytes(const struct cuda *c, const struct work_shape *shape)
{
    (void)c;
    return shape->n_vocab > 0 ? logit_bytes(shape->rows, shape->n_vocab) : 0;
}
