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

/* The question, with its choices as LongBench v2 prints them. The caller frees it. */
static char *question_of(const struct json *row)
{
    static const char *const names[] = { "input", "question", "query" }, letters[] = "ABCD";
    struct buf b = { 0 };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && b.n == 0; i++)
        buf_adds(&b, json_text(json_get(row, names[i])) ? json_text(json_get(row, names[i])) : "");
    for (const char *letter = letters; *letter && b.n > 0; letter++) {
        char name[] = "choice_?";
        name[sizeof(name) - 2] = *letter;
        if (json_text(json_get(row, name)))
            buf_printf(&b, "\n(%c) %s", *letter, json_text(json_get(row, name)));
    }
    return buf_take(&b);
}

static int note_unread(const struct json *row, const struct row_origin *origin, struct err *err)
{
    static const char known[] = " context input question query choice_A choice_B choice_C choice_D answers answer "
                                "dataset _id length language all_classes ";

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

static int read_longbench(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err)
{
    const struct json *answers = json_get(row, "answers");
    struct dataset_row r = { .answers = answers ? answers : json_get(row, "answer") };
    const char *dataset = origin->stem;

    if (json_want_text(row, "context", &r.document, err) || json_may_text(row, "input", &r.input, err) ||
        json_may_text(row, "dataset", &dataset, err) || note_unread(row, origin, err))
        return err->code;
    char *question = question_of(row);
    r.input = question;
    int code = question ? dataset_prompt(dataset_find(dataset), &r, c, err) : err_nomem(err);
    free(question);
    if (code)
        return code;
    c->dataset = strdup(dataset);
    c->id = longbench_id(dataset, row, origin->line);
    return c->dataset && c->id ? 0 : err_nomem(err);
}

int row_context(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err)
{
    *c = (struct context){ 0 };
    if (json_get(row, "text"))
        return context_from_json(c, row, err);
    if (!json_get(row, "context") &&
        (json_get(row, "messages") || json_get(row, "prompt") || json_is_object(json_get(row, "body"))))
        return err_set(err, ERR_USAGE, "this is a request to a model: evp-import --requests reads logs of requests");
    if (!json_get(row, "context"))
        return err_set(err, ERR_FORMAT, "the row has neither a field 'context' nor a field 'text'");
    if (read_longbench(c, row, origin, err))
        context_release(c);
    return c->text ? 0 : err->code;
}
