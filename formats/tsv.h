/* tsv.h - tab-separated tables of numbers, and some texts, with a line of names above: frontier.tsv, replay.tsv. "-"
 * and "nan" are unknown. */
#ifndef EVP_TSV_H
#define EVP_TSV_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { TSV_COLUMNS = 200 }; // 64 tiers have 72 in a frontier, 154 in a replay

struct tsv {
    char *text;                // owns the names
    char *column[TSV_COLUMNS]; // their names
    bool is_text[TSV_COLUMNS];
    const char **name; // (n) the texts of the first column; NULL: numbers
    const char **cell; // (n, n_columns) as texts; NULL: numbers alone
    double *at;        // (n, n_columns); NAN: not known, or a text
    int n_columns, n;
};

/* From n bytes. texts: names of the columns that hold texts, the first column's before the others, then NULL; or NULL:
 * all are numbers. ERR_FORMAT: a line that is cut or longer than the first, a cell that is not a number, too many
 * columns. On failure nothing is left to release. */
int tsv_parse(struct tsv *t, const char *text, size_t n, const char *const *texts, struct err *err) MUST_CHECK;
int tsv_read(struct tsv *t, const char *path, const char *const *texts, struct err *err) MUST_CHECK;
void tsv_release(struct tsv *t); // zeroed is fine

/* The number of the column called `name`, or -1. */
int tsv_column(const struct tsv *t, const char *name);

static inline double tsv_cell(const struct tsv *t, int row, int column)
{
    return t->at[row * t->n_columns + column];
}

/* The same by the column's name; NAN: there is none. */
double tsv_named(const struct tsv *t, int row, const char *column);

/* The text of a cell; NULL: there is no such column of texts. */
const char *tsv_text(const struct tsv *t, int row, const char *column);

#endif
