/* backend.h - everything the engine, the embedder and the methods ask of a device.
 *
 * Not the engine: nothing here knows layers, models or compression methods. It knows matrices, the KV layout and
 * lists of attention work. The forward pass above it is written once and never reads or writes a number itself.
 *
 * Rules every implementation keeps
 *   - `void *` in these structs is an address on the device. Code above kernels/ passes it on or adds whole rows to it,
 *     and never reads through it. `host` in a name says that the memory is the host's.
 *   - Ops are queued in order on the backend's one stream and return at once; only read, clock and sync wait. Whatever
 *     an op reads in the host's memory (what write copies, lists, structs) it has read when it returns. The first
 *     failure sticks and comes out of the next read or sync.
 *   - Results depend on the op's own inputs, not on what else is in the batch: reductions have a fixed order, keys are
 *     split at fixed places (ATTN_SPLIT), a product gives a row the same bits whatever other rows come with it, ties go
 *     to the lower index. So a question answered in a batch of fifty gives the bits it gives alone.
 *   - Numbers are of the backend's dtype (f32 or bf16) where this file says so: what products read (activations,
 * weights, queries) and keys and values. All else is f32: the residual, sums, attention to be merged, log-sum-exps,
 * logits, scores, norms' weights, biases, angles. Sums are f32; the reference sums in double.
 *
 * Implementations: "reference" (kernels/reference/: naive, one thread, sums in double; what the others are tested
 * against), "cpu" (kernels/cpu/: oneDNN, OpenMP, AVX-512 and AMX where the machine has them) and "cuda" (kernels/cuda/:
 * cublasLt and own kernels, one NVIDIA GPU).
 *
 * To add an op: (1) its line and contract in struct backend below (2) kernels/reference/: the naive version in the file
 * of its kind, its declaration in kernels/reference/reference.h, its line in the table of kernels/reference/reference.c
 * (3) kernels/cpu/: the same, with kernels/cpu/cpu.h and kernels/cpu/cpu.c; a loop over a row goes into
 * kernels/cpu/cpu_rows.h and kernels/cpu/cpu_rows_internal.h (4) its line, with its cost, in the list OPS of
 * kernels/around.c (5) its shapes in the file of its kind in tests/kernels/, where one table drives a list of backends
 * against the reference: |a - b| <= abs + eps * |ref|. kernels/README.md follows one op through all of these.
 */
#ifndef EVP_BACKEND_H
#define EVP_BACKEND_H

#include "base/err.h"
#include "kernels/kv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The keys that a row attends to are processed in pieces of this many, whatever the batch, so the merge order is fixed.
 */
enum { ATTN_SPLIT = 1024 };

/* Rows of a matrix. pitch counts elements from one row to the next, so a slice of columns is a mat too. */
struct mat {
    void *at;
    enum dtype type;
    int rows, cols, pitch;
};

/* A weight matrix in the layout and dtype that its backend multiplies fastest. A backend that must remember more puts
 * this struct first in its own. */
struct weight {
    int out, in; // rows and columns
    void *at;
};

enum gemm_into { GEMM_SET, GEMM_ADD }; // out = x W^T + bias, or out += x W^T + bias

/* New queries and keys: norms per head where the model has them, rotary embedding, and where keys and values go. A row
 * of qkv is one token: H query heads, G key heads, G value heads of K columns each. */
struct rope_job {
    struct mat qkv;               // (T, (H + 2G) * K), of the backend's dtype
    const int32_t *position;      // (T): on the device
    const int32_t *slot;          // (T): on the device; the slot of the store the token goes to
    const float *cos, *sin;       // (positions, R / 2); pairs are columns i and i + R/2 ("halves"); NULL: not rotated
    int rotary;                   // R <= K, even; the columns after it are not rotated; not read when cos is NULL
    const float *q_norm, *k_norm; // (K): rmsnorm of each query and key head before it is rotated; NULL: none
    float norm_eps;
    void *q; // (G, T, H/G, K): each kv head's query rows, token-major, as attend reads them; of the backend's dtype
    struct kv_store store;
    int layer, n_heads, n_kv_heads, head_dim;
};

/* Tokens row .. row + n_rows - 1 of a pass attend to the same keys: slots first .. first + n_keys - 1 of the store; or,
 * with ATTN_SHARED, all rows of cache number `first` of the table (n_keys is not read). */
