/* cuda_choose.cu - chooses the cublasLt algorithm for products by weights of one shape.
 *
 * The contract: a row of a product has the same bits whatever the other rows are. So one algorithm serves every number
 * of rows, and it must
 *   - sum over the whole width in one block: no split-K, no reduction over blocks, as far as its attributes tell;
 *   - support every number of rows in `checked`;
 *   - give rows alone the same bits as among many: tried on the device, with the weight itself. NVIDIA does not test an
 *     algorithm's attributes for this, and Hopper's kernels hide much behind a custom option.
 * Candidates come from cublasLt's heuristic, first for HEURISTIC_ROWS[0] rows, where most time is spent, then for
 * fewer. The heuristic depends on the device and cublasLt's version, not on measurements. Where no candidate remains,
 * the product is our own (cuda_gemm.cu): it is slower and fulfils the contract by construction.
 */
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "kernels/cuda/cuda_product.h"

enum {
    CANDIDATES = 32,
    VECTOR_BYTES = 16, // the widest access of a thread
    TRIAL_ROWS = 512, // of the product that trials compare with
    TRIAL_BYTES = 128 << 20,
    TRIAL_NUMBERS = 1 << 17, // compare at least as many numbers, with at most TRIALS trials
    TRIALS = 4,
    THREADS = 256,
    EACH = 16, // numbers per thread
};
static const int HEURISTIC_ROWS[] = { 2048, 256, 16 };
/* Numbers of rows in trials. Sums in another order differ in their last bits, and that shows in one of some thousand
 * bf16 numbers: so narrow weights are tried with several x. */
static const int ALONE[] = { 1, 7, 16, 33, 50, 63, 100, 257 };

/* ---- an algorithm's attributes ------------------------------------------ */

/* The alignment of rows that start at multiples of row_bytes from a 64-byte aligned address. */
static uint32_t alignment(size_t row_bytes)
{
    uint32_t align = VECTOR_BYTES;

    while (row_bytes % align)
        align /= 2;
    return align;
}

template <class T> static T attribute(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t which)
{
    T value = (T)-1;
    size_t written;

    cublasLtMatmulAlgoConfigGetAttribute(algo, which, &value, sizeof(value), &written);
    return value;
}

static bool is_whole(const cublasLtMatmulAlgo_t *algo)
{
    int32_t splits = attribute<int32_t>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    uint32_t reduction = attribute<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);

    return (splits == 0 || splits == 1) && reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

static bool supports_all_rows(struct cuda *c, const struct cuda_product *p, const struct cuda_result *r,
                              const cublasLtMatmulAlgo_t *algo)
{
    static const int checked[] = { 1, 2, 3, 7, 16, 33, 64, 100, 129, 256, 511, 1000, 2048, 4096 };

    for (size_t i = 0; i < sizeof(checked) / sizeof(*checked); i++) {
        cublasLtMatmulHeuristicResult_t answer;
        if (!cuda_set_rows(c, p->x, checked[i]) || !cuda_set_rows(c, r->layout, checked[i]))
            return false;
        if (cublasLtMatmulAlgoCheck(c->lt, c->product, p->w, p->x, r->layout, r->layout, algo, &answer) !=
                CUBLAS_STATUS_SUCCESS ||
            answer.workspaceSize > CUDA_WORKSPACE_BYTES)
            return false;
    }
    return true;
}

