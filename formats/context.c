/* context.c - rows become structs and back: texts first, then contexts, then questions. One loop reads both streams and
 * refuses repeated ids. */
#include "formats/context.h"

#include "base/array.h"
#include "base/digest.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies of a row's strings ------------------------------------------ */

static int take_text(const struct json *row, const char *name, const char *otherwise, char **out, struct err *err)
{
    const char *s = otherwise;

    if (otherwise ? json_may_text(row, name, &s, err) : json_want_text(row, name, &s, err))
        return err->code;
    *out = strdup(s);
    return *out ? 0 : err_nomem(err);
}

static int add_answer(struct context_input *in, const struct json *answer, struct err *err)
{
    struct buf text = { 0 };

    if (!json_is_text(answer) && !json_is_number(answer))
        return err_set(err, ERR_FORMAT, "field 'answers' holds something that is neither a string nor a number");
    if (json_is_text(answer))
        buf_adds(&text, json_text(answer));
    else
        json_print(&text, answer);
    in->answer[in->n_answers] = buf_take(&text);
    return in->answer[in->n_answers++] ? 0 : err_nomem(err);
}

static int take_answers(struct context_input *in, const struct json *answers, struct err *err)
{
    bool one = json_is_text(answers) || json_is_number(answers);

    if (answers && !one && !json_is_array(answers) && !json_is_null(answers))
        return err_set(err, ERR_FORMAT, "field 'answers' is not a list");
    in->answer = calloc((size_t)json_count(answers) + 1, sizeof(*in->answer));
    if (!in->answer)
        return err_nomem(err);
    if (one)
        return add_answer(in, answers, err);
    for (const struct json *a = json_first(answers); a; a = json_next(a))
        if (add_answer(in, a, err))
            return err->code;
    return 0;
}

int context_add_input(struct context *c, const char *question, const struct json *answers, struct err *err)
{
    if (ARRAY_PUSH(&c->inputs, (struct context_input){ .question = strdup(question) }))
        return err_nomem(err);
    struct context_input *in = &c->inputs.at[c->inputs.n - 1];
    return in->question ? take_answers(in, answers, err) : err_nomem(err);
}

static bool has_question(const struct context *c, const char *question)
{
    for (int i = 0; i < c->inputs.n; i++)
        if (strcmp(c->inputs.at[i].question, question) == 0)
            return true;
    return false;
}

int context_unite(struct context *to, struct context *from, struct err *err)
{
    for (int i = 0; i < from->inputs.n; i++) {
        if (has_question(to, from->inputs.at[i].question))
            continue;
        if (ARRAY_PUSH(&to->inputs, from->inputs.at[i]))
            return err_nomem(err);
        from->inputs.at[i] = (struct context_input){ 0 };
    }
    return 0;
}

static int take_inputs(struct context *c, const struct json *list, struct err *err)
{
    const char *question;

    if (list && !json_is_array(list))
        return err_set(err, ERR_FORMAT, "field 'inputs' is not a list");
    for (const struct json *i = json_first(list); i; i = json_next(i))
        if (json_want_text(i, "question", &question, err) ||
            context_add_input(c, question, json_get(i, "answers"), err))
            return err_wrap(err, "field 'inputs'");
    return 0;
}

/* ---- turns -------------------------------------------------------------- */

static const char *const roles[N_TURN_ROLES] = { "system", "user", "assistant", "prompt" };

const char *turn_role_name(enum turn_role role)
{
    return roles[role];
}

int turn_role_find(const char *name)
{
    for (int i = 0; i < N_TURN_ROLES; i++)
        if (strcmp(roles[i], name) == 0)
            return i;
    return -1;
}

/* The bytes of the first `chars` characters of s; -1 if s is shorter. */
static int64_t bytes_of(const char *s, int64_t chars)
{
    const char *at = s;
    size_t left = strlen(s);

    for (; chars > 0 && left > 0; chars--) {
        uint32_t point;
        int n = utf8_decode(at, left, &point);
        at += n > 0 ? n : 1;
        left -= n > 0 ? (size_t)n : 1;
    }
    return chars > 0 ? -1 : at - s;
}

static int take_turn(struct context *c, const struct json *turn, size_t *done, struct err *err)
{
    const char *name;
    int64_t chars;

    if (json_want_text(turn, "role", &name, err) || json_want_int(turn, "chars", &chars, err))
        return err_wrap(err, "field 'turns'");
    int role = turn_role_find(name);
    int64_t n = role >= 0 && chars >= 0 ? bytes_of(c->text + *done, chars) : -1;
    if (role < 0)
        return err_set(err, ERR_FORMAT, "field 'turns': role '%.32s' is not one of system, user, assistant, prompt",
                       name);
    if (n < 0)
        return err_set(err, ERR_FORMAT, "field 'turns' counts more characters than the text has");
    *done += (size_t)n;
    return ARRAY_PUSH(&c->turns, ((struct turn){ (enum turn_role)role, (size_t)n })) ? err_nomem(err) : 0;
}

