/* row.c - tells the kind of a row by its fields, and reads it. */
#include "datasets/row.h"

#include "base/parse.h"
#include "datasets/dataset.h"

#include <stdlib.h>
#include <string.h>

/* dataset/_id, where _id is a string or a number in LongBench's relatives. */
static char *longbench_id(const char *dataset, const struct json *row, int64_t line)
{
    const struct json *id = json_get(row, "_id");
    struct buf b = { 0 };

    buf_printf(&b, "%s/", dataset);
    if (json_text(id) && *json_text(id))
        buf_adds(&b, json_text(id));
    else if (json_is_number(id))
        json_print(&b, id);
    else
        buf_printf(&b, "%lld", (long long)line);
    return buf_take(&b);
}

/* Appends the question; for other rows than kvpress', the choices, as LongBench v2 and SCBench print them. */
static void add_question(struct buf *b, const struct json *row)
{
    static const char *const names[] = { "input", "question", "query" };
    char letter = 'A', name[] = "choice_?";

    for (size_t i = 0, n = b->n; i < sizeof(names) / sizeof(*names) && b->n == n; i++)
        buf_adds(b, json_text(json_get(row, names[i])) ? json_text(json_get(row, names[i])) : "");
    if (b->n == 0 || json_text(json_get(row, "answer_prefix")))
        return;
    if (json_text(json_get(row, "choice_A")))
        buf_adds(b, "\nChoices:");
    for (; letter <= 'D'; letter++) {
        name[sizeof(name) - 2] = letter;
        if (json_text(json_get(row, name)))
            buf_printf(b, "\n(%c) %s", letter, json_text(json_get(row, name)));
    }
    letter = 'A';
    for (const struct json *o = json_first(json_get(row, "options")); o && letter <= 'Z'; o = json_next(o))
        buf_printf(b, "\n%c. %s", letter++, json_text(o) ? json_text(o) : "");
}

static int note_unread(const struct json *row, const struct row_origin *origin, struct err *err)
{
    static const char known[] = " context input question query choice_A choice_B choice_C choice_D answers answer "
                                "answer_prefix task dataset _id length language all_classes ";

    for (const struct json *m = json_first(row); m && origin->unread && origin->unread->n < ROW_UNREAD_MAX;
         m = json_next(m)) {
        const char *name = json_name(m);
        size_t n = strlen(name);
        bool plain = n > 0 && n < 40 && strcspn(name, " \t\r\n\033") == n;
        if (!plain || !json_text(m) || !*json_text(m) || text_among(known, name))
            continue;
        if (map_add(origin->unread, name, n, NULL) == MAP_NOMEM)
            return err_nomem(err);
    }
    return 0;
}

/* A row taken apart. */
struct parts {
    const struct json *json;
    const struct row_origin *origin;
    const char *dataset, *document;
    const char *begin; // of the reply, in a row that is a whole prompt; NULL: it is none
    const struct json *answers;
    struct buf cut, question, ask; // cut: the document, if it is not a field of its own
};

static int make(struct context *c, struct parts *p, struct err *err)
{
    if (p->begin)
        buf_printf(&p->ask, "{question}%s%s", *p->begin ? "{reply}" : "", p->begin);
    if (buf_failed(&p->ask) || buf_failed(&p->cut) || buf_failed(&p->question))
        return err_nomem(err);
    struct dataset_row r = { .document = p->document ? p->document : buf_str(&p->cut),
                             .input = buf_str(&p->question),
                             .answers = p->answers,
                             .ask = p->ask.n ? buf_str(&p->ask) : NULL };
    if (dataset_prompt(dataset_find(p->dataset), &r, c, err))
        return err->code;
    c->dataset = strdup(p->dataset);
    c->id = longbench_id(p->dataset, p->json, p->origin->line);
    return c->dataset && c->id ? 0 : err_nomem(err);
}

static int read_longbench(struct context *c, struct parts *p, struct err *err)
{
    const struct json *row = p->json, *answers = json_get(row, "answers");
    const char *input;

    p->answers = answers ? answers : json_get(row, "answer");
    if (json_get(row, "choice_A") && json_get(row, "difficulty"))
        p->dataset = "longbench-v2";
    if (json_want_text(row, "context", &p->document, err) || json_may_text(row, "input", &input, err) ||
        json_may_text(row, "answer_prefix", &p->begin, err) ||
        (p->begin && json_may_text(row, "task", &p->dataset, err)) || json_may_text(row, "dataset", &p->dataset, err) ||
        note_unread(row, p->origin, err))
        return err->code;
    add_question(&p->question, row);
    return make(c, p, err);
}

