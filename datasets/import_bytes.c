/* import_bytes.c - what is in one file, from the outside in: is it text at all, is it valid UTF-8, does it hold rows or
 * one text; then each row or text becomes a context. A row keeps its file and line for messages.
 */
#include "datasets/import.h"

#include "base/array.h"
#include "base/file.h"
#include "base/rows.h"
#include "base/utf8.h"
#include "datasets/dataset.h"
#include "datasets/import_internal.h"
#include "datasets/row.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------- */

static const struct ending {
    const char *text;
    enum import_kind kind;
} endings[] = { { ".jsonl", IMPORT_ROWS }, { ".txt", IMPORT_TEXT }, { ".md", IMPORT_TEXT } };

static const struct ending *ending_of(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        size_t e = strlen(endings[i].text);
        if (n > e && strcasecmp(name + n - e, endings[i].text) == 0)
            return &endings[i];
    }
    return NULL;
}

enum import_kind import_kind_of(const char *name)
{
    const struct ending *e = ending_of(name);

    return e ? e->kind : IMPORT_UNKNOWN;
}

char *import_stem(const char *path)
{
    const char *name = file_name(path);
    const struct ending *e = ending_of(name);

    return strndup(name, strlen(name) - (e ? strlen(e->text) : 0));
}

/* ---- rows ----------------------------------------------------------------- */

/* Keeps the header of a stream of contexts, if it has one, for lineage. */
static int keep_header(struct import *im, struct rows_in *in, struct err *err)
{
    if (!in->header)
        return 0;
    if (ARRAY_PUSH(&im->headers, in->header))
        return err_nomem(err);
    in->header = NULL;
    return 0;
}

static int add_row(struct import *im, const struct rows_in *in, const struct json *row, const char *stem,
                   struct err *err)
{
    struct row_origin origin = { .stem = stem, .line = in->n_line };
    struct buf label = { 0 };
    struct context c;

    int code = row_context(&c, row, &origin, err);
    if (code) {
        rows_wrap(in, err);
        return code == ERR_FORMAT ? import_leave_out(im, err) : code;
    }
    buf_printf(&label, "%s line %lld", in->path, (long long)in->n_line);
    code = import_add(im, &c, buf_str(&label), err);
    buf_release(&label);
    return code;
}

static int import_rows(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct rows_bytes bytes = { .label = file->label, .at = file->bytes, .n = file->n };
    struct rows_in in;
    struct json *row;
    int got;

    if (rows_open_bytes(&in, &bytes, "contexts", err))
        return err->code;
    while ((got = rows_next(&in, &row, err)) == 1) {
        int code = add_row(im, &in, row, stem, err);
        json_free(row);
        if (code) {
            got = code;
            break;
        }
    }
    if (got == 0)
        got = keep_header(im, &in, err);
    rows_close(&in);
    return got;
}

/* ---- texts ---------------------------------------------------------------- */

/* The stem, or stem-2, stem-3 ... when another text has that id. */
static char *free_id(const struct import *im, const char *stem)
{
    struct buf id = { 0 };

    buf_adds(&id, stem);
    for (int i = 2; !buf_failed(&id) && map_find(&im->contexts.ids, buf_str(&id), id.n) >= 0; i++) {
        buf_clear(&id);
        buf_printf(&id, "%s-%d", stem, i);
    }
    return buf_take(&id);
}

static int import_text(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct dataset_row row = { .document = file->bytes };
    struct context c = { 0 };

    int code = dataset_prompt(NULL, &row, &c, err);
    if (!code) {
        c.id = free_id(im, stem);
        c.dataset = strdup("");
        if (c.id && c.dataset)
            return import_add(im, &c, file->label, err);
        code = err_nomem(err);
    }
    context_release(&c);
    err_wrap(err, "%s", file->label);
    return code == ERR_FORMAT ? import_leave_out(im, err) : code;
}

/* ---- the whole file --------------------------------------------------------- */

bool import_is_binary(const struct import_file *file, struct err *err)
{
    if (!memchr(file->bytes, '\0', file->n))
        return false;
    err_set(err, ERR_FORMAT, "%s is neither text nor a whole archive of a known kind", file->label);
    return true;
}

static int import_rows_or_text(struct import *im, const struct import_file *file, struct err *err)
{
    enum import_kind kind = import_kind_of(file->name);
    char *stem = import_stem(file->name);

    if (!stem)
        return err_nomem(err);
    if (kind == IMPORT_UNKNOWN)
        kind = file->bytes[strspn(file->bytes, " \t\r\n")] == '{' ? IMPORT_ROWS : IMPORT_TEXT;
    int code = kind == IMPORT_ROWS ? import_rows(im, file, stem, err) : import_text(im, file, stem, err);
    free(stem);
    return code;
}

/* Malformed UTF-8 is replaced first. */
static int import_repaired(struct import *im, struct import_file file, struct err *err)
{
    struct buf text = { 0 };

    err_set(err, ERR_FORMAT, "%s has malformed UTF-8, which becomes U+FFFD", file.label);
    im->note(im->arg, IMPORT_WARNING, err->msg);
    utf8_clean(&text, file.bytes, file.n);
    file.bytes = buf_str(&text);
    file.n = text.n;
    int code = buf_failed(&text) ? err_nomem(err) : import_rows_or_text(im, &file, err);
    buf_release(&text);
    return code;
}

int import_bytes(struct import *im, const struct import_file *given, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark that some editors put in front */
    struct import_file file = *given;

    if (import_is_binary(&file, err))
        return import_leave_out(im, err);
    if (file.n >= 3 && memcmp(file.bytes, mark, 3) == 0) {
        file.bytes += 3;
        file.n -= 3;
    }
    return utf8_valid(file.bytes, file.n) ? import_rows_or_text(im, &file, err) : import_repaired(im, file, err);
}
