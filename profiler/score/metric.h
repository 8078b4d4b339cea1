/* metric.h - how LongBench scores an answer against those that a dataset holds to be right.
 *
 * As its metrics.py and eval.py have it, to the letter: the words that are dropped, the classes that trec has, the
 * shortcomings too. A score is from 0 to 1, the best over the right answers.
 *
 *     token F1         narrativeqa, qasper, multifieldqa_en, hotpotqa, 2wikimqa, musique, triviaqa
 *     ROUGE-L          gov_report, qmsum, multi_news, samsum; the F of the package `rouge` 1.0.1
 *     accuracy         trec: 1 / the classes that the answer names, when the right one is among them
 *     right numbers    passage_count, passage_retrieval_en: their share of the numbers in the answer
 *     edit similarity  lcc, repobench-p: of the first line that is no comment; fuzzywuzzy's ratio with
 * python-Levenshtein
 *
 * trec, triviaqa and samsum look at the first line of an answer alone. LongBench-E (names that end in _e) is scored
 * alike. Chinese datasets need a segmenter of words and have none here.
 *
 * Characters become small one by one, by Unicode's simple mapping; Python knows a handful that become two.
 */
#ifndef EVP_METRIC_H
#define EVP_METRIC_H

#include "base/err.h"

enum metric { METRIC_NONE, METRIC_F1, METRIC_ROUGE_L, METRIC_CLASS, METRIC_RETRIEVAL, METRIC_COUNT, METRIC_EDIT };

/* The metric of a dataset by its name, METRIC_NONE where there is none. */
enum metric metric_of(const char *dataset);

/* "token F1"; NULL for METRIC_NONE. */
const char *metric_name(enum metric metric);

/* The answers that are right: (n) texts in UTF-8. */
struct metric_gold {
    const char *const *at;
    int n;
};

/* NAN for a dataset without a metric. ERR_FORMAT: texts so long that comparing them would take minutes. */
int metric_score(const char *dataset, const char *answer, const struct metric_gold *gold, double *score,
                 struct err *err) MUST_CHECK;

#endif
