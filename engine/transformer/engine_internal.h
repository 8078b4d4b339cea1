/* engine_internal.h - for the engine's own files: the weights on the device, one pass of some tokens through the model,
 * and a session's memory.
 */
#ifndef EVP_ENGINE_INTERNAL_H
#define EVP_ENGINE_INTERNAL_H

#include "base/rng.h"
#include "engine/transformer/engine.h"
#include "kernels/pool.h"

/* NULL: the model has no such tensor. */
struct layer {
    float *norm_attention, *norm_mlp;   // (D)
    float *after_attention, *after_mlp; // (D)
    float *q_norm, *k_norm;             // (K)
    struct weight *qkv;                 // ((H + 2G) * K, D)
    struct weight *o;                   // (D, H * K)
    struct weight *gate_up;             // (2F, D)
    struct weight *down;                // (D, F)
    float *qkv_bias, *o_bias, *gate_up_bias, *down_bias;
    struct weight *router;                                       // (E, D)
    struct weight **expert_gate_up, **expert_down;               // (E): (2X, D), (D, X)
    float *router_bias, *expert_gate_up_bias, *expert_down_bias; // (E), (E, 2X), (E, D)
    float *sinks;                                                // (H)
};

struct engine {
    struct model *model;
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct model_config config;
    struct engine_plan plan;
    struct layer *layer;  // [L]
    struct mat embedding; // (V, D)
    float *norm;          // (D); logits are divided by a multiplier here
    float *scale;         // (D): of the embedding, all equal; NULL: none
    struct weight *head;  // (V, D)
    float *cos, *sin;     // (tables, plan.max_positions, rotary / 2); rope_table() has the number of a context's table
};

/* The tables of rotary angles: longrope has one for contexts of up to the original length and one for longer ones;
 * layers with a window may have the second. */
static inline int rope_tables(const struct model_config *c)
{
    return c->rope_scaling == ROPE_LONGROPE || c->rope_theta_window > 0 ? 2 : 1;
}

static inline int rope_table(const struct model_config *c, int n_tokens)
{
    return c->rope_scaling == ROPE_LONGROPE && n_tokens > c->rope_original;
}

/* engine.c: what scores are multiplied by; bytes of the cosines, and of the sines, of so many positions. */
float engine_score_scale(const struct engine *e);
size_t angles_bytes(const struct engine *e, int max_positions);

/* weights.c: reads all weights; frees them, also after a failed weights_load(). weights_mat: a tensor on the host, in
 * the file; or copied to the memory at out->at, in the file's 16-bit type or in the backend's. */
int weights_load(struct engine *e, struct err *err) MUST_CHECK;
void weights_free(struct engine *e);
int weights_mat(const struct engine *e, enum tensor_role role, int index, struct mat *out, struct err *err) MUST_CHECK;
/* Bytes of the weights, and of the buffers for reading them. */
struct weight_bytes weights_bytes(const struct engine *e);

/* ---- one pass ---- */

/* The lists that describe the tokens of a pass, on the host or on the device. */
struct pass_lists {
    struct attn_span *own, *shared;        // (rows)
    int32_t *ids, *position, *slot, *pick; // (rows)
    int32_t *since;                        // (rows): tokens of the sequence before a token
};

/* Tokens that go through the model together. Every token is in exactly one own span, and the span's last keys are its
 * tokens' keys. Either every token is in one shared span too, or no token is in any. */
struct pass {
    int rows; // tokens it can hold
    int n, n_own, n_shared, n_picks;
    uint64_t number; // attn_spans.number of both lists of spans
    struct pass_lists host, device;
    int32_t *n_same; // (rows) on the host only, per own span: pass_share()
    void *host_at, *device_at;
};

/* Consecutive tokens of a sequence: their ids, positions in the text, and slots for their keys. */
struct pass_tokens {
    const int32_t *ids;
    int n;
    int position, slot; // of the first
};

/* Adds tokens; the first own key of their sequence is in slot `from`. */
void pass_add(struct pass *p, const struct pass_tokens *t, int from);
/* The n tokens added last also attend to all rows of cache number `cache` of the table. If the tokens before them
 * attend to it too, the own keys of both sequences begin with n_same equal ones. */
void pass_share(struct pass *p, int cache, int n, int n_same);
/* Asks for the output after each of the n tokens added last. */
void pass_pick(struct pass *p, int n);
void pass_clear(struct pass *p);

/* Consecutive tokens of the context; prefill saves their queries. */
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
    float *repeat_max; // (L * G, store.head_rows): the most attention of each key in the store; NULL: not wanted
    float *moments;    // (L * H, K + 1, K), added to; NULL: none
};

/* What the hands of the stopwatch time. */
enum { HAND_COLUMNS, HAND_MOMENTS };

