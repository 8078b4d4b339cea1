/* show_frontier.c - frontier.tsv: quality, TTFT and hits of each alpha of a sweep, a row each; replay.tsv: the same of
 * each policy. */
#include "show/show.h"
#include "formats/frontier.h"
#include "formats/replay_table.h"

#include <string.h>

_Static_assert((int)FRONTIER_COLUMNS <= (int)SHEET_COLUMNS, "a sheet has room for every frontier");

int show_frontier(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct tsv f;

    (void)depth; /* all is read */
    if (frontier_read(&f, path, err))
        return err->code;
    sheet_table(s, "alphas", (const char *const *)f.column, f.n_columns);
    for (int i = 0; i < f.n; i++)
        for (int k = 0; k < f.n_columns; k++)
            if (k == FRONTIER_TTFT)
                sheet_seconds(s, NULL, tsv_cell(&f, i, k));
            else
                sheet_real(s, NULL, tsv_cell(&f, i, k), 3);
    sheet_table_end(s);
    tsv_release(&f);
    return 0;
}

int show_replay(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const columns[] = { "policy",  "rate",           "alpha",    "ttft_mean_s", "ttft_p95_s",
                                           "quality", "hits_recompute", "gpu_busy", "busiest",     "busiest_busy" };
    enum { N_COLUMNS = sizeof(columns) / sizeof(*columns) };
    struct tsv t;

    (void)depth; /* all is read */
    if (replay_table_read(&t, path, err))
        return err->code;
    if (t.n && tsv_text(&t, 0, "inputs"))
        sheet_text(s, "inputs", tsv_text(&t, 0, "inputs"));
    sheet_table(s, "policies", columns, N_COLUMNS);
    for (int i = 0; i < t.n; i++) {
        sheet_text(s, NULL, t.name[i]);
        for (int k = 1; k < N_COLUMNS; k++)
            if (strncmp(columns[k], "ttft", 4) == 0)
                sheet_seconds(s, NULL, tsv_named(&t, i, columns[k]));
            else if (strcmp(columns[k], "busiest") == 0)
                sheet_text(s, NULL, tsv_text(&t, i, columns[k]));
            else
                sheet_real(s, NULL, tsv_named(&t, i, columns[k]), 3);
    }
    sheet_table_end(s);
    tsv_release(&t);
    return 0;
}
