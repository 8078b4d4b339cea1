/* gold.h - answers that a dataset holds to be right, kept with the questions of a table, and how variants score by
 * them.
 *
 * The metric is the dataset's own and the caller's (struct gold_scorer): this folder does not know datasets/.
 */
#ifndef EVP_GOLD_H
#define EVP_GOLD_H

#include "base/context.h"
#include "base/err.h"
#include "profiler/table.h"

/* *json: the right answers to a question of the context as a list in JSON, freed by the caller; NULL when the context
 * has none for it. Questions are compared word by word: evp-qgen makes every run of white space one blank. */
int gold_find(const struct context *c, const char *question, char **json, struct err *err) MUST_CHECK;

/* Is a text what gold_find() makes, or empty? */
bool gold_is_list(const char *json);

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
