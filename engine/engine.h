/* engine.h - the transformer: one prefill per context, then grouped batched decoding over its variants.
 *
 *     struct engine *engine = engine_open(&(struct engine_options){ .model = path, .backend = "auto" }, &err);
 *     struct session *s = session_new(engine, &err);
 *     session_prefill(s, &want, &err);               // the context, once
 *     compressor_variant(c, &config, ...);           // methods/: full cache -> variants
 *     session_decode(s, &job, answers, &err);        // all variants and questions in one batch
 *
 * engine: weights, immutable, shared by sessions. session: one context's full cache, and scratch memory. Tools never
 * see a tensor.
 */
#ifndef EVP_ENGINE_H
#define EVP_ENGINE_H

#include "base/err.h"
#include "engine/model.h"
#include "engine/tokenizer.h"
#include "kernels/backend.h"
#include "methods/method.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct session;

struct engine_options {
    const char *model;   // a .gguf file or a folder
    const char *backend; // "cpu", "reference", "auto"
    enum dtype dtype;    // DTYPE_F32
    int n_threads;       // 0: all
};

struct engine *engine_open(const struct engine_options *options, struct err *err);
void engine_close(struct engine *e);
const struct model *engine_model(const struct engine *e);
const struct tokenizer *engine_tokenizer(const struct engine *e);
struct backend *engine_backend(const struct engine *e);
struct kv_shape engine_kv_shape(const struct engine *e);

/* ---- one context ---- */

struct prefill {
    const int32_t *ids;                           // (n)
    int n;                                        // 1 .. max_tokens of the model
    unsigned needs;                               // enum method_need: the union over the configs, from configs_need()
    int window;                                   // last tokens whose queries are saved
    void (*progress)(void *arg, int tokens_done); // may be NULL
    void *arg;
};

struct session *session_new(struct engine *e, struct err *err);
void session_free(struct session *s);

/* Runs the context in chunks, in place of the session's previous one. ERR_USAGE when n is more than the model's
 * max_tokens, or an id is not in its vocabulary. *seconds (may be NULL): the time it took. */
int session_prefill(struct session *s, const struct prefill *p, double *seconds, struct err *err) MUST_CHECK;

/* Borrowed, until the next prefill. */
const struct kv_full *session_full(const struct session *s);

/* Runs n ids as a context of their own and gives the logits (n, n_vocab) after each of them, in host memory: for
 * comparing with other implementations. The session's previous context is forgotten. */
int session_logits(struct session *s, const int32_t *ids, int n, float *logits, struct err *err) MUST_CHECK;

/* ---- many questions over many variants ---- */

struct question_ids {
    const int32_t *ids;
    int n;
};

struct decode {
    const struct variant *const *variant; // (n_variants); they share n_tokens and shape
    int n_variants;
    const struct question_ids *question; // (n_questions)
    int n_questions;
    int max_new_tokens;
    int batch; // sequences at once, at most 512; 0: as many as fit in memory
    /* May be NULL. tokens_done goes up to n_variants * (question tokens + n_questions * max_new_tokens): an answer that
     * ends early counts as whole. */
    void (*progress)(void *arg, int tokens_done);
    void *arg;
};

/* One answer: the ids before the stop; n = 0: it stopped at once. */
struct answer {
    int32_t *ids; // owned by the caller (free)
    int n;
};

/* Fills answer[v * n_questions + q]. All sequences run together: question tokens in one pass, then one token each per
 * step. Attention over a variant's rows is shared by its sequences; each sequence's own suffix is merged in by
 * log-sum-exp. Decoding is greedy, ties go to the lower id, and an answer does not depend on what else is in the batch.
 * ERR_USAGE for an empty question, ids that are not in the vocabulary, or answers that would end after the model's
 * max_tokens. *question_s (may be NULL): mean seconds to prefill one question over a present cache. */
int session_decode(struct session *s, const struct decode *job, struct answer *answer, double *question_s,
                   struct err *err) MUST_CHECK;

/* ---- a plan before the work starts ---- */

/* One context's work: its tokens, its variants and the sum of the fractions of rows they keep, its questions. */
struct engine_work {
    int n_tokens, n_variants;
    double keep_frac_sum;
    int n_questions, question_tokens, max_new_tokens;
};

/* What the work needs besides the weights: bytes of device memory with batch 0, and floating-point operations if every
 * answer has max_new_tokens. */
struct engine_cost {
    uint64_t bytes;
    double prefill_flop, decode_flop;
};
struct engine_cost engine_cost(const struct engine *e, const struct engine_work *work);

#endif
