/* frontier.c - a table whose first columns are a frontier's. */
#include "formats/frontier.h"

#include <string.h>

static int check(struct tsv *f, struct err *err)
{
    static const char *const column[FRONTIER_HITS] = { "alpha", "quality", "quality_test", "ttft_s" };
    bool known = f->n_columns >= FRONTIER_HITS, few = f->n_columns <= FRONTIER_COLUMNS;

    for (int i = 0; i < FRONTIER_HITS && known; i++)
        known = strcmp(f->column[i], column[i]) == 0;
    if (known && few)
        return 0;
    tsv_release(f);
    return known ? err_set(err, ERR_FORMAT, "more than %d columns", FRONTIER_COLUMNS)
                 : err_set(err, ERR_FORMAT, "the columns are not a frontier's");
}

int frontier_parse(struct tsv *f, const char *text, size_t n, struct err *err)
{
    return tsv_parse(f, text, n, NULL, err) ? err->code : check(f, err);
}

int frontier_read(struct tsv *f, const char *path, struct err *err)
{
    if (tsv_read(f, path, NULL, err))
        return err->code;
    return check(f, err) ? err_wrap(err, "'%s'", path) : 0;
}
