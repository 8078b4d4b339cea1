/* show_frontier.c - frontier.tsv: quality, TTFT and hits of each alpha of a sweep, a row each. */
#include "base/file.h"
#include "base/parse.h"
#include "cmd/show.h"

#include <math.h>
#include <string.h>

enum { FRONTIER_MAX = 1 << 20, COLUMNS = SHEET_COLUMNS };

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

/* "-" and "nan" are unknown. */
static bool read_cell(const char *text, double *v)
{
    *v = (double)NAN;
    return strcmp(text, "-") == 0 || strcmp(text, "nan") == 0 || strcmp(text, "-nan") == 0 || parse_real(text, v);
}

static int put_row(struct sheet *s, char *line, int n_columns, struct err *err)
{
    char *cell[COLUMNS];
    double v;

    if (split(line, cell, n_columns) != n_columns)
        return err_set(err, ERR_FORMAT, "a line does not have %d columns, like the first", n_columns);
    for (int i = 0; i < n_columns; i++) {
        if (!read_cell(cell[i], &v))
            return err_set(err, ERR_FORMAT, "'%.40s' is not a number", cell[i]);
        if (i == 3)
            sheet_seconds(s, NULL, v);
        else
            sheet_real(s, NULL, v, 3);
    }
    return 0;
}

static int put_rows(struct sheet *s, char *text, struct err *err)
{
    char *column[COLUMNS], *end = strchr(text, '\n');

    if (!end)
        return err_set(err, ERR_FORMAT, "no line is complete");
    *end = '\0';
    int n = split(text, column, COLUMNS), code = 0;
    if (n < 4 || strcmp(column[2], "quality_test") != 0 || strcmp(column[3], "ttft_s") != 0)
        return err_set(err, ERR_FORMAT, "the columns are not a frontier's");
    if (n > COLUMNS)
        return err_set(err, ERR_FORMAT, "more than %d columns", COLUMNS);
    sheet_table(s, "alphas", (const char *const *)column, n);
    for (char *line = end + 1; *line && !code; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            return err_set(err, ERR_FORMAT, "the last line is cut");
        *end = '\0';
        code = put_row(s, line, n, err);
    }
    sheet_table_end(s);
    return code;
}

int show_frontier(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, FRONTIER_MAX, err);

    (void)depth; /* all is read */
    if (!code && put_rows(s, text.n ? text.at : (char[]){ "" }, err))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}