void cuda_choice_of(struct backend *, const struct weight *w, enum dtype type, struct cuda_choice *choice)
{
    const struct cuda_result *r = cuda_result_of((const struct cuda_weight *)w, type);

    *choice = { r->way == WAY_OPEN ? "open" : r->way == WAY_OURS ? "ours" : "cublasLt", r->n_differed, 0, 0, 0, 0, 0 };
    if (r->way != WAY_CUBLASLT)
        return;
    choice->id = attribute<int32_t>(&r->algo, CUBLASLT_ALGO_CONFIG_ID);
    choice->tile = (int)attribute<uint32_t>(&r->algo, CUBLASLT_ALGO_CONFIG_TILE_ID);
    choice->stages = (int)attribute<uint32_t>(&r->algo, CUBLASLT_ALGO_CONFIG_STAGES_ID);
    choice->cluster = attribute<uint16_t>(&r->algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
    choice->custom = (int)attribute<uint32_t>(&r->algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
}

/* ---- trials ------------------------------------------------------------- */

/* Numbers between -1 and 1 that depend only on the seed and their position. */
template <class T>
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) fill_numbers(T *to, size_t n, uint32_t seed)
{
    size_t first = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;

    for (size_t i = first; i < first + THREADS * EACH && i < n; i += THREADS) {
        uint32_t hash = ((uint32_t)i + seed) * 2654435761u;
        float x = (float)(int32_t)((hash ^ hash >> 15) * 2246822519u) / 2147483648.0f;
        if constexpr (sizeof(T) == sizeof(float))
            to[i] = x;
        else
            to[i] = float_to_bf16(x);
    }
}

/* Sets *differ to 1 if the two lists differ. */
/* registers <= 32 */
__global__ void __launch_bounds__(THREADS) compare_bits(int *differ, const uint16_t *a, const uint16_t *b, size_t n)
{
    size_t first = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;
    bool same = true;

    for (size_t i = first; i < first + THREADS * EACH && i < n; i += THREADS)
        same &= a[i] == b[i];
    if (!same)
        atomicOr(differ, 1);
}

/* One product of TRIAL_ROWS rows, or of as many as fit in TRIAL_BYTES, and space for the results of some rows alone. */
struct trial {
    const struct cuda_weight *weight;
    struct cuda_result *result;
    int rows;
    size_t x_row, result_row; // bytes
    char *x, *all, *alone;    // one allocation
    int *differ;
};

/* Divides the allocation; with *at NULL it measures. */
static void lay_out(struct trial *t, char **at)
{
    const int max_alone = ALONE[sizeof(ALONE) / sizeof(*ALONE) - 1];

    t->x = (char *)cuda_take(at, (size_t)t->rows * t->x_row);
    t->all = (char *)cuda_take(at, (size_t)t->rows * t->result_row);
    t->alone = (char *)cuda_take(at, (size_t)(t->rows < max_alone ? t->rows : max_alone) * t->result_row);
    t->differ = (int *)cuda_take(at, sizeof(*t->differ));
}

static bool open_trial(struct cuda *c, struct trial *t, const struct cuda_weight *w, struct cuda_result *r)
{
    char *at = NULL;

    *t = { w, r, TRIAL_ROWS, 0, 0, NULL, NULL, NULL, NULL };
    t->x_row = (size_t)w->base.in * dtype_size(c->base.dtype);
    t->result_row = (size_t)w->base.out * dtype_size(r->type);
    while (t->rows > 1 && (size_t)t->rows * (t->x_row + 2 * t->result_row) > TRIAL_BYTES)
        t->rows /= 2;
    lay_out(t, &at);
    if (!cuda_ok(c, cudaMalloc(&at, (size_t)at), "trying a product"))
        return false;
    lay_out(t, &at);
    return true;
}

/* out = the product of rows first .. first + n - 1 of x. */
static bool multiply(struct cuda *c, const struct trial *t, const cublasLtMatmulAlgo_t *algo, int first, int n,
                     char *out)
{
    const struct cuda_product *p = t->weight->product;
    const struct cuda_result *r = t->result;
    const float one = 1, zero = 0;

    c->running = "trying a product";
    c->n_launches++;
    return cuda_set_rows(c, p->x, n) && cuda_set_rows(c, r->layout, n) &&
           cublasLtMatmul(c->lt, c->product, &one, t->weight->base.at, p->w, t->x + (size_t)first * t->x_row, p->x,
                          &zero, out, r->layout, out, r->layout, algo, c->workspace, CUDA_WORKSPACE_BYTES,
                          c->stream) == CUBLAS_STATUS_SUCCESS;
}

static void fill_x(struct cuda *c, const struct trial *t, uint32_t seed)
{
    const size_t numbers = (size_t)t->rows * (size_t)t->weight->base.in;
    const unsigned blocks = cuda_pieces(numbers, THREADS * EACH);

    if (c->base.dtype == DTYPE_BF16)
        LAUNCH(c, fill_numbers<uint16_t>, blocks, THREADS, 0, (uint16_t *)t->x, numbers, seed);
    else
        LAUNCH(c, fill_numbers<float>, blocks, THREADS, 0, (float *)t->x, numbers, seed);
}

/* Compares the first and the last rows of x alone with the same rows among all. Returns how many numbers; 0: failed. */
static size_t compare_rows(struct cuda *c, const struct trial *t, const cublasLtMatmulAlgo_t *algo)
{
    size_t compared = 0;

    if (!multiply(c, t, algo, 0, t->rows, t->all))
        return 0;
    for (size_t i = 0; i < 2 * sizeof(ALONE) / sizeof(*ALONE); i++) {
        int n = ALONE[i / 2] < t->rows ? ALONE[i / 2] : t->rows, first = i % 2 ? t->rows - n : 0;
        if (!multiply(c, t, algo, first, n, t->alone))
            return 0;
        size_t halves = (size_t)n * t->result_row / sizeof(uint16_t);
        LAUNCH(c, compare_bits, cuda_pieces(halves, THREADS * EACH), THREADS, 0, t->differ, (const uint16_t *)t->alone,
               (const uint16_t *)(t->all + (size_t)first * t->result_row), halves);
        compared += (size_t)n * (size_t)t->weight->base.out;
    }
    return compared;
}

static bool keeps_bits(struct cuda *c, const struct trial *t, const cublasLtMatmulAlgo_t *algo)
{
    int differ = 0;
    struct err err;

    cuda_write(&c->base, t->differ, &differ, sizeof(differ));
    for (size_t trial = 0, compared = 0; trial < TRIALS && compared < TRIAL_NUMBERS; trial++) {
        fill_x(c, t, (uint32_t)compared);
        size_t more = compare_rows(c, t, algo);
        if (more == 0)
            return false;
        compared += more;
    }
    if (cuda_read(&c->base, &differ, t->differ, sizeof(differ), &err)) {
        c->failure = err;
        return false;
    }
    t->result->n_differed += differ;
    return !differ;
}

/* ---- the choice --------------------------------------------------------- */

static bool set_preferences(struct cuda *c, const struct cuda_product *p, enum dtype result,
                            cublasLtMatmulPreference_t want)
{
    const uint64_t workspace = CUDA_WORKSPACE_BYTES;
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
        if (!cuda_lt_ok(c, cublasLtMatmulPreferenceSetAttribute(want, set[i].which, set[i].value, set[i].size),
                        "describing a product"))
            return false;
    return true;
}

/* Takes the heuristic's first candidate for `rows` rows that fulfils the contract, if there is one. */
static void choose_among(struct cuda *c, const struct trial *t, int rows, cublasLtMatmulPreference_t want)
{
    const struct cuda_product *p = t->weight->product;
    struct cuda_result *r = t->result;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    int n = 0;

    if (!cuda_set_rows(c, p->x, rows) || !cuda_set_rows(c, r->layout, rows) ||
        cublasLtMatmulAlgoGetHeuristic(c->lt, c->product, p->w, p->x, r->layout, r->layout, want, CANDIDATES, found,
                                       &n) != CUBLAS_STATUS_SUCCESS)
        return;
    for (int i = 0; i < n && r->way == WAY_OPEN && !cuda_failed(c); i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || !is_whole(&found[i].algo) ||
            !supports_all_rows(c, p, r, &found[i].algo) || !keeps_bits(c, t, &found[i].algo))
            continue;
        r->algo = found[i].algo;
        r->way = WAY_CUBLASLT;
    }
}

bool cuda_choose(struct cuda *c, const struct cuda_weight *w, struct cuda_result *result)
{
    cublasLtMatmulPreference_t want = NULL;
    struct trial t;

    if (cuda_failed(c) || !open_trial(c, &t, w, result))
        return false;
    if (cuda_lt_ok(c, cublasLtMatmulPreferenceCreate(&want), "describing a product") &&
        set_preferences(c, w->product, result->type, want))
        for (size_t i = 0; i < sizeof(HEURISTIC_ROWS) / sizeof(*HEURISTIC_ROWS) && result->way == WAY_OPEN; i++)
            choose_among(c, &t, HEURISTIC_ROWS[i], want);
    if (want)
        cublasLtMatmulPreferenceDestroy(want);
    cuda_ok(c, cudaFree(t.x), "trying a product");
    if (result->way == WAY_OPEN && !cuda_failed(c))
        result->way = WAY_OURS;
    return !cuda_failed(c);
}
