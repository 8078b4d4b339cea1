/* table_keep.c - leaves rows out of a table, in place: every column with the rows on its first axis closes up. */
#include "profiler/table/table_column.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of rows kept on an axis. */
static int keep_rows(struct table *t, char axis, const bool *keep)
{
    int n = 0;

    for (int i = 0; i < table_axis(t, axis); i++)
        n += keep[i];
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        char *at = column_get(t, c), *to = at;
        size_t bytes = column_size(c->type);
        for (const char *letter = c->shape + 1; *letter; letter++)
            bytes *= (size_t)table_axis(t, *letter);
        if (!at || *c->shape != axis)
            continue;
        for (int row = 0; row < table_axis(t, axis); row++, at += bytes)
            if (keep[row]) {
                memmove(to, at, bytes);
                to += bytes;
            }
    }
    return n;
}

/* Marks the rows of kept contexts, and gives them the contexts' new rows. */
static void follow(bool *keep, int64_t *context, int n, const int *row)
{
    for (int i = 0; i < n && context; i++) {
        keep[i] = keep[i] && row[context[i]] >= 0;
        context[i] = row[context[i]];
    }
}

/* All true, but for what `only` leaves out; NULL: nothing. */
static bool *flags(const bool *only, int n)
{
    bool *keep = malloc((size_t)n + 1);

    if (keep && only)
        memcpy(keep, only, (size_t)n);
    else if (keep)
        memset(keep, true, (size_t)n);
    return keep;
}

int table_keep(struct table *t, const bool *context, const bool *question, struct err *err)
{
    int *row = malloc(((size_t)t->n_contexts + 1) * sizeof(*row)), n = 0;
    bool *contexts = flags(context, t->n_contexts), *questions = flags(question, t->n_questions);
    bool *points = flags(NULL, t->n_points);
    int code = row && contexts && questions && points ? 0 : err_nomem(err);

    for (int c = 0; c < t->n_contexts && !code; c++)
        row[c] = contexts[c] ? n++ : -1;
    if (!code) {
        follow(questions, t->question_context, t->n_questions, row);
        follow(points, t->curve_context, t->n_points, row);
        n = keep_rows(t, 'C', contexts);
        int n_questions = keep_rows(t, 'Q', questions), n_points = keep_rows(t, 'P', points);
        t->n_contexts = n;
        t->n_questions = n_questions;
        t->n_points = n_points;
        map_release(&t->ids);
    }
    free(row);
    free(contexts);
    free(questions);
    free(points);
    return code;
}
