/* frontier.c - any bytes as a frontier, and as a table of evp-replay: refused with a sentence, or as many numbers as
 * columns times lines. */
#include "formats/frontier.h"
#include "formats/replay_table.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(struct tsv *t, int n_columns, int most)
{
    volatile double sum = 0;

    if (t->n_columns < n_columns || t->n_columns > most)
        abort();
    for (int i = 0; i < t->n; i++) {
        sum += t->name && t->name[i][0] == '\0';
        for (int k = 0; k < t->n_columns; k++)
            sum += tsv_cell(t, i, k) + (t->column[k][0] == '\0') + (tsv_text(t, i, t->column[k]) != NULL);
    }
    tsv_release(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tsv t;
    struct err err;

    if (frontier_parse(&t, (const char *)data, n, &err) == 0)
        check(&t, FRONTIER_HITS, FRONTIER_COLUMNS);
    if (replay_table_parse(&t, (const char *)data, n, &err) == 0)
        check(&t, 5, TSV_COLUMNS);
    return 0;
}
