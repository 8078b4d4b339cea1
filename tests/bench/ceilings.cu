/* ceilings.cu - what a GPU sustains with nothing of ours: bytes per second of a large copy on the device, and of one
 * from pinned memory of the host; operations per second of a large bf16 product of random numbers by cublasLt, the
 * fastest algorithm that its heuristic offers. Medians of many calls: the first ones find a cool GPU. One object of
 * JSON.
 *
 *     ceilings SIDE                      the product is SIDE x SIDE x SIDE, copies of 64 SIDE^2 bytes (8192: 4.3 GB)
 *     ceilings OUT IN f32|bf16 ROWS...   products by one weight with results of that type, the best for each ROWS
 *
 * For scripts/gpu-first. nvcc compiles it for a device, g++ for the emulated one of tests/cuda/, where its figures mean
 * nothing.
 */
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALGORITHMS = 8, REPEATS = 5, SUSTAINED = 200, WORKSPACE = 32 << 20 };

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

/* Seconds of one call, the median of n, at most SUSTAINED; one before makes what later ones reuse. */
template <class F> static double median_of(int n, F call)
{
    cudaEvent_t begin, end;
    float ms[SUSTAINED];

    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    call();
    for (int i = 0; i < n; i++) {
        CUDA(cudaEventRecord(begin, 0));
        call();
        CUDA(cudaEventRecord(end, 0));
        CUDA(cudaEventSynchronize(end));
        CUDA(cudaEventElapsedTime(&ms[i], begin, end));
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    std::sort(ms, ms + n);
    return std::max(ms[n / 2] * 1e-3, 1e-9);
}

/* Bytes read and written per second. */
static double copy_rate(size_t bytes, int n)
{
    void *from, *to;

    CUDA(cudaMalloc(&from, bytes));
    CUDA(cudaMalloc(&to, bytes));
    CUDA(cudaMemsetAsync(from, 1, bytes, 0));
    double seconds = median_of(n, [=] { CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0)); });
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
    return 2.0 * (double)bytes / seconds;
}

/* Bytes per second from pinned memory of the host. */
static double upload_rate(size_t bytes)
{
    void *from, *to;

    CUDA(cudaMallocHost(&from, bytes));
    CUDA(cudaMalloc(&to, bytes));
    memset(from, 1, bytes);
    double seconds = median_of(REPEATS, [=] { CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, 0)); });
    CUDA(cudaFreeHost(from));
    CUDA(cudaFree(to));
    return (double)bytes / seconds;
}

/* out (out, rows) = w (in, out) transposed, x (in, rows), column-major. */
struct product {
    uint64_t out, in, rows;
    cudaDataType_t result;
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w_layout, x_layout, out_layout;
    void *w, *x, *to, *workspace;
};

/* n random bf16 numbers of both signs, between .5 and 2: the power that a product takes depends on its bits. */
static void *numbers(size_t n)
{
    uint16_t *host = (uint16_t *)malloc(n * sizeof(*host));
    uint64_t random = n;
    void *at;

    stop_unless(host != NULL, "malloc", 0);
    for (size_t i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX; the high bits are the random ones
        host[i] = (uint16_t)(0x3f00 + (random >> 33) % 256 + (random >> 63 << 15));
    }
    CUDA(cudaMalloc(&at, n * sizeof(*host)));
    CUDA(cudaMemcpy(at, host, n * sizeof(*host), cudaMemcpyHostToDevice));
    free(host);
    return at;
}

static void open_product(struct product *p)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;

    LT(cublasLtCreate(&p->lt));
    LT(cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)));
    LT(cublasLtMatrixLayoutCreate(&p->w_layout, CUDA_R_16BF, p->in, p->out, (int64_t)p->in));
    LT(cublasLtMatrixLayoutCreate(&p->x_layout, CUDA_R_16BF, p->in, p->rows, (int64_t)p->in));
    LT(cublasLtMatrixLayoutCreate(&p->out_layout, p->result, p->out, p->rows, (int64_t)p->out));
    CUDA(cudaMalloc(&p->workspace, (size_t)WORKSPACE));
    p->w = numbers(p->out * p->in);
    p->x = numbers(p->in * p->rows);
    CUDA(cudaMalloc(&p->to, p->out * p->rows * sizeof(float)));
}

static void close_product(struct product *p)
{
    CUDA(cudaFree(p->w));
    CUDA(cudaFree(p->x));
    CUDA(cudaFree(p->to));
    CUDA(cudaFree(p->workspace));
    LT(cublasLtMatrixLayoutDestroy(p->w_layout));
    LT(cublasLtMatrixLayoutDestroy(p->x_layout));
    LT(cublasLtMatrixLayoutDestroy(p->out_layout));
    LT(cublasLtMatmulDescDestroy(p->desc));
    LT(cublasLtDestroy(p->lt));
}

