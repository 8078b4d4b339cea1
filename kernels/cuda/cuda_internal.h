/* cuda_internal.h - internals of the "cuda" backend: every .cu file of kernels/cuda/ includes this.
 *
 * C++, compiled by nvcc for a device and by g++ for the tests' emulated device; nothing here or in a .cu file asks
 * which. An op is a host function `void cuda_NAME(struct backend *, ...)` with the contract in kernels/backend.h. It
 * queues kernels with LAUNCH on the one stream and returns. Device addresses are plain pointers, so struct mat,
 * kv_store and kv_rows go to kernels by value.
 *
 * Failures: an op returns nothing. The first failure is recorded (cuda_ok, cuda_fail); after it LAUNCH does nothing,
 * and the next read or sync returns it as ERR_LOST or ERR_NOMEM. So an op need not check its launches; it only returns
 * early when cuda_scratch() or cuda_upload() gives NULL.
 *
 * Bits: neither the number of multiprocessors nor the rest of the batch may change a result.
 */
#ifndef EVP_CUDA_INTERNAL_H
#define EVP_CUDA_INTERNAL_H

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "base/err.h"
#include "kernels/backend.h"

#include <stddef.h>
#include <stdint.h>

constexpr size_t CUDA_ALIGN = 256;          // bytes; alignment of the results of cuda_take() and alloc
constexpr size_t CUDA_PART_BYTES = 4 << 20; // of the upload ring
enum { CUDA_RING_PARTS = 4 };               // a part is used again when the device has read it
enum { MAX_PIECES = 8 };                    // of a row's keys in attention: bounds the memory of states

/* The ring for uploads and reads: pinned host memory and as much device memory, in parts that are filled one after the
 * other. */
struct cuda_ring {
    char *host, *device; // CUDA_RING_PARTS * CUDA_PART_BYTES
    cudaEvent_t done[CUDA_RING_PARTS];
    int part;    // the one being filled
    size_t used; // bytes of it
};

/* A block's work in attention: piece `piece` of n_pieces of the tile of a pair's rows that begins at row `first`; or,
 * without `piece`, some rows from there on whose pieces are merged. */
struct attend_item {
    int32_t pair, first;
    int32_t state; // index of row `first`'s state; -1: the piece is the only one, and rows have no state
    int16_t piece, n_pieces;
};

/* Items first .. end - 1, then merges first_merge .. end_merge - 1. */
struct attend_turn {
    int first, end, first_merge, end_merge;
};

/* The blocks of an attn_job (cuda_attend_list.cu). */
struct attend_list {
    uint64_t number; // attn_spans.number of the job; 0: none
    int n_pairs, n_items, n_merges, n_turns, n_made;
    size_t n_states; // the most of a turn
    int *n_keys;     // (n_pairs)
    struct attend_item *item, *merge;
    int *cost; // of items, while the list is made
    struct attend_turn *turn;
    size_t key_bytes, item_bytes, merge_bytes, cost_bytes, turn_bytes; // of the arrays above
    struct attend_item *device;                                        // (n_items + n_merges)
    size_t device_bytes;
};

/* Spans of the stopwatch whose times have not been added up, oldest first: number i is in place i % WATCH_SPANS. */
enum { WATCH_SPANS = 64 };
struct cuda_watch {
    cudaEvent_t start[WATCH_SPANS], stop[WATCH_SPANS];
    int hand[WATCH_SPANS];
    unsigned first, end;
    double seconds[WATCH_HANDS]; // of the spans before
};

struct cuda {
    struct backend base; // first: a struct backend * of this kind is a struct cuda *
    cudaStream_t stream;
    cublasLtHandle_t lt;
    struct err failure; // the first since the last read or sync; code 0: none
    char kind[32];      // base.kind

    size_t shared_max; // bytes of shared memory that one block can have
    bool wgmma;        // attention by products of warpgroups, where there is a kernel for it
    int n_multiprocessors;
    int most_pieces;  // of a row's keys in attention, at most MAX_PIECES
    void *encode_map; // the driver's cuTensorMapEncodeTiled; NULL: not looked for yet

    uint64_t n_launches, n_blocks; // kernels queued so far, and their blocks: for tests/cuda/lists
    const char *running;           // the kernel or copy queued last, named when a failure appears later

