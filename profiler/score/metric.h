/* metric.h - scores of an answer against a dataset's right answers, from 0 to 1.
 *
 * LongBench's: exactly as its metrics.py and eval.py, with the dropped words, the classes of trec, and the
 * shortcomings; the best over the right answers.
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
 * RULER's, SCBench's, LongBench v2's and some of InfiniteBench's: as their own code, by the suites' names of tasks.
 *
 *     share of names    RULER but for qa, scbench_vt: the share of right answers that the answer contains, in any case
 *     accuracy          the answer contains one in any case (qa, many_shot), the right one to the letter (kv,
 *                       prefix_suffix), the right choice; its first number is right (mf, passkey)
 *     character F1      scbench_qa_chn
 *     ROUGE-Lsum        scbench_summary; a right answer of digits among them is a passkey
 *
 * Functions have none: scbench_repoqa, and its questions in scbench_repoqa_and_kv. Where SCBench's right answers are
 * texts instead of lists (many_shot, qa_chn), its code compares with every single character of them; here they are
 * whole.
 *
 * Characters become lower case one by one (Unicode's simple mapping); in Python a handful of them become two
 * characters.
 */
#ifndef EVP_METRIC_H
#define EVP_METRIC_H

#include "base/err.h"

enum metric {
    METRIC_NONE,
    METRIC_F1,
    METRIC_F1_CHARS,
    METRIC_ROUGE_L,
    METRIC_CLASS,
    METRIC_RETRIEVAL,
    METRIC_COUNT,
    METRIC_EDIT,
    METRIC_NAMED,
    METRIC_NAMED_ROUNDED,
    METRIC_ANY,
    METRIC_PART,
    METRIC_CHOICE,
    METRIC_LETTER,
    METRIC_NUMBER,
    METRIC_VALUE,
    METRIC_ROUGE_LSUM
};

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
