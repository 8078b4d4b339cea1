/* request_otel.c - prompts in the attributes of OpenTelemetry's spans and events, as the conventions of GenAI,
 * OpenLLMetry and OpenInference name them: made a body of /v1/chat/completions, which is then read like one.
 */
#include "logs/request_internal.h"

#include <stdio.h>
#include <string.h>

enum { TURNS_MAX = 1000, ATTRIBUTES_MAX = 10000 };

/* The value of an attribute: {"key":..,"value":{"stringValue":..}} in a list, or a field of an object. */
static const struct json *attribute(const struct json *attributes, const char *name)
{
    if (json_is_object(attributes))
        return json_get(attributes, name);
    for (const struct json *a = json_first(attributes); a; a = json_next(a)) {
        const char *key = json_text(json_get(a, "key"));
        if (key && strcmp(key, name) == 0) {
            const struct json *v = json_get(a, "value"), *list = json_get(json_get(v, "arrayValue"), "values");
            return list ? list : json_get(v, "stringValue");
        }
    }
    return NULL;
}

/* A message's text: `content`, or its parts', each a text of its own. */
static void put_message(struct json_out *w, const struct json *m)
{
    json_begin(w, NULL, '{');
    json_put_node(w, "role", json_get(m, "role"));
    const struct json *content = json_get(m, "content"), *parts = json_get(m, "parts");
    if (!json_first(parts))
        json_put_node(w, "content", content);
    else {
        json_begin(w, "content", '[');
        for (const struct json *p = json_first(parts); p; p = json_next(p)) {
            json_begin(w, NULL, '{');
            json_put_node(w, "type", json_get(p, "type"));
            json_put_node(w, "text", json_get(p, "content"));
            json_end(w, '}');
        }
        json_end(w, ']');
    }
    json_end(w, '}');
}

/* gen_ai.input.messages and gen_ai.system_instructions: texts with JSON. */
static bool put_conversation(struct json_out *w, const struct json *attributes)
{
    static const char *const names[] = { "gen_ai.system_instructions", "gen_ai.input.messages" };
    bool any = false;

    for (int i = 0; i < 2; i++) {
        const char *text = json_text(attribute(attributes, names[i]));
        struct err ignored;
        struct json *list = text ? json_parse(text, strlen(text), &ignored) : NULL;
        struct buf system = { 0 };
        for (const struct json *m = json_first(list); m && i == 1; m = json_next(m), any = true)
            put_message(w, m);
        for (const struct json *p = json_first(list); p && i == 0; p = json_next(p))
            buf_adds(&system, json_text(json_get(p, "content")) ? json_text(json_get(p, "content")) : "");
        if (system.n) {
            json_begin(w, NULL, '{');
            json_put_text(w, "role", "system");
            json_put_text(w, "content", buf_str(&system));
            json_end(w, '}');
        }
        buf_release(&system);
        json_free(list);
    }
    return any;
}

/* gen_ai.prompt.0.role, gen_ai.prompt.0.content and so on. */
static bool put_numbered(struct json_out *w, const struct json *attributes, const char *before, const char *between)
{
    int i = 0;

    for (; i < TURNS_MAX; i++) {
        char role[64], content[64];
        snprintf(role, sizeof(role), "%s.%d.%srole", before, i, between);
        snprintf(content, sizeof(content), "%s.%d.%scontent", before, i, between);
        if (!json_text(attribute(attributes, role)))
            break;
        json_begin(w, NULL, '{');
        json_put_node(w, "role", attribute(attributes, role));
        json_put_node(w, "content", attribute(attributes, content));
        json_end(w, '}');
    }
    return i > 0;
}

/* A prompt as text: a list of texts or of messages, a body, or the prompt itself. */
static int find_text(const struct request_finding *f, const char *text, int depth, struct json_out *w, struct err *err)
{
    struct err ignored;
    struct json *v = *text == '[' || *text == '{' ? json_parse(text, strlen(text), &ignored) : NULL;
    int code = 0;

    if (json_is_object(v))
        code = request_find(f, v, depth + 1, err);
    else if (json_is_object(json_first(v)))
        json_put_node(w, "messages", v);
    else if (v)
        json_put_node(w, "prompt", v);
    else
        json_put_text(w, "prompt", text);
    json_free(v);
    return code;
}

/* The prompt of a span that calls a model; its input.value is that of a chain or of a tool otherwise. */
static const char *prompt_of(const struct json *attributes)
{
    const char *kind = json_text(attribute(attributes, "openinference.span.kind"));
    const char *text = json_text(attribute(attributes, "llm.prompts"));

    text = text ? text : json_text(attribute(attributes, "gen_ai.prompt"));
    return text || !kind || strcmp(kind, "LLM") != 0 ? text : json_text(attribute(attributes, "input.value"));
}

static bool put_prompts(struct json_out *w, const struct json *prompts)
{
    if (!json_is_array(prompts))
        return false;
    json_begin(w, "prompt", '[');
    for (const struct json *p = json_first(prompts); p; p = json_next(p))
        json_put_node(w, NULL, json_is_text(p) ? p : json_get(p, "stringValue"));
    json_end(w, ']');
    return true;
}

/* The conversation; false, with *w as it was: there is none. */
static bool put_messages(struct json_out *w, const struct json *attributes)
{
    size_t before = w->buf->n;

    json_begin(w, "messages", '[');
    bool any = put_conversation(w, attributes) || put_numbered(w, attributes, "gen_ai.prompt", "") ||
               put_numbered(w, attributes, "llm.input_messages", "message.");
    json_end(w, ']');
    if (!any && !buf_failed(w->buf))
        w->buf->n = before;
    return any;
}

int request_find_attributes(const struct request_finding *f, const struct json *attributes, int depth, struct err *err)
{
    struct request_finding whole = *f;
    struct buf body = { 0 };
    struct json_out w = { .buf = &body };
    const struct json *model = attribute(attributes, "gen_ai.request.model");
    int code = 0;

    if (!json_first(attributes) || json_count(attributes) > ATTRIBUTES_MAX)
        return 0;
    whole.below = false;
    json_begin(&w, NULL, '{');
    json_put_node(&w, "model", model ? model : attribute(attributes, "llm.model_name"));
    const char *text = prompt_of(attributes);
    if (!put_messages(&w, attributes) && !put_prompts(&w, attribute(attributes, "llm.prompts")) && text)
        code = find_text(&whole, text, depth, &w, err);
    json_end(&w, '}');
    struct json *row = !code && !buf_failed(&body) ? json_parse(body.at, body.n, err) : NULL;
    if (row && json_next(json_first(row))) // more than the model
        code = request_find(&whole, row, depth + 1, err);
    json_free(row);
    buf_release(&body);
    return code;
}
