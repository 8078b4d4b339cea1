/* cuda_gemm.cu - weights in the device's memory, and products with them: by cublasLt with the algorithm chosen in
 * cuda_choose.cu, or, where that finds none, by the kernels of cuda_expert.cu. The algorithm for a shape and result
 * type is chosen at the first such product.
 *
 * A row of a product has the same bits whatever the other rows are; gemm_rows_do_not_know_each_other in
 * tests/kernels/dense.c checks it. f32 products never use TF32. Sums are f32 in both dtypes.
 */
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "kernels/cuda/cuda_expert.h"
#include "kernels/cuda/cuda_product.h"

#include <stdlib.h>

enum {
    TILES = 64, // of our own product at a time
    THREADS = 256,
    EACH = 4, // numbers per thread
};

bool cuda_lt_ok(struct cuda *c, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    cuda_fail(c, status == CUBLAS_STATUS_ALLOC_FAILED ? ERR_NOMEM : ERR_LOST, "the GPU failed: %s: %s", what,
              cublasLtGetStatusString(status));
    return false;
}

bool cuda_set_rows(struct cuda *c, cublasLtMatrixLayout_t layout, int rows)
{
    uint64_t n = (uint64_t)rows;

    return cuda_lt_ok(c, cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &n, sizeof(n)),
                      "setting a product's rows");
}

static cudaDataType_t lt_type(enum dtype type)
{
    return type == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* ---- a product per shape ------------------------------------------------ */

static void product_free(struct cuda_product *p)
{
    const cublasLtMatrixLayout_t layout[] = { p->w, p->x, p->result[0].layout, p->result[1].layout };

    for (int i = 0; i < 4; i++)
        if (layout[i])
            cublasLtMatrixLayoutDestroy(layout[i]);
    free(p);
}

static bool product_open(struct cuda *c, struct cuda_product *p)
{
    const cudaDataType_t type = lt_type(c->base.dtype);
    const uint64_t out = (uint64_t)p->out, in = (uint64_t)p->in;
    const char *what = "describing a product";

    p->result[0].type = c->base.dtype;
    p->result[1].type = DTYPE_F32;
    return cuda_lt_ok(c, cublasLtMatrixLayoutCreate(&p->w, type, in, out, p->in), what) &&
           cuda_lt_ok(c, cublasLtMatrixLayoutCreate(&p->x, type, in, 1, p->in), what) &&
           cuda_lt_ok(c, cublasLtMatrixLayoutCreate(&p->result[0].layout, type, out, 1, p->out), what) &&
           cuda_lt_ok(c, cublasLtMatrixLayoutCreate(&p->result[1].layout, CUDA_R_32F, out, 1, p->out), what);
}

/* The product for weights of a shape; made for the first such weight. NULL: failed and recorded. */
static struct cuda_product *product_of(struct cuda *c, int out, int in)
{
    for (struct cuda_product *p = c->products; p; p = p->next)
        if (p->out == out && p->in == in)
            return p;
    struct cuda_product *p = (struct cuda_product *)calloc(1, sizeof(*p));
    if (!p) {
        cuda_fail(c, ERR_NOMEM, "out of memory");
        return NULL;
    }
    p->out = out;
    p->in = in;
    if (!product_open(c, p)) {
        product_free(p);
        return NULL;
    }
    p->next = c->products;
    c->products = p;
    return p;
}

bool cuda_products_open(struct cuda *c)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const char *what = "opening cublasLt";

    return cuda_lt_ok(c, cublasLtCreate(&c->lt), what) &&
           cuda_lt_ok(c, cublasLtMatmulDescCreate(&c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), what) &&
           cuda_lt_ok(
               c,
               cublasLtMatmulDescSetAttribute(c->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
               what) &&
           cuda_ok(c, cudaMalloc(&c->workspace, CUDA_WORKSPACE_BYTES), "allocating the workspace of products");
}

void cuda_products_close(struct cuda *c)
{
    while (c->products) {
        struct cuda_product *next = c->products->next;
        product_free(c->products);
        c->products = next;
    }
    if (c->product)
        cublasLtMatmulDescDestroy(c->product);
    if (c->lt)
        cublasLtDestroy(c->lt);
    cudaFree(c->workspace);
}

/* ---- kernels ------------------------------------------------------------ */

static __device__ __forceinline__ void store(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void store(uint16_t *to, float x)
{
    *to = float_to_bf16(x);
}

/* Converts numbers of a file to the backend's dtype. */
template <class T>
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) convert_numbers(T *to, const void *from, enum dtype type, size_t n)
{
    size_t first = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;

    for (size_t i = first; i < first + THREADS * EACH && i < n; i += THREADS) {
        if (type == DTYPE_F32)
            store(&to[i], ((const float *)from)[i]);
        else if (type == DTYPE_F16)
            store(&to[i], f16_to_float(((const uint16_t *)from)[i]));
        else
            store(&to[i], bf16_to_float(((const uint16_t *)from)[i]));
    }
}

/* to = sum + bias, row by row; to may be sum. */
template <class T>
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) add_bias(T *to, const float *sum, const float *bias, size_t n, int cols)
{
    size_t first = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;

    for (size_t i = first; i < first + THREADS * EACH && i < n; i += THREADS)
        store(&to[i], sum[i] + bias[i % (unsigned)cols]);
}

