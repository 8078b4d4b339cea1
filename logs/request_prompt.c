/* request_prompt.c - the prompt of one request: the texts of its messages, or the text it is.
 *
 * Where only equal beginnings matter (bytes_suffice), what every template writes in its own way becomes bytes, too:
 * JSON as it came, without white space; token ids, four bytes each; media, a digest, repeated. It stands where most
 * templates have it: tools in front, reasoning before the text of a message, calls after it.
 */
#include "base/array.h"
#include "base/digest.h"
#include "base/utf8.h"
#include "logs/request_internal.h"

#include <math.h>
#include <string.h>

void request_begin(struct request *r)
{
    buf_clear(&r->bytes);
    r->message.n = r->hash.n = 0;
    r->n_front = 0;
    r->apart = 0;
    r->n_media = 0;
    r->salted = r->opaque = false;
}

/* Keeps what stands in front of every message. */
static void rewind_to_front(struct request *r)
{
    r->bytes.n = r->message.n > 0 ? r->n_front : 0;
    r->message.n = r->n_front > 0;
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
    struct request_line *l = f->l;
    const struct buf *model = &l->request.model;

    l->n_found++;
    if (l->wanted && l->wanted->n && model->n && map_find(l->wanted, buf_str(model), model->n) < 0)
        return 0;
    flaw = f->failed ? REQUEST_FAILED : flaw;
    l->refused = flaw;
    l->flaws[flaw]++;
    l->n_flawed += flaw < REQUEST_ASIDE;
    return 0;
}

static size_t text_end(const struct request *r, int i)
{
    return i + 1 < r->message.n ? r->message.at[i + 1] - REQUEST_MARK : r->bytes.n;
}

int request_deliver(const struct request_finding *f, struct err *err)
{
    struct request_line *l = f->l;

    if (f->failed)
        return request_flawed(f, REQUEST_FAILED);
    l->n_found++;
    l->log.n_prompts++;
    l->n_requests++;
    l->n_salted += l->request.salted;
    return f->visitor->each(f->visitor->arg, &l->request, err);
}

static int give(const struct request_finding *f, struct err *err)
{
    struct request_line *l = f->l;
    struct request *r = &l->request;

    if (buf_failed(&r->bytes) || buf_failed(&r->model))
        return err_nomem(err);
    for (int i = 0; i < r->message.n; i++)
        if (request_is_cut(f, r->bytes.at + r->message.at[i], text_end(r, i) - r->message.at[i]))
            return request_flawed(f, REQUEST_CUT);
    r->time = r->time > l->log.future ? (double)NAN : r->time;
    return request_deliver(f, err);
}

int request_give_prompt(const struct request_finding *f, const char *text, struct err *err)
{
    struct request *r = &f->l->request;

    rewind_to_front(r);
    if (begin_message(r, TURN_PROMPT, err))
        return err->code;
    add_text(r, text);
    return give(f, err);
}

/* ---- what has no text ----------------------------------------------------- */

/* Ids, texts between them, and lists of these. */
static void add_ids(struct request *r, const struct json *ids)
{
    for (const struct json *id = json_first(ids); id; id = json_next(id)) {
        double v = json_real(id);
        uint32_t number = v >= 0 && v < 4294967296.0 ? (uint32_t)v : UINT32_MAX;
        if (json_text(id))
            add_text(r, json_text(id));
        else
            buf_add(&r->bytes, (const char *)&number, sizeof(number));
    }
    r->opaque = true;
}

/* An image, a sound, or a file. */
static void add_medium(struct request *r, const struct json *medium)
{
    struct buf content = { 0 };

    json_print(&content, medium);
    uint64_t digest = digest_xxh3(buf_str(&content), content.n); // two tokens
    int n = r->n_media++ < REQUEST_MEDIA_MAX ? REQUEST_MEDIUM_TOKENS / 2 : 1;
    for (int i = 0; i < n; i++)
        buf_add(&r->bytes, (const char *)&digest, sizeof(digest));
    buf_release(&content);
    r->opaque = true;
}

static void add_media(struct request *r, const struct json *v)
{
    if (!json_is_array(v))
        add_medium(r, v);
    for (const struct json *m = json_is_array(v) ? json_first(v) : NULL; m; m = json_next(m))
        add_medium(r, m);
}

static int add_content(const struct request_finding *f, const struct json *content, const char *between);

