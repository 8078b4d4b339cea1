/* access.c - one row at a time; rows of unknown contexts are checked like the others, then counted. */
#include "datasets/access.h"

#include "base/rows.h"

#include <string.h>

struct reading {
    struct access_log *log;
    const struct map *ids;
    double *frequency;
};

static int add_row(void *arg, const struct json *row, struct err *err)
{
    struct reading *r = arg;
    const char *context;
    int64_t count = 1;

    if (json_want_text(row, "context", &context, err) || json_may_int(row, "count", &count, err))
        return err->code;
    if (count < 0)
        return err_set(err, ERR_FORMAT, "field 'count' is negative");
    int at = map_find(r->ids, context, strlen(context));
    r->log->rows++;
    if (at == MAP_ABSENT)
        r->log->unknown++;
    else
        r->frequency[at] += (double)count;
    return 0;
}

int access_read(struct access_log *log, const char *path, const struct map *ids, double *frequency, struct err *err)
{
    struct reading r = { log, ids, frequency };

    *log = (struct access_log){ 0 };
    return rows_each(path, "access", add_row, &r, err);
}
