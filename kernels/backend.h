/* backend.h - the ops that the engine, the embedder and the compression methods run on a device.
 *
 * This is not the engine: nothing here knows layers, models or methods, only matrices, the KV layout and lists of
 * attention work. The forward pass above is written once and never reads or writes a number itself.
 *
 * Rules for every implementation
 *   - `void *` in these structs is an address on the device. Code above kernels/ passes it on or adds whole rows to it;
 *     it never reads through it. `host` in a name means host memory.
 *   - Ops are queued in order on the backend's one stream and return at once; only read, clock and sync wait. An op has
 *     read all its host memory (the source of a write, lists, structs) when it returns. The first failure sticks; the
 *     next read or sync reports it.
 *   - Results depend only on the op's own inputs, not on the rest of the batch: reductions have a fixed order, keys are
 *     split at fixed positions (ATTN_SPLIT), a product gives a row the same bits whatever the other rows are, ties go
 *     to the lower index. So a question gives the same bits in a batch of fifty as alone.
 *   - Numbers have the backend's dtype (f32 or bf16) where this file says so: the inputs of products (activations,
 *     weights, queries), keys and values. Everything else is f32: the residual, sums, attention to be merged,
 *     log-sum-exps, logits, scores, norm weights, biases, angles. Sums are f32; the reference sums in double.
 *
 * Implementations: "reference" (kernels/reference/: naive, one thread, sums in double; the others are tested against
 * it), "cpu" (kernels/cpu/: oneDNN, OpenMP, AVX-512 and AMX where the machine has them) and "cuda" (kernels/cuda/:
 * cublasLt and our own kernels, one NVIDIA GPU).
 *
 * To add an op:
 *   1. its line and contract in struct backend below;
 *   2. kernels/reference/: the naive version in the file of its kind, its declaration in
 *      kernels/reference/reference.h, its line in the table of kernels/reference/reference.c;
 *   3. kernels/cpu/: the same, with kernels/cpu/cpu.h and kernels/cpu/cpu.c; a loop over a row goes into
 *      kernels/cpu/cpu_rows.h and kernels/cpu/cpu_rows_internal.h;
 *   4. its line, with its cost, in the list OPS of kernels/around.c;
 *   5. its shapes in the file of its kind in tests/kernels/, where one table runs a list of backends against the
 *      reference: |a - b| <= abs + eps * |ref|.
 * kernels/README.md follows one op through all of these.
 */
#ifndef EVP_BACKEND_H
#define EVP_BACKEND_H

#include "base/err.h"
#include "codes/quant_row.h"
#include "kernels/kv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row's keys are processed in blocks of this many, whatever the batch is, so the merge order is fixed. */
enum { ATTN_SPLIT = 1024 };

/* A matrix. pitch: elements from one row to the next, so a slice of columns is a mat too. */
struct mat {
    void *at;
    enum dtype type;
    int rows, cols, pitch;
};

/* A weight matrix in the layout and dtype that its backend multiplies fastest. A backend that needs more fields embeds
 * this struct as the first member of its own. */
struct weight {
    int out, in; // rows and columns
    void *at;
};

enum { WATCH_HANDS = 2 }; // of the stopwatch

enum gemm_into { GEMM_SET, GEMM_ADD }; // out = x W^T + bias, or out += x W^T + bias

/* x / (1 + e^-y): y = x, or y = 2 sqrt(2 / pi) (x + 0.044715 x^3), which is GELU by tanh. GATE_CLAMPED, gpt-oss':
 * y = 1.702 x, of x at most 7; what it is multiplied by is first brought to -7 .. 7, plus 1. */
enum gate { GATE_SILU, GATE_GELU, GATE_CLAMPED };
#define GELU_STEEP    1.5957691216057308 // 2 sqrt(2 / pi)
#define GELU_CUBE     0.044715
#define CLAMPED_STEEP 1.702
#define CLAMPED_AT    7

