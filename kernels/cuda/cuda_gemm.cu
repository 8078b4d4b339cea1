/* cuda_gemm.cu - weights in the device's memory, and products with them by cublasLt.
 *
 * What is promised: a row of a product has the same bits whatever rows come with it. How: for each shape of a weight
 * and type of result one algorithm is taken, by cublasLt's heuristic for HEURISTIC_ROWS rows, when the first weight of
 * that shape is made, and every product uses it whatever its number of rows. It sums over the whole width in one place:
 * no split-K, no reduction over blocks. An algorithm is a tile and a schedule of it, so a row goes through the same
 * operations wherever in a tile it lies. It is taken only if it supports every number of rows in `checked`. The
 * heuristic itself depends on the device and cublasLt's version, and on nothing that was measured.
 * tests/kernels/dense.c holds it: gemm_rows_do_not_know_each_other.
 *
 * f32 products are products of f32: never TF32. Sums are f32 in both.
 */
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "kernels/cuda/cuda_internal.h"

#include <stdlib.h>

enum {
    WORKSPACE = 32 << 20, // what cublasLt recommends for sm_90
    HEURISTIC_ROWS = 2048,
    CANDIDATES = 32,
    VECTOR_BYTES = 16, // the widest access of a thread
    BIAS_ROWS = 512,   // of sums that wait in scratch for their bias
    THREADS = 256,
    EACH = 4, // numbers of a thread
};

/* Column-major as cublas has it: w (in, out) transposed, x (in, rows), result (out, rows). */
struct cuda_product {
    int out, in;
    cublasLtMatrixLayout_t w, x, own, f32; // own: a result of the backend's dtype
    cublasLtMatmulAlgo_t own_algo, f32_algo;
    struct cuda_product *next;
};

struct cuda_weight {
    struct weight base;
    struct cuda_product *product;
};

static bool lt_ok(struct cuda *c, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    cuda_fail(c, status == CUBLAS_STATUS_ALLOC_FAILED ? ERR_NOMEM : ERR_LOST, "the GPU failed: %s: %s", what,
              cublasLtGetStatusString(status));
    return false;
}

static cudaDataType_t lt_type(enum dtype type)
{
    return type == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* ---- an algorithm per shape --------------------------------------------- */

/* Rows start at multiples of their length, from a 64-byte aligned address on. */
static uint32_t alignment(size_t row_bytes)
{
    uint32_t align = VECTOR_BYTES;

    while (row_bytes % align)
        align /= 2;
    return align;
}

static bool set_rows(struct cuda *c, cublasLtMatrixLayout_t layout, int rows)
{
    uint64_t n = (uint64_t)rows;

    return lt_ok(c, cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &n, sizeof(n)),
                 "setting a product's rows");
}

static bool is_whole(const cublasLtMatmulAlgo_t *algo)
{
    int32_t splits = 0;
    uint32_t reduction = 0;
    size_t written = 0;

    return cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof(splits),
                                                &written) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction,
                                                sizeof(reduction), &written) == CUBLAS_STATUS_SUCCESS &&
           splits <= 1 && reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

static bool supports_all_rows(struct cuda *c, struct cuda_product *p, cublasLtMatrixLayout_t result,
                              const cublasLtMatmulAlgo_t *algo)
{
    static const int checked[] = { 1, 2, 3, 7, 16, 33, 64, 100, 129, 256, 511, 1000, 2048, 4096 };

    for (size_t i = 0; i < sizeof(checked) / sizeof(*checked); i++) {
        cublasLtMatmulHeuristicResult_t answer;
        if (!set_rows(c, p->x, checked[i]) || !set_rows(c, result, checked[i]))
            return false;
        if (cublasLtMatmulAlgoCheck(c->lt, c->product, p->w, p->x, result, result, algo, &answer) !=
                CUBLAS_STATUS_SUCCESS ||
            answer.workspaceSize > WORKSPACE)
            return false;
    }
    return true;
}

static bool set_preferences(struct cuda *c, const struct cuda_product *p, enum dtype result,
                            cublasLtMatmulPreference_t want)
{
    const uint64_t workspace = WORKSPACE;
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE,
                   in = alignment((size_t)p->in * dtype_size(c->base.dtype)),
                   out = alignment((size_t)p->out * dtype_size(result));
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        const void *value;
        size_t size;
    } set[] = { { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace) },
                { CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof(reduction) },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &in, sizeof(in) },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &in, sizeof(in) },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &out, sizeof(out) },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &out, sizeof(out) } };

    for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++)
        if (!lt_ok(c, cublasLtMatmulPreferenceSetAttribute(want, set[i].which, set[i].value, set[i].size),
                   "describing a product"))
            return false;
    return true;
}

/* The first candidate that keeps the promise above. */
static bool choose(struct cuda *c, struct cuda_product *p, cublasLtMatrixLayout_t result,
                   cublasLtMatmulPreference_t want, cublasLtMatmulAlgo_t *algo)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    int n = 0;

    if (!set_rows(c, p->x, HEURISTIC_ROWS) || !set_rows(c, result, HEURISTIC_ROWS))
        return false;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(c->lt, c->product, p->w, p->x, result, result, want, CANDIDATES, found, &n);
    for (int i = 0; i < n && status == CUBLAS_STATUS_SUCCESS; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || !is_whole(&found[i].algo) ||
            !supports_all_rows(c, p, result, &found[i].algo))
            continue;
        *algo = found[i].algo;
        return true;
    }
    cuda_fail(c, ERR_DEVICE, "cublasLt has no algorithm for products of %d x %d whose rows do not depend on each other",
              p->out, p->in);
    return false;
}

