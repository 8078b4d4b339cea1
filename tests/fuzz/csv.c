/* csv - any bytes as a table of comma-separated values: what is read as rows is the same rows again when it is written
 * with every field quoted. */
#include "base/buf.h"
#include "datasets/csv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void put_quoted(struct buf *out, const char *text)
{
    buf_addc(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            buf_addc(out, '"');
        buf_addc(out, *text);
    }
    buf_addc(out, '"');
}

/* The member as it was in the table; a list and a number are texts there. */
static void put_member(struct buf *out, const struct json *member)
{
    struct buf text = { 0 };

    if (json_is_text(member))
        buf_adds(&text, json_text(member));
    else if (member)
        json_print(&text, member);
    put_quoted(out, buf_str(&text)); // in a table of one column a line with nothing is no row
    buf_release(&text);
}

/* Reads all; rows: each as JSON, a line each. table: the same, every field quoted. Returns how many rows, or -1. */
static int read_all(const char *at, size_t n, struct buf *rows, struct buf *table)
{
    struct rows_bytes bytes = { .label = "'t.csv'", .at = at, .n = n };
    struct csv in;
    struct json *row;
    struct err err;
    int got = csv_open(&in, &bytes, &err) ? -1 : 1, n_rows = 0;

    for (int i = 0; got > 0 && i < in.names.n; i++) {
        buf_adds(table, i ? "," : "");
        put_quoted(table, in.names.at[i]);
    }
    buf_addc(table, '\n');
    while (got > 0 && (got = csv_next(&in, &row, &err)) > 0) {
        if (got == CSV_ROW_WRONG)
            continue;
        json_print(rows, row);
        buf_addc(rows, '\n');
        for (int i = 0; i < in.names.n; i++) {
            buf_adds(table, i ? "," : "");
            put_member(table, json_get(row, in.names.at[i]));
        }
        buf_addc(table, '\n');
        n_rows++;
        json_free(row);
    }
    csv_close(&in);
    return got < 0 ? -1 : n_rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf text = { 0 }, rows = { 0 }, table = { 0 }, again = { 0 }, same = { 0 };

    buf_add(&text, data, n);
    if (memchr(buf_str(&text), '\0', n) == NULL && read_all(buf_str(&text), text.n, &rows, &table) >= 0) {
        if (read_all(buf_str(&table), table.n, &again, &same) < 0)
            abort();
        if (strcmp(buf_str(&table), buf_str(&same)) != 0 || strcmp(buf_str(&rows), buf_str(&again)) != 0)
            abort();
    }
    buf_release(&text);
    buf_release(&rows);
    buf_release(&table);
    buf_release(&again);
    buf_release(&same);
    return 0;
}
