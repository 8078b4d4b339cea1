/* exact.h - what answers keep of the reference's answers, word by word: facts and token F1. Beside the cosine, which
 * hardly sees a wrong date, name or number. */
#ifndef EVP_EXACT_H
#define EVP_EXACT_H

#include "base/err.h"
#include "profiler/table/table.h"

/* Fills facts_kept, token_f1 and their means, allocated by table_alloc_scores(). NAN where an answer or the reference's
 * was not run; facts_kept also where the reference's answer has no facts (profiler/score/facts.h). An answer as long as
 * the table's max_new_tokens counts as cut. weight (Q): of each question in the means; NULL: all 1. ERR_FORMAT: an
 * answer so long that comparing it would take minutes. */
int exact_score(struct table *t, const double *weight, struct err *err) MUST_CHECK;

/* Fills predicted_facts and predicted_facts_sd, allocated by table_alloc_belief(), from the train questions:
 * predictions as of qualities (planner/belief.h), with more doubt: an answer's variance is at least p (1 - p), p being
 * the share over all n answers of the config with one answer that keeps everything and one that keeps nothing added
 * (Laplace's rule of succession), and p (1 - p) / (n + 2) is added for the config's mean. So three lucky answers prove
 * little. */
int exact_predict(struct table *t, const double *weight, struct err *err) MUST_CHECK;

/* The number of the reference's answers, and of those that are not in English: only their numbers and dates in digits
 * are facts. */
int exact_languages(const struct table *t, int *n_answers, int *n_other, struct err *err) MUST_CHECK;

#endif
