/* gold.h - how variants score by the right answers (profiler/table/gold_list.h) that a table keeps with its questions,
 * by their dataset's own metric (profiler/score/metric.h). */
#ifndef EVP_GOLD_H
#define EVP_GOLD_H

#include "base/err.h"
#include "profiler/table/table.h"

/* Fills gold_score and gold_mean, which table_alloc_scores() made: the score of every answer to a question with right
 * answers, and its mean over these questions of a context; NAN where the dataset has no metric. */
int gold_score(struct table *t, struct err *err) MUST_CHECK;

#endif
