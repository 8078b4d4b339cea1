/* checkpoint.c - reads FILE, then FILE.part, into one answer per section: a later answer, about another text of the
 * context, replaces an earlier one. New answers are appended to FILE.part and flushed line by line. */
#include "qgen/checkpoint.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rows.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t max_part = (size_t)1 << 30; /* bytes */

/* ---- answers in memory -------------------------------------------------- */

/* The key in `parts`. */
static void put_name(struct buf *out, const struct checkpoint_part *p)
{
    buf_adds(out, p->id);
    if (p->n_sections > 1)
        buf_printf(out, "\n%d/%d", p->section, p->n_sections); /* no id has a line end */
}

/* The answer about that part, added if missing; NULL: out of memory. */
static struct checkpoint_answer *answer_of(struct checkpoint *c, const struct checkpoint_part *p)
{
    struct buf name = { 0 };

    put_name(&name, p);
    int i = buf_failed(&name) ? MAP_NOMEM : map_add(&c->parts, buf_str(&name), name.n, NULL);
    buf_release(&name);
    while (i >= c->answers.n)
        if (ARRAY_PUSH(&c->answers, (struct checkpoint_answer){ 0 }))
            return NULL;
    return i == MAP_NOMEM ? NULL : &c->answers.at[i];
}

static int add_question(struct checkpoint *c, const struct checkpoint_part *p, const char *text, struct err *err)
{
    struct checkpoint_answer *a = answer_of(c, p);

    if (!a)
        return err_nomem(err);
    if (strcmp(a->digest, p->digest) != 0) {
        question_list_release(&a->list);
        snprintf(a->digest, sizeof(a->digest), "%s", p->digest);
    }
    return question_list_add(&a->list, text, strlen(text), 0, err);
}

bool checkpoint_take(struct checkpoint *c, const struct checkpoint_part *part, struct question_list *list)
{
    struct buf name = { 0 };

    put_name(&name, part);
    int i = buf_failed(&name) ? MAP_NOMEM : map_find(&c->parts, buf_str(&name), name.n);
    buf_release(&name);
    struct checkpoint_answer *a = i >= 0 && i < c->answers.n ? &c->answers.at[i] : NULL;
    if (!a || strcmp(a->digest, part->digest) != 0 || a->list.n == 0)
        return false;
    *list = a->list;
    a->list = (struct question_list){ 0 };
    return true;
}

/* ---- a finished file ---------------------------------------------------- */

void checkpoint_key_to_json(const struct checkpoint_key *key, struct json_out *w)
{
    json_put_text(w, "model", key->model);
    json_put_int(w, "per_context", key->per_context);
}

static bool key_matches(const struct checkpoint_key *key, const struct json *v)
{
    const char *model = json_text(json_get(v, "model"));

    return model && strcmp(model, key->model) == 0 && json_real(json_get(v, "per_context")) == key->per_context;
}

static int add_row(struct checkpoint *c, const struct json *row, struct err *err)
{
    const char *context = json_text(json_get(row, "context")), *digest = json_text(json_get(row, "digest"));
    const char *text = json_text(json_get(row, "text"));

    struct checkpoint_part part = { .id = context, .digest = digest, .n_sections = 1 };

    return context && digest && text ? add_question(c, &part, text, err) : 0;
}

/* A FILE that cannot be read, or that was made with another key, will be replaced like any output file. The only
 * failure is to run out of memory. */
static int read_finished(struct checkpoint *c, const char *file, const struct checkpoint_key *key, struct err *err)
{
    struct rows_in in;
    struct json *row;
    int got = 0;

    if (!file_exists(file) || rows_open(&in, file, "questions", err))
        return 0;
    if (key_matches(key, json_get(in.header, "api")))
        while ((got = rows_next(&in, &row, err)) == 1) {
            int code = add_row(c, row, err);
            json_free(row);
            if (code) {
                got = code;
                break;
            }
        }
    rows_close(&in);
    return got < 0 && err->code == ERR_NOMEM ? ERR_NOMEM : 0;
}

/* ---- FILE.part ------------------------------------------------------------- */

static int read_part(struct checkpoint_part *part, const struct json *v, struct err *err)
{
    int64_t section = 1, sections = 1;

    if (json_want_text(v, "context", &part->id, err) || json_want_text(v, "digest", &part->digest, err) ||
        json_may_int(v, "section", &section, err) || json_may_int(v, "sections", &sections, err))
        return err->code;
    if (section < 1 || section > sections || sections > INT_MAX)
        return err_set(err, ERR_FORMAT, "section %lld of %lld", (long long)section, (long long)sections);
    part->section = (int)section - 1;
    part->n_sections = (int)sections;
    return 0;
}

static int add_line(struct checkpoint *c, const struct json *v, struct err *err)
{
    struct checkpoint_part part;

    if (read_part(&part, v, err))
        return err->code;
    c->n_replies++;
    c->taken += usage_count(v, "prompt_tokens") + usage_count(v, "completion_tokens");
    const struct json *q = json_first(json_get(v, "questions"));
    for (; q; q = json_next(q))
        if (json_is_text(q) && add_question(c, &part, json_text(q), err))
            return err->code;
    return 0;
}

static int check_header(const struct checkpoint *c, const struct json *v, const struct checkpoint_key *key,
                        struct err *err)
{
    const char *is = json_text(json_get(v, "evp")), *model = json_text(json_get(v, "model"));

