/* replay_table.c - a table whose rows are named after policies. */
#include "formats/replay_table.h"

#include <string.h>

static const char *const texts[] = { "policy", "busiest", "inputs", NULL };

static int check(struct tsv *t, struct err *err)
{
    static const char *const column[] = { "policy", "rate", "alpha", "ttft_mean_s", "quality" };

    for (size_t i = 0; i < sizeof(column) / sizeof(*column); i++)
        if (tsv_column(t, column[i]) < 0) {
            tsv_release(t);
            return err_set(err, ERR_FORMAT, "there is no column '%s'", column[i]);
        }
    return 0;
}

int replay_table_parse(struct tsv *t, const char *text, size_t n, struct err *err)
{
    return tsv_parse(t, text, n, texts, err) ? err->code : check(t, err);
}

int replay_table_read(struct tsv *t, const char *path, struct err *err)
{
    if (tsv_read(t, path, texts, err))
        return err->code;
    return check(t, err) ? err_wrap(err, "'%s'", path) : 0;
}

bool replay_table_is(const char *head)
{
    static const char first[] = "policy\trate\talpha\trequests\t";

    return strncmp(head, first, sizeof(first) - 1) == 0;
}
