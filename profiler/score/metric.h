/* metric.h - LongBench's scores of an answer against a dataset's right answers.
 *
 * Exactly as its metrics.py and eval.py: the dropped words, the classes of trec, and the shortcomings. A score is from
 * 0 to 1, the best over the right answers.
 *
 *     token F1         narrativeqa, qasper, multifieldqa_en, hotpotqa, 2wikimqa, musique, triviaqa
 *     ROUGE-L          gov_report, qmsum, multi_news, samsum; the F of the package `rouge` 1.0.1
 *     accuracy         trec: 1 / (number of classes that the answer names), if the right one is among them
 *     right numbers    passage_count, passage_retrieval_en: their share of the numbers in the answer
 *     edit similarity  lcc, repobench-p: of the first line that is not a comment; fuzzywuzzy's ratio with
 *                      python-Levenshtein
 *
 * trec, triviaqa and samsum look only at the first line of an answer. LongBench-E (names that end in _e) is scored the
 * same way. Chinese datasets need a word segmenter and have no metric here.
 *
 * Characters become lower case one by one (Unicode's simple mapping); in Python a handful of them become two
 * characters.
 */
#ifndef EVP_METRIC_H
#define EVP_METRIC_H

#include "base/err.h"

enum metric { METRIC_NONE, METRIC_F1, METRIC_ROUGE_L, METRIC_CLASS, METRIC_RETRIEVAL, METRIC_COUNT, METRIC_EDIT };

/* The metric of a dataset by name, or METRIC_NONE. */
enum metric metric_of(const char *dataset);

/* "token F1"; NULL for METRIC_NONE. */
const char *metric_name(enum metric metric);

/* The right answers: (n) texts in UTF-8. */
struct metric_gold {
    const char *const *at;
    int n;
};

/* NAN for a dataset without a metric. ERR_FORMAT: texts so long that comparing them would take minutes. */
int metric_score(const char *dataset, const char *answer, const struct metric_gold *gold, double *score,
                 struct err *err) MUST_CHECK;

/* The token F1 of any two texts, as SQuAD 2.0 has it: 1 when neither has a word. */
int metric_token_f1(const char *answer, const char *reference, double *f1, struct err *err) MUST_CHECK;

#endif