/* to = sum, or to += sum. */
template <class T>
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) put_sums(T *to, const float *sum, size_t n, bool add)
{
    size_t first = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;

    for (size_t i = first; i < first + THREADS * EACH && i < n; i += THREADS)
        if constexpr (sizeof(T) == sizeof(float))
            to[i] = add ? to[i] + sum[i] : sum[i];
        else
            store(&to[i], sum[i]);
}

/* ---- weights ------------------------------------------------------------ */

/* Writes n numbers of a file to a weight, from number `at` on. */
static void put_numbers(struct cuda *c, void *weight, size_t at, const void *host, enum dtype type, size_t n)
{
    size_t size = dtype_size(type), piece = CUDA_PART_BYTES / size;
    char *to = (char *)weight + at * dtype_size(c->base.dtype);

    for (size_t i = 0; i < n && !cuda_failed(c); i += piece) {
        size_t now = n - i < piece ? n - i : piece;
        const char *numbers = (const char *)host + i * size;
        bool same = type == c->base.dtype;
        const void *from = cuda_upload_numbers(c, same ? to + i * size : NULL, numbers, type, now);
        if (same)
            continue;
        if (from && c->base.dtype == DTYPE_BF16)
            LAUNCH(c, convert_numbers<uint16_t>, cuda_pieces(now, THREADS * EACH), THREADS, 0, (uint16_t *)to + i, from,
                   type, now);
        else if (from)
            LAUNCH(c, convert_numbers<float>, cuda_pieces(now, THREADS * EACH), THREADS, 0, (float *)to + i, from, type,
                   now);
    }
}

/* Writes all rows of a host matrix; returns how many numbers. */
static size_t put_part(struct cuda *c, void *weight, size_t at, const struct mat *part)
{
    size_t cols = (size_t)part->cols, rows = (size_t)part->rows;

    if (part->pitch == part->cols)
        put_numbers(c, weight, at, part->at, part->type, rows * cols);
    for (size_t i = 0; i < rows && part->pitch != part->cols; i++)
        put_numbers(c, weight, at + i * cols, cuda_row(*part, (int)i), part->type, cols);
    return rows * cols;
}

struct weight *cuda_weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err)
{
    struct cuda *c = cuda_of(be);
    struct cuda_weight *w = (struct cuda_weight *)calloc(1, sizeof(*w));
    size_t at = 0;

    if (!w) {
        err_nomem(err);
        return NULL;
    }
    w->base.in = host[0].cols;
    for (int i = 0; i < n_parts; i++)
        w->base.out += host[i].rows;
    w->product = product_of(c, w->base.out, w->base.in);
    if (w->product)
        w->base.at = cuda_alloc(be, (size_t)w->base.out * (size_t)w->base.in * dtype_size(be->dtype), err);
    for (int i = 0; i < n_parts && w->base.at; i++)
        at += put_part(c, w->base.at, at, &host[i]);
    if (w->base.at && !cuda_failed(c))
        return &w->base;
    if (cuda_failed(c)) {
        *err = c->failure;
        c->failure.code = 0;
    }
    cuda_weight_free(be, &w->base);
    return NULL;
}

void cuda_weight_free(struct backend *be, struct weight *w)
{
    if (w)
        cuda_free(be, w->at);
    free(w);
}

struct weight_bytes cuda_weight_bytes(struct backend *be, int out, int in)
{
    size_t bytes = (size_t)out * (size_t)in * dtype_size(be->dtype);
    struct weight_bytes w = { (bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN, 0 };

