/* engine_internal.h - what the files of the engine share and nobody else sees: the weights on the device, and one pass
 * of some tokens through the model.
 */
#ifndef EVP_ENGINE_INTERNAL_H
#define EVP_ENGINE_INTERNAL_H

#include "engine/engine.h"

enum {
    FORWARD_ROWS = 512, // tokens in one pass: products of so many rows run at full speed, and a 4k context has 8 chunks
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

/* Where the keys and values of fresh tokens go: layer l, head g, slot s is row (l * G + g) * head_rows + s. */
struct kv_store {
    float *k, *v;
    size_t head_rows;
};

/* Rows of a pass that see all of a variant. */
struct shared_span {
    int row, n_rows;
    const struct variant *variant;
};

/* Rows of a pass that are the last of n_keys tokens in a row of the store's slots, beginning with `first`. */
struct own_span {
    int row, n_rows, first, n_keys;
};

/* Queries of some tokens in a row that prefill has to save. */
struct query_window {
    int first, n; // tokens of the context
    float **q;    // [L]: (G, n, H/G, K)
};

/* Tokens that go through the model together. Every row is in exactly one own span, and in one shared span or none has
 * any. */
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
    struct attn_item *item;                // host
    int item_room;
};

/* ERR_USAGE for ids the vocabulary lacks. */
int engine_check_ids(const struct engine *e, const int32_t *ids, int n, struct err *err) MUST_CHECK;

int forward_open(struct forward *f, struct engine *e, struct err *err) MUST_CHECK;
void forward_close(struct forward *f); // zeroed is fine
size_t forward_bytes(const struct model_config *c);

enum forward_end {
    FORWARD_OUTPUT, // all of it: x holds the last layer's output
    FORWARD_CACHE,  // only what fills the store: the last layer stops at its keys and values
};
int forward_run(struct forward *f, const struct batch *b, enum forward_end end, struct err *err) MUST_CHECK;

/* The likeliest next token after n rows of the pass before; host. */
int forward_best(struct forward *f, const int32_t *row, int n, int32_t *best, struct err *err) MUST_CHECK;

/* Logits (n, V) of the first n rows of the pass before; host. */
int forward_logits(struct forward *f, int n, float *logits, struct err *err) MUST_CHECK;

/* Bytes of keys and values of so many tokens, all layers and heads. */
size_t kv_store_bytes(const struct model_config *c, size_t n_tokens);

/* k and v for so many tokens' rows per head, in one piece of device memory that `k` begins. */
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
