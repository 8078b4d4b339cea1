/* request_below.c - requests below fields of any name: exports of Loki, Langfuse and OpenTelemetry, audits of gateways.
 */
#include "logs/request_internal.h"

#include <math.h>
#include <string.h>

/* Answers may have prompts in them, which nobody asked. */
static bool is_answer(const char *name)
{
    static const char *const names[] = { "response",   "output",      "outputs",      "choices",
                                         "completion", "completions", "response_body" };

    for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Was the field looked at under its name? */
static bool is_known(const char *name)
{
    static const char *const names[] = { REQUEST_WRAPPERS, REQUEST_LINES };

    for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int find_in(const struct request_finding *f, const struct json *v, int depth, struct err *err)
{
    const char *text = json_text(v);

    if (json_is_object(v))
        return request_find(f, v, depth, err);
    if (json_is_array(v))
        return request_find_below(f, v, depth, err);
    if (!text || (!strstr(text, "\"messages\"") && !strstr(text, "prompt")))
        return 0;
    return request_find_in_text(f, text, depth, err);
}

/* A list's elements are requests of their own. Loki's are lists of a time and a line. */
static int find_each(const struct request_finding *f, const struct json *list, int depth, struct err *err)
{
    struct request *r = &f->l->request;
    struct buf model = { 0 };
    const char *first = json_text(json_first(list));
    double time = first && isnan(r->time) ? request_time(first) : r->time;
    int code = 0;

    buf_add(&model, buf_str(&r->model), r->model.n);
    for (const struct json *v = json_first(list); v && !code; v = json_next(v)) {
        r->time = time;
        buf_clear(&r->model);
        buf_add(&r->model, buf_str(&model), model.n);
        code = find_in(f, v, depth + 1, err);
    }
    buf_release(&model);
    return code;
}

int request_find_below(const struct request_finding *f, const struct json *v, int depth, struct err *err)
{
    struct request_finding in = *f;
    const struct request_line *l = f->l;
    int64_t before = l->n_found;
    int code = 0;

    if (depth > REQUEST_DEPTH)
        return 0;
    if (json_is_array(v))
        return find_each(f, v, depth, err);
    in.below = true;
    code = request_find_attributes(&in, json_get(v, "attributes"), depth, err);
    for (const struct json *m = json_first(v); m && !code && l->n_found == before; m = json_next(m)) {
        const struct json *one = json_first(m);
        if (is_answer(json_name(m)) || is_known(json_name(m)))
            continue;
        if (json_is_array(m) && json_text(json_get(one, "role")) && json_get(one, "content"))
            code = request_read_chat(&in, v, m, err);
        else
            code = find_in(&in, m, depth + 1, err);
    }
    return code;
}
