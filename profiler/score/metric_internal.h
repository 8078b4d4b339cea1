/* metric_internal.h - shared by metric.c and rouge.c: texts as word numbers. */
#ifndef EVP_METRIC_INTERNAL_H
#define EVP_METRIC_INTERNAL_H

#include "base/err.h"
#include "base/map.h"

#include <stddef.h>

struct word_ids {
    int *at; // numbers of words in a map
    int n, cap;
};

/* Adds the words of n bytes, split at white space as Python's str.split() does. */
int word_ids_add(struct word_ids *ids, struct map *words, const char *text, size_t n, struct err *err) MUST_CHECK;

/* Comparing texts of a and b items takes a * b steps: ERR_FORMAT when that is more than a few seconds of work. */
int metric_check_steps(size_t a, size_t b, struct err *err) MUST_CHECK;

/* The F of ROUGE-L between two texts. */
int rouge_l(const char *answer, const char *gold, double *f, struct err *err) MUST_CHECK;

#endif
