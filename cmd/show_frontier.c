/* show_frontier.c - frontier.tsv: quality, TTFT and hits of each alpha of a sweep, a row each. */
#include "cmd/show.h"
#include "formats/frontier.h"

_Static_assert((int)FRONTIER_COLUMNS <= (int)SHEET_COLUMNS, "a sheet has room for every frontier");

int show_frontier(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct frontier f;

    (void)depth; /* all is read */
    if (frontier_read(&f, path, err))
        return err->code;
    sheet_table(s, "alphas", (const char *const *)f.column, f.n_columns);
    for (int i = 0; i < f.n; i++)
        for (int k = 0; k < f.n_columns; k++)
            if (k == FRONTIER_TTFT)
                sheet_seconds(s, NULL, frontier_cell(&f, i, k));
            else
                sheet_real(s, NULL, frontier_cell(&f, i, k), 3);
    sheet_table_end(s);
    frontier_release(&f);
    return 0;
}
