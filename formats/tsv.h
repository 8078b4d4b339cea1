/* tsv.h - tab-separated tables of numbers with a line of names above: frontier.tsv, replay.tsv. "-" and "nan" are
 * unknown. */
#ifndef EVP_TSV_H
#define EVP_TSV_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { TSV_COLUMNS = 200 }; // 64 tiers have 72 in a frontier, 154 in a replay

enum tsv_first { TSV_NUMBER, TSV_TEXT }; // what the first column holds

struct tsv {
    char *text;                // owns the names
    char *column[TSV_COLUMNS]; // their names
    const char **name;         // (n) the texts of the first column; NULL: numbers
    double *at;                // (n, n_columns); NAN: not known, or a text
    int n_columns, n;
};

/* From n bytes. ERR_FORMAT: a line that is cut or longer than the first, a cell that is not a number, too many columns.
 * On failure nothing is left to release. */
int tsv_parse(struct tsv *t, const char *text, size_t n, enum tsv_first first, struct err *err) MUST_CHECK;
int tsv_read(struct tsv *t, const char *path, enum tsv_first first, struct err *err) MUST_CHECK;
void tsv_release(struct tsv *t); // zeroed is fine

/* The number of the column called `name`, or -1. */
int tsv_column(const struct tsv *t, const char *name);

static inline double tsv_cell(const struct tsv *t, int row, int column)
{
    return t->at[row * t->n_columns + column];
}

/* The same by the column's name; NAN: there is none. */
double tsv_named(const struct tsv *t, int row, const char *column);

#endif