struct attn_span {
    int32_t row, n_rows, first, n_keys;
};

/* A list of them, and the copy of it on the device (a single span needs none). The spans of a job have no token in
 * common. */
struct attn_spans {
    const struct attn_span *host, *device;
    int n;
    const int32_t *n_same; // (n): how many of its first keys and values equal those of the span before; NULL: not known
};

/* The rows of several compressed caches, and the copy of the list on the device: layer l, head g of cache c is entry
 * (c * L + l) * G + g. */
struct kv_table {
    const struct kv_rows *host, *device;
    int n_layers; // L
};

/* What a span's rows see. In a causal span the rows' own keys are its last n_rows: row i sees the first
 * n_keys - n_rows + i + 1. */
enum attn_kind {
    ATTN_TEXT,   // store, causal: a piece of a text
    ATTN_OWN,    // store, causal: a sequence's own tokens; a token's bits do not depend on how many come with it
    ATTN_SHARED, // table, all rows; a token's bits do not depend on which others are in the span
    ATTN_WHOLE,  // store, all n_keys
};

/* Attention of one layer for the tokens of a pass. Rows are token-major: the H/G query heads of one token that share a
 * kv head are next to each other. There is one attention op: prefill, questions, the prefix that all questions of a
 * variant share, each sequence's own tokens, BERT, and lengths that differ from head to head are all lists of spans. */
struct attn_job {
    enum attn_kind kind;
    const void *q; // (G, T, H/G, K), of the backend's dtype
    struct attn_spans spans;
    struct kv_store store;
    struct kv_table table; // ATTN_SHARED alone
    int n_tokens, n_heads, n_kv_heads, head_dim, layer;
    float scale;
    /* Results, each may be NULL: out (T, H * K) of the backend's dtype; or the same in f32 and in the order of q, for
     * merge; and the log of each row's sum of exponentials (G, T, H/G). A row without keys gives 0 and -INFINITY.
     * Results of tokens that are in no span are left as they were. */
    struct mat out;
    float *part, *lse;
};

/* Merges attention over two parts of the same tokens' keys. part and lse as attn_job leaves them. Two parts
 * whose lse are both -INFINITY give 0. */
struct merge_job {
    struct mat out; // (T, H * K), of the backend's dtype
    const float *part[2], *lse[2];
    int n_kv_heads, head_dim;
};

/* Copies slots from .. from + n - 1 to to[i] .. to[i] + n - 1, in every layer and head; the ranges do not overlap. */
struct slot_copy {
    int from, n;
    const int32_t *to; // (n_to) on the host
    int n_to;
};

/* A layer's mixture of experts. For each row: logits = router x; the n_used experts with the largest, ties to the lower
 * number; weights = softmax of all logits, of those chosen, divided by their sum when `renormalise`. Then
 * x += sum over the chosen, in the order of their numbers, of weight * down(silu(gate) * up). */
struct experts {
    const struct weight *router;                       // (E, D)
    const struct weight *const *gate_up, *const *down; // (E): (2F, D), (D, F)
    int n, n_used, width;                              // E, how many a row uses, F
    bool renormalise;
};

/* The most likely token of a row of logits: the lowest id of the largest, that logit, and the largest of the others.
 * id -1: some logit of the row is not finite. */
struct best {
    int32_t id;
    float value, second;
};

/* How much attention each key gets from the rows of the one span of an ATTN_TEXT job. The job's lse (G, T, H/G) is an
 * input here: that of attention over all keys. column[t] = sum, mean or largest over the span's rows, all H/G heads of
 * each, of exp(scale * q . k_t - lse); keys that a row does not see count as 0. */
enum column_stat { COLUMN_SUM, COLUMN_MEAN, COLUMN_MAX };
enum column_into { COLUMN_SET, COLUMN_ADD }; // ADD: to what is there; with COLUMN_MAX the larger of both
struct column_job {
    struct attn_job attn;
    enum column_stat stat;
    enum column_into into;
    float *column; // (G, n_keys), rows `pitch` apart
    size_t pitch;
};

