/* cuda_bert.cu - the ops that only BERT needs: layernorm and gelu, in f32. A row's bits depend only on the row. */
#include "kernels/cuda/cuda_lanes.h"

#include <assert.h>

enum { THREADS = 256 };

/* One block per row. out may be x: after the sums, only the thread that overwrites a number reads it. */
/* registers <= 40 */
__global__ void __launch_bounds__(THREADS)
    layernorm_row(const struct mat out, const struct mat x, const float *w, const float *b, float eps, bool aligned)
{
    SHARED_ARRAY(float, sums, THREADS / LANES);
    SHARED_ARRAY(float, squares, THREADS / LANES);
    const float *from = row_of<float>(x, blockIdx.x);
    float *to = row_of<float>(out, blockIdx.x), v[EIGHT], weight[EIGHT], bias[EIGHT], part = 0;
    const int first = (int)threadIdx.x * EIGHT, step = THREADS * EIGHT, n = x.cols;

    for (int i = first; i < n; i += step) {
        load_some(v, from + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            part += v[j]; // 0 beyond the row's end
    }
    const float mean = block_sum<THREADS>(part, sums) / (float)n;
    part = 0;
    for (int i = first; i < n; i += step) {
        load_some(v, from + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            part += i + j < n ? (v[j] - mean) * (v[j] - mean) : 0;
    }
    const float scale = 1 / sqrtf(block_sum<THREADS>(part, squares) / (float)n + eps);
    for (int i = first; i < n; i += step) {
        load_some(v, from + i, n - i, aligned);
        load_some(weight, w + i, n - i, aligned);
        load_some(bias, b + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            v[j] = (v[j] - mean) * scale * weight[j] + bias[j];
        store_some(to + i, v, n - i, aligned);
    }
}

void cuda_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps)
{
    struct cuda *c = cuda_of(be);
    const bool aligned = is_aligned(out) && is_aligned(x) && is_aligned(w, 0) && is_aligned(b, 0);

    assert(x.type == DTYPE_F32 && out.type == DTYPE_F32);
    LAUNCH(c, layernorm_row, dim3((unsigned)x.rows), THREADS, 0, out, x, w, b, eps, aligned);
}

/* Row blockIdx.x, eight columns per thread. */
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) gelu_row(const struct mat x, bool aligned)
{
    const int i = ((int)blockIdx.y * THREADS + (int)threadIdx.x) * EIGHT, left = x.cols - i;
    float *at = row_of<float>(x, blockIdx.x) + i, v[EIGHT];
    const float root_half = 0.70710678f;

    if (left <= 0)
        return;
    load_some(v, at, left, aligned);
    for (int j = 0; j < EIGHT; j++)
        v[j] = 0.5f * v[j] * (1 + erff(v[j] * root_half));
    store_some(at, v, left, aligned);
}

void cuda_gelu(struct backend *be, struct mat x)
{
    struct cuda *c = cuda_of(be);

    assert(x.type == DTYPE_F32);
    LAUNCH(c, gelu_row, dim3((unsigned)x.rows, cuda_pieces((size_t)x.cols, THREADS * EIGHT)), THREADS, 0, x,
           is_aligned(x));
}