static int take_turns(struct context *c, const struct json *list, struct err *err)
{
    size_t done = 0;

    if (list && !json_is_array(list))
        return err_set(err, ERR_FORMAT, "field 'turns' is not a list");
    for (const struct json *t = json_first(list); t; t = json_next(t))
        if (take_turn(c, t, &done, err))
            return err->code;
    for (int i = 0; i < c->turns.n; i++) {
        enum turn_role role = c->turns.at[i].role;
        if ((role == TURN_PROMPT && c->turns.n > 1) || (role == TURN_SYSTEM && i > 0))
            return err_set(err, ERR_FORMAT, "field 'turns' has role '%s' %s", roles[role],
                           role == TURN_PROMPT ? "beside others" : "after others");
    }
    if (c->turns.n && c->text[done])
        return err_set(err, ERR_FORMAT, "field 'turns' does not reach the end of the text");
    return 0;
}

static void turns_to_json(const struct context *c, struct json_out *w)
{
    const char *at = c->text;

    json_begin(w, "turns", '[');
    for (int i = 0; i < c->turns.n; i++) {
        const struct turn *t = &c->turns.at[i];
        json_begin(w, NULL, '{');
        json_put_text(w, "role", roles[t->role]);
        json_put_int(w, "chars", (int64_t)utf8_count(at, t->n));
        json_end(w, '}');
        at += t->n;
    }
    json_end(w, ']');
}

/* ---- contexts ----------------------------------------------------------- */

int context_from_json(struct context *c, const struct json *row, struct err *err)
{
    *c = (struct context){ .n_tokens = -1 };
    if (take_text(row, "id", NULL, &c->id, err) || take_text(row, "text", NULL, &c->text, err) ||
        take_text(row, "dataset", "", &c->dataset, err) || take_text(row, "ask", CONTEXT_PLAIN_ASK, &c->ask, err) ||
        take_turns(c, json_get(row, "turns"), err) || take_inputs(c, json_get(row, "inputs"), err) ||
        json_may_int(row, "n_tokens", &c->n_tokens, err)) {
        context_release(c);
        return err->code;
    }
    c->chars = (int64_t)utf8_count(c->text, strlen(c->text));
    int code = field_check_text("id", c->id, CONTEXT_ID, err);
    if (!code && !*c->text)
        code = err_set(err, ERR_FORMAT, "field 'text' is empty");
    if (code)
        context_release(c);
    return code;
}

void context_to_json(const struct context *c, struct json_out *w)
{
    json_put_text(w, "id", c->id);
    json_put_text(w, "dataset", c->dataset);
    json_put_text(w, "text", c->text);
    json_put_text(w, "ask", c->ask);
    if (c->turns.n)
        turns_to_json(c, w);
    json_begin(w, "inputs", '[');
    for (int i = 0; i < c->inputs.n; i++) {
        json_begin(w, NULL, '{');
        json_put_text(w, "question", c->inputs.at[i].question);
        json_begin(w, "answers", '[');
        for (int a = 0; a < c->inputs.at[i].n_answers; a++)
            json_put_text(w, NULL, c->inputs.at[i].answer[a]);
        json_end(w, ']');
        json_end(w, '}');
    }
    json_end(w, ']');
    json_put_int(w, "chars", c->chars);
    if (c->n_tokens >= 0)
        json_put_int(w, "n_tokens", c->n_tokens);
}

void context_release(struct context *c)
{
    for (int i = 0; i < c->inputs.n; i++) {
        for (int a = 0; a < c->inputs.at[i].n_answers; a++)
            free(c->inputs.at[i].answer[a]);
        free(c->inputs.at[i].answer);
        free(c->inputs.at[i].question);
    }
    free(c->inputs.at);
    free(c->turns.at);
    free(c->id);
    free(c->dataset);
    free(c->text);
    free(c->ask);
    *c = (struct context){ 0 };
}

/* ---- questions ---------------------------------------------------------- */

const char *split_name(enum split split)
{
    return split == SPLIT_TRAIN ? "train" : "test";
}

char *question_new_id(const char *context, const char *text)
{
    enum { DIGITS = 12 };
    struct buf id = { 0 };
    char hex[DIGEST_HEX];
    struct err err;

    buf_printf(&id, "%s%c%s", context, '\0', text);
    int code = buf_failed(&id) ? ERR_NOMEM : digest_sha256(id.at, id.n, hex, &err);
    buf_clear(&id);
    if (!code)
        buf_printf(&id, "%s/%.*s", context, DIGITS, hex);
    if (code || buf_failed(&id)) {
        buf_release(&id);
        return NULL;
    }
    return buf_take(&id);
}

enum split question_split(const char *id)
{
    return id[strlen(id) - 1] % 2 ? SPLIT_TEST : SPLIT_TRAIN;
}

