/* table.h - the profile and utility table (HDF5). Layout: docs/formats/table.md; a test opens it with h5py.
 *
 * In memory: plain arrays over C contexts, V configs, Q questions, T tiers, P points of prefill curves. Absent is NAN,
 * -1 or an empty string, never 0, except question_s, which is 0 when unknown. table_read() checks every shape, type and
 * index, so code that uses the arrays does not.
 *
 *     struct table t;
 *     if (table_read(&t, "profile.h5", TABLE_ALL, &err)) ...
 *     table_alloc_scores(&t, n_tiers, &err);
 *     table_set_text(&t.lineage, text, &err);
 *     table_write(&t, "table.h5", &err);
 *     table_release(&t);
 *
 * The arrays belong to the table. Their strings are borrowed: each must outlive the table or be handed over with
 * table_own(). table_set_text() replaces the strings of the root attributes.
 */
#ifndef EVP_TABLE_H
#define EVP_TABLE_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_LIKELIHOOD "likelihood"
enum { TABLE_VERSION = 2 };

enum { TABLE_BATCHES = 3 };
extern const int table_batch[TABLE_BATCHES]; // sequences that decode together: 1, 8, 32

struct table {
    /* root attributes; "" when absent */
    char *model, *model_digest, *backend, *dtype, *chat_digest, *embedder_digest, *lineage; // lineage: JSON text
    char *measure;          // of variants: "": their answers; TABLE_LIKELIHOOD: how likely they make the reference's
    int64_t max_new_tokens; // the answers' budget; -1: unknown
    double temperature;     // of the sampled answers; 0: none
    int n_contexts, n_configs, n_questions, n_tiers, n_points;

    const char **context_id, **context_dataset, **context_token_digest; // (C)
    int64_t *n_tokens, *kv_bytes;                                       // (C)
    double *prefill_s, *question_s;                                     // (C); question_s 0: unknown
    int64_t *prefill_n;                                                 // (C): number of measurements; -1: unknown
    double *prefill_spread, *question_spread;                           // (C): (slowest - fastest) / fastest
    double *prefill_flop;                                               // (C): operations; NAN: unknown
    double *profiled_at;                                                // (C): seconds since 1970, UTC
    const char **context_prefix_digests;                                // (C): digest_chain(); "": unknown or none
    const char **config_name;                                           // (V), [0] is "none"
    const char **question_id, **question_text, **question_split;        // (Q)
    const char **question_origin;                                       // (Q): its source; "": unknown
    int64_t *question_context;                                          // (Q): row in contexts
    double *asked_at;          // (Q): time of the last request that asked it, seconds since 1970, UTC; NAN: unknown
    const char **gold_answers; // (Q): right answers, profiler/table/gold_list.h; "": none
    const char **sampled_text; // (Q): the reference's second answer
    int32_t *sampled_n_tokens; // (Q); -1: not run
    const char **answer_text;  // (Q, V)
    int32_t *answer_n_tokens;  // (Q, V); -1: not run; 0 if only judged
    float *log_likelihood;     // (Q, V): of the reference's answer under a variant, per token; NAN: not judged
    int64_t *cell_bytes;       // (C, V); -1: not run
    int64_t *cell_bytes_read;  // (C, V) or NULL: of these, read to answer; -1: all. Read it with table_bytes_read()
    double *size_frac, *keep_frac, *compress_s, *decompress_s; // (C, V); NAN: not run
    double *decode_s[TABLE_BATCHES]; // (C, V): seconds per generated token at table_batch[i]; NAN: not measured

    /* (P) or NULL: after `curve_n_tokens` tokens the prefill of a context had taken `curve_s` seconds. By context, then
     * by tokens; the last point of a context is (n_tokens, prefill_s). */
    int64_t *curve_context, *curve_n_tokens;
    double *curve_s;