/* Finishes new queries, keys and values: norms per head where the model has them, rotary embedding, keys and values
 * copied to the store. A row of qkv is one token: H query heads, G key heads, G value heads of K columns each. */
struct rope_job {
    struct mat qkv;               // (T, (H + 2G) * K), of the backend's dtype
    const int32_t *position;      // (T): on the device
    const int32_t *slot;          // (T): on the device; the token's slot in the store
    const float *cos, *sin;       // (positions, R / 2); pairs are columns i and i + R/2 ("halves"); NULL: no rotation
    int rotary;                   // R <= K, even; later columns are not rotated; unused when cos is NULL
    const float *q_norm, *k_norm; // (K): rmsnorm of each query and key head before its rotation; NULL: none
    float norm_eps;
    void *q; // (G, T, H/G, K): each kv head's query rows, token-major, as attend reads them; of the backend's dtype
    struct kv_store store;
    int layer, n_heads, n_kv_heads, head_dim;
};

/* Tokens row .. row + n_rows - 1 of a pass attend to the same keys: slots first .. first + n_keys - 1 of the store.
 * With ATTN_SHARED: all rows of cache number `first` of the table; n_keys is unused. */
struct attn_span {
    int32_t row, n_rows, first, n_keys;
};

/* A list of spans and its copy on the device (a single span needs no copy). No token is in two spans of a job. */
struct attn_spans {
    const struct attn_span *host, *device;
    int n;
    const int32_t *n_same; // (n): how many first keys and values equal those of the span before; NULL: unknown
    uint64_t number; // jobs of one kind with the same number, other than 0, have the same spans and sizes of heads
};

/* The rows of several compressed caches, as a list and its copy on the device: layer l, head g of cache c is entry
 * (c * L + l) * G + g. All keys are in one allocation, whole rows apart, and so are all values: a device may read what
 * lies between heads. */
struct kv_table {
    const struct kv_rows *host, *device;
    int n_layers; // L
};

/* Which keys a span's rows see. In a causal span the last n_rows keys are the rows' own: row i sees the first
 * n_keys - n_rows + i + 1. */
enum attn_kind {
    ATTN_TEXT,   // store, causal: a section of a text
    ATTN_OWN,    // store, causal: a sequence's own tokens; a token's bits do not depend on the span's other tokens
    ATTN_SHARED, // table, all rows; a token's bits do not depend on the span's other tokens
    ATTN_WHOLE,  // store, all n_keys
};

/* Attention of one layer for the tokens of a pass. Rows are token-major: the H/G query heads of a token that share a kv
 * head are neighbours. This is the only attention op: prefill, questions, the prefix shared by all questions of a
 * variant, each sequence's own tokens, BERT, and lengths that differ from head to head are all lists of spans. */
struct attn_job {
    enum attn_kind kind;
    const void *q; // (G, T, H/G, K), of the backend's dtype
    struct attn_spans spans;
    struct kv_store store;
    struct kv_table table; // for ATTN_SHARED only
    int n_tokens, n_heads, n_kv_heads, head_dim, layer;
    float scale;
    float cap; // > 0: scores, times scale, become cap * tanh(score / cap); before everything else
    /* window > 0: of the keys that its kind lets a row see, it sees those of its own token and of the window - 1 tokens
     * before. Neighbouring rows of a store or a cache are neighbouring tokens. A causal row's own token has the last
     * key that it sees; between a cache's last token and token t of the pass lie since[t] others. column_stats has
     * no window. */
    int window;
    const int32_t *since; // (T) on the device, for ATTN_SHARED
    /* NULL, or on the device (H): each row sees a further key, of which its head has this score and the value is 0. */
    const float *sinks;
    /* Results, each may be NULL: out (T, H * K) of the backend's dtype; part: the same in f32, in the order of q; lse
     * (G, T, H/G): the log of each row's sum of exponentials. A row without keys gives 0 and -INFINITY. Results of
     * tokens outside all spans stay unchanged. */
    struct mat out;
    float *part, *lse;
    /* NULL, or part and lse that an earlier job wrote for the same tokens over other keys: then out, and it alone, is
     * the attention over both sets of keys. A row without keys in either gives 0. */
    const float *other_part, *other_lse;
};

