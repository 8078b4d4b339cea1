/* drift_served.c - a server's log line by line, and the uncompressed cache's answers to the same questions. */
#include "drift/drift_served.h"

#include "logs/archive.h"
#include "base/array.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---------------------------------------------------------------------- */

/* Is it a served answer? Then *a has its texts, borrowed from the line. */
static bool read_answer(const struct json *line, const char **id, const char **config, struct served_answer *a)
{
    const char *question = json_text(json_get(line, "question")), *answer = json_text(json_get(line, "answer"));
    double time = json_real(json_get(line, "time"));

    *id = json_text(json_get(line, "context"));
    *config = json_text(json_get(line, "config"));
    if (!*id || !*config || !question || !answer)
        return false;
    a->time = isfinite(time) && time > 0 ? time : 0;
    a->question = strdup(question);
    a->answer = strdup(answer);
    return true;
}

/* Does the answer count? If not, one of the counts says why. */
static bool is_wanted(struct served *s, const char *id, const char *config, struct served_answer *a)
{
    int c = map_find(&s->d->ids, id, strlen(id));
    const struct drift_context *context = c < 0 ? NULL : &s->d->at[c];

    a->context = c;
    a->uncompressed = strcmp(config, "none") == 0;
    bool placed = context && strcmp(config, s->d->table->config_name[context->config]) == 0;
    bool before = placed && a->time > 0 && a->time <= context->asked_until;
    s->n_other += !placed && !(context && a->uncompressed);
    s->n_before += before;
    return context && (a->uncompressed || (placed && !before));
}

static int add_line(void *arg, const char *line, size_t n, struct err *err)
{
    struct served *s = arg;
    struct err ignored;

    if (n == 0)
        return 0;
    struct json *json = json_parse(line, n, &ignored);
    struct served_answer a = { 0 };
    const char *id, *config;

    s->n_lines++;
    if (!json_is_object(json) || !read_answer(json, &id, &config, &a)) {
        s->n_skipped++;
        json_free(json);
        return 0;
    }
    bool wanted = is_wanted(s, id, config, &a);
    json_free(json);
    int code = !a.question || !a.answer || (wanted && ARRAY_PUSH(s, a)) ? err_nomem(err) : 0;
    if (!wanted || code) {
        free(a.question);
        free(a.answer);
    }
    return code;
}

int served_read(struct served *s, const char *path, struct err *err)
{
    struct buf label = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || file_is_dir(path)) {
        err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(fd < 0 ? errno : EISDIR));
        if (fd >= 0)
            close(fd);
        return err->code;
    }
    buf_printf(&label, "'%s'", path);
    struct archive_stream *in = archive_stream_open(buf_str(&label), fd, err);
    int code = in ? archive_stream_lines(in, &(struct archive_lines){ add_line, NULL, s }, err) : err->code;
    archive_stream_close(in);
    buf_release(&label);
    close(fd);
    return code;
}

/* ---- pairs ------------------------------------------------------------------------ */

/* A question about a context, as a key. */
static int put_key(struct buf *key, int context, const char *question)
{
    buf_clear(key);
    buf_printf(key, "%d %s", context, question);
    return buf_failed(key) ? MAP_NOMEM : 0;
}

/* The uncompressed cache's answers: in the map by question, in `answer` by the map's number. */
struct references {
    struct map questions;
    struct {
        const char **at;
        int n, cap;
    } answer;
    struct buf key;
};

/* Adds an answer, unless the question has one. */
static int add_reference(struct references *r, int context, const char *question, const char *answer)
{
    bool added;

    if (put_key(&r->key, context, question) || map_add(&r->questions, r->key.at, r->key.n, &added) == MAP_NOMEM)
        return MAP_NOMEM;
    return added && ARRAY_PUSH(&r->answer, answer) ? MAP_NOMEM : 0;
}

/* The table's first, then the logs'. */
static int find_references(struct references *r, const struct served *s)
{
    const struct table *t = s->d->table;
    int code = 0;

    for (int q = 0; q < t->n_questions && !code; q++) {
        const char *id = t->context_id[t->question_context[q]];
        int c = map_find(&s->d->ids, id, strlen(id));
        if (c >= 0 && t->answer_n_tokens[table_answer(t, q, 0)] >= 0)
            code = add_reference(r, c, t->question_text[q], t->answer_text[table_answer(t, q, 0)]);
    }
    for (int i = 0; i < s->n && !code; i++)
        if (s->at[i].uncompressed)
            code = add_reference(r, s->at[i].context, s->at[i].question, s->at[i].answer);
    return code;
}

int served_pair(struct served *s, struct err *err)
{
    struct references r = { 0 };
    int code = find_references(&r, s);

    for (int i = 0; i < s->n && !code; i++) {
        struct served_answer *a = &s->at[i];
        if (a->uncompressed)
            continue;
        code = put_key(&r.key, a->context, a->question);
        int at = code ? -1 : map_find(&r.questions, r.key.at, r.key.n);
        a->reference = at >= 0 ? r.answer.at[at] : NULL;
        s->n_pairs += at >= 0;
        s->n_alone += at < 0;
    }
    map_release(&r.questions);
    free(r.answer.at);
    buf_release(&r.key);
    return code ? err_nomem(err) : 0;
}

void served_release(struct served *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->at[i].question);
        free(s->at[i].answer);
    }
    free(s->at);
}
