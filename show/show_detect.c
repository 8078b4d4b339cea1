/* show_detect.c - a file's format, and the tools that made it. Detection reads the first 64 KiB: magic numbers, then
 * the "evp" at the beginning of our streams, then the members of a first row without a header. */
#include "base/file.h"
#include "base/magic.h"
#include "base/rows.h"
#include "base/safetensors.h"
#include "show/show.h"
#include "engine/model/model.h"
#include "formats/context.h"
#include "formats/replay_table.h"
#include "profiler/table/table.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 1 << 16, CONFIG_MAX = 1 << 24 };

/* ---- folders ----------------------------------------------------------- */

static bool folder_has(const char *path, const char *name)
{
    char *file = file_join(path, name);
    bool has = file && file_exists(file);

    free(file);
    return has;
}

/* The name of a file of evp-pack ends in .safetensors. */
static bool has_payloads(const char *path)
{
    DIR *dir = opendir(path);
    bool has = false;

    for (const struct dirent *e; dir && !has && (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        has = dot && strcmp(dot, ".safetensors") == 0;
    }
    if (dir)
        closedir(dir);
    return has;
}

static int detect_folder(const char *path, enum show_kind *kind, struct err *err)
{
    if (!folder_has(path, "config.json") && (folder_has(path, "evp-state") || folder_has(path, "evp-index"))) {
        *kind = SHOW_STORE;
        return 0;
    }
    if (!folder_has(path, "config.json") && has_payloads(path)) {
        *kind = SHOW_PAYLOADS;
        return 0;
    }
    if (access(path, R_OK | X_OK))
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", path, strerror(errno));
    struct buf text = { 0 };
    char *config = file_join(path, "config.json");
    struct json *json = NULL;

    if (!config)
        return err_nomem(err);
    int code = file_exists(config) ? file_read(&text, config, CONFIG_MAX, err)
                                   : err_set(err, ERR_FORMAT, "'%s' is not a model: it has no config.json", path);
    if (!code) { // what is wrong with it, the model's reader says
        json = json_parse(buf_str(&text), text.n, err);
        const char *type = json_text(json_get(json, "model_type"));
        *kind = type && strcmp(type, "bert") == 0 ? SHOW_EMBEDDER : SHOW_MODEL;
    }
    json_free(json);
    buf_release(&text);
    free(config);
    return code;
}

/* ---- files ------------------------------------------------------------- */

static int read_head(const char *path, struct buf *head, struct err *err)
{
    FILE *f = fopen(path, "rb");
    char *to = buf_reserve(head, HEAD_BYTES);

    if (!f)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (!to) {
        fclose(f);
        return err_nomem(err);
    }
    head->n += fread(to, 1, HEAD_BYTES, f);
    to[head->n] = '\0';
    fclose(f);
    return 0;
}

static bool starts(const struct buf *head, const char *with, size_t n)
{
    return head->n >= n && memcmp(head->at, with, n) == 0;
}

/* Our streams begin with their kind: {"evp":"kind", ... */
static bool named_kind(const struct buf *head, enum show_kind *kind)
{
    static const struct {
        const char *name;
        enum show_kind kind;
    } known[] = {
        { "contexts", SHOW_CONTEXTS }, { "questions", SHOW_QUESTIONS }, { "tiers", SHOW_TIERS },
        { "manifest", SHOW_MANIFEST }, { "receipt", SHOW_RECEIPT },     { "times", SHOW_TIMES },
        { "access", SHOW_ACCESS },     { "cells", SHOW_CELLS },         { "summary", SHOW_RUN },
        { "drift", SHOW_DRIFT },
    };
    char name[32];
    int at = 0;

    if (sscanf(buf_str(head), " { \"evp\" : \"%31[a-z]\"%n", name, &at) != 1 || at == 0)
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(name, known[i].name) == 0) {
            *kind = known[i].kind;
            return true;
        }
    return false;
}

/* A user's JSON Lines without a header. Rows of questions have a context; those of access logs count its uses. */
static bool row_kind(const struct buf *head, enum show_kind *kind)
{
    const char *end = strchr(buf_str(head), '\n');
    struct err ignored;
    struct json *row = json_parse(buf_str(head), end ? (size_t)(end - head->at) : head->n, &ignored);
    bool text = json_is_text(json_get(row, "text")), context = json_is_text(json_get(row, "context"));
    bool count = context && !text && json_is_number(json_get(row, "count"));

    json_free(row);
    *kind = count ? SHOW_ACCESS : context ? SHOW_QUESTIONS : SHOW_CONTEXTS;
    if (!row && starts(head, "{\"id\"", 5) && !end) { /* a row longer than HEAD_BYTES */
        *kind = SHOW_CONTEXTS;
        return true;
    }
    return text || count;
}

