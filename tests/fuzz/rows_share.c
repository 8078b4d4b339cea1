/* rows_share.c - any lines after a header: several threads make of them what one does, row by row. The first byte says
 * how many threads, and how small the pieces are. */
#include "base/array.h"
#include "base/rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct rows {
    struct buf *at; // as text
    size_t n, cap;
};

static void release(void *piece)
{
    struct rows *rows = piece;

    for (size_t i = 0; i < rows->n; i++)
        buf_release(&rows->at[i]);
    free(rows->at);
    *rows = (struct rows){ 0 };
}

static int make(const void *arg, void *piece, const struct json *row, struct err *err)
{
    struct buf text = { 0 };

    (void)arg;
    if (json_get(row, "bad"))
        return err_set(err, ERR_FORMAT, "bad");
    json_print(&text, row);
    return ARRAY_PUSH((struct rows *)piece, text) ? err_nomem(err) : 0;
}

/* Refuses rows longer than 99 bytes. */
static int take(void *arg, void *piece, size_t k, struct err *err)
{
    struct buf copy = { 0 };
    const struct buf *text = &((struct rows *)piece)->at[k];

    if (text->n > 99)
        return err_set(err, ERR_FORMAT, "long");
    buf_add(&copy, text->at, text->n);
    return ARRAY_PUSH((struct rows *)arg, copy) ? err_nomem(err) : 0;
}

static int visit(void *arg, const struct json *row, struct err *err)
{
    struct rows one = { 0 };
    int code = make(NULL, &one, row, err) ? err->code : take(arg, &one, 0, err);

    release(&one);
    return code;
}

static bool same(const struct rows *a, const struct rows *b)
{
    bool equal = a->n == b->n;

    for (size_t i = 0; i < a->n && equal; i++)
        equal = a->at[i].n == b->at[i].n && memcmp(a->at[i].at, b->at[i].at, a->at[i].n) == 0;
    return equal;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int how = n > 0 ? data[0] : 0;
    struct buf text = { 0 };
    struct rows alone = { 0 }, shared = { 0 };
    struct rows_work work = { make,
                              take,
                              release,
                              release,
                              sizeof(struct rows),
                              &shared,
                              .text = 1 + (size_t)how / 4,
                              .n_threads = 1 + how % 4 };
    struct rows_in one, many;
    struct err err, other;

    buf_adds(&text, "{\"evp\":\"things\",\"version\":1}\n");
    buf_add(&text, (const char *)data + (n > 0), n - (n > 0));
    struct rows_bytes bytes = { "input", text.at, text.n };
    if (rows_open_bytes(&one, &bytes, "things", &err) || rows_open_bytes(&many, &bytes, "things", &err))
        abort();
    int code = rows_rest(&one, visit, &alone, &err);
    if (rows_share(&many, &work, &other) != code || (code && strcmp(err.msg, other.msg) != 0) ||
        !same(&alone, &shared) || (!code && one.n_rows != many.n_rows))
        abort();
    rows_close(&one);
    rows_close(&many);
    release(&alone);
    release(&shared);
    buf_release(&text);
    return 0;
}
