/* gold.h - how variants score by the right answers (profiler/table/gold_list.h) that a table keeps with its questions.
 *
 * The metric is the dataset's own and the caller's (struct gold_scorer): this folder does not know datasets/.
 */
#ifndef EVP_GOLD_H
#define EVP_GOLD_H

#include "base/err.h"
#include "profiler/table/table.h"

struct gold {
    const char *const *at; // (n)
    int n;
};

/* score: from 0 to 1, or NAN when the dataset has no metric. */
struct gold_scorer {
    int (*score)(const char *dataset, const char *answer, const struct gold *gold, double *score, struct err *err);
};

/* Fills gold_score and gold_mean, which table_alloc_scores() made: the score of every answer to a question with right
 * answers, and its mean over these questions of a context. */
int gold_score(struct table *t, const struct gold_scorer *scorer, struct err *err) MUST_CHECK;

#endif