    void *scratch; // of the op in progress
    size_t scratch_bytes, scratch_planned;
    struct cuda_ring ring;

    struct attend_list lists[ATTN_WHOLE + 1][2]; // the last of each enum attn_kind, without and with a window
    size_t list_planned;                         // bytes of one on the device
    size_t state_bytes, state_planned;           // the most for the states of a turn of attention; of the planned work

    cublasLtMatmulDesc_t product;  // common to all products
    struct cuda_product *products; // a list: common to all products of one shape
    void *workspace;               // of products

    cudaEvent_t last, now; // of the clock: its last reading, and its next one
    double clock_s;        // seconds at the last reading
    struct cuda_watch watch;
};

static inline struct cuda *cuda_of(struct backend *be)
{
    return (struct cuda *)be;
}

/* Is `code` cudaSuccess? If not, records it as the first failure: "the GPU failed: WHAT: NAME (text)". */
bool cuda_ok(struct cuda *c, cudaError_t code, const char *what);

/* Records a failure that CUDA's runtime does not know of. */
void cuda_fail(struct cuda *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Did anything fail since the last read or sync? */
static inline bool cuda_failed(const struct cuda *c)
{
    return c->failure.code != 0;
}

/* Device memory for the calling op, CUDA_ALIGN-aligned. Only this op's kernels may use it; the next op takes it over.
 * One call per op; cuda_take() divides it. At most the op's cuda_NAME_bytes() for the work's shapes, so a planned run
 * allocates nothing here after its first op. NULL: failed and recorded. */
void *cuda_scratch(struct cuda *c, size_t bytes);

/* Returns *at and moves it `bytes`, rounded up, further. Starting with *at NULL it measures: *at becomes the bytes. */
static inline void *cuda_take(char **at, size_t bytes)
{
    char *start = *at;
    *at = start + (bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
    return start;
}

/* Copies a small host list to the device, 16-byte aligned. The host memory has been read when this returns. Kernels
 * queued until the next CUDA_RING_PARTS - 1 parts are full may use the copy, so all kernels of this op. At most
 * CUDA_PART_BYTES. NULL: failed and recorded. */
const void *cuda_upload(struct cuda *c, const void *host, size_t bytes);

/* Copies n numbers of a file, at most CUDA_PART_BYTES, to the device: to dst, or, where it is NULL, to the ring. All
 * cores copy, and look for numbers that are not finite while these are in their caches. Returns where the numbers are;
 * NULL: failed and recorded, ERR_FORMAT where one is not finite. */
const void *cuda_upload_numbers(struct cuda *c, void *dst, const void *host, enum dtype type, size_t n);

/* Typed: const struct kv_rows *heads = cuda_upload_list(c, host, n); */
template <class T> static inline const T *cuda_upload_list(struct cuda *c, const T *host, int n)
{
    return (const T *)cuda_upload(c, host, (size_t)n * sizeof(T));
}

/* A kernel named by a LAUNCH. All kernels are on one list before main() starts, and opening the device loads them:
 * loading a kernel takes the driver a millisecond, which must not enter measured times. */
struct cuda_kernel {
    const void *function;
    size_t static_bytes; // of shared memory; known after loading
    struct cuda_kernel *next;

    cuda_kernel(const void *function); // puts it on the list
};

template <auto kernel> struct cuda_kernel_of {
    static inline struct cuda_kernel entry {
        (const void *)kernel
    };
};

/* LAUNCH calls these before and after a launch. cuda_begin: false when there is nothing to launch: an earlier failure
 * is recorded, the grid has no block, or a block would need more shared memory than the device has. */
bool cuda_begin(struct cuda *c, const char *name, const struct cuda_kernel *kernel, dim3 grid, size_t dynamic_bytes);
void cuda_end(struct cuda *c);

/* Queues a kernel: LAUNCH(c, (kernel<64, true>), grid, block, dynamic_bytes, args...). A grid with a 0 launches
 * nothing. Shared memory beyond 48 KiB is requested first. */
#define LAUNCH(c, kernel, grid, block, dynamic_bytes, ...)                                                             \
    do {                                                                                                               \
        const dim3 launch_grid_ = (grid);                                                                              \
        if (cuda_begin((c), #kernel, &cuda_kernel_of<(kernel)>::entry, launch_grid_, (dynamic_bytes))) {               \
            KERNEL_LAUNCH(kernel, launch_grid_, (block), (dynamic_bytes), (c)->stream, __VA_ARGS__);                   \
            cuda_end(c);                                                                                               \
        }                                                                                                              \
    } while (0)

/* n / each, rounded up. */
static inline unsigned cuda_pieces(size_t n, size_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* Row i of a matrix: an address. */
static inline void *cuda_row(struct mat m, int i)
{
    return (char *)m.at + (size_t)i * (size_t)m.pitch * dtype_size(m.type);
}

/* ---- ops ---------------------------------------------------------------- */

/* The most bytes that an op takes with cuda_scratch() for this work_shape. Ops without such a function take none. */
typedef size_t cuda_bytes_fn(const struct cuda *c, const struct work_shape *shape);

/* cuda_memory.cu */
bool cuda_ring_open(struct cuda *c); // false: failed and recorded
void cuda_ring_close(struct cuda *c);
void *cuda_alloc(struct backend *be, size_t bytes, struct err *err);
void cuda_free(struct backend *be, void *at);
void cuda_write(struct backend *be, void *dst, const void *host, size_t bytes);
int cuda_read(struct backend *be, void *host, const void *src, size_t bytes, struct err *err);
void cuda_copy(struct backend *be, void *dst, const void *src, size_t bytes);
int cuda_upload_rate_of(struct backend *be, double *bytes_per_s, struct err *err); // kernels/cuda/cuda.h

/* cuda_gemm.cu. Only a product with a bias takes scratch. */
bool cuda_products_open(struct cuda *c); // false: failed and recorded
void cuda_products_close(struct cuda *c);
struct weight *cuda_weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err);
void cuda_weight_free(struct backend *be, struct weight *w);
struct weight_bytes cuda_weight_bytes(struct backend *be, int out, int in);
void cuda_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
               enum gemm_into into);
cuda_bytes_fn cuda_gemm_bytes;

/* cuda_attend*.cu, cuda_columns.cu */
bool cuda_attend_fits(struct cuda *c, int head_dim);           // false: no kernel has such heads; failed and recorded
size_t cuda_attend_list_bytes(const struct work_shape *shape); // of the list of one kind of job
void cuda_attend_lists_close(struct cuda *c);
void cuda_attend(struct backend *be, const struct attn_job *job);
void cuda_column_stats(struct backend *be, const struct column_job *job);
cuda_bytes_fn cuda_attend_bytes;

/* cuda_rows.cu */
void cuda_repeat(struct backend *be, void *dst, size_t pitch, int n, const void *host, size_t bytes);
void cuda_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids);
void cuda_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into);
void cuda_rope(struct backend *be, const struct rope_job *job);
void cuda_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate);
void cuda_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                     const struct slot_copy *copy);

