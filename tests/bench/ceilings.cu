/* ceilings.cu - what a GPU reaches with nothing of ours: bytes per second of a large copy on the device, operations per
 * second of a large bf16 product by cublasLt, the fastest algorithm that its heuristic offers. One object of JSON.
 *
 *     ceilings SIDE    the product is SIDE x SIDE x SIDE, the copy as large as a cache of 2048 * SIDE bf16 numbers
 *
 * For tests/bench/gpu. nvcc compiles it for a device, g++ for the emulated one of tests/cuda/, where its figures mean
 * nothing.
 */
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALGORITHMS = 8, REPEATS = 5, WORKSPACE = 32 << 20 };

static void stop_unless(bool good, const char *what, int status)
{
    if (good)
        return;
    fprintf(stderr, "ceilings: %s failed with status %d\n", what, status);
    exit(5);
}

static void cuda_ok(cudaError_t status, const char *what)
{
    stop_unless(status == cudaSuccess, what, (int)status);
}

static void lt_ok(cublasStatus_t status, const char *what)
{
    stop_unless(status == CUBLAS_STATUS_SUCCESS, what, (int)status);
}

#define CUDA(call) cuda_ok((call), #call)
#define LT(call)   lt_ok((call), #call)

/* Seconds of one call, the best of some; the first makes what later ones reuse. */
template <class F> static double best_of(F call)
{
    cudaEvent_t begin, end;
    double best = 1e9;

    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    for (int i = 0; i <= REPEATS; i++) {
        float ms;
        CUDA(cudaEventRecord(begin, 0));
        call();
        CUDA(cudaEventRecord(end, 0));
        CUDA(cudaEventSynchronize(end));
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (i > 0 && ms * 1e-3 < best)
            best = ms * 1e-3;
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return best > 1e-9 ? best : 1e-9;
}

/* Bytes read and written per second. */
static double copy_rate(size_t bytes)
{
    void *from, *to;

    CUDA(cudaMalloc(&from, bytes));
    CUDA(cudaMalloc(&to, bytes));
    CUDA(cudaMemsetAsync(from, 1, bytes, 0));
    double seconds = best_of([=] { CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0)); });
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
    return 2.0 * (double)bytes / seconds;
}

struct product {
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout; // of all three: square
    void *a, *b, *out, *workspace;
};

static void open_product(struct product *p, int side)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    size_t n = (size_t)side * (size_t)side, bytes = n * sizeof(uint16_t);
    uint16_t *host = (uint16_t *)malloc(bytes);

    stop_unless(host != NULL, "malloc", 0);
    for (size_t i = 0; i < n; i++) /* bf16 of both signs, about 1: the power that a product takes depends on its bits */
        host[i] = (uint16_t)(0x3f00 + i * 2654435761u % 256 + (i * 40503u % 2 << 15));
    LT(cublasLtCreate(&p->lt));
    LT(cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)));
    LT(cublasLtMatrixLayoutCreate(&p->layout, CUDA_R_16BF, (uint64_t)side, (uint64_t)side, side));
    CUDA(cudaMalloc(&p->a, bytes));
    CUDA(cudaMalloc(&p->b, bytes));
    CUDA(cudaMalloc(&p->out, bytes));
    CUDA(cudaMalloc(&p->workspace, (size_t)WORKSPACE));
    CUDA(cudaMemcpy(p->a, host, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(p->b, host, bytes, cudaMemcpyHostToDevice));
    free(host);
}

static void close_product(struct product *p)
{
    CUDA(cudaFree(p->a));
    CUDA(cudaFree(p->b));
    CUDA(cudaFree(p->out));
    CUDA(cudaFree(p->workspace));
    LT(cublasLtMatrixLayoutDestroy(p->layout));
    LT(cublasLtMatmulDescDestroy(p->desc));
    LT(cublasLtDestroy(p->lt));
}

static double product_seconds(const struct product *p, const cublasLtMatmulAlgo_t *algo)
{
    const float one = 1, zero = 0;

    return best_of([&] {
        LT(cublasLtMatmul(p->lt, p->desc, &one, p->a, p->layout, p->b, p->layout, &zero, p->out, p->layout, p->out,
                          p->layout, algo, p->workspace, (size_t)WORKSPACE, 0));
    });
}

/* Operations per second. */
static double product_rate(int side)
{
    const size_t workspace = WORKSPACE;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    cublasLtMatmulPreference_t preference;
    struct product p;
    double best = 1e9;
    int n = 0;

    open_product(&p, side);
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                            sizeof(workspace)));
    LT(cublasLtMatmulAlgoGetHeuristic(p.lt, p.desc, p.layout, p.layout, p.layout, p.layout, preference, ALGORITHMS,
                                      found, &n));
    for (int i = 0; i < n; i++) {
        double seconds = found[i].state == CUBLAS_STATUS_SUCCESS ? product_seconds(&p, &found[i].algo) : best;
        best = seconds < best ? seconds : best;
    }
    stop_unless(best < 1e9, "the heuristic of cublasLt", n);
    LT(cublasLtMatmulPreferenceDestroy(preference));
    close_product(&p);
    return 2.0 * side * side * side / best;
}

int main(int argc, char **argv)
{
    int side = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 0, driver = 0, runtime = 0;
    cudaDeviceProp prop;

    if (side < 16 || side > 65536 || side % 16) {
        fprintf(stderr, "usage: ceilings SIDE (a multiple of 16)\n");
        return 2;
    }
    CUDA(cudaGetDeviceProperties(&prop, 0));
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    double copy = copy_rate((size_t)side * 4096), product = product_rate(side);
    printf("{\"device\":\"%s\",\"multiprocessors\":%d,\"memory_bytes\":%zu,\"driver\":%d,\"runtime\":%d,"
           "\"cublaslt\":%zu,\"side\":%d,\"copy_bytes_per_s\":%.4g,\"gemm_flop_per_s\":%.4g}\n",
           prop.name, prop.multiProcessorCount, prop.totalGlobalMem, driver, runtime, cublasLtGetVersion(), side, copy,
           product);
    return 0;
}
