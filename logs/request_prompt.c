/* request_prompt.c - the prompt of one request: the texts of its messages, or the text it is. */
#include "base/array.h"
#include "base/utf8.h"
#include "logs/request_internal.h"

#include <math.h>
#include <string.h>

enum { SGLANG_HALF = 1024 }; // characters at both ends of a text that SGLang cut, with three dots between

void request_begin(struct request *r)
{
    buf_clear(&r->bytes);
    r->message.n = r->hash.n = 0;
}

static int begin_message(struct request *r, enum turn_role role, struct err *err)
{
    buf_addc(&r->bytes, '\xff');
    buf_addc(&r->bytes, (char)role);
    return ARRAY_PUSH(&r->message, r->bytes.n) ? err_nomem(err) : 0;
}

static void add_text(struct request *r, const char *text)
{
    size_t n = strlen(text);

    if (utf8_valid(text, n))
        buf_add(&r->bytes, text, n);
    else
        utf8_clean(&r->bytes, text, n);
}

int request_flawed(const struct request_finding *f, enum request_flaw flaw)
{
    const struct buf *model = &f->l->request.model;
    const struct map *wanted = f->l->wanted;

    if (wanted && wanted->n && model->n && map_find(wanted, buf_str(model), model->n) < 0)
        return 0;
    f->l->flaws[flaw]++;
    f->l->n_flawed++;
    return 0;
}

static size_t text_end(const struct request *r, int i)
{
    return i + 1 < r->message.n ? r->message.at[i + 1] - REQUEST_MARK : r->bytes.n;
}

/* 1024 characters, three dots, 1024 characters? */
static bool is_cut(const char *text, size_t n)
{
    size_t at = 0;

    if (n < 2 * SGLANG_HALF + 3)
        return false;
    for (int chars = 0; at < n && chars <= SGLANG_HALF; at++)
        chars += ((unsigned char)text[at] & 0xc0) != 0x80;
    at -= at < n;
    return n - at >= 3 && memcmp(text + at, "...", 3) == 0 && utf8_count(text + at + 3, n - at - 3) == SGLANG_HALF;
}

int request_deliver(const struct request_finding *f, struct err *err)
{
    f->l->log.n_prompts++;
    f->l->n_requests++;
    return f->visitor->each(f->visitor->arg, &f->l->request, err);
}

static int give(const struct request_finding *f, struct err *err)
{
    static const char redacted[] = "redacted-by-litellm";
    struct request_line *l = f->l;
    struct request *r = &l->request;
    int last = r->message.n - 1;

    if (buf_failed(&r->bytes) || buf_failed(&r->model))
        return err_nomem(err);
    if (r->bytes.n - r->message.at[last] == sizeof(redacted) - 1 &&
        memcmp(r->bytes.at + r->message.at[last], redacted, sizeof(redacted) - 1) == 0) {
        l->log.lacks[LACK_LITELLM]++;
        return request_flawed(f, REQUEST_CUT);
    }
    for (int i = 0; f->of_sglang && i <= last; i++)
        if (is_cut(r->bytes.at + r->message.at[i], text_end(r, i) - r->message.at[i])) {
            l->log.sglang_cuts = true;
            return request_flawed(f, REQUEST_CUT);
        }
    r->time = r->time > l->log.future ? (double)NAN : r->time;
    return request_deliver(f, err);
}

int request_give_prompt(const struct request_finding *f, const char *text, struct err *err)
{
    struct request *r = &f->l->request;

    request_begin(r);
    if (begin_message(r, TURN_PROMPT, err))
        return err->code;
    add_text(r, text);
    return give(f, err);
}

/* A prompt of /v1/completions: a text, several texts, or ids. */
int request_read_prompt(const struct request_finding *f, const struct json *prompt, struct err *err)
{
    if (json_is_text(prompt))
        return request_give_prompt(f, json_text(prompt), err);
    for (const struct json *p = json_first(prompt); p; p = json_next(p)) {
        if (!json_is_text(p))
            return request_flawed(f, REQUEST_TOKENS);
        if (request_give_prompt(f, json_text(p), err))
            return err->code;
    }
    return 0;
}

/* A message's text, which may be a list of texts; vLLM joins them with line ends. */
static int add_content(struct request *r, const struct json *content, enum request_flaw *flaw)
{
    bool first = true;

    if (json_is_text(content)) {
        add_text(r, json_text(content));
        return 0;
    }
    for (const struct json *part = json_first(content); part; part = json_next(part)) {
        const char *text = json_text(json_get(part, "text"));
        if (!text) {
            *flaw = REQUEST_MEDIA;
            return -1;
        }
        if (!first)
            buf_addc(&r->bytes, '\n');
        add_text(r, text);
        first = false;
    }
    *flaw = REQUEST_TOOLS; // a message without content calls tools
    return first ? -1 : 0;
}

/* 0, or -1 and why the request cannot be used. */
static int add_message(struct request *r, const struct json *m, enum request_flaw *flaw, struct err *err)
{
    const char *name = json_text(json_get(m, "role"));
    int role = name ? turn_role_find(name) : -1;

    if (json_count(json_get(m, "tool_calls")) > 0 || json_is_object(json_get(m, "function_call"))) {
        *flaw = REQUEST_TOOLS;
        return -1;
    }
    *flaw = REQUEST_ROLES;
    if (role < 0 || role == TURN_PROMPT || (role == TURN_SYSTEM && r->message.n > 0))
        return -1;
    if (begin_message(r, (enum turn_role)role, err))
        return err->code;
    size_t at = r->bytes.n;
    if (add_content(r, json_get(m, "content"), flaw))
        return -1;
    *flaw = REQUEST_THOUGHTS;
    return role == TURN_ASSISTANT && !buf_failed(&r->bytes) && strstr(buf_str(&r->bytes) + at, "</think>") ? -1 : 0;
}

int request_read_messages(const struct request_finding *f, const struct json *row, const struct json *messages,
                          struct err *err)
{
    struct request *r = &f->l->request;
    const char *date = json_text(json_get(json_get(row, "chat_template_kwargs"), "date_string"));
    enum request_flaw flaw = REQUEST_END;

    if (json_count(json_get(row, "tools")) > 0 || json_count(json_get(row, "functions")) > 0)
        return request_flawed(f, REQUEST_TOOLS);
    if (json_text(json_get(row, "chat_template")))
        return request_flawed(f, REQUEST_TEMPLATE);
    if (date && f->l->date && strcmp(date, f->l->date) != 0)
        return request_flawed(f, REQUEST_DATE);
    request_begin(r);
    for (const struct json *m = json_first(messages); m; m = json_next(m)) {
        err->code = 0;
        if (add_message(r, m, &flaw, err))
            return err->code ? err->code : request_flawed(f, flaw);
    }
    if (r->message.n == 0 || request_role(r, r->message.n - 1) != TURN_USER)
        return request_flawed(f, REQUEST_END);
    return give(f, err);
}
