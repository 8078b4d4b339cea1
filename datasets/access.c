#include "datasets/access.h"

#include "base/rows.h"

#include <string.h>

static int add_row(struct access_log *log, const struct json *row, const struct map *ids, double *frequency,
                   struct err *err)
{
    const char *context;
    int64_t count = 1;

    if (json_want_text(row, "context", &context, err) || json_may_int(row, "count", &count, err))
        return err->code;
    if (count < 0)
        return err_set(err, ERR_FORMAT, "field 'count' is negative");
    int at = map_find(ids, context, strlen(context));
    log->rows++;
    if (at == MAP_ABSENT)
        log->unknown++;
    else
        frequency[at] += (double)count;
    return 0;
}

int access_read(struct access_log *log, const char *path, const struct map *ids, double *frequency, struct err *err)
{
    struct rows_in in;
    struct json *row;
    int got;

    *log = (struct access_log){ 0 };
    if (rows_open(&in, path, "access", err))
        return err->code;
    while ((got = rows_next(&in, &row, err)) == 1) {
        int code = add_row(log, row, ids, frequency, err);
        json_free(row);
        if (code) {
            got = rows_wrap(&in, err);
            break;
        }
    }
    rows_close(&in);
    return got;
}