/* The first key that a row sees of n keys, the last of which belongs to a token `before` its own. */
static inline int attn_first(const struct attn_job *job, int n, int before)
{
    int first = n + before - job->window;
    return job->window == 0 || first < 0 ? 0 : first < n ? first : n;
}

/* Copies slots from .. from + n - 1 to to[i] .. to[i] + n - 1 in every layer and head. The ranges do not overlap. */
struct slot_copy {
    int from, n;
    const int32_t *to; // (n_to) on the host
    int n_to;
};

/* A layer's mixture of experts. For each row: logits = router x. Chosen: the n_used experts with the largest logits,
 * ties to the lower number. weight = softmax over all logits; with `renormalise` the chosen experts' weights are
 * divided by their sum. x += sum of weight * down(gate of `gate` * up) over the chosen experts, in ascending order of
 * their numbers. Biases, on the device, are added to the products; NULL: none. */
struct experts {
    const struct weight *router;                         // (E, D)
    const struct weight *const *gate_up, *const *down;   // (E): (2F, D), (D, F)
    const float *router_bias, *gate_up_bias, *down_bias; // (E), (E, 2F), (E, D); all or none
    int n, n_used, width;                                // E, experts per row, F
    bool renormalise;
    enum gate gate;
};

/* The most likely token of a row of logits: id of the largest logit (the lowest id of equals), that logit, and the
 * largest of the others. id -1: a logit of the row is not finite. */
struct best {
    int32_t id;
    float value, second;
};

/* Which token draw takes of each row: one that a random number selects, or a given one. Lists of the host. */
struct draw_job {
    const double *unit;   // (T), in [0, 1); NULL: tokens are given
    const int32_t *given; // (T), below the vocabulary's size; NULL: tokens are drawn
    double temperature;   // above 0
    float cap;            // > 0: logits become cap * tanh(logit / cap) first
};

/* A token of a row of logits. A token's weight is e^((its logit - largest logit) / temperature), and weight / sum its
 * probability: with temperature 1 its log is -below - log(sum). A token is drawn by the inverse of the distribution
 * function over the ids in ascending order: the first one up to which the sum of weights exceeds unit * sum. Weights
 * are f32 (kernels/softmax.h), sums double: of each SOFTMAX_BLOCK tokens in order, then of these sums in order. */
struct drawn_token {
    int32_t id;  // -1: a logit of the row is not finite; then sum is nan
    float below; // how far its logit is below the largest
    double sum;
};

/* The attention that each key gets from the rows of an ATTN_TEXT job with one span. The job's lse (G, T, H/G) is an
 * input here: from attention over all keys. column[t] = sum, mean or maximum of exp(score of t - lse) over the span's
 * rows and their H/G heads; a key that a row does not see counts as 0. */
enum column_stat { COLUMN_SUM, COLUMN_MEAN, COLUMN_MAX };
enum column_into { COLUMN_SET, COLUMN_ADD }; // ADD: adds to column; with COLUMN_MAX: the larger of both
struct column_job {
    struct attn_job attn;
    enum column_stat stat;
    enum column_into into;
    float *column; // (G, n_keys), rows `pitch` apart
    size_t pitch;
};

/* Sums over the queries of a pass, from token `first` on. With 1 as column K of every query:
 * into[h][i][j] += sum over tokens t of q_t[i] * q_t[j] of query head h, i = 0 .. K, j = 0 .. K - 1. */
struct moment_job {
    const void *q; // (G, T, H/G, K), of the backend's dtype
    int n_tokens, first;
    int n_heads, n_kv_heads, head_dim;
    float *into; // (H, K + 1, K)
};

