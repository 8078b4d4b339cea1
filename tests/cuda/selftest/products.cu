/* products.cu - the emulated cublasLt multiplies, and refuses what cublasLt refuses. */
#include "tests/cuda/selftest/selftest.h"

#include <cublasLt.h>

enum { OUT = 24, IN = 40, ROWS = 5 };

struct product {
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found[8];
    int n_found;
    void *workspace;
};
enum { WORKSPACE = 1 << 20 };

template <class T> static T as(float x);
template <> float as(float x)
{
    return x;
}
template <> uint16_t as(float x)
{
    return float_to_bf16(x);
}

#define LT(x) must((x) == CUBLAS_STATUS_SUCCESS, #x, __FILE__, __LINE__)

/* y (OUT, n_rows) = w (IN, OUT)^T x (IN, n_rows), column-major. */
static struct product open(cudaDataType type, cudaDataType result, int n_rows)
{
    struct product p;
    const int32_t transposed = CUBLAS_OP_T;
    const uint64_t workspace = WORKSPACE;

    LT(cublasLtCreate(&p.lt));
    LT(cublasLtMatmulDescCreate(&p.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(p.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)));
    LT(cublasLtMatrixLayoutCreate(&p.w, type, IN, OUT, IN));
    LT(cublasLtMatrixLayoutCreate(&p.x, type, IN, (uint64_t)n_rows, IN));
    LT(cublasLtMatrixLayoutCreate(&p.y, result, OUT, (uint64_t)n_rows, OUT));
    LT(cublasLtMatmulPreferenceCreate(&p.want));
    LT(cublasLtMatmulPreferenceSetAttribute(p.want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                            sizeof(workspace)));
    LT(cublasLtMatmulAlgoGetHeuristic(p.lt, p.desc, p.w, p.x, p.y, p.y, p.want, 8, p.found, &p.n_found));
    CUDA(cudaMalloc(&p.workspace, WORKSPACE));
    return p;
}

static cublasStatus_t multiply(const struct product *p, int found, const void *w, const void *x, void *y, float beta)
{
    const float one = 1;

    return cublasLtMatmul(p->lt, p->desc, &one, w, p->w, x, p->x, &beta, y, p->y, y, p->y, &p->found[found].algo,
                          p->workspace, WORKSPACE, 0);
}

/* Numbers whose products and sums are exact. */
static float w_at(int i)
{
    return (float)(i * 7 % 13 - 6);
}
static float x_at(int i)
{
    return (float)(i * 5 % 11 - 5) / 2;
}

template <class T, class R> static void product(cudaDataType type, cudaDataType result, float (*value)(R))
{
    struct product p = open(type, result, ROWS);
    std::vector<T> w(OUT * IN), x(ROWS * IN);
    std::vector<R> y(OUT * ROWS, as<R>(3));

    for (int i = 0; i < OUT * IN; i++)
        w[(size_t)i] = as<T>(w_at(i));
    for (int i = 0; i < ROWS * IN; i++)
        x[(size_t)i] = as<T>(x_at(i));
    T *dw = device_array(w.size(), w.data()), *dx = device_array(x.size(), x.data());
    MUST(p.n_found >= 4);
    for (int f = 0; f < p.n_found; f++) {
        if (p.found[f].state != CUBLAS_STATUS_SUCCESS)
            continue;
        R *added = device_array(y.size(), y.data()), *set = device_array<R>(y.size());
        LT(multiply(&p, f, dw, dx, added, 1));
        LT(multiply(&p, f, dw, dx, set, 0)); // over poison
        std::vector<R> host = back(added, y.size()), over = back(set, y.size());
        for (int row = 0; row < ROWS; row++)
            for (int o = 0; o < OUT; o++) {
                float sum = 0;
                for (int i = 0; i < IN; i++)
                    sum += w_at(o * IN + i) * x_at(row * IN + i);
                MUST(value(host[(size_t)(row * OUT + o)]) == value(as<R>(sum + 3)));
                MUST(value(over[(size_t)(row * OUT + o)]) == value(as<R>(sum)));
            }
    }
}

static float itself(float x)
{
    return x;
}

static void products()
{
    product<float, float>(CUDA_R_32F, CUDA_R_32F, itself);
    product<uint16_t, float>(CUDA_R_16BF, CUDA_R_32F, itself);
    product<uint16_t, uint16_t>(CUDA_R_16BF, CUDA_R_16BF, bf16_to_float);
}

static void refusals()
{
    struct product p = open(CUDA_R_32F, CUDA_R_32F, ROWS);
    float *w = device_array<float>(OUT * IN), *x = device_array<float>(ROWS * IN + 1),
          *y = device_array<float>(OUT * ROWS);
    float host[OUT * IN];
    int good = p.n_found - 1;
    const uint64_t more = ROWS + 1;
    cublasLtMatmulHeuristicResult_t answer;

    LT(multiply(&p, good, w, x, y, 0));
    MUST(multiply(&p, good, host, x, y, 0) == CUBLAS_STATUS_INVALID_VALUE);  // host memory
    MUST(multiply(&p, good, w, x + 1, y, 0) == CUBLAS_STATUS_INVALID_VALUE); // alignment
    MUST(multiply(&p, good, w, x, y + 4, 0) == CUBLAS_STATUS_INVALID_VALUE); // too short
    LT(cublasLtMatrixLayoutSetAttribute(p.x, CUBLASLT_MATRIX_LAYOUT_COLS, &more, sizeof(more)));
    MUST(multiply(&p, good, w, x, y, 0) == CUBLAS_STATUS_INVALID_VALUE); // x has more rows than y
    MUST(cublasLtMatmulAlgoCheck(p.lt, p.desc, p.w, p.x, p.y, p.y, &p.found[good].algo, &answer) ==
         CUBLAS_STATUS_INVALID_VALUE);
    MUST(cublasLtMatrixLayoutSetAttribute(p.x, CUBLASLT_MATRIX_LAYOUT_COLS, &more, 4) == CUBLAS_STATUS_INVALID_VALUE);
    p = open(CUDA_R_32F, CUDA_R_32F, ROWS);
    void *workspace = p.workspace;
    p.workspace = host;
    MUST(multiply(&p, good, w, x, y, 0) == CUBLAS_STATUS_INVALID_VALUE);
    p.workspace = workspace;
    LT(cublasLtMatrixLayoutCreate(&p.y, CUDA_R_16BF, OUT, ROWS, OUT));
    MUST(multiply(&p, good, w, x, y, 0) == CUBLAS_STATUS_NOT_SUPPORTED); // f32 in, bf16 out
    CUDA(cudaDeviceSynchronize());
}

static void the_heuristic_offers_traps()
{
    struct product few = open(CUDA_R_16BF, CUDA_R_32F, 2000), many = open(CUDA_R_16BF, CUDA_R_32F, 3000);
    int32_t splits = 0;
    size_t written;

    MUST(many.n_found == few.n_found - 1);
    LT(cublasLtMatmulAlgoConfigGetAttribute(&few.found[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                            sizeof(splits), &written));
    MUST(splits == 4 && few.found[1].state != CUBLAS_STATUS_SUCCESS);
}

const struct test product_tests[] = {
    { "products", products, NULL, NULL },
    { "refusals of products", refusals, NULL, NULL },
    { "the heuristic offers traps", the_heuristic_offers_traps, NULL, NULL },
    { NULL, NULL, NULL, NULL },
};
