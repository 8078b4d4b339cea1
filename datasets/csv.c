/* csv.c - one field at a time, quoted or plain, up to its separator. */
#include "datasets/csv.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 1024 };

/* ---- fields ---------------------------------------------------------------- */

/* What came after a field. */
enum csv_end { CSV_MORE, CSV_ROW, CSV_FILE };

static int malformed(const struct csv *in, const char *what, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s line %lld: %s", in->label, (long long)in->next_line, what);
}

/* From after the opening quotation mark to after the closing one. */
static int read_quoted(struct csv *in, struct buf *field, struct err *err)
{
    int64_t opened = in->next_line;

    for (; in->at < in->end; in->at++) {
        in->next_line += *in->at == '\n';
        if (*in->at != '"') {
            buf_addc(field, *in->at);
        } else if (in->at + 1 < in->end && in->at[1] == '"') {
            buf_addc(field, '"');
            in->at++;
        } else {
            in->at++;
            return 0;
        }
    }
    in->next_line = opened;
    return malformed(in, "a quotation mark opens here and does not close", err);
}

static int read_plain(struct csv *in, struct buf *field, struct err *err)
{
    for (; in->at < in->end && *in->at != ',' && *in->at != '\n'; in->at++) {
        if (*in->at == '\r' && in->at + 1 < in->end && in->at[1] == '\n')
            break;
        if (*in->at == '"')
            return malformed(in, "a quotation mark inside a field that does not begin with one", err);
        buf_addc(field, *in->at);
    }
    return 0;
}

/* Adds the next field to *field. */
static int read_field(struct csv *in, struct buf *field, enum csv_end *end, struct err *err)
{
    bool quoted = in->at < in->end && *in->at == '"';

    in->at += quoted;
    if (quoted ? read_quoted(in, field, err) : read_plain(in, field, err))
        return err->code;
    if (in->at + 1 < in->end && in->at[0] == '\r' && in->at[1] == '\n')
        in->at++;
    if (in->at == in->end) {
        *end = CSV_FILE;
        return 0;
    }
    if (*in->at != ',' && *in->at != '\n')
        return malformed(in, "text after a closing quotation mark", err);
    *end = *in->at == ',' ? CSV_MORE : CSV_ROW;
    in->next_line += *in->at == '\n';
    in->at++;
    return 0;
}

static void skip_empty_lines(struct csv *in)
{
    for (;;) {
        const char *at = in->at + (in->at < in->end && *in->at == '\r');
        if (at == in->end || *at != '\n')
            return;
        in->at = at + 1;
        in->next_line++;
    }
}

/* ---- the names --------------------------------------------------------------- */

static int add_name(struct csv *in, struct buf *field, struct err *err)
{
    char *name = strdup(buf_str(field));

    if (!name || buf_failed(field) || ARRAY_PUSH(&in->names, name)) {
        free(name);
        return err_nomem(err);
    }
    if (!*name)
        return err_set(err, ERR_FORMAT, "%s: column %d has no name", in->label, in->names.n);
    for (int i = 0; i + 1 < in->names.n; i++)
        if (strcmp(in->names.at[i], name) == 0)
            return err_set(err, ERR_FORMAT, "%s: two columns are named '%.64s'", in->label, name);
    if (in->names.n > COLUMNS_MAX)
        return err_set(err, ERR_FORMAT, "%s has more than %d columns", in->label, COLUMNS_MAX);
    return 0;
}

int csv_open(struct csv *in, const struct rows_bytes *bytes, struct err *err)
{
    *in = (struct csv){ .label = bytes->label, .at = bytes->at, .end = bytes->at + bytes->n, .next_line = 1 };
    skip_empty_lines(in);
    if (in->at == in->end)
        return err_set(err, ERR_FORMAT, "%s is empty", in->label);
    in->line = in->next_line;
    for (enum csv_end end = CSV_MORE; end == CSV_MORE;) {
        struct buf field = { 0 };
        int code = read_field(in, &field, &end, err);
        if (!code)
            code = add_name(in, &field, err);
        buf_release(&field);
        if (code)
            return code;
    }
    return 0;
}

void csv_close(struct csv *in)
{
    for (int i = 0; i < in->names.n; i++)
        free(in->names.at[i]);
    free(in->names.at);
    *in = (struct csv){ 0 };
}

/* ---- rows ---------------------------------------------------------------------- */

/* Members of a row that may be lists; anything that does not look like a list is a text. */
static bool may_be_list(const char *name)
{
    return strcmp(name, "answers") == 0 || strcmp(name, "inputs") == 0;
}

static void put_field(struct json_out *w, const char *name, const struct buf *field)
{
    const char *text = buf_str(field);
    struct err ignored;
    int64_t whole;

    if (field->n == 0)
        return;
    bool list = may_be_list(name) && text[0] == '[' && text[field->n - 1] == ']';
    struct json *v = list ? json_parse(text, field->n, &ignored) : NULL;
    if (v)
        json_put_node(w, name, v);
    else if (strcmp(name, "n_tokens") == 0 && parse_int(text, &whole))
        json_put_int(w, name, whole);
    else
        json_put_text_n(w, name, text, field->n);
    json_free(v);
}

/* Reads the fields of a row and writes those that have a name. *n: the number of fields. */
static int read_row(struct csv *in, struct json_out *w, int *n, struct err *err)
{
    for (enum csv_end end = CSV_MORE; end == CSV_MORE; ++*n) {
        struct buf field = { 0 };
        int code = read_field(in, &field, &end, err);
        if (!code && *n < in->names.n)
            put_field(w, in->names.at[*n], &field);
        if (!code && buf_failed(&field))
            code = err_nomem(err);
        buf_release(&field);
        if (code)
            return code;
    }
    return 0;
}

int csv_next(struct csv *in, struct json **row, struct err *err)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };
    int n = 0;

    skip_empty_lines(in);
    if (in->at == in->end)
        return 0;
    in->line = in->next_line;
    json_begin(&w, NULL, '{');
    int code = read_row(in, &w, &n, err);
    json_end(&w, '}');
    if (!code && buf_failed(&text))
        code = err_nomem(err);
    if (!code && n != in->names.n) {
        err_set(err, ERR_FORMAT, "%s line %lld: %d fields under %d column names", in->label, (long long)in->line, n,
                in->names.n);
        code = CSV_ROW_WRONG;
    }
    *row = code ? NULL : json_parse(buf_str(&text), text.n, err);
    buf_release(&text);
    return code ? code : *row ? 1 : err->code;
}