static int read_ruler(struct context *c, struct parts *p, struct err *err)
{
    static const char *const begins[] = { "What is the special magic",     "What are all the special magic",
                                          "Question: Find all variables",  "Question: What are the 10 most common",
                                          "Question: Do not provide any ", "Answer the question based on the given" };
    const char *prompt, *question = NULL;

    p->begin = "";
    p->answers = json_get(p->json, "outputs");
    if (json_want_text(p->json, "input", &prompt, err) || json_may_text(p->json, "answer_prefix", &p->begin, err))
        return err->code;
    for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
        for (const char *at = prompt; (at = strstr(at, begins[i])) != NULL; at++)
            question = !question || at > question ? at : question;
    if (!question)
        return err_set(err, ERR_FORMAT, "field 'input' has no question of RULER");
    buf_add(&p->cut, prompt, (size_t)(question - prompt));
    buf_adds(&p->question, question);
    return make(c, p, err);
}

/* SCBench's "What is the largest number in the list?", before "The largest number in the list is:". */
static void add_target(struct buf *b, const char *input)
{
    const char *the = strstr(input, "The "), *is = NULL;

    for (const char *at = the; at && (at = strstr(at, " is")) != NULL; at++)
        is = at;
    if (is)
        buf_printf(b, "What is the %.*s?\n\n", (int)(is - the) - 4, the + 4);
}

/* Of options, the right answers are the text and its letter. */
static int add_turn(struct context *c, const struct json *turn, const struct parts *p, struct err *err)
{
    const struct json *answer = json_get(turn, "answer"), *o = json_first(json_get(turn, "options"));
    struct buf asked = { 0 }, both = { 0 };
    struct json_out w = { .buf = &both };
    char letter[] = "A";

    if (p->cut.n && json_text(json_get(turn, "input")))
        add_target(&asked, json_text(json_get(turn, "input")));
    add_question(&asked, turn);
    for (; o && json_text(o) && json_text(answer) && strcmp(json_text(o), json_text(answer)) != 0; o = json_next(o))
        letter[0]++;
    json_begin(&w, NULL, '[');
    json_put_text(&w, NULL, json_text(answer));
    json_put_text(&w, NULL, letter);
    json_end(&w, ']');
    struct json *list = o ? json_parse(buf_str(&both), both.n, err) : NULL;
    int code = buf_failed(&asked) || (o && !list) ? err_nomem(err)
                                                  : context_add_input(c, buf_str(&asked), o ? list : answer, err);
    json_free(list);
    buf_release(&asked);
    buf_release(&both);
    return code;
}

static int read_scbench(struct context *c, struct parts *p, struct err *err)
{
    const struct json *context = json_get(p->json, "context"), *turn = json_first(json_get(p->json, "multi_turns"));
    const char *comma = "\n\n[";

    if (json_is_array(context)) {
        add_question(&p->cut, turn);
        for (const struct json *n = json_first(context); n; n = json_next(n), comma = ", ") {
            buf_adds(&p->cut, comma);
            json_print(&p->cut, n);
        }
        buf_adds(&p->cut, "]");
    } else if (json_want_text(p->json, context ? "context" : "input", &p->document, err)) {
        return err->code;
    }
    if (!dataset_find(p->dataset))
        buf_adds(&p->ask, SCBENCH_ASK);
    int code = make(c, p, err);
    for (; turn && !code; turn = json_next(turn))
        code = add_turn(c, turn, p, err);
    return code;
}

int row_context(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err)
{
    struct parts p = { .json = row, .origin = origin, .dataset = origin->stem };
    bool turns = json_get(row, "multi_turns") != NULL, document = turns || json_get(row, "context");

    *c = (struct context){ 0 };
    if (json_get(row, "text"))
        return context_from_json(c, row, err);
    if (!document && (json_get(row, "messages") || json_get(row, "prompt") || json_is_object(json_get(row, "body"))))
        return err_set(err, ERR_USAGE, "this is a request to a model: evp-import --requests reads logs of requests");
    if (!document && !json_get(row, "outputs"))
        return err_set(err, ERR_FORMAT, "the row has neither a field 'context' nor a field 'text'");
    int code = (turns ? read_scbench : document ? read_longbench : read_ruler)(c, &p, err);
    buf_release(&p.cut);
    buf_release(&p.question);
    buf_release(&p.ask);
    if (code)
        context_release(c);
    return code;
}
