/* score.h - from answers to quality, and from quality to utility: the work of evp-score on a table. The embedder is the
 * caller's (struct score_embedder).
 *
 * An answer under a config is as good as it is like the reference's (config 0, the uncompressed cache) to the same
 * question: from 0, nothing in common, to 1, the same.
 *
 *     bool *lost = calloc(t.n_contexts, sizeof(*lost));
 *     int n_lost = score_lost(&t, lost);                  // contexts that can get no quality
 *     table_alloc_scores(&t, n_tiers + 1, &err);
 *     score_answers(&t, &embedder, &err);                 // similarity and quality
 *     score_tiers(&t, &tiers, alpha, &err);               // TTFT and utility
 */
#ifndef EVP_SCORE_H
#define EVP_SCORE_H

#include "loader/formats/tiers.h"
#include "profiler/table.h"

#include <stdbool.h>

/* lost (C): whether the reference answered no question of a context. Returns how many are lost. */
int score_lost(const struct table *t, bool *lost);

/* What makes vectors of texts: vector (n, width) of n texts, and the cosine of two of them. */
struct score_embedder {
    int width;
    int (*embed)(void *arg, const char *const *text, int n, float *vector, struct err *err);
    float (*cosine)(const float *a, const float *b, int width);
    void *arg;
};

/* Fills similarity, quality_train and quality_test with their deviations and numbers, which table_alloc_scores() made.
 *
 * similarity: the cosine to the reference's answer. Equal texts give exactly 1, two empty ones too, whatever the cosine
 * is; NAN where either answer was not run. quality: the mean similarity over the questions of each context and split,
 * each clamped to [0, 1]; NAN where none was run. Its number is how many these are, and its deviation is theirs around
 * the mean, with n - 1; NAN below two. Questions of other splits count for neither. */
int score_answers(struct table *t, const struct score_embedder *e, struct err *err) MUST_CHECK;

/* Fills tier_name, ttft_s and utility, which table_alloc_scores() made for the tiers and "recompute", at frequency 1.
 * A variant that was not run has none on the tiers; only config 0 has any on "recompute". */
int score_tiers(struct table *t, const struct tiers *tiers, double alpha, struct err *err) MUST_CHECK;

#endif