/* Memory of a pass. void *: numbers of the backend's dtype. */
struct forward {
    struct engine *engine;
    struct pass pass;
    const float *cos, *sin;                            // of the context
    struct kv_shape shape;                             // of its cache
    float *x, *picked;                                 // (rows, D)
    void *normed, *attended, *qkv, *q, *gate_up, *mlp; // (rows, D), (rows, H * K), ...
    float *part, *lse;                                 // of attention to shared rows, as in attn_job
    struct best *best;                                 // (rows)
    struct drawn_token *drawn;                         // (rows)
    double column_s, moment_s;      // seconds spent on column sums and moments: not part of the prefill's time
    struct best *best_host;         // (rows)
    struct drawn_token *drawn_host; // (rows)
};

/* The last n picks of a pass are sampled (op draw), the i-th of them by unit[i] in [0, 1). */
struct draws {
    int n;
    double *unit; // (n)
    double temperature;
};

/* ERR_USAGE for ids that are not in the vocabulary. */
int engine_check_ids(const struct engine *e, const int32_t *ids, int n, struct err *err) MUST_CHECK;

/* Takes its memory from the pool, for passes of the backend's pass_rows. */
int forward_open(struct forward *f, struct engine *e, struct pool *pool, struct err *err) MUST_CHECK;
void forward_close(struct forward *f);             // zeroed is fine
void forward_fit(struct forward *f, int n_tokens); // passes belong to a context of so many tokens
size_t forward_bytes(const struct engine *e);

/* Queues f->pass. The stopwatch runs while column sums and moments are made. */
void forward_run(struct forward *f, const struct forward_job *job);

/* Queues the output of the picked tokens and waits: f->best_host[i] is the result of pick i, for a sampled pick only
 * its id. ERR_FORMAT when the output is not finite. */
int forward_best(struct forward *f, const struct draws *draws, struct err *err) MUST_CHECK;

/* Queues the output of the picked tokens and waits: value[i] is the log probability (natural) of target[i] after pick
 * i. ERR_FORMAT when the output is not finite. */
int forward_likelihood(struct forward *f, const int32_t *target, double *value, struct err *err) MUST_CHECK;

/* Queues the output of the first token of the last pass, for the time it takes. */
void forward_warm(struct forward *f);

/* Logits of tokens first .. first + n - 1 of the last pass, to device memory (n, V). */
void forward_logits(struct forward *f, int first, int n, float *logits);

/* ---- keys and values ---- */

/* Bytes of the keys and values of n_tokens tokens, all layers and heads. */
size_t kv_store_bytes(const struct engine *e, size_t n_tokens);

/* k and v of head_rows rows per head, from the pool; NULL k on failure. */
struct kv_store kv_store_take(struct pool *pool, const struct engine *e, size_t head_rows, struct err *err);

/* ---- repeat.c ---- */

/* Of session_repeat() with a context of n_tokens tokens: the positions that it ends before, the keys of its store, the
 * pool's bytes that it takes for a while, its operations. */
int repeat_positions(int n_tokens);
int repeat_slots(int n_tokens);
size_t repeat_bytes(const struct engine *e, int n_tokens);
double repeat_flop(const struct engine *e, int n_tokens);

/* ---- value_norms.c ---- */

/* value (L * G, T), on the host: the L1 norm of W_o v of each value of the cache, the mean over its H/G heads.
 * *seconds: the products' time; reading W_o, which a serving engine has in memory, is not part of it. */
int value_norms(struct session *s, int n_tokens, float *value, double *seconds, struct err *err) MUST_CHECK;
/* Device memory that this takes while it runs: of the pool, and for a weight. */
size_t value_norms_bytes(const struct engine *e, int n_tokens);
size_t value_norms_weight(const struct engine *e);

/* ---- plan.c ---- */

/* The sequences that session_decode() has to hold. */
struct plan_decode {
    int n_variants, n_questions, n_shared;
    int longest;   // slots of the longest sequence
    int64_t slots; // of the sequences of one variant together
};

/* Bytes of its table and of a store of `slots` slots. */
uint64_t plan_decode_bytes(const struct engine *e, const struct plan_decode *d, int64_t slots);

/* The number of slots of its store if it gets `bytes` of the pool, never more than can be in use at once; 0: too few
 * for the longest sequence. */
int plan_slots(const struct engine *e, const struct plan_decode *d, uint64_t bytes);

struct session {
    struct engine *engine;
    struct pool pool;
    size_t mark; // the pool's mark without a context
    struct forward forward;
    struct kv_store cache; // slot s holds token s of the context
    struct kv_full full;
    struct kv_rows *rows;                      // [L * G]
    char **window_q;                           // [L]
    uint64_t unrotated[MODEL_LAYERS_MAX / 64]; // a bit for each of these layers without rotation
    float *column_sums;                        // (L * G, T) or NULL
    float *moments;                            // (L * H, K + 1, K) or NULL
    float *value_norms;                        // (L * G, T) or NULL; in host memory
    bool has_decoded[DECODE_BATCH_MAX + 1];    // a step of so many sequences, for its time
};

/* The rows of some variants as one table, on the host (malloc) and on the device (from the pool). */
int kv_table_take(struct session *s, const struct variant *const *variant, int n, struct kv_table *table,
                  struct err *err) MUST_CHECK;

#endif