/* A matrix cut into groups of consecutive numbers of one line; a line is a column (QUANT_COLUMNS: per channel, along
 * tokens) or a row (QUANT_ROWS: per token, along channels). With N the length of a line, a multiple of group, and
 * group * bits a multiple of 32:
 *     zero = f16(min), scale = f16((max - zero) / (2^bits - 1)), code = round_half_even(clamp((x - zero) / scale))
 * in f32 arithmetic, clamped to 0 .. 2^bits - 1; code 0 where scale is 0; beyond f16's range the nearest finite f16. */
enum quant_lines { QUANT_COLUMNS, QUANT_ROWS };
struct quant_item {
    enum quant_lines lines;
    int rows, cols, bits, group;
    void *x;                  // (rows, cols), of the backend's dtype
    int32_t *codes;           // (lines, N * bits / 32): 32 / bits codes a word, the first in the lowest bits
    uint16_t *scales, *zeros; // (lines, N / group) f16
};

/* For joint_counts. */
struct joint_keep {
    int group, n_keep, floor;
};

struct weight_bytes {
    size_t kept, making;
};

struct device_memory {
    size_t total, free; // bytes; free: what this process may still take, limits of its container counted in
};

/* The largest shapes of the work to come, for backend.scratch. */
struct work_shape {
    int rows;                            // tokens of a pass
    int n_heads, n_kv_heads, head_dim;   // H, G, K
    int n_keys;                          // of a text or a compressed cache
    int width, mlp, n_vocab;             // D, hidden numbers of the MLP, rows of the output matrix
    int expert_width, n_experts, n_used; // 0 without experts
};

struct backend {
    const char *name;    // what backend_open() calls it
    const char *kind;    // with what it computes: "cpu-amx", "cpu-avx512", "cpu-avx2", "reference"
    const char *note;    // how dtype "auto" was decided, one line; NULL: it was not asked for
    const char *instead; // why backend "auto" is not cuda, one line, until the next one is opened; NULL: it is, or was
                         // not asked for
    enum dtype dtype;    // DTYPE_F32 or DTYPE_BF16
    int pass_rows;       // tokens in one pass at which products run at full speed

    /* memory: plain addresses, so that offsets are arithmetic; 64-byte aligned; contents undefined. alloc: NULL and
     * ERR_NOMEM when there is none left; 0 bytes give an address too. read waits for all ops before it and returns the
     * first failure since the last read or sync. clock: seconds, when all ops before it are done. scratch: the most
     * bytes that ops of these shapes take for themselves. */
    void *(*alloc)(struct backend *, size_t bytes, struct err *);
    void (*free)(struct backend *, void *); // NULL is fine
    void (*write)(struct backend *, void *dst, const void *host, size_t bytes);
    int (*read)(struct backend *, void *host, const void *src, size_t bytes, struct err *);
    void (*copy)(struct backend *, void *dst, const void *src, size_t bytes);
    /* n rows of `bytes` bytes, pitch bytes apart, each a copy of host */
    void (*repeat)(struct backend *, void *dst, size_t pitch, int n, const void *host, size_t bytes);
    int (*sync)(struct backend *, struct err *);
    double (*clock)(struct backend *);
    struct device_memory (*memory)(struct backend *);
    size_t (*scratch)(struct backend *, const struct work_shape *);

    /* weights: n_parts host matrices (F32, F16 or BF16, any alignment) of the same width, concatenated along `out`
     * (q,k,v; gate,up), converted to the backend's dtype; NULL on failure. weight_bytes: what one takes, and what
     * making it takes besides for a while. */
    struct weight *(*weight_new)(struct backend *, const struct mat *host, int n_parts, struct err *);
    void (*weight_free)(struct backend *, struct weight *); // NULL is fine
    struct weight_bytes (*weight_bytes)(struct backend *, int out, int in);

    /* both kinds of transformer; x and out of gemm are dense (pitch == cols): x of the backend's dtype, out of that or
     * f32, f32 with GEMM_ADD */
    void (*gemm)(struct backend *, struct mat out, struct mat x, const struct weight *, const float *bias,
                 enum gemm_into);
    void (*attend)(struct backend *, const struct attn_job *);