    if (!is || strcmp(is, "answers") != 0 || json_real(json_get(v, "version")) != ROWS_VERSION)
        return err_set(err, ERR_FORMAT, "'%s' holds no answers; remove it, or write to another file", c->path);
    if (key_matches(key, v))
        return 0;
    return err_set(err, ERR_FORMAT,
                   "'%s' holds answers of model '%s', %g per context; remove it, or use the options it was made with",
                   c->path, model ? model : "?", json_real(json_get(v, "per_context")));
}

/* Reads the complete lines. *n_whole: their bytes. */
static int read_lines(struct checkpoint *c, const struct buf *text, const struct checkpoint_key *key, size_t *n_whole,
                      struct err *err)
{
    int n = 0;

    *n_whole = 0;
    for (const char *at = buf_str(text), *nl; (nl = strchr(at, '\n')); at = nl + 1) {
        struct json *v = json_parse(at, (size_t)(nl - at), err);
        int code = !v ? err->code : n == 0 ? check_header(c, v, key, err) : add_line(c, v, err);
        json_free(v);
        if (code == ERR_FORMAT && n > 0)
            c->n_malformed++; /* the answers after it were paid for too */
        else if (code)
            return v ? code : err_wrap(err, "'%s' line 1", c->path);
        n++;
        *n_whole = (size_t)(nl + 1 - text->at);
    }
    return 0;
}

static int write_line(struct checkpoint *c, struct buf *line, struct err *err)
{
    buf_addc(line, '\n');
    if (buf_failed(line))
        return err_nomem(err);
    if (fwrite(line->at, 1, line->n, c->f) != line->n || fflush(c->f))
        return err_set(err, ERR_IO, "cannot write '%s': %s", c->path, strerror(errno));
    return 0;
}

static int write_header(struct checkpoint *c, const struct checkpoint_key *key, struct err *err)
{
    struct buf line = { 0 };
    struct json_out w = { .buf = &line };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "evp", "answers");
    json_put_int(&w, "version", ROWS_VERSION);
    checkpoint_key_to_json(key, &w);
    json_end(&w, '}');
    int code = write_line(c, &line, err);
    buf_release(&line);
    return code;
}

/* Is FILE.part still the file that was opened? A run that ends removes it. */
static bool is_current(const struct checkpoint *c)
{
    struct stat opened, there;

    return fstat(fileno(c->f), &opened) == 0 && stat(c->path, &there) == 0 && opened.st_dev == there.st_dev &&
           opened.st_ino == there.st_ino;
}

/* Opens FILE.part for appending, and locks it until it is closed. */
static int lock_part(struct checkpoint *c, struct err *err)
{
    for (;;) {
        c->f = fopen(c->path, "abe");
        if (!c->f)
            return err_set(err, ERR_IO, "cannot write '%s': %s", c->path, strerror(errno));
        if (flock(fileno(c->f), LOCK_EX | LOCK_NB))
            return err_set(err, ERR_IO, "another run is writing '%s'; wait for it, or write to another file", c->path);
        if (is_current(c))
            return 0;
        fclose(c->f);
    }
}

static int open_part(struct checkpoint *c, const struct checkpoint_key *key, struct err *err)
{
    struct buf text = { 0 };
    size_t n_whole = 0;
    int code = lock_part(c, err);

    if (!code)
        code = file_read(&text, c->path, max_part, err);
    if (!code)
        code = read_lines(c, &text, key, &n_whole, err);
    buf_release(&text);
    if (code)
        return code;
    if (ftruncate(fileno(c->f), (off_t)n_whole))
        return err_set(err, ERR_IO, "cannot write '%s': %s", c->path, strerror(errno));
    return n_whole ? 0 : write_header(c, key, err);
}

int checkpoint_open(struct checkpoint *c, const char *file, const struct checkpoint_key *key, struct err *err)
{
    struct buf path = { 0 };

    *c = (struct checkpoint){ 0 };
    buf_printf(&path, "%s.part", file);
    c->path = buf_take(&path);
    int code = c->path ? read_finished(c, file, key, err) : err_nomem(err);
    if (!code)
        code = open_part(c, key, err);
    if (code)
        checkpoint_close(c);
    return code;
}

int checkpoint_add(struct checkpoint *c, const struct checkpoint_part *part, const struct question_list *list,
                   const struct usage *usage, struct err *err)
{
    struct buf line = { 0 };
    struct json_out w = { .buf = &line };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "context", part->id);
    json_put_text(&w, "digest", part->digest);
    json_put_int(&w, "section", part->section + 1);
    json_put_int(&w, "sections", part->n_sections);
    json_begin(&w, "questions", '[');
    for (int i = 0; i < list->n; i++)
        json_put_text(&w, NULL, list->at[i].text);
    json_end(&w, ']');
    json_put_int(&w, "prompt_tokens", usage->prompt);
    json_put_int(&w, "completion_tokens", usage->completion);
    json_end(&w, '}');
    int code = write_line(c, &line, err);
    c->n_replies += !code;
    buf_release(&line);
    return code;
}

void checkpoint_remove(struct checkpoint *c)
{
    unlink(c->path);
}

void checkpoint_close(struct checkpoint *c)
{
    if (c->f)
        fclose(c->f);
    for (int i = 0; i < c->answers.n; i++)
        question_list_release(&c->answers.at[i].list);
    free(c->answers.at);
    free(c->path);
    map_release(&c->parts);
    *c = (struct checkpoint){ 0 };
}
