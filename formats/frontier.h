/* frontier.h - frontier.tsv: what each alpha of a sweep gives. docs/formats/frontier.md describes it. */
#ifndef EVP_FRONTIER_H
#define EVP_FRONTIER_H

#include "base/err.h"

enum {
    FRONTIER_ALPHA,
    FRONTIER_QUALITY,
    FRONTIER_TEST,
    FRONTIER_TTFT,
    FRONTIER_HITS
};                              // columns; from HITS a tier each
enum { FRONTIER_COLUMNS = 72 }; // 64 tiers have 72

struct frontier {
    char *text;                     // owns the names
    char *column[FRONTIER_COLUMNS]; // their names
    double *at;                     // (n, n_columns); NAN: not known
    int n_columns, n;
};

/* ERR_FORMAT: other columns, a line that is cut or longer than the first, a cell that is not a number. On failure
 * nothing is left to release. */
int frontier_read(struct frontier *f, const char *path, struct err *err) MUST_CHECK;

/* The same from n bytes. */
int frontier_parse(struct frontier *f, const char *text, size_t n, struct err *err) MUST_CHECK;

void frontier_release(struct frontier *f); // zeroed is fine

/* The number of the column called `name`, or -1. */
int frontier_column(const struct frontier *f, const char *name);

static inline double frontier_cell(const struct frontier *f, int row, int column)
{
    return f->at[row * f->n_columns + column];
}

#endif
