/* grid.h - the work of a profile: contexts x configs x questions, less what the shards hold. All of it is decided, and
 * refused where it cannot work, before anything runs; none of it needs a device or weights.
 *
 * A context or a question that cannot be profiled is left out, with a sentence that says why; the others go on. An
 * error is what concerns the whole run.
 *
 *     grid_begin(&g, &in, &err);      // which context has which questions: needs no model
 *     grid_plan(&g, &in, &err);       // tokens, what fits, what is open
 *     for each work with n_open > 0: run_work()
 */
#ifndef EVP_GRID_H
#define EVP_GRID_H

#include "base/digest.h"
#include "base/err.h"
#include "base/parse.h"
#include "engine/transformer/engine.h"
#include "formats/context.h"
#include "methods/config.h"
#include "profiler/run/shards.h"
#include "formats/cells.h"

#include <stdbool.h>
#include <stdint.h>

/* One context and its questions. */
struct work {
    const struct context *context;
    struct tokens ids; // of the context (engine/tokens/tokenizer.h), cut to what fits
    int n_cut;         // tokens that were cut off
    bool is_cut;       // the text ends with these tokens, and the questions are encoded apart
    char token_digest[DIGEST_HEX];
    int n_questions;
    const struct question **question; // (n_questions)
    struct tokens *question_ids;      // (n_questions)
    int n_shared;                     // first ids that all questions have in common: those of `ask`
    bool *open;                       // (V, n_questions): answers that the shards lack
    int n_open;
    bool refused;  // to be left out; false between the functions below
    bool row_only; // not in the sample: nothing is open, and it may have no questions
};

/* Which answers of a config are open: (n_questions). */
static inline bool *work_open(const struct work *w, int config)
{
    return w->open + (size_t)config * (size_t)w->n_questions;
}

struct grid {
    const struct config *config;
    int n_configs; // V
    int max_new_tokens;
    double temperature; // the reference answers what is open a second time, sampled at this one; 0: it does not
    struct work *work;  // in the order of the contexts; some have nothing open
    int n_work;
    /* counts of what is open */
    int n_contexts;
    int64_t n_tokens, n_variants, n_questions, n_answers;
    int64_t n_sampled; // second answers of the reference, which n_answers does not count
    int64_t n_found;   // answers the shards have already
    /* what was left out, whether or not it was open */
    int n_refused, n_refused_questions; // contexts; questions of contexts that stay, or of none
    struct {
        char **at;
        int n, cap;
    } why; // sentences, of the first GRID_SENTENCES refusals
};

enum { GRID_SENTENCES = 100 };

enum too_long { TOO_LONG_REFUSE, TOO_LONG_CUT };

/* Which questions are answered. */
enum grid_split { GRID_BOTH, GRID_TRAIN, GRID_TEST };

struct grid_input {
    const struct contexts *contexts;
    const struct questions *questions;
    const struct config *config;
    int n_configs, max_new_tokens;
    double temperature;
    struct shard shard;
    enum grid_split split;
    const struct cells *cells; // contexts and answers that are wanted, its configs being `config`; NULL: all
    const bool *sampled;       // (contexts) those that are run, the others being rows only; NULL: all
    enum too_long too_long;
    int model_tokens; // the longest the model allows
    int model_window; // > 0: because its attention has a sliding window
    const struct tokenizer *tokenizer;
    const struct shards *shards;
};

/* Gives each context of the shard its questions. Reads only contexts, questions, shard and cells of `in`, so it can be
 * called before a model is opened. Leaves out questions about unknown contexts, and contexts without questions that are
 * not rows only.
 * ERR_FORMAT: a shard without contexts. All inputs must outlive the grid. */
int grid_begin(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Tokenises, then grid_fit() and grid_open(). Leaves out what cannot be tokenised. */
int grid_plan(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Compares each context, with its longest question and a whole answer, with the model's limit. Leaves out contexts that
 * are too long and may not be cut, and questions that are too long by themselves. A context that the shards have cut
 * stays as long as it is there; questions that do not fit after it are left out. Any other is cut so that questions a
 * little longer than the longest would fit, too. */
int grid_fit(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Marks the answers that the shards lack. Leaves out what has another text there. */
int grid_open(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

void grid_release(struct grid *g); // zeroed is fine

/* The number of answers that config v of this work lacks. */
int work_n_open(const struct work *w, int v);

#endif
