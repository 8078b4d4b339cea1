/* access.c - one row at a time; rows of unknown contexts are checked like the others, then counted. */
#include "logs/access.h"

#include "logs/archive.h"
#include "base/rows.h"

#include <string.h>

static const double max_count = 1e15; // keeps sums over any log far from overflow

struct reading {
    struct access_log *log;
    const struct map *ids;
    double *frequency;
};

static int add_row(void *arg, const struct json *row, struct err *err)
{
    struct reading *r = arg;
    const char *context;
    double count;

    if (access_count(row, &context, &count, err))
        return err->code;
    int at = map_find(r->ids, context, strlen(context));
    r->log->rows++;
    r->log->unknown += at == MAP_ABSENT;
    *(at == MAP_ABSENT ? &r->log->unknown_uses : &r->frequency[at]) += count;
    return 0;
}

/* Opens the rows of an unpacked log. */
static int open_unpacked(struct rows_in *in, const char *path, const struct buf *bytes, struct err *err)
{
    struct buf label = { 0 };

    buf_printf(&label, "'%s'", path);
    int code = buf_failed(&label)
                   ? err_nomem(err)
                   : rows_open_bytes(in, &(struct rows_bytes){ buf_str(&label), bytes->at, bytes->n }, "access", err);
    buf_release(&label);
    return code;
}

int access_each(const char *path, rows_visit *each, void *arg, struct err *err)
{
    struct buf bytes = { 0 };
    struct rows_in in;
    int code = path && strcmp(path, "-") != 0 ? archive_unpack(&bytes, path, err) : ARCHIVE_NONE;

    if (code == ARCHIVE_NONE)
        return rows_each(path, "access", each, arg, err);
    if (!code)
        code = open_unpacked(&in, path, &bytes, err);
    if (!code) {
        code = rows_rest(&in, each, arg, err);
        rows_close(&in);
    }
    buf_release(&bytes);
    return code;
}

int access_count(const struct json *row, const char **context, double *count, struct err *err)
{
    *count = 1;
    if (json_want_text(row, "context", context, err) || json_may_real(row, "count", count, err))
        return err->code;
    if (!(*count >= 0 && *count <= max_count))
        return err_set(err, ERR_FORMAT, *count < 0 ? "field 'count' is negative" : "field 'count' is above 1e15");
    return 0;
}

int access_read(struct access_log *log, const char *path, const struct map *ids, double *frequency, struct err *err)
{
    struct reading r = { log, ids, frequency };

    *log = (struct access_log){ 0 };
    return access_each(path, add_row, &r, err);
}
