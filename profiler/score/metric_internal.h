/* metric_internal.h - shared by metric.c, rouge.c and suites.c: texts as word numbers. */
#ifndef EVP_METRIC_INTERNAL_H
#define EVP_METRIC_INTERNAL_H

#include "base/err.h"
#include "base/map.h"
#include "profiler/score/metric.h"

#include <stddef.h>
#include <stdint.h>

struct word_ids {
    int *at; // numbers of words in a map
    int n, cap;
};

/* Adds the words of n bytes, split at white space as Python's str.split() does. */
int word_ids_add(struct word_ids *ids, struct map *words, const char *text, size_t n, struct err *err) MUST_CHECK;

/* Decodes the UTF-8 character at s; a malformed byte stands for itself. Returns its length. */
size_t metric_next(const char *s, size_t left, uint32_t *point);

/* Comparing texts of a and b items takes a * b steps: ERR_FORMAT when that is more than a few seconds of work. */
int metric_check_steps(size_t a, size_t b, struct err *err) MUST_CHECK;

/* The F of ROUGE-L between two texts; of ROUGE-Lsum, as Google's `rouge_score` 0.1.2 has it without a stemmer. */
int rouge_lsum(const char *answer, const char *gold, double *f, struct err *err) MUST_CHECK;
int rouge_l(const char *answer, const char *gold, double *f, struct err *err) MUST_CHECK;

/* Metrics from METRIC_NAMED on; most are over all right answers at once. NAN: a right answer of a kind without one. */
int suite_score(enum metric metric, const char *answer, const struct metric_gold *gold, double *score,
                struct err *err) MUST_CHECK;

#endif
