/* engine.h - the transformer: one prefill per context, then grouped batched decoding over its variants.
 *
 *     struct engine *engine = engine_open(&(struct engine_options){ .model = path }, &err);   // no weights yet
 *     engine_plan(engine, work, n, &plan, &err);     // does it fit? a refusal gives the numbers
 *     engine_load(engine, &plan, &err);              // weights
 *     struct session *s = session_new(engine, &err); // all other memory of the plan
 *     session_prefill(s, &want, &seconds, &err);     // the context, once
 *     session_repeat(s, &want, &err);                // what methods need besides
 *     compressor_variant(c, &config, ...);           // variants/: uncompressed cache -> variants
 *     session_decode(s, &job, answers, &err);        // all variants and questions in one batch
 *
 * engine: weights, immutable, shared by sessions. session: one context's uncompressed cache, and all memory for work
 * on it. Tools never see a tensor.
 */
#ifndef EVP_ENGINE_H
#define EVP_ENGINE_H

#include "base/err.h"
#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"
#include "kernels/backend.h"
#include "methods/method.h"
#include "variants/variant.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct session;

struct engine_options {
    const char *model;   // a .gguf file or a folder
    const char *backend; // one of BACKEND_NAMES; NULL: auto
    const char *dtype;   // one of BACKEND_DTYPES; NULL: f32; auto depends on the model's weights
    int n_threads;       // 0: all
    int device;          // of backend cuda, from 0
    bool timed;          // count and time every op: kernels/timed.h lists them
    bool no_weights;     // of a folder only the config is opened: for costs and plans
};

/* Opens the model's header, its tokenizer and the backend; reads no weights. */
struct engine *engine_open(const struct engine_options *options, struct err *err);

/* The same on an open backend, which engine_close() closes; on failure it stays the caller's. */
struct engine *engine_open_on(struct backend *backend, const char *model, struct err *err);
void engine_close(struct engine *e); // NULL is fine
const struct model *engine_model(const struct engine *e);
const struct tokenizer *engine_tokenizer(const struct engine *e);
struct backend *engine_backend(const struct engine *e);
struct kv_shape engine_kv_shape(const struct engine *e, int n_tokens); // of a context of so many

/* ---- a plan before the work starts ---- */

/* One context's work: its tokens, the configs of its variants, its questions. */
struct engine_work {
    int n_tokens;
    const struct config *const *config; // (n_configs)
    int n_configs;
    int n_questions;
    int64_t question_tokens; // of all questions
    int longest_question;
    int n_shared; // leading tokens that all questions have in common
    int max_new_tokens;
};

enum plan_area {
    PLAN_WEIGHTS,
    PLAN_LOADING,   // buffers for reading weights, freed before the areas below are allocated
    PLAN_ANGLES,    // rotary embedding
    PLAN_PASS,      // activations of one pass
    PLAN_SCRATCH,   // scratch of ops
    PLAN_CONTEXT,   // the uncompressed cache
    PLAN_SIDE,      // saved by prefill for methods
    PLAN_SCORES,    // of all methods
    PLAN_VARIANTS,  // rows of the variants that are answered together
    PLAN_SEQUENCES, // their questions and answers, or what repeating, scoring or making variants takes, if larger
    PLAN_AREAS
};
extern const char *const plan_area_name[PLAN_AREAS];

/* Device memory of some work: of the context that needs the most. */
struct engine_plan {
    int max_positions;       // longest context + question + answer
    int variants, sequences; // at once
    uint64_t bytes[PLAN_AREAS];
    uint64_t total; // peak
    uint64_t limit; // allowed
    bool is_given;  // the limit is the caller's
    int refused;    // after ERR_NOMEM: the first context that does not fit
};

/* Plans n contexts' work within plan->limit bytes (0: nine tenths of what is free), the only input in *plan. ERR_NOMEM,
 * with the numbers, when a context does not fit even with one variant and one sequence at a time. */
int engine_plan(const struct engine *e, const struct engine_work *work, int n, struct engine_plan *plan,
                struct err *err) MUST_CHECK;

/* Floating-point operations of one context's work, if every answer has max_new_tokens. */
struct engine_cost {
    double prefill_flop, side_flop, decode_flop; // side: of session_repeat()
    double shared_flop;                          // of decode_flop: attention to the context
};
struct engine_cost engine_cost(const struct engine *e, const struct engine_work *work);

