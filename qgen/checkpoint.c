#include "qgen/checkpoint.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t part_limit = (size_t)1 << 30;

/* ---- answers in memory -------------------------------------------------- */

/* The answer of that id, added when there was none; NULL without memory. */
static struct saved_answer *answer_of(struct saved *s, const char *id)
{
    int i = map_add(&s->ids, id, strlen(id), NULL);

    if (i == MAP_NOMEM)
        return NULL;
    if (i >= s->room) {
        int room = s->room ? 2 * s->room : 64;
        struct saved_answer *at = reallocarray(s->at, (size_t)room, sizeof(*at));
        if (!at)
            return NULL;
        memset(at + s->room, 0, (size_t)(room - s->room) * sizeof(*at));
        s->at = at;
        s->room = room;
    }
    return &s->at[i];
}

static int add_question(struct saved *s, const char *id, const char *digest, const char *text, struct err *err)
{
    struct saved_answer *a = answer_of(s, id);

    if (!a)
        return err_nomem(err);
    if (strcmp(a->digest, digest) != 0) {
        asked_release(&a->list);
        snprintf(a->digest, sizeof(a->digest), "%s", digest);
    }
    return asked_add(&a->list, text, strlen(text), 0, NULL, err);
}

bool saved_take(struct saved *s, const char *id, const char *digest, struct asked_list *list)
{
    int i = map_find(&s->ids, id, strlen(id));

    if (i < 0 || i >= s->room || strcmp(s->at[i].digest, digest) != 0 || s->at[i].list.n == 0)
        return false;
    *list = s->at[i].list;
    s->at[i].list = (struct asked_list){ 0 };
    return true;
}

/* ---- a finished file ---------------------------------------------------- */

void saved_key_to_json(const struct saved_key *key, struct json_out *w)
{
    json_put_text(w, "model", key->model);
    json_put_int(w, "per_context", key->per_context);
}

static bool key_matches(const struct saved_key *key, const struct json *v)
{
    const char *model = json_text(json_get(v, "model"));

    return model && strcmp(model, key->model) == 0 && json_real(json_get(v, "per_context")) == key->per_context;
}

static int add_row(struct saved *s, const struct json *row, struct err *err)
{
    const char *context = json_text(json_get(row, "context")), *digest = json_text(json_get(row, "digest"));
    const char *text = json_text(json_get(row, "text"));

    return context && digest && text ? add_question(s, context, digest, text, err) : 0;
}

/* What cannot be read, or was made otherwise, is replaced like any output file; only lack of memory is a failure. */
static int read_finished(struct saved *s, const char *file, const struct saved_key *key, struct err *err)
{
    struct rows_in in;
    struct json *row;
    int got = 0;

    if (!file_exists(file) || rows_open(&in, file, "questions", err))
        return 0;
    if (key_matches(key, json_get(in.header, "api")))
        while ((got = rows_next(&in, &row, err)) == 1) {
            int code = add_row(s, row, err);
            json_free(row);
            if (code)
                break;
        }
    rows_close(&in);
    return got < 0 && err->code == ERR_NOMEM ? ERR_NOMEM : 0;
}

/* ---- a part ------------------------------------------------------------- */

static int add_line(struct saved *s, const struct json *v, struct err *err)
{
    const char *context = NULL, *digest = NULL;

    if (json_want_text(v, "context", &context, err) || json_want_text(v, "digest", &digest, err))
        return err->code;
    const struct json *q = json_first(json_get(v, "questions"));
    for (; q; q = json_next(q))
        if (json_is_text(q) && add_question(s, context, digest, json_text(q), err))
            return err->code;
    return 0;
}

