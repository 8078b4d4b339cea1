/* engine_internal.h - what only the engine's own files share: the weights on the device, one pass of some tokens
 * through the model, and a session's memory.
 */
#ifndef EVP_ENGINE_INTERNAL_H
#define EVP_ENGINE_INTERNAL_H

#include "base/rng.h"
#include "engine/transformer/engine.h"
#include "kernels/pool.h"

/* What the model does not have is NULL. */
struct layer {
    float *norm_attention, *norm_mlp; // (D)
    float *q_norm, *k_norm;           // (K)
    struct weight *qkv;               // ((H + 2G) * K, D)
    struct weight *o;                 // (D, H * K)
    struct weight *gate_up;           // (2F, D)
    struct weight *down;              // (D, F)
    float *qkv_bias, *o_bias, *gate_up_bias, *down_bias;
    struct weight *router;                         // (E, D)
    struct weight **expert_gate_up, **expert_down; // (E): (2X, D), (D, X)
};

struct engine {
    struct model *model;
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct model_config config;
    struct engine_plan plan;
    struct layer *layer;  // [L]
    struct mat embedding; // (V, D)
    float *norm;          // (D)
    struct weight *head;  // (V, D)
    float *cos, *sin;     // (plan.max_positions, K / 2)
};

/* weights.c: reads everything of a layer and outside the layers; frees it again, also what was read of it. */
int weights_load(struct engine *e, struct err *err) MUST_CHECK;
void weights_free(struct engine *e);
/* Bytes that they take; those that reading them takes besides. */
struct weight_bytes weights_bytes(const struct engine *e);

/* ---- one pass ---- */

/* What is told about the tokens of a pass: lists on the host, and their copies on the device. */
struct pass_lists {
    struct attn_span *own, *shared;        // (rows)
    int32_t *ids, *position, *slot, *pick; // (rows)
};

/* Tokens that go through the model together. Every token is in exactly one own span, whose last keys are those of its
 * tokens. Either every token is in one shared span too, or none is. */
struct pass {
    int rows; // tokens it can hold
    int n, n_own, n_shared, n_picks;
    struct pass_lists host, device;
    int32_t *n_same; // (rows) on the host alone: of the own spans
    void *host_at, *device_at;
};

/* A token of a sequence: where its key goes, and the sequence's place in the text. */
struct pass_tokens {
    const int32_t *ids;
    int n;
    int position, slot; // of the first
};

/* Adds tokens whose own keys begin at slot `from`. */
void pass_add(struct pass *p, const struct pass_tokens *t, int from);
/* The n tokens added last also see all rows of a cache of the table. If those before them see it, too, both sequences'
 * own keys begin with the same n_same. */
void pass_share(struct pass *p, int cache, int n, int n_same);
/* The next token after the one added last is wanted. */
void pass_pick(struct pass *p);
void pass_clear(struct pass *p);

/* Consecutive tokens of the context whose queries prefill saves. */
struct query_window {
    int first, n;
    char **q; // [L]: (G, n, H/G, K)
};

enum forward_end {
    FORWARD_OUTPUT, // to the last layer's output, in x
    FORWARD_CACHE,  // to the last layer's keys and values, which fill the store
};

/* Where a pass reads and writes keys, and what it saves. */
struct forward_job {
    struct kv_store store;
    struct kv_table table; // for shared spans
    enum attn_kind kind;   // of the own spans: ATTN_TEXT or ATTN_OWN
    enum forward_end end;
    const struct query_window *window; // NULL: none
    float *column_sums;                // (L * G, column_pitch), added to; NULL: none
    size_t column_pitch;
};

/* Memory of a pass. Types: those of the backend's dtype are void *. */
struct forward {
    struct engine *engine;
    struct pass pass;
    float *x, *picked;                                 // (rows, D)
    void *normed, *attended, *qkv, *q, *gate_up, *mlp; // (rows, D), (rows, H * K), ...
    float *part[2], *lse[2];                           // as in merge_job
    struct best *best;                                 // (rows)
    float *logits;                                     // (SAMPLE_ROWS, V): of tokens that are to be drawn
    double column_s;                                   // seconds that column sums took, which are not the prefill's
    struct best *best_host;                            // (rows)
    float *logits_host;                                // (SAMPLE_ROWS, V)
};

/* Logits that are on the host at once: of as many questions as a context usually has. */
enum { SAMPLE_ROWS = 8 };

/* The last n picks of a pass are to be drawn, each by a number from 0 to 1. */
struct draws {
    int n;
    double *unit; // (n)
    double temperature;
};

/* ERR_USAGE for ids that are not in the vocabulary. */
int engine_check_ids(const struct engine *e, const int32_t *ids, int n, struct err *err) MUST_CHECK;

/* Takes its memory from the pool, for passes of the backend's pass_rows. */
int forward_open(struct forward *f, struct engine *e, struct pool *pool, struct err *err) MUST_CHECK;
void forward_close(struct forward *f); // zeroed is fine
size_t forward_bytes(const struct engine *e);

/* Queues f->pass. */
void forward_run(struct forward *f, const struct forward_job *job);

/* Queues the output of the picked tokens and waits: f->best_host[i] is about pick i; of one that is drawn it has the id
 * alone. ERR_FORMAT when the output is not finite. */
int forward_best(struct forward *f, const struct draws *draws, struct err *err) MUST_CHECK;

/* Logits of tokens first .. first + n - 1 of the last pass, to device memory (n, V). */
void forward_logits(struct forward *f, int first, int n, float *logits);

/* ---- keys and values ---- */

/* Bytes of the keys and values of n_tokens tokens, all layers and heads. */
size_t kv_store_bytes(const struct engine *e, size_t n_tokens);

/* k and v of head_rows rows per head, from the pool; NULL k on failure. */
struct kv_store kv_store_take(struct pool *pool, const struct engine *e, size_t head_rows, struct err *err);

/* ---- plan.c ---- */

/* What session_decode() has to hold. */
struct plan_decode {
    int n_variants, n_questions, n_shared;
    int longest;   // slots of the longest sequence
    int64_t slots; // of the sequences of one variant together
};

/* Bytes of its table and of a store of so many slots. */
uint64_t plan_decode_bytes(const struct engine *e, const struct plan_decode *d, int64_t slots);

/* The slots of its store in `bytes` of the pool: at most as many as can be in use at once; 0: too few for the longest
 * sequence. */
int plan_slots(const struct engine *e, const struct plan_decode *d, uint64_t bytes);

struct session {
    struct engine *engine;
    struct pool pool;
    size_t mark; // of the pool, without a context
    struct forward forward;
    struct kv_store cache; // slot s holds token s of the context
    struct kv_full full;
    struct kv_rows *rows; // [L * G]
    char **window_q;      // [L]
    float *column_sums;   // (L * G, T) or NULL
};

#endif