/* Reads the weights. Work that the plan was not made for may fail with ERR_NOMEM. */
int engine_load(struct engine *e, const struct engine_plan *plan, struct err *err) MUST_CHECK;

/* How many of the work's configs, from the first, are answered together in a session's memory; at least 1. */
int session_variants_at_once(const struct session *s, const struct engine_work *work);

/* ---- one context ---- */

struct prefill {
    const int32_t *ids; // (n)
    int n;              // 1 .. max_tokens of the model
    unsigned needs;     // enum method_need: the union over the configs, from configs_need()
    int window;         // last tokens whose queries are saved
    void (*progress)(void *arg, int tokens_done, double seconds); // after every pass; may be NULL
    void *arg;
};

struct session *session_new(struct engine *e, struct err *err);

/* engine_plan(), engine_load() and session_new() in one. */
struct session *engine_start(struct engine *e, const struct engine_work *work, int n, uint64_t memory, struct err *err);

void session_free(struct session *s); // NULL is fine

/* Runs the context in passes; it replaces the session's previous one. ERR_USAGE when n is more than the model's
 * max_tokens, or an id is not in its vocabulary. *seconds (may be NULL): the time taken, without the side outputs that
 * methods need. */
int session_prefill(struct session *s, const struct prefill *p, double *seconds, struct err *err) MUST_CHECK;

/* After the prefill of *p: with NEED_REPEAT the model repeats the context, in a pass of its own. Without it nothing is
 * done. */
int session_repeat(struct session *s, const struct prefill *p, struct err *err) MUST_CHECK;

/* Borrowed, until the next prefill. */
const struct kv_full *session_full(const struct session *s);

/* Runs n ids as a context of their own and gives the logits (n, n_vocab) after each of them, in host memory, for
 * comparison with other implementations. The session loses its previous context. */
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
    int n_shared; // leading ids that all questions have in common, less than any question's: run once per variant
    int max_new_tokens;
    int batch;            // sequences at once; 0: the most that fit in a pass and in memory
    int n_sampled;        // the last n_sampled variants get sampled answers (op draw, kernels/backend.h)
    double temperature;   // of sampling, above 0
    const uint64_t *seed; // (n_questions): of the draws for each question; NULL if n_sampled is 0
    /* (n_questions) answers of at most max_new_tokens: not to be found, but to be judged; NULL: none, and nothing is
     * sampled then */
    const struct answer *given;
    /* May be NULL. tokens_done goes up to n_variants * (question tokens + n_questions * max_new_tokens): an answer that
     * ends early counts in full. */
    void (*progress)(void *arg, int tokens_done);
    void *arg;
};

/* One answer: the ids before the stop; n = 0: it stopped at once. */
struct answer {
    int32_t *ids; // owned by the caller (free)
    int n;
    int32_t stop;          // the id that stopped it; -1: none, it is as long as may be
    double log_likelihood; // of a given answer under the variant: mean over its ids and the stop, natural
    float margin;          // the smallest lead of a chosen token over the second, in logits; 0 in a sampled answer
};

/* Fills answer[v * n_questions + q]. Sequences run together in passes that stay full: one that ends makes space for one
 * that waits. All sequences of a variant share the attention over its rows; log-sum-exp merges in each sequence's own
 * suffix. Decoding is greedy, ties go to the lower id; for sampled variants each token is drawn by its probability, and
 * equal seeds give equal tokens. With given answers only log_likelihood is filled: all tokens of an answer run at once,
 * so that it takes few passes. An answer depends neither on the rest of the batch nor on n_shared. ERR_USAGE for an
 * empty question, ids that are not in the vocabulary, or answers that would end after the model's max_tokens;
 * ERR_FORMAT when the model's output is not finite. */
int session_decode(struct session *s, const struct decode *job, struct answer *answer, struct err *err) MUST_CHECK;

/* Seconds to the first token of one question, run alone over a variant that is on the device. */
int session_question_s(struct session *s, const struct variant *variant, struct question_ids question, double *seconds,
                       struct err *err) MUST_CHECK;

/* Seconds per token of an answer when `batch` copies of one sequence over the variant decode together and nothing else
 * runs: the time of a step, which gives each copy a token, divided by `batch`. Each copy attends to the variant's rows
 * by itself, as requests about different contexts of this size would. batch: 1 to DECODE_BATCH_MAX. */
enum { DECODE_BATCH_MAX = 32 };
int session_decode_s(struct session *s, const struct variant *variant, int batch, double *seconds,
                     struct err *err) MUST_CHECK;

#endif
