/* backend.h - everything the engine, the embedder and the methods ask of a device.
 *
 * Not the engine: nothing here knows layers, models or compression methods. It knows matrices, the KV layout and
 * lists of attention work. The forward pass above it is written once and never reads or writes a number itself.
 *
 * Rules every implementation keeps
 *   - `void *` in these structs is an address on the device. Code above kernels/ passes it on or adds whole rows to it,
 *     and never reads through it. `host` in a name says that the memory is the host's.
 *   - Ops are queued in order on the backend's one stream and return at once; only read and sync wait. The first
 *     failure sticks and comes out of the next sync.
 *   - Results depend on the op's own inputs, not on what else is in the batch: reductions have a fixed order, keys are
 *     split at fixed places (ATTN_SPLIT), ties go to the lower index. So a question answered in a batch of fifty gives
 *     the bits it gives alone. (The cpu backend keeps this rule where there is AVX-512. On older processors oneDNN sums
 *     products of very few rows in another order, and the last bits differ.)
 *   - Storage is f32 (bf16 later: every mat says its type); sums are f32; the reference sums in double.
 *
 * Implementations: "reference" (kernels/reference/: naive, one thread, sums in double; what the others are tested
 * against) and "cpu" (kernels/cpu/: oneDNN, OpenMP, AVX-512 where the machine has it).
 *
 * To add an op: (1) its line and contract in struct backend below (2) kernels/reference/: the naive version in the file
 * of its kind, its declaration in kernels/reference/reference.h, its line in the table of kernels/reference/reference.c
 * (3) kernels/cpu/: the same, with kernels/cpu/cpu.h and kernels/cpu/cpu.c; a loop over a row goes into
 * kernels/cpu/cpu_rows.h and kernels/cpu/cpu_rows_internal.h (4) its shapes in the file of its kind in tests/kernels/,
 * where one table drives the backends against the reference: |a - b| <= abs + eps * |ref|. kernels/README.md follows
 * one op through all of these.
 */
#ifndef EVP_BACKEND_H
#define EVP_BACKEND_H

#include "base/err.h"
#include "kernels/kv.h"

#include <stddef.h>
#include <stdint.h>

/* An attention item's keys are processed in pieces of this many, whatever the batch, so the merge order is fixed. */
enum { ATTN_SPLIT = 1024 };

/* Rows of a device matrix. pitch counts elements from one row to the next, so a slice of columns is a mat too. */
struct mat {
    void *at;
    enum dtype type;
    int rows, cols, pitch;
};

/* A weight matrix in the layout that its backend multiplies fastest: row by row, or in oneDNN's blocks. A backend that
 * must remember more puts this struct first in its own. */
struct weight {
    int out, in; // rows and columns
    void *at;
};

enum gemm_into { GEMM_SET, GEMM_ADD }; // out = x W^T + bias, or out += x W^T + bias

/* Rotary embedding of new queries and keys, and where keys and values go. A row of qkv is one token: H query heads, G
 * key heads, G value heads of K columns each. */
struct rope_job {
    struct mat qkv;          // (T, (H + 2G) * K)
    const int32_t *position; // (T): on the device
    const int32_t *slot;     // (T): on the device; the row of k and v the token goes to
    const float *cos, *sin;  // (positions, K / 2); pairs are columns i and i + K/2 ("halves")
    void *q;                 // (G, T, H/G, K): each kv head's query rows, token-major, as attend reads them
    void *k, *v;             // row slot[t] of head g starts at (g * head_rows + slot[t]) * K
    size_t head_rows;
    int n_heads, n_kv_heads, head_dim;
};

/* Merges attention over two parts of one sequence's keys. part[i] and lse[i] are laid out as rope_job.q: row
 * (g * T + t) * H/G + h. */
struct merge_job {
    struct mat out;      // (T, H * K)
    const void *part[2]; // (G, T, H/G, K), each normalised within itself
    const float *lse[2]; // (G, T, H/G)
    int n_parts;         // 1: lse is not read
    int n_kv_heads, head_dim;
};

/* One piece of attention. Prefill, question forward, the prefix shared by all questions of a variant, each sequence's
 * own suffix and different lengths per head are all lists of these; there is one attention op. Rows are token-major:
 * the `group` query heads of one token that share a kv head are next to each other, so row i belongs to token i /
 * group. Row i sees keys j <= causal + i / group, or all n keys when causal < 0. */
struct attn_item {
    const void *q; // (n_q, K), pitch q_pitch: the query rows of one kv head, token-major
    void *out;     // (n_q, K), pitch out_pitch, normalised within this item
    float *lse;    // (n_q): log of the item's sum of exponentials, for merge; may be NULL
    int n_q, q_pitch, out_pitch, group, causal;
    struct kv_rows kv;
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

struct device_memory {
    size_t total, free;
};

struct backend {
    const char *name;

