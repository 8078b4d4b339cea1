/* emulated_cublaslt.cpp - products of matrices, and the arguments that cublasLt refuses.
 *
 * One sum has a fixed order that depends on its length and on the algorithm. algorithms[] is what the heuristic offers,
 * best first as it believes.
 */
#include <cublasLt.h>
#include <cuda_primitives.h>

#include "tests/cuda/emulated/emulated_runtime.h"

#include <vector>

struct emulated_lt {
    bool is_open;
};
struct emulated_product {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    bool transposed[2]; // a, b
};
struct emulated_layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld;
};
struct emulated_preference {
    uint64_t workspace;
    uint32_t reductions;
    uint32_t alignment[4]; // of a, b, c, d
};

namespace
{

enum { A, B, C, D };

struct algorithm {
    int splits;           // parts of a sum when d has few columns
    int told;             // what it says of them
    uint32_t reduction;   // how parts are added
    size_t workspace;     // bytes
    uint64_t max_columns; // of d; 0: any
    bool fails;           // the heuristic says that it does not work
};

const struct algorithm algorithms[] = {
    { 4, 4, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1 << 20, 0, false },
    { 1, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, 0, true },
    { 4, 4, CUBLASLT_REDUCTION_SCHEME_NONE, 0, 0, false },
    { 1, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 4096, 2500, false },
    { 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 4096, 0, false },
    { 1, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 8192, 0, false },
};
enum { N_ALGORITHMS = sizeof(algorithms) / sizeof(*algorithms), MAGIC = 0x61 };

/* What a cublasLtMatmulAlgo_t holds. */
struct chosen {
    int magic, number;
    uint32_t alignment[4];
};
static_assert(sizeof(struct chosen) <= sizeof(cublasLtMatmulAlgo_t), "it fits");

size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

bool is_type(cudaDataType_t type)
{
    return type == CUDA_R_32F || type == CUDA_R_16BF;
}

struct matrices {
    const struct emulated_layout *of[4];
    uint64_t m, n, k;
};

cublasStatus_t check_shapes(cublasLtMatmulDesc_t desc, const struct matrices *x)
{
    const struct emulated_layout *a = x->of[A], *b = x->of[B], *c = x->of[C], *d = x->of[D];

    for (const struct emulated_layout *l : x->of)
        if (!is_type(l->type) || l->rows == 0 || l->cols == 0 || l->ld < (int64_t)l->rows)
            return CUBLAS_STATUS_INVALID_VALUE;
    if (a->type != b->type || c->type != d->type || (d->type != a->type && d->type != CUDA_R_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (desc->scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    uint64_t a_rows = desc->transposed[A] ? a->cols : a->rows, a_cols = desc->transposed[A] ? a->rows : a->cols;
    uint64_t b_rows = desc->transposed[B] ? b->cols : b->rows, b_cols = desc->transposed[B] ? b->rows : b->cols;
    if (a_rows != d->rows || b_cols != d->cols || a_cols != b_rows || c->rows != d->rows || c->cols != d->cols)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

struct matrices matrices_of(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                            cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
    return { { a, b, c, d }, d->rows, d->cols, desc->transposed[A] ? a->rows : a->cols };
}

/* Rows that are longer than `alignment` start at multiples of it. */
bool keeps_alignment(const struct emulated_layout *l, uint32_t alignment)
{
    return (size_t)l->ld * size_of(l->type) % alignment == 0;
}

cublasStatus_t check_algorithm(const struct chosen *chosen, const struct matrices *x)
{
    const struct algorithm *algorithm = &algorithms[chosen->number];

    if (chosen->magic != MAGIC)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < 4; i++)
        if (!keeps_alignment(x->of[i], chosen->alignment[i]))
            return CUBLAS_STATUS_NOT_SUPPORTED;
    return algorithm->fails || (algorithm->max_columns && x->n > algorithm->max_columns) ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                                         : CUBLAS_STATUS_SUCCESS;
}

struct chosen chosen_of(const cublasLtMatmulAlgo_t *algo)
{
    struct chosen chosen;

    memcpy(&chosen, algo, sizeof(chosen));
    if (chosen.magic != MAGIC || chosen.number < 0 || chosen.number >= N_ALGORITHMS)
        chosen.magic = chosen.number = 0;
    return chosen;
}

cublasStatus_t copy_value(void *to, size_t cap, const void *from, size_t bytes)
{
    if (cap != bytes || !from)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product itself -------------------------------------------------- */

float number(const struct emulated_layout *l, const void *at, uint64_t row, uint64_t column)
{
    size_t i = column * (size_t)l->ld + row;

    return l->type == CUDA_R_32F ? static_cast<const float *>(at)[i]
                                 : bf16_to_float(static_cast<const uint16_t *>(at)[i]);
}

void set_number(const struct emulated_layout *l, void *at, size_t i, float x)
{
    if (l->type == CUDA_R_32F)
        static_cast<float *>(at)[i] = x;
    else
        static_cast<uint16_t *>(at)[i] = float_to_bf16(x);
}

/* 10 bits of fraction, as TF32 has. */
float as_tf32(float x)
{
    return __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
}

/* A copy in f32 whose k-th number of line i is [i * k + ...], so that sums run over neighbours. */
std::vector<float> lines(const struct emulated_layout *l, const void *at, bool by_column, bool tf32)
{
    uint64_t n = by_column ? l->cols : l->rows, k = by_column ? l->rows : l->cols;
    std::vector<float> out(n * k);

    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < k; j++) {
            float x = by_column ? number(l, at, j, i) : number(l, at, i, j);
            out[i * k + j] = tf32 ? as_tf32(x) : x;
        }
    return out;
}

__attribute__((target_clones("avx512f", "avx2", "default"))) float dot(const float *a, const float *b, uint64_t begin,
                                                                       uint64_t end)
{
    enum { WIDE = 16 };
    float part[WIDE] = { 0 }, sum = 0;

    for (; begin + WIDE <= end; begin += WIDE)
        for (int j = 0; j < WIDE; j++)
            part[j] += a[begin + (unsigned)j] * b[begin + (unsigned)j];
    for (int j = 0; begin < end; begin++, j++)
        part[j] += a[begin] * b[begin];
    for (float p : part)
        sum += p;
    return sum;
}

struct job {
    struct emulated_product product;
    struct emulated_layout of[4];
    const void *a, *b, *c;
    void *d, *workspace;
    float alpha, beta;
    uint64_t m, n, k;
    const struct algorithm *algorithm;
};

void multiply(const struct job *job)
{
    bool tf32 = job->product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    std::vector<float> a = lines(&job->of[A], job->a, job->product.transposed[A], tf32);
    std::vector<float> b = lines(&job->of[B], job->b, !job->product.transposed[B], tf32);
    uint64_t parts = job->n < 64 ? (uint64_t)job->algorithm->splits : 1, step = (job->k + parts - 1) / parts;

    if (job->algorithm->workspace)
        memset(job->workspace, 0xff, job->algorithm->workspace);
    for (uint64_t column = 0; column < job->n; column++)
        for (uint64_t row = 0; row < job->m; row++) {
            size_t i = column * (size_t)job->of[D].ld + row;
            float sum = 0;
            for (uint64_t begin = 0; begin < job->k; begin += step)
                sum += dot(&a[row * job->k], &b[column * job->k], begin, begin + step < job->k ? begin + step : job->k);
            sum *= job->alpha;
            if (job->beta != 0) // otherwise c is not read
                sum += job->beta * number(&job->of[C], job->c, row, column);
            set_number(&job->of[D], job->d, i, sum);
        }
}

/* Is all of a matrix in device memory, and where the algorithm may read it? */
bool is_matrix(const void *at, const struct emulated_layout *l, uint32_t alignment)
{
    size_t numbers = (l->cols - 1) * (size_t)l->ld + l->rows;

    return (uintptr_t)at % alignment == 0 && emu::on_device(at, numbers * size_of(l->type));
}

} // namespace

/* ---- cublasLt ------------------------------------------------------------ */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (emu::usable() != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new emulated_lt{ true };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion()
{
    return 130000;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown status";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    *desc = new emulated_product{ compute, scale, { false, false } };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    int32_t operation;

    if (which != CUBLASLT_MATMUL_DESC_TRANSA && which != CUBLASLT_MATMUL_DESC_TRANSB)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (copy_value(&operation, sizeof(operation), value, bytes) != CUBLAS_STATUS_SUCCESS || operation > CUBLAS_OP_T)
        return CUBLAS_STATUS_INVALID_VALUE;
    desc->transposed[which == CUBLASLT_MATMUL_DESC_TRANSB] = operation == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    *layout = new emulated_layout{ type, rows, cols, ld };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which,
                                                const void *value, size_t bytes)
{
    switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return copy_value(&layout->rows, sizeof(layout->rows), value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return copy_value(&layout->cols, sizeof(layout->cols), value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD: return copy_value(&layout->ld, sizeof(layout->ld), value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new emulated_preference{ 0, CUBLASLT_REDUCTION_SCHEME_MASK, { 256, 256, 256, 256 } };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void *value,
                                                    size_t bytes)
{
    if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return copy_value(&preference->workspace, sizeof(preference->workspace), value, bytes);
    if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return copy_value(&preference->reductions, sizeof(preference->reductions), value, bytes);
    return copy_value(&preference->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                      sizeof(*preference->alignment), value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int cap,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    struct matrices x = matrices_of(desc, a, b, c, d);
    cublasStatus_t status = check_shapes(desc, &x);

    const char *offered = getenv("EMU_LT");

    *n = 0;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (offered && !strcmp(offered, "none"))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < N_ALGORITHMS && *n < cap; i++) {
        const struct algorithm *one = &algorithms[i];
        struct chosen chosen = { MAGIC, i, {} };
        if (one->workspace > preference->workspace || (one->reduction & ~preference->reductions))
            continue;
        for (int j = 0; j < 4; j++) // more is of no use to it
            chosen.alignment[j] = preference->alignment[j] < 16 ? preference->alignment[j] : 16;
        cublasStatus_t state = check_algorithm(&chosen, &x);
        if (state != CUBLAS_STATUS_SUCCESS && !one->fails)
            continue;
        cublasLtMatmulHeuristicResult_t *r = &results[(*n)++];
        memset(r, 0, sizeof(*r));
        memcpy(&r->algo, &chosen, sizeof(chosen));
        r->workspaceSize = one->workspace;
        r->state = state;
        r->wavesCount = 1;
    }
    return *n > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    struct matrices x = matrices_of(desc, a, b, c, d);
    struct chosen chosen = chosen_of(algo);
    cublasStatus_t status = check_shapes(desc, &x);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = check_algorithm(&chosen, &x);
    memset(result, 0, sizeof(*result));
    result->algo = *algo;
    result->workspaceSize = algorithms[chosen.number].workspace;
    result->state = status;
    return status;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void *to,
                                                    size_t bytes, size_t *written)
{
    struct chosen chosen = chosen_of(algo);
    const struct algorithm *one = &algorithms[chosen.number];
    int32_t value = which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM         ? one->told
                    : which == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ? (int32_t)one->reduction
                                                                     : chosen.number;

    if (written)
        *written = which == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ? sizeof(uint16_t) : sizeof(value);
    return copy_value(to, bytes, &value, which == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ? 2 : sizeof(value));
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_at,
                              cublasLtMatrixLayout_t a, const void *b_at, cublasLtMatrixLayout_t b, const void *beta,
                              const void *c_at, cublasLtMatrixLayout_t c, void *d_at, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream)
{
    struct matrices x = matrices_of(desc, a, b, c, d);
    cublasStatus_t status = handle && handle->is_open ? check_shapes(desc, &x) : CUBLAS_STATUS_NOT_INITIALIZED;

    if (emu::usable() != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    struct chosen chosen = chosen_of(algo);
    status = check_algorithm(&chosen, &x);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const struct algorithm *one = &algorithms[chosen.number];
    struct job job = { *desc, { *a, *b, *c, *d }, a_at, b_at, c_at, d_at, workspace, 0, 0, x.m, x.n, x.k, one };
    memcpy(&job.alpha, alpha, sizeof(job.alpha));
    memcpy(&job.beta, beta, sizeof(job.beta));
    if (!is_matrix(a_at, a, chosen.alignment[A]) || !is_matrix(b_at, b, chosen.alignment[B]) ||
        !is_matrix(d_at, d, chosen.alignment[D]) || (job.beta != 0 && !is_matrix(c_at, c, chosen.alignment[C])))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (c_at == d_at && memcmp(c, d, sizeof(*c)) != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (one->workspace > workspace_bytes || (one->workspace && !emu::on_device(workspace, workspace_bytes)))
        return CUBLAS_STATUS_INVALID_VALUE;
    emu::queue_work(
        "a product", [=] { multiply(&job); }, stream);
    return CUBLAS_STATUS_SUCCESS;
}
