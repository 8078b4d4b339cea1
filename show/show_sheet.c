/* show_sheet.c - a value goes into the JSON at once. The text needs the widths of the columns, so its cells wait in
 * s->cell until the table is complete. Fields form a table of two columns. */
#include "show/show_sheet.h"

#include "base/parse.h"
#include "base/utf8.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

enum { CELL_MAX = 60 }; /* characters of a text in a table; the JSON has the whole text */

void sheet_begin(struct sheet *s, const char *file, const char *kind)
{
    s->out = (struct json_out){ .buf = &s->json };
    buf_printf(&s->text, "%s: %s\n", file, kind);
    json_begin(&s->out, NULL, '{');
    json_put_text(&s->out, "file", file);
    json_put_text(&s->out, "kind", kind);
}

void sheet_release(struct sheet *s)
{
    buf_release(&s->text);
    buf_release(&s->json);
    buf_release(&s->cell);
    *s = (struct sheet){ 0 };
}

/* ---- text -------------------------------------------------------------- */

/* Pads with blanks to `width` characters; the last column of a line is not padded on the right. */
static void put_padded(struct buf *out, const char *text, size_t width, bool right, bool last)
{
    size_t n = utf8_count(text, strlen(text)), pad = n < width ? width - n : 0;

    if (right)
        buf_printf(out, "%*s", (int)pad, "");
    buf_adds(out, text);
    if (!right && !last)
        buf_printf(out, "%*s", (int)pad, "");
}

/* Prints the waiting cells as rows of n columns, at most max_rows of them, and clears the cells. */
static void put_rows(struct sheet *s, int n, int max_rows)
{
    size_t width[SHEET_COLUMNS] = { 0 };
    const char *p = buf_str(&s->cell), *end = p + s->cell.n;

    for (int at = 0, row = 0; p < end && row < max_rows; p += strlen(p) + 1, at = (at + 1) % n, row += at == 0) {
        size_t length = utf8_count(p, strlen(p));
        width[at] = length > width[at] ? length : width[at];
    }
    p = buf_str(&s->cell);
    for (int at = 0, row = 0; p < end && row < max_rows; p += strlen(p) + 1, at = (at + 1) % n, row += at == 0) {
        buf_adds(&s->text, "  ");
        put_padded(&s->text, p, width[at], s->number[at], at == n - 1);
        if (at == n - 1)
            buf_addc(&s->text, '\n');
    }
    buf_clear(&s->cell);
    memset(s->number, 0, sizeof(s->number));
}

static void add_cell(struct sheet *s, const char *text)
{
    buf_add(&s->cell, text, strlen(text) + 1);
}

/* The key without its unit, since the value shows it: "read_bytes_per_s" becomes "read". */
static void add_label(struct sheet *s, const char *key)
{
    static const char *const units[] = { "_bytes_per_s", "_bytes", "_s", "_x" };
    const char *name = strncmp(key, "n_", 2) == 0 ? key + 2 : key;
    size_t start = s->cell.n, n = strlen(name);

    if (strcmp(key, "ttft_s") == 0) {
        add_cell(s, "TTFT");
        return;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t m = strlen(units[i]);
        if (n > m && memcmp(name + n - m, units[i], m) == 0) {
            n -= m;
            break;
        }
    }
    buf_add(&s->cell, name, n);
    buf_addc(&s->cell, '\0');
    for (size_t i = start; i < s->cell.n; i++)
        if (s->cell.at[i] == '_')
            s->cell.at[i] = ' ';
}

/* Returns the key of the next value. A field also gets its label. */
static const char *next_key(struct sheet *s, const char *key, bool number)
{
    if (!s->column) {
        add_label(s, key);
        return key;
    }
    int at = s->at++ % s->n_columns;
    if (at == 0)
        json_begin(&s->out, NULL, '{');
    s->number[at] |= number;
    return s->column[at];
}

static void value_done(struct sheet *s, const char *text)
{
    add_cell(s, text);
    if (!s->column || s->at % s->n_columns != 0)
        return;
    json_end(&s->out, '}');
    s->n_rows++;
}

/* ---- values ------------------------------------------------------------ */