/* A quantised matrix.
 *
 * QUANT_MINMAX: in groups of consecutive numbers of one line. A line is a column (QUANT_COLUMNS: per channel,
 * along tokens) or a row (QUANT_ROWS: per token, along channels). N, the length of a line, is a multiple of group;
 * group * bits is a multiple of 32. In f32 arithmetic:
 *     zero = f16(min), scale = f16((max - zero) / (2^bits - 1)), code = round_half_even(clamp((x - zero) / scale))
 * clamp: to 0 .. 2^bits - 1. Where scale is 0, code is 0. Beyond f16's range f16() gives the nearest finite f16.
 *
 * The other formats are those of codes/quant_row.h: rows one by one, codes and scales row after row. */
enum quant_lines { QUANT_COLUMNS, QUANT_ROWS };
struct quant_item {
    enum quant_lines lines;
    int rows, cols, bits, group;
    void *x;                  // (rows, cols), of the backend's dtype
    int32_t *codes;           // (lines, N * bits / 32): 32 / bits codes a word, the first in the lowest bits
    uint16_t *scales, *zeros; // (lines, N / group) f16

    struct quant_row
        row;            // the format; all others than QUANT_MINMAX use only rows, cols, x, and these two. Its rotation
                        // is on the host, and the same in all items of a call that have one
    struct quant_at at; // of the first row
};

/* What joint_counts keeps of a group of rows. */
struct joint_keep {
    int n_keep, floor; // floor times the group's rows is at most n_keep
};

struct weight_bytes {
    size_t kept, making;
};

struct device_memory {
    size_t total, free; // bytes; free: what this process may still take, its container's limits included
};

/* The largest shapes of the coming work, for backend.scratch. */
struct work_shape {
    int rows;                            // tokens of a pass
    int n_heads, n_kv_heads, head_dim;   // H, G, K
    int n_keys;                          // of a text or a compressed cache
    int width, mlp, n_vocab;             // D, hidden width of the MLP, rows of the output matrix
    int expert_width, n_experts, n_used; // 0 without experts
    int biased;  // columns of the widest product with a bias and a result of the backend's dtype; 0: there is none
    int n_joint; // rows of a group of joint_counts
};

struct backend {
    const char *name;    // as in backend_options: "reference", "cpu" or "cuda"
    const char *kind;    // the hardware it uses: "cpu-amx", "cpu-avx512", "cpu-avx2", "reference", ...
    const char *note;    // how the dtype was decided, one line; NULL: it was given, or f32 as a matter of course
    const char *instead; // why backend "auto" is not cuda, one line, valid until the next backend_open(); NULL: it is
                         // cuda, or a backend was named
    enum dtype dtype;    // DTYPE_F32 or DTYPE_BF16
    int pass_rows;       // tokens in one pass at which products run at full speed
    uint64_t n_numbered; // attn_spans.number given out last
    double watch_began, watch_s[WATCH_HANDS]; // the stopwatch of backends that compute on the host
    bool plain_weights;  // a weight's `at` are its rows in the backend's dtype, one after the other
    bool checks_weights; // weight_new refuses numbers that are not finite, which it sees while it copies: ERR_FORMAT