static int detect_file(const char *path, const struct buf *head, enum show_kind *kind, struct err *err)
{
    struct safetensors st;

    if (starts(head, "GGUF", 4))
        *kind = SHOW_MODEL;
    else if (starts(head, "\x89HDF\r\n\x1a\n", 8))
        *kind = SHOW_TABLE;
    else if (starts(head, "alpha\tquality\t", 14))
        *kind = SHOW_FRONTIER;
    else if (replay_table_is(buf_str(head)))
        *kind = SHOW_REPLAY;
    else if (head->n > 8 && head->at[8] == '{') {
        if (safetensors_open(&st, path, err))
            return err->code;
        const char *evp = safetensors_meta(&st, "evp");
        *kind = evp && strcmp(evp, "payload") == 0 ? SHOW_PAYLOAD : SHOW_SAFETENSORS;
        safetensors_close(&st);
    } else if (!named_kind(head, kind) && !row_kind(head, kind)) {
        err_set(err, ERR_FORMAT, head->n ? "'%s' is not a file of the evp tools or a model" : "'%s' is empty", path);
        return magic_refuse(err, path, "a file of the evp tools or a model");
    }
    return 0;
}

int show_detect(const char *path, enum show_kind *kind, struct err *err)
{
    struct buf head = { 0 };

    if (model_is_synthetic(path)) {
        *kind = SHOW_MODEL;
        return 0;
    }
    if (file_is_dir(path))
        return detect_folder(path, kind, err);
    if (strcmp(file_name(path), "config.json") == 0) {
        *kind = SHOW_MODEL;
        return 0;
    }
    int code = read_head(path, &head, err);
    if (!code)
        code = detect_file(path, &head, kind, err);
    buf_release(&head);
    return code;
}

/* ---- lineage ----------------------------------------------------------- */

/* made: a header, or a table's lineage. Prints a line with its tool and args, then, indented, each input of "from". */
static void put_chain(struct buf *out, const struct json *made, int depth)
{
    const char *tool = json_text(json_get(made, "tool"));
    const struct json *args = json_get(made, "args"), *from = json_get(made, "from");

    buf_printf(out, "%*s%s", 2 * depth, "", tool ? tool : "?");
    for (const struct json *a = json_first(args); a; a = json_next(a))
        buf_printf(out, " %s", json_text(a) ? json_text(a) : "?");
    buf_addc(out, '\n');
    for (const struct json *f = json_first(from); f && depth < 32; f = json_next(f))
        put_chain(out, f, depth + 1);
}

static int put_table(struct buf *out, const char *path, struct err *err)
{
    struct table t;

    if (table_read(&t, path, TABLE_PLAN, err))
        return err->code;
    struct json *made = table_lineage(&t);
    int code = made ? 0 : err_set(err, ERR_FORMAT, "'%s' does not say how it was made", path);
    if (made)
        put_chain(out, made, 0);
    json_free(made);
    table_release(&t);
    return code;
}

static int put_rows(struct buf *out, const char *path, const char *kind, struct err *err)
{
    struct rows_in in;

    if (rows_open(&in, path, kind, err))
        return err->code;
    int code = in.header ? 0 : err_set(err, ERR_FORMAT, "'%s' does not say how it was made", path);
    if (in.header)
        put_chain(out, in.header, 0);
    rows_close(&in);
    return code;
}

int show_lineage(struct buf *out, const char *path, enum show_kind kind, struct err *err)
{
    switch (kind) {
    case SHOW_TABLE: return put_table(out, path, err);
    case SHOW_CONTEXTS: return put_rows(out, path, "contexts", err);
    case SHOW_QUESTIONS: return put_rows(out, path, "questions", err);
    case SHOW_RECEIPT: return put_rows(out, path, "receipt", err);
    case SHOW_MANIFEST: return put_rows(out, path, "manifest", err);
    case SHOW_ACCESS: return put_rows(out, path, "access", err);
    case SHOW_CELLS: return put_rows(out, path, "cells", err);
    case SHOW_DRIFT: return put_rows(out, path, "drift", err);
    default: return err_set(err, ERR_FORMAT, "'%s' does not say how it was made", path);
    }
}