/* cuda_best.cu: logits by cuda_gemm() in blocks of rows; the rows of a block depend only on the vocabulary size. */
void cuda_best(struct backend *be, struct best *best, struct mat x, const struct weight *head);
void cuda_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
               const struct draw_job *job);
cuda_bytes_fn cuda_best_bytes; // of either

/* cuda_moe.cu */
void cuda_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts);
cuda_bytes_fn cuda_moe_bytes;

/* cuda_scores.cu */
void cuda_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void cuda_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void cuda_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width);
void cuda_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor);
void cuda_mean_heads(struct backend *be, float *score, int n_heads, int n, int group);
cuda_bytes_fn cuda_scores_bytes; // of any op of the file

/* cuda_moments.cu */
void cuda_moments(struct backend *be, const struct moment_job *job);
void cuda_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                    int group, int head_dim);
void cuda_abs_sums(struct backend *be, float *sum, struct mat x);

/* cuda_select.cu */
void cuda_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                       const struct joint_keep *keep);
void cuda_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k);
void cuda_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                 int n_heads, int head_dim);
cuda_bytes_fn cuda_select_bytes; // of any op of the file

/* cuda_quantise.cu */
void cuda_quantise(struct backend *be, const struct quant_item *item, int n_items);
void cuda_dequantise(struct backend *be, const struct quant_item *item, int n_items);

/* cuda_bert.cu */
void cuda_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps);
void cuda_gelu(struct backend *be, struct mat x);

#endif