static int check_header(const struct saved *s, const struct json *v, const struct saved_key *key, struct err *err)
{
    const char *is = json_text(json_get(v, "evp")), *model = json_text(json_get(v, "model"));

    if (!is || strcmp(is, "answers") != 0 || json_real(json_get(v, "version")) != ROWS_VERSION)
        return err_set(err, ERR_FORMAT, "'%s' is in the way: it holds no answers of this program", s->path);
    if (key_matches(key, v))
        return 0;
    return err_set(err, ERR_FORMAT,
                   "'%s' holds answers of model '%s', %g per context; remove it, or go on with the same options",
                   s->path, model ? model : "?", json_real(json_get(v, "per_context")));
}

/* Reads the whole lines; *n_whole tells how many bytes they are. */
static int read_lines(struct saved *s, const struct buf *text, const struct saved_key *key, size_t *n_whole,
                      struct err *err)
{
    int n = 0;

    *n_whole = 0;
    for (const char *at = buf_str(text), *nl; (nl = strchr(at, '\n')); at = nl + 1) {
        struct json *v = json_parse(at, (size_t)(nl - at), err);
        int code = !v ? err->code : n == 0 ? check_header(s, v, key, err) : add_line(s, v, err);
        json_free(v);
        if (code)
            return n == 0 && v ? code : err_wrap(err, "'%s' line %d", s->path, n + 1);
        n++;
        *n_whole = (size_t)(nl + 1 - text->at);
    }
    return 0;
}

static int write_line(struct saved *s, struct buf *line, struct err *err)
{
    buf_addc(line, '\n');
    if (buf_failed(line))
        return err_nomem(err);
    if (fwrite(line->at, 1, line->n, s->f) != line->n || fflush(s->f))
        return err_set(err, ERR_IO, "cannot write '%s': %s", s->path, strerror(errno));
    return 0;
}

static int write_header(struct saved *s, const struct saved_key *key, struct err *err)
{
    struct buf line = { 0 };
    struct json_out w = { .buf = &line };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "evp", "answers");
    json_put_int(&w, "version", ROWS_VERSION);
    saved_key_to_json(key, &w);
    json_end(&w, '}');
    int code = write_line(s, &line, err);
    buf_release(&line);
    return code;
}

static int open_part(struct saved *s, const struct saved_key *key, struct err *err)
{
    struct buf text = { 0 };
    size_t n_whole = 0;
    int code = 0;

    if (file_exists(s->path))
        code = file_read(&text, s->path, part_limit, err);
    if (!code)
        code = read_lines(s, &text, key, &n_whole, err);
    buf_release(&text);
    if (code)
        return code;
    s->f = fopen(s->path, "ab");
    if (!s->f || ftruncate(fileno(s->f), (off_t)n_whole))
        return err_set(err, ERR_IO, "cannot write '%s': %s", s->path, strerror(errno));
    return n_whole ? 0 : write_header(s, key, err);
}

int saved_open(struct saved *s, const char *file, const struct saved_key *key, struct err *err)
{
    struct buf path = { 0 };

    *s = (struct saved){ 0 };
    buf_printf(&path, "%s.part", file);
    s->path = buf_take(&path);
    int code = s->path ? read_finished(s, file, key, err) : err_nomem(err);
    if (!code)
        code = open_part(s, key, err);
    if (code)
        saved_close(s);
    return code;
}

int saved_add(struct saved *s, const char *id, const char *digest, const struct asked_list *list, struct err *err)
{
    struct buf line = { 0 };
    struct json_out w = { .buf = &line };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "context", id);
    json_put_text(&w, "digest", digest);
    json_begin(&w, "questions", '[');
    for (int i = 0; i < list->n; i++)
        json_put_text(&w, NULL, list->at[i].text);
    json_end(&w, ']');
    json_end(&w, '}');
    int code = write_line(s, &line, err);
    buf_release(&line);
    return code;
}

void saved_remove(struct saved *s)
{
    unlink(s->path);
}

void saved_close(struct saved *s)
{
    if (s->f)
        fclose(s->f);
    for (int i = 0; i < s->room; i++)
        asked_release(&s->at[i].list);
    free(s->at);
    free(s->path);
    map_release(&s->ids);
    *s = (struct saved){ 0 };
}