int question_from_json(struct question *q, const struct json *row, struct err *err)
{
    const char *split = NULL;

    *q = (struct question){ 0 };
    if (take_text(row, "id", NULL, &q->id, err) || take_text(row, "context", NULL, &q->context, err) ||
        take_text(row, "text", NULL, &q->text, err) || take_text(row, "origin", "", &q->origin, err) ||
        json_want_text(row, "split", &split, err) || json_may_real(row, "asked_at", &q->asked_at, err)) {
        question_release(q);
        return err->code;
    }
    q->split = strcmp(split, "test") == 0 ? SPLIT_TEST : SPLIT_TRAIN;
    if (strcmp(split, split_name(q->split)) != 0)
        err_set(err, ERR_FORMAT, "field 'split' is '%s', not 'train' or 'test'", split);
    else if (!*q->id || !*q->text)
        err_set(err, ERR_FORMAT, "field '%s' is empty", *q->id ? "text" : "id");
    else if (!(q->asked_at >= 0 && q->asked_at <= QUESTION_ASKED_MAX))
        err_set(err, ERR_FORMAT, "field 'asked_at' is %g, not a number of seconds since 1970", q->asked_at);
    else
        return 0;
    question_release(q);
    return err->code;
}

void question_to_json(const struct question *q, struct json_out *w)
{
    json_put_text(w, "id", q->id);
    json_put_text(w, "context", q->context);
    json_put_text(w, "split", split_name(q->split));
    json_put_text(w, "text", q->text);
    json_put_text(w, "origin", q->origin);
    if (q->asked_at > 0)
        json_put_real(w, "asked_at", q->asked_at);
}

void question_release(struct question *q)
{
    free(q->id);
    free(q->context);
    free(q->text);
    free(q->origin);
    *q = (struct question){ 0 };
}

/* ---- whole streams ------------------------------------------------------ */

/* One kind of row, for the loop that both streams share. add() appends the row and returns its id, which stays
 * alive. */
struct stream {
    const char *kind;
    int (*add)(void *list, const struct json *row, const char **id, struct err *err);
    void *list;
    struct map *ids;
};

static int add_row(void *arg, const struct json *row, struct err *err)
{
    const struct stream *s = arg;
    const char *id;
    bool added;

    if (s->add(s->list, row, &id, err))
        return err->code;
    int at = map_add(s->ids, id, strlen(id), &added);
    if (at == MAP_NOMEM)
        return err_nomem(err);
    return added ? 0 : err_set(err, ERR_FORMAT, "id '%s' comes twice", id);
}

static int read_stream(struct stream *s, const char *path, struct json **header, struct err *err)
{
    struct rows_in in;

    if (rows_open(&in, path, s->kind, err))
        return err->code;
    int code = rows_rest(&in, add_row, s, err);
    if (!code && in.n_rows == 0)
        code = err_set(err, ERR_FORMAT, "%s holds no %s", in.path, s->kind);
    if (!code) {
        *header = in.header;
        in.header = NULL;
    }
    rows_close(&in);
    return code;
}

static int add_context(void *list, const struct json *row, const char **id, struct err *err)
{
    struct contexts *c = list;

    if (ARRAY_GROW(c, c->n + 1))
        return err_nomem(err);
    if (context_from_json(&c->at[c->n], row, err))
        return err->code;
    *id = c->at[c->n++].id;
    return 0;
}

int contexts_read(struct contexts *c, const char *path, struct err *err)
{
    *c = (struct contexts){ 0 };
    struct stream s = { .kind = "contexts", .add = add_context, .list = c, .ids = &c->ids };
    int code = read_stream(&s, path, &c->header, err);
    if (code)
        contexts_release(c);
    return code;
}

void contexts_release(struct contexts *c)
{
    for (int i = 0; i < c->n; i++)
        context_release(&c->at[i]);
    free(c->at);
    map_release(&c->ids);
    json_free(c->header);
    *c = (struct contexts){ 0 };
}

static int add_question(void *list, const struct json *row, const char **id, struct err *err)
{
    struct questions *q = list;

    if (ARRAY_GROW(q, q->n + 1))
        return err_nomem(err);
    if (question_from_json(&q->at[q->n], row, err))
        return err->code;
    *id = q->at[q->n++].id;
    return 0;
}

int questions_read(struct questions *q, const char *path, struct err *err)
{
    *q = (struct questions){ 0 };
    struct stream s = { .kind = "questions", .add = add_question, .list = q, .ids = &q->ids };
    int code = read_stream(&s, path, &q->header, err);
    if (code)
        questions_release(q);
    return code;
}

void questions_release(struct questions *q)
{
    for (int i = 0; i < q->n; i++)
        question_release(&q->at[i]);
    free(q->at);
    map_release(&q->ids);
    json_free(q->header);
    *q = (struct questions){ 0 };
}

int questions_name_service(struct questions *questions, struct err *err)
{
    const struct json *api = questions->header ? json_get(questions->header, "api") : NULL;
    const char *model = NULL;

    if (!api || json_may_text(api, "model", &model, err) || !model)
        return 0;
    for (int q = 0; q < questions->n; q++) {
        struct buf named = { 0 };
        if (strcmp(questions->at[q].origin, "api") != 0)
            continue;
        buf_printf(&named, "api:%s", model);
        char *taken = buf_take(&named);
        if (!taken)
            return err_nomem(err);
        free(questions->at[q].origin);
        questions->at[q].origin = taken;
    }
    return 0;
}