    /* memory: plain addresses, so offsets are arithmetic; 64-byte aligned; contents undefined. alloc: NULL and
     * ERR_NOMEM when memory runs out; 0 bytes give an address too. read waits for all earlier ops and returns the first
     * failure since the last read or sync. clock: the time in seconds when all earlier ops are done. scratch: an upper
     * bound of the bytes that ops of these shapes take for themselves; the next read or sync refuses shapes that the
     * backend cannot compute.
     *
     * A stopwatch with two hands, for parts of what the clock measures. watched: the seconds from each start to the
     * stop of this hand after it, since the last call; waits. start and stop do not wait, except that CUDA's start
     * waits until the 64th start before it has its stop. */
    void *(*alloc)(struct backend *, size_t bytes, struct err *);
    void (*free)(struct backend *, void *); // NULL is fine
    void (*write)(struct backend *, void *dst, const void *host, size_t bytes);
    int (*read)(struct backend *, void *host, const void *src, size_t bytes, struct err *);
    void (*copy)(struct backend *, void *dst, const void *src, size_t bytes);
    /* writes n rows of `bytes` bytes, pitch bytes apart, each a copy of host */
    void (*repeat)(struct backend *, void *dst, size_t pitch, int n, const void *host, size_t bytes);
    int (*sync)(struct backend *, struct err *);
    double (*clock)(struct backend *);
    void (*watch_start)(struct backend *);
    void (*watch_stop)(struct backend *, int hand);
    double (*watched)(struct backend *, int hand);
    struct device_memory (*memory)(struct backend *);
    size_t (*scratch)(struct backend *, const struct work_shape *);

    /* weights: n_parts host matrices (F32, F16 or BF16, any alignment) of the same width, concatenated along `out`
     * (q,k,v; gate,up), converted to the backend's dtype; NULL on failure. weight_bytes: the bytes of a weight, and the
     * further bytes needed only while it is made. */
    struct weight *(*weight_new)(struct backend *, const struct mat *host, int n_parts, struct err *);
    void (*weight_free)(struct backend *, struct weight *); // NULL is fine
    struct weight_bytes (*weight_bytes)(struct backend *, int out, int in);

    /* for Llama and BERT; x and out of gemm are dense (pitch == cols); x is of the backend's dtype, out of that dtype
     * or f32; f32 with GEMM_ADD */
    void (*gemm)(struct backend *, struct mat out, struct mat x, const struct weight *, const float *bias,
                 enum gemm_into);
    void (*attend)(struct backend *, const struct attn_job *);

    /* for Llama; ids, positions and slots are int32 on the device */
    /* out row t (f32) = table row ids[t] (any float type); ids are below table.rows */
    void (*embed)(struct backend *, struct mat out, struct mat table, const int32_t *ids);
    /* out = x / sqrt(mean(x^2) + eps) * w, per row of x (f32); out is of the backend's dtype. GEMM_ADD: out, in f32, +=
     * the same, and x is used up */
    void (*rmsnorm)(struct backend *, struct mat out, struct mat x, const float *w, float eps, enum gemm_into);
    void (*rope)(struct backend *, const struct rope_job *);
    /* out (T, F) = gate of the left half * right half of gate_up (T, 2F), both of the backend's dtype */
    void (*gate_mul)(struct backend *, struct mat out, struct mat gate_up, enum gate);
    /* x (T, D) f32 += experts of normed (T, D), of the backend's dtype */
    void (*moe)(struct backend *, struct mat x, struct mat normed, const struct experts *);
    /* best[t] of the logits of row t: x (T, D) of the backend's dtype times the output matrix */
    void (*best)(struct backend *, struct best *best, struct mat x, const struct weight *head);
    /* drawn[t]: a token of the logits of row t, as for best */
    void (*draw)(struct backend *, struct drawn_token *drawn, struct mat x, const struct weight *head,
                 const struct draw_job *);
    void (*copy_slots)(struct backend *, const struct kv_store *, const struct kv_shape *, const struct slot_copy *);