static bool choose_for(struct cuda *c, struct cuda_product *p, enum dtype result)
{
    cublasLtMatmulPreference_t want = NULL;
    bool is_f32 = result == DTYPE_F32;

    if (!lt_ok(c, cublasLtMatmulPreferenceCreate(&want), "describing a product"))
        return false;
    bool found = set_preferences(c, p, result, want) &&
                 choose(c, p, is_f32 ? p->f32 : p->own, want, is_f32 ? &p->f32_algo : &p->own_algo);
    cublasLtMatmulPreferenceDestroy(want);
    return found;
}

static void product_free(struct cuda_product *p)
{
    const cublasLtMatrixLayout_t layout[] = { p->w, p->x, p->own, p->f32 };

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

    return lt_ok(c, cublasLtMatrixLayoutCreate(&p->w, type, in, out, p->in), what) &&
           lt_ok(c, cublasLtMatrixLayoutCreate(&p->x, type, in, HEURISTIC_ROWS, p->in), what) &&
           lt_ok(c, cublasLtMatrixLayoutCreate(&p->own, type, out, HEURISTIC_ROWS, p->out), what) &&
           lt_ok(c, cublasLtMatrixLayoutCreate(&p->f32, CUDA_R_32F, out, HEURISTIC_ROWS, p->out), what) &&
           (c->base.dtype == DTYPE_F32 || choose_for(c, p, c->base.dtype)) && choose_for(c, p, DTYPE_F32);
}

/* The product for weights of a shape: made by the first one. NULL: failed, which is remembered. */
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

    return lt_ok(c, cublasLtCreate(&c->lt), what) &&
           lt_ok(c, cublasLtMatmulDescCreate(&c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), what) &&
           lt_ok(
               c,
               cublasLtMatmulDescSetAttribute(c->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
               what) &&
           cuda_ok(c, cudaMalloc(&c->workspace, WORKSPACE), "allocating the workspace of products");
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

/* Numbers of a file to the backend's dtype. */
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

/* ---- weights ------------------------------------------------------------ */

/* n numbers of a file to place `at` of a weight. */
static void put_numbers(struct cuda *c, void *weight, size_t at, const void *host, enum dtype type, size_t n)
{
    size_t size = dtype_size(type), piece = CUDA_PART_BYTES / size;
    char *to = (char *)weight + at * dtype_size(c->base.dtype);

    if (type == c->base.dtype) {
        cuda_write(&c->base, to, host, n * size);
        return;
    }
    for (size_t i = 0; i < n && !cuda_failed(c); i += piece) {
        size_t now = n - i < piece ? n - i : piece;
        const void *from = cuda_upload(c, (const char *)host + i * size, now * size);
        if (from && c->base.dtype == DTYPE_BF16)
            LAUNCH(c, convert_numbers<uint16_t>, cuda_pieces(now, THREADS * EACH), THREADS, 0, (uint16_t *)to + i, from,
                   type, now);
        else if (from)
            LAUNCH(c, convert_numbers<float>, cuda_pieces(now, THREADS * EACH), THREADS, 0, (float *)to + i, from, type,
                   now);
    }
}

/* All rows of a part; returns how many numbers. */
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

/* out = x W^T (+ out); both dense. */
static void multiply(struct cuda *c, struct mat out, struct mat x, const struct cuda_weight *w, enum gemm_into into)
{
    struct cuda_product *p = w->product;
    bool is_f32 = out.type == DTYPE_F32;
    cublasLtMatrixLayout_t result = is_f32 ? p->f32 : p->own;
    const float one = 1, old = into == GEMM_ADD ? 1 : 0;

    if (cuda_failed(c) || !set_rows(c, p->x, x.rows) || !set_rows(c, result, x.rows))
        return;
    c->running = "a product";
    c->n_launches++;
    lt_ok(c,
          cublasLtMatmul(c->lt, c->product, &one, w->base.at, p->w, x.at, p->x, &old, out.at, result, out.at, result,
                         is_f32 ? &p->f32_algo : &p->own_algo, c->workspace, WORKSPACE, c->stream),
          c->running);
}

/* In bf16 a bias is added before the sum is rounded: the sums of some rows at a time are f32 in scratch. */
static void multiply_biased(struct cuda *c, struct mat out, struct mat x, const struct cuda_weight *w,
                            const float *bias)
{
    int step = x.rows < BIAS_ROWS ? x.rows : BIAS_ROWS;
    float *sum = (float *)cuda_scratch(c, (size_t)step * (size_t)out.cols * sizeof(*sum));

    for (int row = 0; row < x.rows && sum; row += step) {
        int n = x.rows - row < step ? x.rows - row : step;
        size_t numbers = (size_t)n * (size_t)out.cols;
        struct mat some = { cuda_row(x, row), x.type, n, x.cols, x.pitch };
        struct mat sums = { sum, DTYPE_F32, n, out.cols, out.cols };
        multiply(c, sums, some, w, GEMM_SET);
        LAUNCH(c, add_bias<uint16_t>, cuda_pieces(numbers, THREADS * EACH), THREADS, 0, (uint16_t *)cuda_row(out, row),
               sum, bias, numbers, out.cols);
    }
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
    size_t rows = (size_t)(s->rows < BIAS_ROWS ? s->rows : BIAS_ROWS), qkv = (size_t)(s->n_heads + 2 * s->n_kv_heads);

    return c->base.dtype == DTYPE_BF16 ? rows * qkv * (size_t)s->head_dim * sizeof(float) : 0;
}