    /* memory: plain addresses, so that offsets are arithmetic; 64-byte aligned; contents undefined. alloc: NULL and
     * ERR_NOMEM when there is none left; sync: the first failure since the last sync */
    void *(*alloc)(struct backend *, size_t bytes, struct err *);
    void (*free)(struct backend *, void *); // NULL is fine
    void (*write)(struct backend *, void *dst, const void *host, size_t bytes);
    void (*read)(struct backend *, void *host, const void *src, size_t bytes); // waits
    void (*copy)(struct backend *, void *dst, const void *src, size_t bytes);
    int (*sync)(struct backend *, struct err *);
    struct device_memory (*memory)(struct backend *);

    /* weights: n_parts host matrices (f32, rows contiguous) of the same width, concatenated along `out` (q,k,v;
     * gate,up) and stored as `type`; NULL on failure */
    struct weight *(*weight_new)(struct backend *, const struct mat *host, int n_parts, enum dtype type, struct err *);
    void (*weight_free)(struct backend *, struct weight *);

    /* both kinds of transformer; x and out of gemm are dense: pitch == cols */
    void (*gemm)(struct backend *, struct mat out, struct mat x, const struct weight *, const float *bias,
                 enum gemm_into);
    void (*attend)(struct backend *, const struct attn_item *, int n_items, int head_dim, float scale);

    /* Llama; ids, positions and slots are int32 on the device */
    /* out row t = table row ids[t]; ids are below table.rows */
    void (*embed)(struct backend *, struct mat out, struct mat table, const int32_t *ids);
    /* out = x / sqrt(mean(x^2) + eps) * w, per row */
    void (*rmsnorm)(struct backend *, struct mat out, struct mat x, const float *w, float eps);
    void (*rope)(struct backend *, const struct rope_job *);
    void (*merge)(struct backend *, const struct merge_job *);
    /* out (T, F) = silu(left half) * right half of gate_up (T, 2F) */
    void (*silu_mul)(struct backend *, struct mat out, struct mat gate_up);
    /* id[t] = column of the largest element of row t, the lowest of equal ones; id is int32 on the device */
    void (*argmax)(struct backend *, int32_t *id, struct mat x);

    /* compression: scores are f32 (n_heads, T), higher is kept */
    /* score[h][t] = -|k_t|, the L2 norm */
    void (*key_norms)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    /* score[h][t] = -cos(k_t, mean over t of k_t / |k_t|); norms are at least 1e-12, in the cosine 1e-8 */
    void (*key_cosines)(struct backend *, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
    /* score[i][j] = mean attention that the query rows of item i give to its key j: causal as in attn_item; out, lse
     * and v are unused; all items have the same n and n_q */
    void (*mean_attention)(struct backend *, float *score, const struct attn_item *, int n_items, int head_dim,
                           float scale);
    /* avg_pool1d in place, per row: stride 1, zero padding at both ends counted in, `width` is odd */
    void (*avg_pool)(struct backend *, float *score, int n_heads, int n, int pitch, int width);
    /* positions of the k largest of each row of n, ascending; ties go to the lower position (0 and -0 are a tie, nan is
     * above or below all numbers by its sign) */
    void (*top_k)(struct backend *, int32_t *kept /* (n_heads, k) */, const float *score, int n_heads, int n, int k);
    /* dst[h] row i = src[h] row kept[h][i], K and V; every dst[h] has the same n rows */
    void (*gather)(struct backend *, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                   int n_heads, int head_dim);
    /* group-wise min-max quantisation: x -> codes, scales, zeros; and back: x = code * scale + zero */
    void (*quantise)(struct backend *, const struct quant_item *, int n_items);
    void (*dequantise)(struct backend *, const struct quant_item *, int n_items);

    /* BERT, for the embedder */
    /* out = (x - mean) / sqrt(variance + eps) * w + b, per row; out may be x */
    void (*layernorm)(struct backend *, struct mat out, struct mat x, const float *w, const float *b, float eps);
    void (*gelu)(struct backend *, struct mat x); // in place, the exact form with erf

    void (*close)(struct backend *);
};

/* What this build has. */
#define BACKEND_NAMES "auto|cpu|reference"

/* name: one of BACKEND_NAMES; NULL with ERR_DEVICE for a backend that this build or machine does not have. n_threads 0:
 * all cores this process may use. The choice is made here and nowhere else. */
struct backend *backend_open(const char *name, int n_threads, struct err *err);

#endif
