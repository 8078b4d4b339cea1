/* tsv.c - the whole text in memory, cut in place. */
#include "formats/tsv.h"

#include "base/array.h"
#include "base/file.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TSV_MAX = 1 << 24 };

/* Cuts a line at its tabs; returns how many cells it has, at most max + 1. */
static int split(char *line, char **cell, int max)
{
    int n = 0;

    for (char *end = line; end; line = end + 1) {
        end = strchr(line, '\t');
        if (n == max)
            return max + 1;
        cell[n++] = line;
        if (end)
            *end = '\0';
        else
            break;
    }
    return n;
}

static bool read_cell(const char *text, double *v)
{
    *v = (double)NAN;
    return strcmp(text, "-") == 0 || strcmp(text, "nan") == 0 || strcmp(text, "-nan") == 0 || parse_real(text, v);
}

/* to and text: the row's cells; text is read only where there are texts. */
static int read_row(struct tsv *t, char *line, double *to, const char **text, struct err *err)
{
    char *cell[TSV_COLUMNS];

    if (split(line, cell, t->n_columns) != t->n_columns)
        return err_set(err, ERR_FORMAT, "a line does not have %d columns, like the first", t->n_columns);
    for (int i = 0; i < t->n_columns; i++) {
        to[i] = (double)NAN;
        if (!t->is_text[i] && !read_cell(cell[i], &to[i]))
            return err_set(err, ERR_FORMAT, "'%.40s' is not a number", cell[i]);
    }
    if (t->name)
        t->name[t->n] = cell[0];
    for (int i = 0; t->name && i < t->n_columns; i++)
        text[i] = cell[i];
    return 0;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

/* n: lines that follow, at most. */
static int read_head(struct tsv *t, char *line, size_t n, const char *const *texts, struct err *err)
{
    t->n_columns = split(line, t->column, TSV_COLUMNS);
    if (t->n_columns > TSV_COLUMNS)
        return err_set(err, ERR_FORMAT, "more than %d columns", TSV_COLUMNS);
    t->is_text[0] = texts != NULL;
    for (; texts && *texts; texts++) {
        int column = tsv_column(t, *texts);
        if (column > 0)
            t->is_text[column] = true;
    }
    if (!t->is_text[0])
        return 0;
    t->name = malloc((n + 1) * sizeof(*t->name));
    return t->name ? 0 : err_nomem(err);
}

static int read_rows(struct tsv *t, const char *const *texts, struct err *err)
{
    char *end = strchr(t->text, '\n');
    struct {
        double *at;
        size_t n, cap;
    } cells = { 0 };
    struct {
        const char **at;
        size_t n, cap;
    } text = { 0 };

    if (!end)
        return err_set(err, ERR_FORMAT, "no line is complete");
    *end = '\0';
    int code = read_head(t, t->text, count_lines(end + 1), texts, err);
    for (char *line = end + 1; *line && !code; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            code = err_set(err, ERR_FORMAT, "the last line is cut");
        else if (ARRAY_GROW(&cells, cells.n + (size_t)t->n_columns) ||
                 (t->name && ARRAY_GROW(&text, cells.n + (size_t)t->n_columns)))
            code = err_nomem(err);
        if (code)
            break;
        *end = '\0';
        code = read_row(t, line, cells.at + cells.n, t->name ? text.at + cells.n : NULL, err);
        cells.n += (size_t)t->n_columns;
        t->n++;
    }
    t->at = cells.at;
    t->cell = text.at;
    return code;
}

int tsv_parse(struct tsv *t, const char *text, size_t n, const char *const *texts, struct err *err)
{
    *t = (struct tsv){ .text = strndup(text, n) };
    int code = t->text ? read_rows(t, texts, err) : err_nomem(err);

    if (code)
        tsv_release(t);
    return code;
}

int tsv_read(struct tsv *t, const char *path, const char *const *texts, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, TSV_MAX, err);

    *t = (struct tsv){ 0 };
    if (!code && tsv_parse(t, buf_str(&text), text.n, texts, err))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}

int tsv_column(const struct tsv *t, const char *name)
{
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->column[i], name) == 0)
            return i;
    return -1;
}

double tsv_named(const struct tsv *t, int row, const char *column)
{
    int i = tsv_column(t, column);

    return i < 0 ? (double)NAN : tsv_cell(t, row, i);
}

void tsv_release(struct tsv *t)
{
    free(t->text);
    free(t->name);
    free(t->cell);
    free(t->at);
    *t = (struct tsv){ 0 };
}

const char *tsv_text(const struct tsv *t, int row, const char *column)
{
    int i = tsv_column(t, column);

    return i >= 0 && t->is_text[i] ? t->cell[(size_t)row * (size_t)t->n_columns + (size_t)i] : NULL;
}
