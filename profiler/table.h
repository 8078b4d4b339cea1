/* table.h - the profile and utility table (HDF5). Layout: docs/table.md; opened with h5py in a test.
 *
 * In memory it is plain arrays. C contexts, V configs, Q questions, T tiers. Absent is NAN, -1 or an empty string,
 * never 0. table_read() checks every shape, type and index against every other, so who uses the arrays need not.
 */
#ifndef EVP_TABLE_H
#define EVP_TABLE_H

#include "base/err.h"

#include <stdint.h>

enum { TABLE_VERSION = 1 };

struct table {
    /* root attributes; owned strings, "" when absent */
    char *model, *model_digest, *backend, *dtype, *embedder_digest, *lineage; // lineage: JSON text
    int n_contexts, n_configs, n_questions, n_tiers;

    char **context_id, **context_dataset, **context_token_digest; // (C)
    int64_t *n_tokens, *kv_bytes;                                 // (C)
    double *prefill_s, *question_s;                               // (C)
    char **config_name;                                           // (V), [0] is "none"
    char **question_id, **question_text, **question_split;        // (Q)
    int64_t *question_context;                                    // (Q): row in contexts
    char **answer_text;                                           // (Q, V)
    int32_t *answer_n_tokens;                                     // (Q, V); -1: not run
    int64_t *cell_bytes;                                          // (C, V); -1: not run
    double *size_frac, *keep_frac, *compress_s, *decompress_s;    // (C, V); NAN: not run

    float *similarity;                    // (Q, V) or NULL before evp-score
    double *quality_train, *quality_test; // (C, V) or NULL
    char **tier_name;                     // (T): tiers, then "recompute"
    double *utility, *ttft_s;             // (C, V, T) or NULL
};

/* All arrays of the first three groups allocated and filled with "absent". */
int table_alloc(struct table *t, int n_contexts, int n_configs, int n_questions, struct err *err) MUST_CHECK;
void table_release(struct table *t);

/* Adds the arrays of evp-score: similarity and quality; and utility when n_tiers > 0 (recompute counted). */
int table_alloc_scores(struct table *t, int n_tiers, struct err *err) MUST_CHECK;

enum table_want { TABLE_ALL, TABLE_PLAN }; // PLAN leaves out texts of questions and answers

int table_read(struct table *t, const char *path, enum table_want want, struct err *err) MUST_CHECK;
int table_write(const struct table *t, const char *path, struct err *err) MUST_CHECK; // whole or not at all

/* Puts the tables of several shards together: contexts and configs united, what one has and another lacks filled in.
 * ERR_FORMAT when models differ or the same context has different tokens. */
int table_merge(struct table *into, const struct table *from, struct err *err) MUST_CHECK;

#endif