/* A call of a tool, its result, or reasoning: all fields but the one that only marks where a cache may end. */
static void add_fields(const struct request_finding *f, const struct json *v)
{
    struct request *r = &f->l->request;

    if (json_text(v)) {
        add_text(r, json_text(v));
        return;
    }
    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        const char *name = json_name(m);
        if (json_is_object(m) || json_is_array(m) ? name && strcmp(name, "cache_control") == 0 : !name)
            continue;
        buf_printf(&r->bytes, "\n%s:", name ? name : "");
        if (name && (strcmp(name, "content") == 0 || strcmp(name, "output") == 0) && json_is_array(m))
            (void)add_content(f, m, "\n"); /* which may have media; nothing is refused here */
        else
            json_print(&r->bytes, m);
    }
}

int request_add_front(const struct request_finding *f, const struct json *field, int flaw, struct err *err)
{
    struct request *r = &f->l->request;

    if (r->message.n == 0 && begin_message(r, TURN_PROMPT, err))
        return err->code;
    if (flaw == REQUEST_TOKENS)
        add_ids(r, field);
    else if (flaw == REQUEST_MEDIA)
        add_media(r, field);
    else
        json_print(&r->bytes, field);
    r->n_front = r->bytes.n;
    return N_REQUEST_FLAWS;
}

/* ---- messages ------------------------------------------------------------- */

/* What a part of a message is that is no text: by its type, or in Gemini's bodies by its name. */
static enum request_flaw part_flaw(const struct json *part)
{
    static const struct {
        const char *in_type;
        enum request_flaw flaw;
    } kinds[] = { { "tool", REQUEST_TOOLS },         { "function", REQUEST_TOOLS },
                  { "mcp_", REQUEST_TOOLS },         { "_call", REQUEST_TOOLS },
                  { "search", REQUEST_TOOLS },       { "thinking", REQUEST_THOUGHTS },
                  { "reasoning", REQUEST_THOUGHTS }, { "item_reference", REQUEST_ELSEWHERE } };
    const char *type = json_text(json_get(part, "type"));

    type = type ? type : json_first(part) && json_name(json_first(part)) ? json_name(json_first(part)) : "";
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strstr(type, kinds[i].in_type))
            return kinds[i].flaw;
    return REQUEST_MEDIA;
}

/* Returns a flaw, or N_REQUEST_FLAWS. */
static int add_part(const struct request_finding *f, const struct json *part)
{
    struct request *r = &f->l->request;
    const char *text = json_text(part) ? json_text(part) : json_text(json_get(part, "text"));
    enum request_flaw flaw = text ? REQUEST_THOUGHTS : part_flaw(part);

    if (text && (f->l->bytes_suffice || !json_true(json_get(part, "thought"))))
        add_text(r, text);
    else if (!f->l->bytes_suffice || flaw == REQUEST_ELSEWHERE)
        return flaw;
    else if (flaw == REQUEST_MEDIA)
        add_medium(r, part);
    else
        add_fields(f, part);
    return N_REQUEST_FLAWS;
}

/* A message's text, which may be a list of texts; vLLM joins them with line ends. */
static int add_content(const struct request_finding *f, const struct json *content, const char *between)
{
    int flaw = f->l->bytes_suffice ? N_REQUEST_FLAWS : REQUEST_TOOLS; // a message without content calls tools

    if (json_is_text(content))
        return add_part(f, content);
    for (const struct json *part = json_first(content); part; part = json_next(part)) {
        if (part != json_first(content))
            buf_adds(&f->l->request.bytes, between);
        flaw = add_part(f, part);
        if (flaw != N_REQUEST_FLAWS)
            return flaw;
    }
    return flaw;
}

/* Fields of a message beside its text. `before`: those that stand before it. */
static int add_beside(const struct request_finding *f, const struct json *m, bool before)
{
    static const struct {
        const char *name;
        enum request_flaw flaw;
    } beside[] = {
        { "reasoning_content", REQUEST_THOUGHTS }, { "reasoning", REQUEST_THOUGHTS }, { "thinking", REQUEST_THOUGHTS },
        { "thinking_blocks", REQUEST_THOUGHTS },   { "images", REQUEST_MEDIA },       { "audio", REQUEST_MEDIA },
        { "tool_calls", REQUEST_TOOLS },           { "function_call", REQUEST_TOOLS }
    };

    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        const struct json *v = json_get(m, beside[i].name);
        if (before != (beside[i].flaw != REQUEST_TOOLS) || !request_says(v))
            continue;
        if (!f->l->bytes_suffice)
            return beside[i].flaw;
        if (beside[i].flaw == REQUEST_MEDIA)
            add_media(&f->l->request, v);
        else if (json_text(v))
            add_text(&f->l->request, json_text(v));
        else
            json_print(&f->l->request.bytes, v);
    }
    return N_REQUEST_FLAWS;
}