    float *similarity;                      // (Q, V) or NULL before evp-score
    double *unrelated;                      // (C) or NULL: similarity of the reference's answers to two questions
    float *sampled_similarity;              // (Q) or NULL: of the reference's two answers
    double *same_meaning;                   // (C) or NULL: its mean over questions
    float *gold_score;                      // (Q, V) or NULL: by the dataset's own metric; NAN: none
    double *gold_mean;                      // (C, V) or NULL: its mean over questions
    float *facts_kept;                      // (Q, V) or NULL: share of the reference's facts; NAN: not run, or none
    float *token_f1;                        // (Q, V) or NULL: words shared with the reference's answer; NAN: not run
    double *facts_train, *facts_test;       // (C, V) or NULL: means of facts_kept; NAN without any
    double *token_f1_train, *token_f1_test; // (C, V) or NULL: means of token_f1; NAN without any
    double *quality_train, *quality_test;   // (C, V) or NULL
    /* (C, V) or NULL: standard deviation (n - 1) and number of the similarities behind a quality; the deviation is NAN
     * for n < 2 or unknown, the number -1 for unknown */
    double *quality_train_std, *quality_test_std;
    int32_t *quality_train_n, *quality_test_n;

    /* Predictions of the train qualities (planner/belief.h), or all NULL. NAN where a cell or config was not asked. */
    double *predicted_quality;                            // (C, V)
    float *predicted_sd;                                  // (C, V)
    float *predicted_facts, *predicted_facts_sd;          // (C, V): the same for facts_train
    double *belief_mean, *belief_between, *belief_within; // (V)
    int32_t *cell_asked;                                  // (C, V): train questions behind a prediction
    const char **tier_name;                               // (T): tiers, then "recompute"
    double *utility, *ttft_s;                             // (C, V, T) or NULL

    struct map ids;          // context id -> row, after table_read(); else empty
    char digest[DIGEST_HEX]; // SHA-256 of the file, after table_read(); else ""

    /* private: the memory of the arrays */
    void *map; // a file's content, mapped; arrays that point elsewhere came from malloc
    size_t map_bytes;
    struct {
        char **at;
        int n, cap;
    } owned; // strings freed with the table
};

/* The index of a cell in the (C, V) arrays, and of an answer in the (Q, V) arrays. */
static inline size_t table_cell(const struct table *t, int context, int config)
{
    return (size_t)context * (size_t)t->n_configs + (size_t)config;
}

static inline size_t table_answer(const struct table *t, int question, int config)
{
    return (size_t)question * (size_t)t->n_configs + (size_t)config;
}

/* The bytes of a cell that are read to answer; the others are kept, too. -1: not run. */
static inline int64_t table_bytes_read(const struct table *t, size_t cell)
{
    bool fewer = t->cell_bytes_read && t->cell_bytes_read[cell] >= 0;

    return fewer ? t->cell_bytes_read[cell] : t->cell_bytes[cell];
}

/* Did a variant answer by itself? The reference always does. */
static inline bool table_has_text(const struct table *t, size_t answer)
{
    bool judged = t->log_likelihood && !isnan(t->log_likelihood[answer]) && answer % (size_t)t->n_configs != 0;

    return t->answer_n_tokens[answer] >= 0 && !judged;
}

/* The number of cells, and of answers. */
static inline size_t table_n_cells(const struct table *t)
{
    return table_cell(t, t->n_contexts, 0);
}

static inline size_t table_n_answers(const struct table *t)
{
    return table_answer(t, t->n_questions, 0);
}

/* The number of the config called `name`, or -1. */
int table_find_config(const struct table *t, const char *name);

/* Was one of the context's cells run? Only what was run has a compress_s. */
bool table_is_measured(const struct table *t, int context);

/* The mean of a (C, V) column under one config, over the contexts with a value; NAN without any, or when the column is
 * NULL. */
double table_mean(const struct table *t, const double *column, int config);

/* The mean over contexts of bytes read / uncompressed bytes under one config; NAN when it reads all its bytes. */
double table_read_frac(const struct table *t, int config);

/* The table's lineage, parsed; freed with json_free(). NULL: none, or not JSON. */
struct json *table_lineage(const struct table *t);

/* ---- memory ---- */

/* Allocates the arrays of contexts, configs and questions, filled with "absent"; strings are "". ERR_FORMAT when a
 * product of the counts exceeds what a table can hold. */
int table_alloc(struct table *t, int n_contexts, int n_configs, int n_questions, struct err *err) MUST_CHECK;
void table_release(struct table *t); // zeroed is fine

/* Adds or replaces the arrays of the prefill curves, n_points long; 0: none. */
int table_alloc_curve(struct table *t, int n_points, struct err *err) MUST_CHECK;

/* Adds cell_bytes_read unless it is there. table_all_read(): all bytes are read again. */
int table_alloc_read(struct table *t, struct err *err) MUST_CHECK;
void table_all_read(struct table *t);