    /* compression: scores are f32 (n_heads, T); the highest are kept */
    /* score[h][t] = -|k_t|, the L2 norm */
    void (*key_norms)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    /* score[h][t] = -cos(k_t, mean over t of k_t / |k_t|); norms are raised to at least 1e-12, in the cosine to 1e-8 */
    void (*key_cosines)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    void (*column_stats)(struct backend *, const struct column_job *);
    void (*moments)(struct backend *, const struct moment_job *);
    /* score[h][t] = sum over i, j of k[i] * form[h][i][j] * k[j], i = 0 .. K, j = 0 .. K - 1: k is row t of the keys of
     * head h / group, and k[K] = 1. The n_heads heads have equally many rows. score (n_heads * group, n) */
    void (*key_forms)(struct backend *, float *score, const float *form /* (n_heads * group, K + 1, K) */,
                      const struct kv_rows *heads, int n_heads, int group, int head_dim);
    /* sum[t] = sum of |x| over row t of x (f32) */
    void (*abs_sums)(struct backend *, float *sum, struct mat x);
    /* avg_pool1d in place, per row: stride 1, zero padding at both ends counted in the mean, `width` odd */
    void (*avg_pool)(struct backend *, float *score, int n_heads, int n, int pitch, int width);
    /* score[h][t] *= factor[t] */
    void (*scale_columns)(struct backend *, float *score, int n_heads, int n, const float *factor);
    /* every row becomes the mean of its group: `group` consecutive rows of n numbers (the heads of a layer) */
    void (*mean_heads)(struct backend *, float *score, int n_heads, int n, int group);
    /* keeps numbers of each group of `group` consecutive rows: first the `floor` largest of each row, then the largest
     * of the rest, keep[i].n_keep in all of group i; count[h]: how many are in row h. Ties go to the lower row, then
     * the lower position. */
    void (*joint_counts)(struct backend *, int32_t *count /* (n_heads) */, const float *score, int n_heads, int n,
                         int group, const struct joint_keep * /* (n_heads / group), host */);
    /* kept: ascending positions of the k[h] largest of row h's n numbers, row after row. Of those like the k[h]-th
     * largest, at most SCORE_ALIKE floats from it (kernels/order.h), the lowest positions are kept, on every processor.
     * 0 and -0 are a tie; nan is above all numbers, or below them with its sign bit set. */
    void (*top_k)(struct backend *, int32_t *kept, const float *score, int n_heads, int n, const int *k /* host */);
    /* dst[h] row i = src[h] row kept_h[i], K and V; kept: dst[0].n positions for head 0, then those for head 1, ... */
    void (*gather)(struct backend *, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                   int n_heads, int head_dim);
    /* x -> codes and scales, and back; with QUANT_MINMAX x = code * scale + zero */
    void (*quantise)(struct backend *, const struct quant_item *, int n_items);
    void (*dequantise)(struct backend *, const struct quant_item *, int n_items);

    /* for BERT, the embedder; f32 */
    /* out = (x - mean) / sqrt(variance + eps) * w + b, per row; out may be x */
    void (*layernorm)(struct backend *, struct mat out, struct mat x, const float *w, const float *b, float eps);
    void (*gelu)(struct backend *, struct mat x); // in place, the exact form with erf

    void (*close)(struct backend *);
};

/* The names that backend_open() knows. cuda needs its own shared object (kernels/cuda/cuda.h). */
#define BACKEND_NAMES  "auto|cuda|cpu|reference"
#define BACKEND_DTYPES "auto|f32|bf16|fastest"

/* dtype auto is f32, but on cuda bf16 unless the model's weights are in f32; fastest: in a short trial product. */
struct backend_options {
    const char *name;  // one of BACKEND_NAMES; NULL: auto. auto: cuda where it can be opened, else cpu
    const char *dtype; // one of BACKEND_DTYPES; NULL: f32
    bool is_f32;       // the model's weights
    int n_threads;     // 0: all cores this process may use
    int device;        // of cuda: its number, as CUDA_VISIBLE_DEVICES orders them
};

#ifdef __cplusplus // the cuda backend includes this file
extern "C" {
#endif

/* NULL with ERR_DEVICE for a backend or dtype that this build or machine lacks, with ERR_USAGE for an unknown dtype.
 * Only this function chooses a backend. */
struct backend *backend_open(const struct backend_options *options, struct err *err);

/* ERR_DEVICE unless name is one of BACKEND_NAMES, ERR_USAGE unless dtype is one of BACKEND_DTYPES. For tools, before
 * the work. */
int backend_check(const char *name, const char *dtype, struct err *err) MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