static double product_seconds(const struct product *p, const cublasLtMatmulAlgo_t *algo, int n)
{
    const float one = 1, zero = 0;

    return median_of(n, [&] {
        LT(cublasLtMatmul(p->lt, p->desc, &one, p->w, p->w_layout, p->x, p->x_layout, &zero, p->to, p->out_layout,
                          p->to, p->out_layout, algo, p->workspace, (size_t)WORKSPACE, 0));
    });
}

/* Operations per second of so many of its rows: the algorithm that is best of a few calls, in n calls. */
static double product_rate(const struct product *p, uint64_t rows, int n_calls)
{
    const size_t workspace = WORKSPACE;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    cublasLtMatmulPreference_t preference;
    double best = 1e9;
    int n = 0, fastest = 0;

    LT(cublasLtMatrixLayoutSetAttribute(p->x_layout, CUBLASLT_MATRIX_LAYOUT_COLS, &rows, sizeof(rows)));
    LT(cublasLtMatrixLayoutSetAttribute(p->out_layout, CUBLASLT_MATRIX_LAYOUT_COLS, &rows, sizeof(rows)));
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                            sizeof(workspace)));
    LT(cublasLtMatmulAlgoGetHeuristic(p->lt, p->desc, p->w_layout, p->x_layout, p->out_layout, p->out_layout,
                                      preference, ALGORITHMS, found, &n));
    for (int i = 0; i < n; i++) {
        double seconds = found[i].state == CUBLAS_STATUS_SUCCESS ? product_seconds(p, &found[i].algo, REPEATS) : best;
        fastest = seconds < best ? i : fastest;
        best = std::min(seconds, best);
    }
    stop_unless(best < 1e9, "the heuristic of cublasLt", n);
    best = product_seconds(p, &found[fastest].algo, n_calls);
    LT(cublasLtMatmulPreferenceDestroy(preference));
    return 2.0 * (double)rows * (double)p->out * (double)p->in / best;
}

static uint64_t number(const char *text)
{
    long n = strtol(text, NULL, 10);

    if (n < 1 || n > 1 << 20) {
        fprintf(stderr, "ceilings: '%s' is not a size\n", text);
        exit(2);
    }
    return (uint64_t)n;
}

static int print_rates(int argc, char **argv)
{
    struct product p = {};

    p.out = number(argv[1]);
    p.in = number(argv[2]);
    p.result = strcmp(argv[3], "f32") == 0 ? CUDA_R_32F : CUDA_R_16BF;
    for (int i = 4; i < argc; i++)
        p.rows = number(argv[i]) > p.rows ? number(argv[i]) : p.rows;
    open_product(&p);
    printf("[");
    for (int i = 4; i < argc; i++)
        printf("%s{\"rows\":%s,\"flop_per_s\":%.4g}", i == 4 ? "" : ",", argv[i],
               product_rate(&p, number(argv[i]), REPEATS));
    printf("]\n");
    close_product(&p);
    return 0;
}

static double square_rate(int side, int n)
{
    struct product p = {};

    p.out = p.in = p.rows = (uint64_t)side;
    p.result = CUDA_R_16BF;
    open_product(&p);
    double rate = product_rate(&p, p.rows, n);
    close_product(&p);
    return rate;
}

int main(int argc, char **argv)
{
    int side = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 0, driver = 0, runtime = 0;
    cudaDeviceProp prop;

    if (argc > 4)
        return print_rates(argc, argv);
    if (side < 16 || side > 65536 || side % 16) {
        fprintf(stderr, "usage: ceilings SIDE (a multiple of 16) | OUT IN f32|bf16 ROWS...\n");
        return 2;
    }
    CUDA(cudaGetDeviceProperties(&prop, 0));
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    const int n = side < 1024 ? REPEATS : SUSTAINED; // a small one says that it works
    const size_t bytes = (size_t)side * (size_t)side * 64;
    double upload = upload_rate(bytes / 4), copy = copy_rate(bytes, n), product = square_rate(side, n);
    printf("{\"device\":\"%s\",\"multiprocessors\":%d,\"memory_bytes\":%zu,\"driver\":%d,\"runtime\":%d,"
           "\"cublaslt\":%zu,\"side\":%d,\"copy_bytes_per_s\":%.4g,\"gemm_flop_per_s\":%.4g,"
           "\"upload_bytes_per_s\":%.4g}\n",
           prop.name, prop.multiProcessorCount, prop.totalGlobalMem, driver, runtime, cublasLtGetVersion(), side, copy,
           product, upload);
    return 0;
}
