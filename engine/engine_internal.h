/* engine_internal.h - what only the engine's own files share: the weights on the device, and one pass of some tokens
 * through the model.
 */
#ifndef EVP_ENGINE_INTERNAL_H
#define EVP_ENGINE_INTERNAL_H

#include "engine/engine.h"

enum {
    FORWARD_ROWS = 512, // tokens in one pass: products of 512 rows run at full speed, and a 4k context has 8 chunks
    LOGIT_ROWS = 64,    // rows whose logits are held at once: 12 MiB for a vocabulary of 49k
};

struct layer {
    float *norm_attention, *norm_mlp; // (D)
    struct weight *qkv;               // ((H + 2G) * K, D)
    struct weight *o;                 // (D, H * K)
    struct weight *gate_up;           // (2F, D)
    struct weight *down;              // (D, F)
};

struct engine {
    struct model *model;
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct model_config config;
    struct layer *layer; // [L]
    float *embedding;    // (V, D)
    float *norm;         // (D)
    struct weight *head; // (V, D)
    float *cos, *sin;    // (max_tokens, K / 2)
};

/* ---- one pass ---- */

/* Where the keys and values of new tokens go: layer l, head g, slot s is row (l * G + g) * head_rows + s. */
struct kv_store {
    float *k, *v;
    size_t head_rows;
};

/* Consecutive rows of a pass: one row per token. */
struct row_range {
    int first, n;
};

/* Rows of a pass that see all of a variant. */
struct shared_span {
    struct row_range rows;
    const struct variant *variant;
};

/* Rows of a pass whose keys are n_keys consecutive slots of the store from `slot`; the rows' own keys are the last. */
struct own_span {
    struct row_range rows;
    int slot, n_keys;
};

/* Consecutive tokens of the context whose queries prefill saves. */
struct query_window {
    int first, n;
    float **q; // [L]: (G, n, H/G, K)
};

/* Tokens that go through the model together. Every row is in exactly one own span. Either every row is in one shared
 * span too, or none is. */
struct batch {
    int n;                                // 1 .. FORWARD_ROWS
    const int32_t *ids, *position, *slot; // (n)
    struct kv_store store;
    const struct shared_span *shared;
    const struct own_span *own;
    int n_shared, n_own;
    const struct query_window *window; // NULL: none
};

/* Memory of a pass. */
struct forward {
    struct engine *engine;
    float *arena;
    float *x, *normed, *picked;            // (rows, D)
    float *attended;                       // (rows, H * K)
    float *qkv, *gate_up, *mlp;            // (rows, (H + 2G) * K), (rows, 2F), (rows, F)
    float *q, *part[2], *lse[2];           // as in merge_job, of `rows` tokens
    float *logits;                         // (LOGIT_ROWS, V)
    int32_t *ids, *position, *slot, *best; // (rows)
    struct {
        struct attn_item *at;
        int n, cap;
    } items; // of one layer's attention; host
};

/* ERR_USAGE for ids that are not in the vocabulary. */
int engine_check_ids(const struct engine *e, const int32_t *ids, int n, struct err *err) MUST_CHECK;

int forward_open(struct forward *f, struct engine *e, struct err *err) MUST_CHECK;
void forward_close(struct forward *f); // zeroed is fine
size_t forward_bytes(const struct model_config *c);

enum forward_end {
    FORWARD_OUTPUT, // to the last layer's output, in x
    FORWARD_CACHE,  // to the last layer's keys and values, which fill the store
};
int forward_run(struct forward *f, const struct batch *b, enum forward_end end, struct err *err) MUST_CHECK;

/* The most likely next token after n rows of the last pass; row and best are on the host. */
int forward_best(struct forward *f, const int32_t *row, int n, int32_t *best, struct err *err) MUST_CHECK;

/* Logits (n, V) of the first n rows of the last pass; on the host. */
int forward_logits(struct forward *f, int n, float *logits, struct err *err) MUST_CHECK;

/* Bytes of the keys and values of n_tokens tokens, all layers and heads. */
size_t kv_store_bytes(const struct model_config *c, size_t n_tokens);

/* Allocates k and v of head_rows rows per head: one block of device memory, which begins at `k`. */
int kv_store_alloc(struct kv_store *s, const struct engine *e, size_t head_rows, struct err *err) MUST_CHECK;
void kv_store_free(struct kv_store *s, const struct engine *e); // zeroed is fine

struct session {
    struct engine *engine;
    struct forward forward;
    struct kv_store cache; // slot s holds token s of the context
    struct kv_full full;
    struct kv_rows *rows;      // [L * G]
    float *window, **window_q; // arena; [L]
};

#endif