/* Adds or replaces the arrays of evp-score: similarity, quality and its companions, and utility when n_tiers (with
 * recompute) > 0. Filled with NAN and "". */
int table_alloc_scores(struct table *t, int n_tiers, struct err *err) MUST_CHECK;

/* Adds or replaces the arrays of predictions. */
int table_alloc_belief(struct table *t, struct err *err) MUST_CHECK;

/* Takes over a string from malloc: frees it with the table, or at once on failure. NULL is ERR_NOMEM. */
int table_own(struct table *t, char *text, struct err *err) MUST_CHECK;

/* Replaces a root attribute by a copy of `text`. */
int table_set_text(char **attribute, const char *text, struct err *err) MUST_CHECK;

/* Leaves out contexts with their questions and points, and other questions: those whose flag is false; NULL: none. */
int table_keep(struct table *t, const bool *context, const bool *question, struct err *err) MUST_CHECK;

/* ---- how it was made ---- */

/* The settings that answers, sizes and times depend on; all measurements of a table share them. Strings are borrowed.
 * */
struct table_made {
    const char *model, *model_digest, *backend, *dtype; // backend: its kind, "cpu-avx512"
    int64_t max_new_tokens;
    const char *chat_digest; // of the chat template around the prompts
    double temperature;      // of sampled answers; 0: none
    const char *measure;     // of variants; NULL is ""
};

struct table_made table_made(const struct table *t);
int table_set_made(struct table *t, const struct table_made *made, struct err *err) MUST_CHECK;

/* NULL when both agree; else the difference, written to `text`: "--max-new-tokens 2, not 3". Not compared: a backend or
 * dtype that is NULL in `want` (not known yet), a chat template that either side does not know, and the temperature
 * when either side has no sampled answers. */
enum { TABLE_DIFFERENCE = 256 };
const char *table_made_difference(char text[TABLE_DIFFERENCE], const struct table_made *is,
                                  const struct table_made *want);

/* ---- files ---- */

/* PLAN reads only what planning needs. These stay NULL: context_dataset, prefill_flop, profiled_at, keep_frac,
 * compress_s, decode_s, all of questions and answers, similarities, gold scores, facts and token F1 except the
 * predicted facts, deviations of qualities, the numbers behind predictions, tiers and utility. n_tiers is 0;
 * n_questions is as in the file. */
enum table_want { TABLE_ALL, TABLE_PLAN };

/* ERR_IO: cannot open. ERR_FORMAT: not a table, truncated, damaged, or inconsistent. A child process parses the file,
 * because a hostile file can crash libhdf5. *t is zeroed on failure. */
int table_read(struct table *t, const char *path, enum table_want want, struct err *err) MUST_CHECK;
int table_write(const struct table *t, const char *path, struct err *err) MUST_CHECK; // whole or not at all

/* Checks the rules of table_read(); ERR_FORMAT with the first one broken. Absent arrays are skipped. */
int table_check(const struct table *t, struct err *err) MUST_CHECK;

/* ---- several tables (table_unite.c) ---- */

/* The rows of tables by name. */
struct table_rows {
    struct map contexts, configs, questions; // context id, config name, question id -> row
};

/* Adds the names of `t` that are new; for the first table the numbers are its rows. A failure releases nothing. */
int table_rows_add(struct table_rows *rows, const struct table *t, struct err *err) MUST_CHECK;
void table_rows_release(struct table_rows *rows); // zeroed is fine

/* Tables read with TABLE_ALL. */
struct tables {
    struct table *at;
    int n, cap;
};

/* Reads one more table. */
int tables_read(struct tables *tables, const char *path, struct err *err) MUST_CHECK;
void tables_release(struct tables *tables); // zeroed is fine

/* Unites tables. Contexts, configs and questions are in order of first appearance, and tables fill each other's gaps;
 * of a row or cell in several tables the first measured one counts, of a question the latest asked_at. Scores and tiers
 * are left out, to be computed again. The lineage is the first table's. ERR_FORMAT when the tables were made
 * differently, or an id stands for different tokens or questions. *out does not borrow from the inputs. */
int tables_unite(struct table *out, const struct tables *tables, struct err *err) MUST_CHECK;
int table_unite(struct table *out, const struct table *const *from, int n, struct err *err) MUST_CHECK;

#endif
