/* show_more.c - small things that evp-show knows: access logs, lists of cells, states of evp-drift, summaries of
 * --summary, and a folder of payloads. */
#include "drift/drift.h"
#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "base/rows.h"
#include "show/show.h"
#include "logs/access.h"
#include "variants/packed_payload.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- access logs ----------------------------------------------------------- */

static int add_id(void *arg, const struct json *row, struct err *err)
{
    const char *id;

    if (json_want_text(row, "context", &id, err))
        return err->code;
    return map_add(arg, id, strlen(id), NULL) >= 0 ? 0 : err_nomem(err);
}

int show_access(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "context", "uses" };
    struct access_log log;
    struct map ids = { 0 };
    int code = rows_each(path, "access", add_id, &ids, err);
    double *uses = code ? NULL : calloc((size_t)ids.n + 1, sizeof(*uses)), sum = 0;

    (void)depth; /* the reader checks everything */
    if (!code)
        code = uses ? access_read(&log, path, &ids, uses, err) : err_nomem(err);
    for (int i = 0; i < ids.n && !code; i++)
        sum += uses[i];
    if (!code) {
        sheet_int(s, "n_rows", log.rows);
        sheet_int(s, "n_contexts", ids.n);
        sheet_real(s, "uses", sum, 1);
        sheet_table(s, "contexts", column, 2);
        for (int i = 0; i < ids.n; i++) {
            sheet_text(s, NULL, ids.at[i].key);
            sheet_real(s, NULL, uses[i], 1);
        }
        sheet_table_end(s);
    }
    free(uses);
    map_release(&ids);
    return code;
}

/* ---- lists of cells ---------------------------------------------------- */

struct listing {
    struct sheet *s;
    const char *const *column;
    int n_columns;
};

/* "a, b" for a list of texts, a text itself, JSON for other values. */
static void put_value(struct sheet *s, const char *key, const struct json *v)
{
    struct buf text = { 0 };

    bool words = json_is_array(v) && json_is_text(json_first(v));
    for (const struct json *e = words ? json_first(v) : NULL; e; e = json_next(e))
        buf_printf(&text, "%s%s", text.n ? ", " : "", json_text(e) ? json_text(e) : "?");
    if (v && !words && !json_text(v) && !json_is_null(v))
        json_print(&text, v);
    sheet_text(s, key, json_text(v) ? json_text(v) : text.n ? buf_str(&text) : NULL);
    buf_release(&text);
}

static int put_row(void *arg, const struct json *row, struct err *err)
{
    const struct listing *l = arg;

    (void)err;
    for (int i = 0; i < l->n_columns; i++)
        put_value(l->s, NULL, json_get(row, l->column[i]));
    return 0;
}

int show_cells(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "context", "configs", "questions" };
    struct listing l = { s, column, 3 };
    struct rows_in in;

    (void)depth;
    if (rows_open(&in, path, "cells", err))
        return err->code;
    sheet_table(s, "cells", column, l.n_columns);
    int code = rows_rest(&in, put_row, &l, err);
    sheet_table_end(s);
    rows_close(&in);
    return code;
}

/* ---- states of evp-drift -------------------------------------------------- */

static int put_drift(void *arg, const struct json *row, struct err *err)
{
    struct sheet *s = arg;
    struct drift_row r;

    if (drift_row_read(&r, row, err))
        return err->code;
    sheet_text(s, NULL, r.context);
    sheet_text(s, NULL, r.config);
    sheet_int(s, NULL, r.n_known);
    sheet_real(s, NULL, drift_test_wealth(&r.test), 2);
    sheet_real(s, NULL, r.asked_until, 0);
    return 0;
}

int show_drift(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "context", "config", "questions", "wealth", "asked_until" };

    (void)depth;
    sheet_table(s, "contexts", column, 5);
    int code = rows_each(path, "drift", put_drift, s, err);
    sheet_table_end(s);
    return code;
}

/* ---- summaries --------------------------------------------------------------- */

int show_run(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    enum { SUMMARY_MAX = 64 << 20 };
    struct buf text = { 0 };
    int code = file_read(&text, path, SUMMARY_MAX, err);
    struct json *root = code ? NULL : json_parse(buf_str(&text), text.n, err);

    (void)depth;
    if (!code && !root)
        code = err_wrap(err, "'%s'", path);
    if (root) {
        put_value(s, "tool", json_get(root, "tool"));
        put_value(s, "args", json_get(root, "args"));
        put_value(s, "status", json_get(root, "status"));
        put_value(s, "seconds", json_get(root, "seconds"));
        put_value(s, "error", json_get(root, "error"));
        sheet_table(s, "result", (const char *const[]){ "name", "value" }, 2);
        for (const struct json *m = json_first(json_get(root, "result")); m; m = json_next(m)) {
            sheet_text(s, NULL, json_name(m));
            put_value(s, NULL, m);
        }
        sheet_table_end(s);
    }
    json_free(root);
    buf_release(&text);
    return code;
}

/* ---- a folder of payloads ---------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **at;
    int n, cap;
    uint64_t bytes; // of the files together
};

static int list_payloads(struct names *list, const char *path, struct err *err)
{
    DIR *dir = opendir(path);
    int code = dir ? 0 : err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));

    uint64_t bytes = 0;
    for (const struct dirent *e; !code && (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".safetensors") != 0)
            continue;
        char *name = file_join(path, e->d_name);
        if (!name || ARRAY_PUSH(list, name)) {
            free(name);
            code = err_nomem(err);
        } else {
            code = file_size(name, &bytes, err);
            list->bytes += bytes;
        }
    }
    if (dir)
        closedir(dir);
    if (!code && list->n)
        qsort(list->at, (size_t)list->n, sizeof(*list->at), by_name);
    return code;
}

int show_payloads(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "file", "config", "n_tokens", "stored_bytes" };
    struct names list = { 0 };
    int code = list_payloads(&list, path, err);

    sheet_int(s, "n_payloads", list.n);
    sheet_bytes(s, "file_bytes", (int64_t)list.bytes);
    sheet_table(s, "payloads", column, 4);
    for (int i = 0; i < list.n && !code; i++) {
        struct packed_payload p;
        code = packed_payload_open(&p, list.at[i], depth == SHOW_CHECK ? PAYLOAD_WHOLE : PAYLOAD_HEADER, err);
        if (code)
            break;
        sheet_text(s, NULL, file_name(list.at[i]));
        sheet_text(s, NULL, p.config.name);
        sheet_int(s, NULL, p.file.n_tokens);
        sheet_bytes(s, NULL, p.bytes);
        packed_payload_close(&p);
    }
    sheet_table_end(s);
    for (int i = 0; i < list.n; i++)
        free(list.at[i]);
    free(list.at);
    return code;
}
