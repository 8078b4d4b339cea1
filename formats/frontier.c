/* frontier.c - reads the tab-separated lines of a frontier. "-" and "nan" are unknown. */
#include "formats/frontier.h"

#include "base/array.h"
#include "base/file.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FRONTIER_MAX = 1 << 20 };

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

static int read_row(struct frontier *f, char *line, double *to, struct err *err)
{
    char *cell[FRONTIER_COLUMNS];

    if (split(line, cell, f->n_columns) != f->n_columns)
        return err_set(err, ERR_FORMAT, "a line does not have %d columns, like the first", f->n_columns);
    for (int i = 0; i < f->n_columns; i++)
        if (!read_cell(cell[i], &to[i]))
            return err_set(err, ERR_FORMAT, "'%.40s' is not a number", cell[i]);
    return 0;
}

static int read_head(struct frontier *f, char *line, struct err *err)
{
    f->n_columns = split(line, f->column, FRONTIER_COLUMNS);
    if (f->n_columns < FRONTIER_HITS || strcmp(f->column[FRONTIER_ALPHA], "alpha") != 0 ||
        strcmp(f->column[FRONTIER_QUALITY], "quality") != 0 || strcmp(f->column[FRONTIER_TEST], "quality_test") != 0 ||
        strcmp(f->column[FRONTIER_TTFT], "ttft_s") != 0)
        return err_set(err, ERR_FORMAT, "the columns are not a frontier's");
    if (f->n_columns > FRONTIER_COLUMNS)
        return err_set(err, ERR_FORMAT, "more than %d columns", FRONTIER_COLUMNS);
    return 0;
}

static int read_rows(struct frontier *f, struct err *err)
{
    char *end = strchr(f->text, '\n');
    struct {
        double *at;
        size_t n, cap;
    } cells = { 0 };

    if (!end)
        return err_set(err, ERR_FORMAT, "no line is complete");
    *end = '\0';
    int code = read_head(f, f->text, err);
    for (char *line = end + 1; *line && !code; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            code = err_set(err, ERR_FORMAT, "the last line is cut");
        else if (ARRAY_GROW(&cells, cells.n + (size_t)f->n_columns))
            code = err_nomem(err);
        if (code)
            break;
        *end = '\0';
        code = read_row(f, line, cells.at + cells.n, err);
        cells.n += (size_t)f->n_columns;
        f->n++;
    }
    f->at = cells.at;
    return code;
}

int frontier_parse(struct frontier *f, const char *text, size_t n, struct err *err)
{
    *f = (struct frontier){ .text = strndup(text, n) };
    int code = f->text ? read_rows(f, err) : err_nomem(err);

    if (code)
        frontier_release(f);
    return code;
}

int frontier_read(struct frontier *f, const char *path, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, FRONTIER_MAX, err);

    *f = (struct frontier){ 0 };
    if (!code && frontier_parse(f, buf_str(&text), text.n, err))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}

int frontier_column(const struct frontier *f, const char *name)
{
    for (int i = 0; i < f->n_columns; i++)
        if (strcmp(f->column[i], name) == 0)
            return i;
    return -1;
}

void frontier_release(struct frontier *f)
{
    free(f->text);
    free(f->at);
    *f = (struct frontier){ 0 };
}