void sheet_text(struct sheet *s, const char *key, const char *v)
{
    struct buf shown = { 0 };
    uint32_t point;
    int n = 0;

    json_put_text(&s->out, next_key(s, key, false), v);
    for (const char *p = v ? v : "-"; *p; n++) {
        int length = utf8_decode(p, strlen(p), &point);
        if (s->column && n == CELL_MAX) {
            buf_adds(&shown, "...");
            break;
        }
        if (length > 0 && point >= ' ' && point != 0x7f)
            buf_add(&shown, p, (size_t)length);
        else
            buf_addc(&shown, ' '); /* a line end in a question would break the table */
        p += length > 0 ? length : 1;
    }
    value_done(s, buf_str(&shown));
    s->text.failed |= buf_failed(&shown);
    buf_release(&shown);
}

void sheet_bool(struct sheet *s, const char *key, bool v)
{
    json_put_bool(&s->out, next_key(s, key, false), v);
    value_done(s, v ? "yes" : "no");
}

static void put_number(struct sheet *s, const char *key, bool known, double v, const char *text)
{
    const char *name = next_key(s, key, true);

    if (known)
        json_put_real(&s->out, name, v);
    else
        json_put_null(&s->out, name);
    value_done(s, known ? text : "-");
}

void sheet_int(struct sheet *s, const char *key, int64_t v)
{
    char text[TEXT_SHORT];

    snprintf(text, sizeof(text), "%lld", (long long)v);
    put_number(s, key, v >= 0, (double)v, text);
}

void sheet_part(struct sheet *s, const char *key, int64_t v, int64_t of)
{
    char text[TEXT_SHORT], name[TEXT_SHORT];

    snprintf(text, sizeof(text), of > v ? "%lld of %lld" : "%lld", (long long)v, (long long)of);
    put_number(s, key, true, (double)v, text);
    snprintf(name, sizeof(name), "%s_of", key);
    json_put_int(&s->out, name, of);
}

void sheet_bytes(struct sheet *s, const char *key, int64_t v)
{
    char text[TEXT_SHORT];

    put_number(s, key, v >= 0, (double)v, text_bytes(text, (double)v));
}

void sheet_rate(struct sheet *s, const char *key, double v)
{
    char bytes[TEXT_SHORT], text[TEXT_SHORT + 2];

    snprintf(text, sizeof(text), "%s/s", text_bytes(bytes, v));
    put_number(s, key, v >= 0, v, text);
}

void sheet_seconds(struct sheet *s, const char *key, double v)
{
    char text[TEXT_SHORT];

    put_number(s, key, isfinite(v), v, isfinite(v) ? text_seconds(text, v) : "");
}

void sheet_real(struct sheet *s, const char *key, double v, int decimals)
{
    char text[TEXT_SHORT];

    snprintf(text, sizeof(text), fabs(v) < 1e15 ? "%.*f" : "%.*g", decimals, v);
    put_number(s, key, isfinite(v), v, text);
}

void sheet_times(struct sheet *s, const char *key, double v)
{
    char text[TEXT_SHORT];

    snprintf(text, sizeof(text), fabs(v) < 1e15 ? "%.2fx" : "%.2gx", v);
    put_number(s, key, isfinite(v), v, text);
}

/* ---- tables ------------------------------------------------------------ */

void sheet_table(struct sheet *s, const char *key, const char *const *column, int n)
{
    put_rows(s, 2, INT32_MAX); /* the fields before the table */
    json_begin(&s->out, key, '[');
    for (int i = 0; i < n; i++)
        add_label(s, column[i]);
    s->column = column;
    s->n_columns = n;
    s->at = s->n_rows = 0;
}

void sheet_table_end(struct sheet *s)
{
    int max = s->max_rows > 0 ? s->max_rows : INT32_MAX - 1;

    if (s->n_rows > 0) {
        buf_addc(&s->text, '\n');
        put_rows(s, s->n_columns, max + 1); /* with the headings */
    }
    buf_clear(&s->cell);
    if (s->n_rows > max)
        buf_printf(&s->text, "  ... and %d more (--rows 0 shows all)\n", s->n_rows - max);
    json_end(&s->out, ']');
    s->column = NULL;
}

int sheet_end(struct sheet *s, struct err *err)
{
    put_rows(s, 2, INT32_MAX);
    json_end(&s->out, '}');
    buf_addc(&s->json, '\n');
    return buf_failed(&s->text) || buf_failed(&s->json) || buf_failed(&s->cell) ? err_nomem(err) : 0;
}
