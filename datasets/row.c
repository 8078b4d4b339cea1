/* row.c - tells the kind of a row by its fields, and reads it. */
#include "datasets/row.h"

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

static int read_longbench(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err)
{
    struct dataset_row r = { .answers = json_get(row, "answers") };
    const char *dataset = origin->stem;

    if (json_want_text(row, "context", &r.document, err) || json_may_text(row, "input", &r.input, err) ||
        json_may_text(row, "dataset", &dataset, err))
        return err->code;
    if (dataset_prompt(dataset_find(dataset), &r, c, err))
        return err->code;
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
