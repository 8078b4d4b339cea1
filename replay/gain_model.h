/* gain_model.h - what a model's shape and a GPU's data sheet tell of requests in logs: bytes of KV, seconds, tokens. No
 * weights are read. docs/gain.md has the formulas.
 */
#ifndef EVP_GAIN_MODEL_H
#define EVP_GAIN_MODEL_H

#include "replay/gain_log.h"
#include "engine/model/shape.h"
#include "profiler/score/serving.h"
#include "replay/steps.h"

struct gain_model {
    struct model *model;
    const struct serving_gpu *gpu;
    struct serving_gpu given; // by figures
    struct shape shape;
    double kv_token; // bytes of KV per token; with what a prompt has once once gain_model_measure() knows prompts
    double token_s, pair_s; // to compute a token after n others: token_s + n * pair_s
    /* set by gain_model_measure() */
    double token_bytes; // bytes of text per token
    double unit_tokens; // tokens per unit of the log
    int n_sampled;      // prompts whose tokens were counted
    struct err unread;  // why there is no tokenizer; code 0: there is one, or none is needed
};

/* Both as given by options, NULL: not given. ERR_USAGE: needed, or not known. */
int gain_model_open(struct gain_model *m, const char *model, const char *gpu, struct err *err) MUST_CHECK;
void gain_model_close(struct gain_model *m); // zeroed is fine

/* Measures the tokens of a log's units: 1 for a trace; otherwise by the model's tokenizer, or guessed without one. What
 * a prompt has once, windows and states, is spread over the tokens of a prompt of mean length. */
int gain_model_measure(struct gain_model *m, const char *model, const struct gain_log *log, struct err *err) MUST_CHECK;

/* What steps take (replay/steps.h), from the shape of the model and the data sheet of the GPU. */
struct steps_gpu gain_model_steps(const struct gain_model *m);

#endif