    /* Llama; ids, positions and slots are int32 on the device */
    /* out row t (f32) = table row ids[t] (any float type); ids are below table.rows */
    void (*embed)(struct backend *, struct mat out, struct mat table, const int32_t *ids);
    /* out (of the backend's dtype) = x / sqrt(mean(x^2) + eps) * w, per row of x (f32) */
    void (*rmsnorm)(struct backend *, struct mat out, struct mat x, const float *w, float eps);
    void (*rope)(struct backend *, const struct rope_job *);
    void (*merge)(struct backend *, const struct merge_job *);
    /* out (T, F) = silu(left half) * right half of gate_up (T, 2F), both of the backend's dtype */
    void (*silu_mul)(struct backend *, struct mat out, struct mat gate_up);
    /* x (T, D) f32 += experts of normed (T, D), of the backend's dtype */
    void (*moe)(struct backend *, struct mat x, struct mat normed, const struct experts *);
    /* best[t] of the logits of row t: x (T, D) of the backend's dtype times the output matrix */
    void (*best)(struct backend *, struct best *best, struct mat x, const struct weight *head);
    void (*copy_slots)(struct backend *, const struct kv_store *, const struct kv_shape *, const struct slot_copy *);

    /* compression: scores are f32 (n_heads, T), higher is kept */
    /* score[h][t] = -|k_t|, the L2 norm */
    void (*key_norms)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    /* score[h][t] = -cos(k_t, mean over t of k_t / |k_t|); norms are at least 1e-12, in the cosine 1e-8 */
    void (*key_cosines)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    void (*column_stats)(struct backend *, const struct column_job *);
    /* avg_pool1d in place, per row: stride 1, zero padding at both ends counted in, `width` is odd */
    void (*avg_pool)(struct backend *, float *score, int n_heads, int n, int pitch, int width);
    /* score[h][t] *= factor[t] */
    void (*scale_columns)(struct backend *, float *score, int n_heads, int n, const float *factor);
    /* every row of n becomes the mean of the `group` consecutive rows it is one of (the heads of a layer) */
    void (*mean_heads)(struct backend *, float *score, int n_heads, int n, int group);
    /* count[h]: how many of row h are among the n_keep largest of its `group` consecutive rows together, when the
     * `floor` largest of each row are taken first; ties go to the lower row, then the lower position. floor * group <=
     * n_keep */
    void (*joint_counts)(struct backend *, int32_t *count /* (n_heads) */, const float *score, int n_heads, int n,
                         const struct joint_keep *);
    /* positions of the k[h] largest of row h of n, ascending, the k[0] of row 0 first; ties go to the lower position (0
     * and -0 are a tie, nan is above or below all numbers by its sign) */
    void (*top_k)(struct backend *, int32_t *kept, const float *score, int n_heads, int n, const int *k /* host */);
    /* dst[h] row i = src[h] row kept_h[i], K and V; kept holds dst[0].n positions of head 0, then those of head 1, ...
     */
    void (*gather)(struct backend *, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                   int n_heads, int head_dim);
    /* group-wise min-max quantisation: x -> codes, scales, zeros; and back: x = code * scale + zero */
    void (*quantise)(struct backend *, const struct quant_item *, int n_items);
    void (*dequantise)(struct backend *, const struct quant_item *, int n_items);

    /* BERT, for the embedder; f32 */
    /* out = (x - mean) / sqrt(variance + eps) * w + b, per row; out may be x */
    void (*layernorm)(struct backend *, struct mat out, struct mat x, const float *w, const float *b, float eps);
    void (*gelu)(struct backend *, struct mat x); // in place, the exact form with erf

    void (*close)(struct backend *);
};

/* The names that backend_open() knows. cuda needs an object of its own (kernels/cuda/cuda.h). */
#define BACKEND_NAMES  "auto|cuda|cpu|reference"
#define BACKEND_DTYPES "auto|f32|bf16"

struct backend_options {
    const char *name;  // one of BACKEND_NAMES; NULL: auto. auto: cuda where it can be opened, else cpu
    const char *dtype; // one of BACKEND_DTYPES; NULL: f32. auto takes the faster, as a short product shows
    int n_threads;     // 0: all cores this process may use
};

#ifdef __cplusplus // the cuda backend includes this file
extern "C" {
#endif

/* NULL with ERR_DEVICE for a backend or dtype that this build or machine does not have, ERR_USAGE for an unknown dtype.
 * The choice is made here and nowhere else. */
struct backend *backend_open(const struct backend_options *options, struct err *err);

/* Is it one of BACKEND_DTYPES? ERR_USAGE if not. For tools, before a device is opened. */
int backend_check_dtype(const char *dtype, struct err *err) MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
