/* import_bytes.c - the contents of one file, from the outside in: is it text at all, is it valid UTF-8, does it hold
 * rows or one text; then each row or text becomes a context. A row keeps its file and line for messages.
 */
#include "datasets/import.h"

#include "base/array.h"
#include "base/file.h"
#include "base/magic.h"
#include "base/rows.h"
#include "base/utf8.h"
#include "datasets/csv.h"
#include "datasets/dataset.h"
#include "datasets/import_internal.h"
#include "logs/request.h"
#include "datasets/row.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------- */

static const struct ending {
    const char *text;
    enum import_kind kind;
} endings[] = { { ".jsonl", IMPORT_ROWS },
                { ".json", IMPORT_JSON },
                { ".csv", IMPORT_CSV },
                { ".txt", IMPORT_TEXT },
                { ".md", IMPORT_TEXT } };

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

bool import_has_rows(const char *name)
{
    enum import_kind kind = import_kind_of(name);

    return kind == IMPORT_ROWS || kind == IMPORT_JSON || kind == IMPORT_CSV;
}

char *import_stem(const char *path)
{
    const char *name = file_name(path), *folder = name > path ? name - 1 : path;
    const struct ending *e = ending_of(name);
    char *stem = strndup(name, strlen(name) - (e ? strlen(e->text) : 0));

    while (folder > path && folder[-1] != '/')
        folder--;
    if (stem && e && e->kind != IMPORT_TEXT && *folder != '.' && name > folder + 1 &&
        (strcmp(stem, "test") == 0 || strcmp(stem, "validation") == 0)) {
        free(stem);
        stem = strndup(folder, (size_t)(name - folder) - 1);
    }
    return stem;
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

/* A row's position for messages: "'rows.csv' line 3". */
struct row_position {
    const char *label, *unit;
    int64_t n;
};

static int add_row(struct import *im, const struct row_position *position, const struct json *row, const char *stem,
                   struct err *err)
{
    struct row_origin origin = { .stem = stem, .line = position->n, .unread = &im->unread };
    struct buf label = { 0 };
    struct context c;

    buf_printf(&label, "%s %s %lld", position->label, position->unit, (long long)position->n);
    int code = buf_failed(&label) ? err_nomem(err) : row_context(&c, row, &origin, err);
    if (!code)
        code = import_add(im, &c, buf_str(&label), err);
    else if (code != ERR_NOMEM) {
        err_wrap(err, "%s", buf_str(&label));
        code = code == ERR_FORMAT ? import_leave_out(im, err) : code;
    }
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
        int code = add_row(im, &(struct row_position){ in.path, "line", in.n_line }, row, stem, err);
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

/* ---- lists and tables ------------------------------------------------------ */

static int import_list(struct import *im, const struct import_file *file, const struct json *list, const char *stem,
                       struct err *err)
{
    struct row_position position = { file->label, "element", 0 };
    int code = 0;

    for (const struct json *row = json_first(list); row && !code; row = json_next(row)) {
        position.n++;
        if (json_is_object(row)) {
            code = add_row(im, &position, row, stem, err);
        } else {
            err_set(err, ERR_FORMAT, "%s %s %lld is not a JSON object", position.label, position.unit,
                    (long long)position.n);
            code = import_leave_out(im, err);
        }
    }
    return code;
}

static bool has_column(const struct csv *in, const char *name)
{
    for (int i = 0; i < in->names.n; i++)
        if (strcmp(in->names.at[i], name) == 0)
            return true;
    return false;
}

static int import_csv(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct rows_bytes bytes = { .label = file->label, .at = file->bytes, .n = file->n };
    struct csv in;
    struct json *row;
    int code = csv_open(&in, &bytes, err);

    if (!code && !has_column(&in, "text") && !has_column(&in, "context"))
        code = err_set(err, ERR_FORMAT, "%s has no column 'text' or 'context'", file->label);
    for (int got = 1; !code && got > 0;) {
        got = csv_next(&in, &row, err);
        if (got == CSV_ROW_WRONG)
            code = import_leave_out(im, err);
        else if (got == 1)
            code = add_row(im, &(struct row_position){ file->label, "line", in.line }, row, stem, err);
        else
            code = got;
        if (got == 1)
            json_free(row);
    }
    csv_close(&in);
    return code;
}

/* ---- texts ---------------------------------------------------------------- */

/* The stem, or stem-2, stem-3 ... if another text has that id. */
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

static int count_request(void *arg, const struct request *r, struct err *err)
{
    (void)r;
    (void)err;
    ++*(int *)arg;
    return 0;
}

/* Do several of the first lines hold requests to a model? */
static bool is_request_log(const struct import_file *file)
{
    enum { LINES = 200, ENOUGH = 2 };
    struct request_line line = { 0 };
    int n = 0;
    const struct request_visitor visitor = { count_request, &n };
    struct err ignored;

    for (size_t at = 0, i = 0; at < file->n && i < LINES && n < ENOUGH; i++) {
        const char *end = memchr(file->bytes + at, '\n', file->n - at);
        size_t length = end ? (size_t)(end - file->bytes) - at : file->n - at;
        char *copy = strndup(file->bytes + at, length); // request_read() wants the line alone
        if (copy)
            (void)!request_read(&line, copy, strlen(copy), &visitor, &ignored);
        free(copy);
        at += length + 1;
    }
    request_line_release(&line);
    return n >= ENOUGH;
}

static int import_text(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct dataset_row row = { .document = file->bytes };
    struct context c = { 0 };

    if (is_request_log(file)) {
        err_set(err, ERR_FORMAT, "%s looks like a log of requests to a model; --requests reads such logs", file->label);
        im->note(im->arg, IMPORT_WARNING, err->msg);
    }
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

bool import_is_binary(const struct import_file *file, enum import_binary which, struct err *err)
{
    const struct magic_source source = { file->label, file->bytes, file->n };
    const struct magic *m = magic_of(file->bytes, file->n);
    bool document = m && !m->packed;

    if (!document && (which == IMPORT_DOCUMENT || !memchr(file->bytes, '\0', file->n)))
        return false;
    err_set(err, ERR_FORMAT, "%s is neither text nor a complete archive of a known kind", file->label);
    if (document)
        magic_refuse_bytes(err, &source, "a text");
    return true;
}

/* A list of JSON objects. NULL: another JSON value or not JSON, described in *err. */
static struct json *parse_list(const struct import_file *file, struct err *err)
{
    struct json *list = json_parse(file->bytes, file->n, err);

    if (!list || json_is_array(list))
        return list;
    json_free(list);
    err_set(err, ERR_FORMAT, "not a list");
    return NULL;
}

/* A file that begins with '['. Unless its name ends in .json or it is a list of objects, it is a text: texts may begin
 * with a bracket too. */
static int import_bracket(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    bool named = import_kind_of(file->name) == IMPORT_JSON;
    struct json *list = parse_list(file, err);
    int code;

    if (list && (named || json_is_object(json_first(list))))
        code = import_list(im, file, list, stem, err);
    else if (named)
        code = err_wrap(err, "%s", file->label);
    else
        code = import_text(im, file, stem, err);
    json_free(list);
    return code;
}

static int import_rows_or_text(struct import *im, const struct import_file *file, struct err *err)
{
    enum import_kind kind = import_kind_of(file->name);
    char first = file->bytes[strspn(file->bytes, " \t\r\n")], *stem = import_stem(file->name);
    int code;

    if (!stem)
        return err_nomem(err);
    bool open = kind == IMPORT_UNKNOWN || kind == IMPORT_JSON;
    if (kind == IMPORT_CSV)
        code = import_csv(im, file, stem, err);
    else if (open && first == '[')
        code = import_bracket(im, file, stem, err);
    else if (kind == IMPORT_ROWS || (open && first == '{'))
        code = import_rows(im, file, stem, err);
    else
        code = import_text(im, file, stem, err);
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
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark of some editors */
    struct import_file file = *given;

    if (import_is_binary(&file, IMPORT_BINARY, err))
        return import_leave_out(im, err);
    if (file.n >= 3 && memcmp(file.bytes, mark, 3) == 0) {
        file.bytes += 3;
        file.n -= 3;
    }
    return utf8_valid(file.bytes, file.n) ? import_rows_or_text(im, &file, err) : import_repaired(im, file, err);
}
