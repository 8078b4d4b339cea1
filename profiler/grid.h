/* grid.h - what there is to do: contexts x configs x questions, less what a store holds. Decided, and refused where it
 * cannot work, before anything runs.
 */
#ifndef EVP_GRID_H
#define EVP_GRID_H

#include "base/context.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/parse.h"
#include "engine/engine.h"
#include "methods/config.h"
#include "profiler/store.h"

#include <stdbool.h>
#include <stdint.h>

/* One context's part. */
struct work {
    const struct context *context;
    struct tokens ids; // head + text, cut to what fits
    int n_cut;         // tokens that --truncate took away
    char token_digest[DIGEST_HEX];
    int n_questions;
    const struct question **question; // (n_questions)
    struct tokens *question_ids;      // (n_questions)
    bool *open;                       // (V, n_questions): answers to find
    int n_open;
};

struct grid {
    const struct config *config;
    int n_configs; // V
    int max_new_tokens;
    struct work *work; // in the order of the contexts; also those with nothing open
    int n_work;
    /* of what is open */
    int n_contexts;
    int64_t n_tokens, n_variants, n_questions, n_answers;
    int64_t n_found; // answers the store has already
};

enum too_long { TOO_LONG_REFUSE, TOO_LONG_CUT };

struct grid_input {
    const struct contexts *contexts;
    const struct questions *questions;
    const struct config *config;
    int n_configs, max_new_tokens;
    struct shard shard;
    enum too_long too_long;
    int model_tokens; // the longest the model allows
    const struct tokenizer *tokenizer;
    const struct store *store;
};

/* Gives each context of the shard its questions; of `in` only contexts, questions, shard and configs are looked at, so
 * this comes before a model is opened. ERR_FORMAT: a question about an unknown context, a context without questions.
 * All inputs must outlive the grid. */
int grid_begin(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* The rest: tokens, what fits, what is open. ERR_FORMAT: a context longer than the model allows, a text that changed
 * since it was stored. */
int grid_plan(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* The last two steps of grid_plan(), for contexts that are tokenised already. */
int grid_fit(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;
int grid_open(struct grid *g, const struct store *store, struct err *err) MUST_CHECK;

void grid_release(struct grid *g); // zeroed is fine

/* Configs that lack the same questions are answered together: takes the first config that is open and not in `taken`
 * (V) and all like it; marks them there. member: (V) their numbers; returns how many, 0: no more. */
int grid_group(const struct grid *g, const struct work *w, bool *taken, int *member);

/* Answers that config v of this work lacks. */
int work_n_open(const struct work *w, int v);

/* What is ahead, by the engine's count of operations. Memory is that of the largest context with all its variants at
 * once, beside the weights; less is made do with in smaller groups. */
struct grid_cost {
    uint64_t bytes;
    double flop;
};
int grid_cost(const struct grid *g, const struct engine *e, struct grid_cost *cost, struct err *err) MUST_CHECK;

/* The same of n configs of one group (grid_group). */
struct engine_cost work_cost(const struct grid *g, const struct work *w, const int *member, int n,
                             const struct engine *e);

#endif