    return w;
}

/* ---- products ----------------------------------------------------------- */

/* Multiplies the first rows of x, as many as TILES and the workspace allow, into the workspace. Returns how many. */
static int sum_ourselves(struct cuda *c, struct mat x, const struct cuda_weight *w)
{
    struct expert_tile tile[TILES];
    size_t most = CUDA_WORKSPACE_BYTES / ((size_t)w->base.out * sizeof(float));
    int rows = x.rows < TILES * TILE_ROWS ? x.rows : TILES * TILE_ROWS, n = 0;

    rows = (size_t)rows < most ? rows : (int)most;
    for (int row = 0; row < rows; row += TILE_ROWS, n++)
        tile[n] = { 0, row, rows - row < TILE_ROWS ? rows - row : TILE_ROWS };
    struct expert_product p = {};
    p.x = x.at;
    p.x_pitch = x.pitch;
    p.n_used = 1;
    p.weight = cuda_upload_list(c, (const void *const *)&w->base.at, 1);
    p.n_in = w->base.in;
    p.n_out = w->base.out;
    p.out = c->workspace;
    p.tile = cuda_upload_list(c, tile, n);
    p.n_tiles = n;
    if (p.weight && p.tile)
        cuda_expert_product(c, &p, EXPERT_DOWN);
    return rows;
}

/* For shapes without a cublasLt algorithm that fulfils the contract. */
static void multiply_ourselves(struct cuda *c, struct mat out, struct mat x, const struct cuda_weight *w, bool add)
{
    const float *sum = (const float *)c->workspace;

    for (int row = 0, n; row < x.rows && !cuda_failed(c); row += n) {
        n = sum_ourselves(c, { cuda_row(x, row), x.type, x.rows - row, x.cols, x.pitch }, w);
        size_t numbers = (size_t)n * (size_t)out.cols;
        unsigned blocks = cuda_pieces(numbers, THREADS * EACH);
        if (out.type == DTYPE_F32)
            LAUNCH(c, put_sums<float>, blocks, THREADS, 0, (float *)cuda_row(out, row), sum, numbers, add);
        else
            LAUNCH(c, put_sums<uint16_t>, blocks, THREADS, 0, (uint16_t *)cuda_row(out, row), sum, numbers, add);
    }
}

/* out = x W^T (+ out); both dense. */
static void multiply(struct cuda *c, struct mat out, struct mat x, const struct cuda_weight *w, enum gemm_into into)
{
    struct cuda_product *p = w->product;
    struct cuda_result *r = cuda_result_of(w, out.type);
    const float one = 1, old = into == GEMM_ADD ? 1 : 0;

    if (cuda_failed(c) || (r->way == WAY_OPEN && !cuda_choose(c, w, r)))
        return;
    if (r->way == WAY_OURS) {
        multiply_ourselves(c, out, x, w, into == GEMM_ADD);
        return;
    }
    if (!cuda_set_rows(c, p->x, x.rows) || !cuda_set_rows(c, r->layout, x.rows))
        return;
    c->running = "a product";
    c->n_launches++;
    cuda_lt_ok(c,
               cublasLtMatmul(c->lt, c->product, &one, w->base.at, p->w, x.at, p->x, &old, out.at, r->layout, out.at,
                              r->layout, &r->algo, c->workspace, CUDA_WORKSPACE_BYTES, c->stream),
               c->running);
}

/* In bf16 the bias is added before the sum is rounded: so the sums are f32 in scratch. */
static void multiply_biased(struct cuda *c, struct mat out, struct mat x, const struct cuda_weight *w,
                            const float *bias)
{
    const size_t numbers = (size_t)out.rows * (size_t)out.cols;
    float *sum = (float *)cuda_scratch(c, numbers * sizeof(*sum));

    if (!sum)
        return;
    multiply(c, { sum, DTYPE_F32, out.rows, out.cols, out.cols }, x, w, GEMM_SET);
    LAUNCH(c, add_bias<uint16_t>, cuda_pieces(numbers, THREADS * EACH), THREADS, 0, (uint16_t *)out.at, sum, bias,
           numbers, out.cols);
}

void cuda_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
               enum gemm_into into)
{
    struct cuda *c = cuda_of(be);
    const struct cuda_weight *weight = (const struct cuda_weight *)w;
    size_t numbers = (size_t)out.rows * (size_t)out.cols;

    if (x.rows == 0)
        return;
    if (bias && out.type == DTYPE_BF16) {
        multiply_biased(c, out, x, weight, bias);
        return;
    }
    multiply(c, out, x, weight, into);
    if (bias)
        LAUNCH(c, add_bias<float>, cuda_pieces(numbers, THREADS * EACH), THREADS, 0, (float *)out.at,
               (const float *)out.at, bias, numbers, out.cols);
}

size_t cuda_gemm_bytes(const struct cuda *c, const struct work_shape *s)
{
    return c->base.dtype == DTYPE_BF16 ? (size_t)s->rows * (size_t)s->biased * sizeof(float) : 0;
}