/* Begins a message of a role by its name. Returns a flaw, N_REQUEST_FLAWS, or an error. */
static int begin_role(const struct request_finding *f, const char *name, struct err *err)
{
    struct request *r = &f->l->request;
    int role = name ? turn_role_find(strcmp(name, "model") == 0 ? "assistant" : name) : -1;
    bool known = role >= 0 && role != TURN_PROMPT && !(role == TURN_SYSTEM && r->message.n > (r->n_front > 0));

    if (!known && !f->l->bytes_suffice)
        return REQUEST_ROLES;
    if (begin_message(r, known ? (enum turn_role)role : TURN_PROMPT, err))
        return err->code;
    if (!known)
        add_text(r, name ? name : "");
    return N_REQUEST_FLAWS;
}

int request_add_message(const struct request_finding *f, const struct request_message *m, struct err *err)
{
    struct request *r = &f->l->request;
    int flaw = begin_role(f, m->role, err);
    size_t at = r->bytes.n;

    if (flaw == N_REQUEST_FLAWS)
        flaw = add_beside(f, m->beside, true);
    if (flaw == N_REQUEST_FLAWS)
        flaw = add_content(f, m->content, m->between);
    if (flaw == N_REQUEST_FLAWS)
        flaw = add_beside(f, m->beside, false);
    if (flaw == N_REQUEST_FLAWS && !f->l->bytes_suffice && request_role(r, r->message.n - 1) == TURN_ASSISTANT &&
        !buf_failed(&r->bytes) && strstr(buf_str(&r->bytes) + at, "</think>"))
        flaw = REQUEST_THOUGHTS;
    return flaw;
}

int request_add_item(const struct request_finding *f, const struct json *item, struct err *err)
{
    enum request_flaw flaw = part_flaw(item);

    if (!f->l->bytes_suffice || flaw == REQUEST_ELSEWHERE)
        return flaw;
    if (begin_message(&f->l->request, TURN_PROMPT, err))
        return err->code;
    add_fields(f, item);
    return N_REQUEST_FLAWS;
}

int request_finish(const struct request_finding *f, int flaw, struct err *err)
{
    const struct request *r = &f->l->request;

    if (flaw < 0)
        return flaw;
    if (flaw == N_REQUEST_FLAWS &&
        (r->message.n == 0 || (!f->l->bytes_suffice && request_role(r, r->message.n - 1) != TURN_USER)))
        flaw = REQUEST_END;
    return flaw < N_REQUEST_FLAWS ? request_flawed(f, (enum request_flaw)flaw) : give(f, err);
}

/* ---- prompts -------------------------------------------------------------- */

static int give_ids(const struct request_finding *f, const struct json *ids, struct err *err)
{
    struct request *r = &f->l->request;

    if (!f->l->bytes_suffice)
        return request_flawed(f, REQUEST_TOKENS);
    rewind_to_front(r);
    if (begin_message(r, TURN_PROMPT, err))
        return err->code;
    add_ids(r, ids);
    return give(f, err);
}

int request_read_prompts(const struct request_finding *f, const struct json *prompt, struct err *err)
{
    const struct json *media = json_get(prompt, "multimodal_data");

    if (json_is_object(prompt) && request_says(media)) {
        int code = f->l->bytes_suffice ? request_add_front(f, media, REQUEST_MEDIA, err) : REQUEST_MEDIA;
        if (code != N_REQUEST_FLAWS)
            return code < 0 ? code : request_flawed(f, REQUEST_MEDIA);
    }
    prompt = json_is_object(prompt) ? json_get(prompt, "prompt_string") : prompt;
    if (json_is_text(prompt))
        return request_give_prompt(f, json_text(prompt), err);
    for (const struct json *p = json_first(prompt); p; p = json_next(p))
        if (json_is_number(p))
            return give_ids(f, prompt, err);
    for (const struct json *p = json_first(prompt); p; p = json_next(p)) {
        int code = json_is_array(p) ? give_ids(f, p, err) : request_read_prompts(f, p, err);
        if (code)
            return code;
    }
    return 0;
}

int request_give_ids(const struct request_finding *f, const char *list, struct err *err)
{
    size_t n = strcspn(list, "]") + 1;
    struct json *ids = list[n - 1] ? json_parse(list, n, err) : NULL;
    int code = ids ? give_ids(f, ids, err) : request_flawed(f, f->l->bytes_suffice ? REQUEST_CUT : REQUEST_TOKENS);

    json_free(ids);
    return code;
}
