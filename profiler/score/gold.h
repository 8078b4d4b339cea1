/* gold.h - scores variants by the right answers that a table keeps with its questions (profiler/table/gold_list.h),
 * with the dataset's own metric (profiler/score/metric.h). */
#ifndef EVP_GOLD_H
#define EVP_GOLD_H

#include "base/err.h"
#include "profiler/table/table.h"

/* Fills gold_score and gold_mean, allocated by table_alloc_scores(): the score of every answer to a question with right
 * answers, and the mean over these questions per context; NAN where the dataset has no metric. */
int gold_score(struct table *t, struct err *err) MUST_CHECK;

#endif
