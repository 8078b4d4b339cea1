/* score.h - from answers to quality: the arithmetic of evp-score on a table, without the embedder.
 *
 * A variant's answer is as good as it is like the reference's (config 0, the untouched cache) to the same question:
 * from 0, nothing in common, to 1, the same.
 */
#ifndef EVP_SCORE_H
#define EVP_SCORE_H

#include "profiler/table.h"

/* Fills t->similarity, which table_alloc_scores() made, from cosine (Q, V): that of each answer to the reference's.
 * Equal texts give exactly 1, two empty ones too, whatever the cosine; NAN where either answer was not run. */
void score_similarity(struct table *t, const float *cosine);

/* Fills t->quality_train and t->quality_test with the mean similarity over the questions of each context and split,
 * each held to [0, 1]; NAN where none was run. Questions of other splits count for neither. */
int score_quality(struct table *t, struct err *err) MUST_CHECK;

/* Mean over the contexts that have a value of a (C, V) column, for one config; NAN for none. */
double score_mean(const struct table *t, const double *column, int config);

#endif
