/* grid.h - the work of a profile: contexts x configs x questions, minus the answers in the shards. All of it is
 * decided, or refused, before anything runs, without a device or weights.
 *
 * A context or question that cannot be profiled is left out, with a sentence that says why; the others go on. An error
 * concerns the whole run.
 *
 *     grid_begin(&g, &in, &err);      // gives contexts their questions; needs no model
 *     grid_plan(&g, &in, &err);       // tokens, what fits, which answers are open
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
#include "profiler/run/draw.h"
#include "profiler/run/shards.h"
#include "formats/cells.h"

#include <stdbool.h>
#include <stdint.h>

/* One context and its questions. */
struct work {
    const struct context *context;
    struct tokens ids; // of the context (engine/tokens/tokenizer.h), cut to fit
    int n_cut;         // tokens that were cut off
    bool is_cut;       // the text ends with these tokens; questions are tokenised separately
    char token_digest[DIGEST_HEX];
    int n_questions;
    const struct question **question; // (n_questions)
    struct tokens *question_ids;      // (n_questions)
    int n_shared;                     // number of ids that all questions begin with: those of `ask`
    bool *open;                       // (V, n_questions): answers that are not in the shards
    int n_open;
    bool is_new;   // no answer to its questions is in the shards
    bool *decodes; // (V): variants whose decoding is timed, if they are made: those without such times in the shards
    bool refused;  // to be left out; always false between the functions below
    bool row_only; // not in the sample: nothing is open; may have no questions
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
    double temperature; // of the reference's second, sampled answers; 0: no second answers
    bool judges;        // variants do not answer, but judge the reference's answers
    struct work *work;  // in the order of the contexts, or of the sample; may have nothing open
    int n_work;
    /* counts of what is open */
    int n_contexts;
    int64_t n_tokens, n_variants, n_questions, n_answers;
    int64_t n_sampled; // second answers of the reference, not counted in n_answers
    int64_t n_found;   // answers that are in the shards
    int n_left;        // contexts taken out by grid_leave()
    /* what was left out, open or not */
    int n_refused, n_refused_questions; // contexts; questions of kept or unknown contexts
    struct {
        char **at;
        int n, cap;
    } why; // sentences about the first GRID_SENTENCES refusals
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
    bool judges;
    bool times_decoding; // of every variant that is made
    struct shard shard;
    enum grid_split split;
    const struct cells *cells;           // the wanted contexts and answers; its configs are `config`; NULL: all
    const struct context_sample *sample; // which to run, and in which order; the others are only rows; NULL: all
    enum too_long too_long;
    int model_tokens;   // the model's limit
    int model_short;    // contexts of up to so many tokens (longrope, or a window in every layer)
    int model_original; // have this limit
    const struct tokenizer *tokenizer;
    const struct shards *shards;
};

/* Gives each context of the shard its questions. Reads only contexts, questions, shard and cells of `in`, so it can run
 * before a model is opened. Leaves out questions about unknown contexts, and contexts without questions unless they are
 * only rows. ERR_FORMAT: a shard without contexts. All inputs must outlive the grid. */
int grid_begin(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Tokenises, then calls grid_fit() and grid_open(). Leaves out what cannot be tokenised. */
int grid_plan(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Compares each context plus its longest question and a whole answer with the model's limit. Leaves out contexts that
 * are too long and may not be cut, and questions that are too long by themselves. A context that is already cut in the
 * shards keeps that length; questions that do not fit after it are left out. Other contexts are cut with a small
 * reserve for longer questions. */
int grid_fit(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Marks the answers that are not in the shards as open. Leaves out contexts and questions with another text there. */
int grid_open(struct grid *g, const struct grid_input *in, struct err *err) MUST_CHECK;

/* Takes w out of what is open, as its time is up. */
void grid_leave(struct grid *g, const struct work *w);

void grid_release(struct grid *g); // zeroed is fine

/* The number of open answers of config v. */
int work_n_open(const struct work *w, int v);

#endif
