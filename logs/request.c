/* request.c - finds the request in a line, and takes its prompt. Requests that are not understood are counted, not
 * guessed. */
#include "logs/request.h"

#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 4,
    PREFIX = 256, /* bytes before the JSON of a line: time, process, source and the words before it */
    NOT_JSON = 1,
    SGLANG_HALF = 1024, /* characters at both ends of a text that SGLang cut, with three dots between */
};

static const char *const flaw_texts[] = {
#define X(name, text) text,
    REQUEST_FLAWS(X)
#undef X
};

const char *request_flaw_text(enum request_flaw flaw)
{
    return flaw_texts[flaw];
}

enum turn_role request_role(const struct request *r, int i)
{
    return (enum turn_role)(unsigned char)r->bytes.at[r->message.at[i] - 1];
}

void request_line_release(struct request_line *l)
{
    buf_release(&l->request.bytes);
    buf_release(&l->request.model);
    free(l->request.message.at);
    free(l->request.hash.at);
    *l = (struct request_line){ 0 };
}

/* Passed down while searching a line. */
struct finding {
    struct request_line *l;
    const struct request_visitor *visitor;
    bool of_sglang; // which cuts long texts in their middle
};

/* ---- one request ---------------------------------------------------------- */

static void begin(struct request *r)
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

static int flawed(const struct finding *f, enum request_flaw flaw)
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

static int deliver(const struct finding *f, struct err *err)
{
    f->l->log.n_prompts++;
    f->l->n_requests++;
    return f->visitor->each(f->visitor->arg, &f->l->request, err);
}

static int give(const struct finding *f, struct err *err)
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
        return flawed(f, REQUEST_CUT);
    }
    for (int i = 0; f->of_sglang && i <= last; i++)
        if (is_cut(r->bytes.at + r->message.at[i], text_end(r, i) - r->message.at[i])) {
            l->log.sglang_cuts = true;
            return flawed(f, REQUEST_CUT);
        }
    r->time = r->time > l->log.future ? (double)NAN : r->time;
    return deliver(f, err);
}

static int give_prompt(const struct finding *f, const char *text, struct err *err)
{
    struct request *r = &f->l->request;

    begin(r);
    if (begin_message(r, TURN_PROMPT, err))
        return err->code;
    add_text(r, text);
    return give(f, err);
}

/* A prompt of /v1/completions: a text, several texts, or ids. */
static int read_prompt(const struct finding *f, const struct json *prompt, struct err *err)
{
    if (json_is_text(prompt))
        return give_prompt(f, json_text(prompt), err);
    for (const struct json *p = json_first(prompt); p; p = json_next(p)) {
        if (!json_is_text(p))
            return flawed(f, REQUEST_TOKENS);
        if (give_prompt(f, json_text(p), err))
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

static int read_messages(const struct finding *f, const struct json *row, const struct json *messages, struct err *err)
{
    struct request *r = &f->l->request;
    const char *date = json_text(json_get(json_get(row, "chat_template_kwargs"), "date_string"));
    enum request_flaw flaw = REQUEST_END;

    if (json_count(json_get(row, "tools")) > 0 || json_count(json_get(row, "functions")) > 0)
        return flawed(f, REQUEST_TOOLS);
    if (json_text(json_get(row, "chat_template")))
        return flawed(f, REQUEST_TEMPLATE);
    if (date && f->l->date && strcmp(date, f->l->date) != 0)
        return flawed(f, REQUEST_DATE);
    begin(r);
    for (const struct json *m = json_first(messages); m; m = json_next(m)) {
        err->code = 0;
        if (add_message(r, m, &flaw, err))
            return err->code ? err->code : flawed(f, flaw);
    }
    if (r->message.n == 0 || request_role(r, r->message.n - 1) != TURN_USER)
        return flawed(f, REQUEST_END);
    return give(f, err);
}

/* A whole number of tokens from `min` on; -1: none. NULL: 0. */
static int32_t tokens_of(const struct json *number, int min)
{
    double n = number ? json_real(number) : 0;

    return n >= min && n <= REQUEST_TOKENS_MAX && n == floor(n) ? (int32_t)n : -1;
}

static int read_hashes(const struct finding *f, const struct json *row, const struct json *ids, struct err *err)
{
    struct request *r = &f->l->request;
    const struct json *block = json_get(row, "block_size");
    double ms = json_real(json_get(row, "timestamp"));
    int32_t tokens = tokens_of(json_get(row, "input_length"), 1);

    if (!f->l->hashes)
        return flawed(f, REQUEST_HASHES);
    begin(r);
    for (const struct json *id = json_first(ids); id; id = json_next(id)) {
        if (!json_is_number(id))
            return flawed(f, REQUEST_BLOCKS);
        if (ARRAY_PUSH(&r->hash, json_real(id)))
            return err_nomem(err);
    }
    r->block = block ? tokens_of(block, 1) : REQUEST_BLOCK;
    r->n_output = tokens_of(json_get(row, "output_length"), 0);
    if (r->hash.n == 0 || tokens < 0 || r->block < 0 || r->n_output < 0)
        return flawed(f, REQUEST_BLOCKS);
    if (tokens / r->block != r->hash.n && (tokens + r->block - 1) / r->block != r->hash.n)
        return flawed(f, REQUEST_BLOCKS);
    r->n_tokens = tokens;
    r->time = ms >= 0 && ms < 1e15 ? ms / 1e3 : (double)NAN;
    return deliver(f, err);
}

/* ---- vLLM's lines --------------------------------------------------------- */

static int hex_of(const char *s, int n)
{
    int v = 0;

    for (int i = 0; i < n; i++) {
        if (!isxdigit((unsigned char)s[i]))
            return -1;
        v = v * 16 + (isdigit((unsigned char)s[i]) ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
    }
    return v;
}

/* The character of an escape of Python's repr(); moves *s past it. -1: not an escape. */
static int unescape(const char **s)
{
    static const char names[] = "ntr\\'\"", values[] = "\n\t\r\\'\"";
    const char *at = *s, *name = *at ? strchr(names, *at) : NULL;
    int n = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;

    if (name) {
        *s = at + 1;
        return values[name - names];
    }
    int point = n ? hex_of(at + 1, n) : -1;
    *s = at + 1 + n;
    return point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000) ? point : -1;
}

/* Takes a text as Python's repr() writes it. False: its end is missing. */
static bool take_repr(struct buf *out, const char *s)
{
    char quote = *s++, bytes[4];

    while (*s && *s != quote) {
        if (*s != '\\') {
            size_t n = strcspn(s, quote == '"' ? "\\\"" : "\\'");
            buf_add(out, s, n);
            s += n;
            continue;
        }
        s++;
        int point = unescape(&s);
        if (point < 0)
            return false;
        buf_add(out, bytes, (size_t)utf8_encode((uint32_t)point, bytes));
    }
    return *s == quote;
}

/* Notes how long vLLM's prompts are: --max-log-len gives many the same length, and ends them anywhere. */
static void note_length(struct request_log *log, const struct buf *text)
{
    size_t n = utf8_count(text->at, text->n);
    char end = text->at[text->n - 1];

    log->n_vllm++;
    if (n > log->longest) {
        log->longest = n;
        log->longest_end = end;
        log->ends_differ = false;
        log->n_longest = 0;
    }
    log->n_longest += n == log->longest;
    log->ends_differ |= n == log->longest && end != log->longest_end;
}

static int give_vllm(const struct finding *f, const char *quoted, struct err *err)
{
    struct buf text = { 0 };
    int code = 0;

    if (!take_repr(&text, quoted))
        code = flawed(f, REQUEST_CUT);
    else if (buf_failed(&text))
        code = err_nomem(err);
    else if (text.n > 0) {
        note_length(&f->l->log, &text);
        code = give_prompt(f, buf_str(&text), err);
    }
    buf_release(&text);
    return code;
}

/* ---- finding it ----------------------------------------------------------- */

static double time_of(const struct json *row)
{
    static const char *const names[] = { "timestamp",    "time",       "ts",         "created",
                                         "created_at",   "startTime",  "start_time", "@timestamp",
                                         "time_iso8601", "time_local", "msec" };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct json *v = json_get(row, names[i]);
        char number[TEXT_SHORT];
        double t = json_is_number(v) ? request_time(text_real(number, json_real(v)))
                   : json_text(v)    ? request_time(json_text(v))
                                     : (double)NAN;
        if (!isnan(t))
            return t;
    }
    return (double)NAN;
}

static int find(const struct finding *f, const struct json *row, int depth, struct err *err);

/* The same for the row of a line; notes what it is if it has no request. */
static int find_in_row(const struct finding *f, const struct json *row, int depth, struct err *err)
{
    struct request_line *l = f->l;
    int64_t before = l->n_requests + l->n_flawed;
    int code = find(f, row, depth, err);
    if (code || l->n_requests + l->n_flawed > before)
        return code;
    request_note_row(&l->log, row);
    return l->asks ? flawed(f, REQUEST_UNKNOWN) : 0;
}

/* May a row be a request, in whatever form? */
static bool looks_asked(const struct json *row)
{
    static const char *const names[] = { "messages", "prompt", "input", "inputs", "contents", "input_ids" };
    bool asks = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct json *v = json_get(row, names[i]);
        asks |= json_text(v) ? strlen(json_text(v)) > strlen("{}") : json_count(v) > 0;
    }
    return asks;
}

/* JSON that does not end is a request that the log cut, or no request. */
static int find_cut(const struct finding *f, const char *json)
{
    return strstr(json, "\"messages\"") || strstr(json, "\"prompt\"") ? flawed(f, REQUEST_CUT) : 0;
}

/* Where JSON begins in a line of text, near its beginning; NULL: nowhere. */
static const char *json_in(const char *text)
{
    char begin[PREFIX + 1];
    size_t n = strnlen(text, PREFIX);

    memcpy(begin, text, n);
    begin[n] = '\0';
    const char *at = strstr(begin, "{\"");
    return at ? text + (at - begin) : NULL;
}

/* A line of text that ends with JSON: a time before it, or vLLM's "Request ID JSON body: ". NOT_JSON: it does not. */
static int find_at_end(const struct finding *f, const char *json, int depth, struct err *err)
{
    struct json *row = json_parse(json, strlen(json), err);

    if (!row)
        return err->code == ERR_NOMEM ? err->code : NOT_JSON;
    int code = find_in_row(f, row, depth, err);
    json_free(row);
    return code;
}

static bool ends(const char *text, const char *at, const char *with)
{
    size_t n = strlen(with);

    return (size_t)(at - text) >= n && memcmp(at - n, with, n) == 0;
}

/* A line of vLLM, or of anything with JSON at its end. */
static int find_in_line(const struct finding *f, const char *text, int depth, struct err *err)
{
    static const char mark[] = "prompt: ", ids[] = "None, prompt_token_ids: [";
    struct request_log *log = &f->l->log;
    const char *json = json_in(text), *prompt = strstr(text, mark);
    const char *quoted = prompt ? prompt + sizeof(mark) - 1 : "";
    bool is_body = json && ends(text, json, " JSON body: ");

    if (isnan(f->l->request.time))
        f->l->request.time = request_time_before(text, log->newest);
    if (json && (!prompt || json < prompt)) {
        int code = find_at_end(f, json, depth, err);
        log->has_bodies |= is_body && code != NOT_JSON;
        if (code != NOT_JSON)
            return code;
        log->lacks[LACK_VLLM_REST] += is_body;
        if (is_body)
            return flawed(f, REQUEST_CUT);
    }
    if ((*quoted == '\'' || *quoted == '"') && strstr(text, "equest"))
        return log->has_bodies ? 0 : give_vllm(f, quoted, err);
    request_note_text(log, text);
    if (strncmp(quoted, ids, sizeof(ids) - 1) == 0)
        return log->has_bodies ? 0 : flawed(f, REQUEST_TOKENS);
    return json ? find_cut(f, json) : 0;
}

/* JSON in a text, or a line. */
static int find_in_text(const struct finding *f, const char *text, int depth, struct err *err)
{
    if (text[strspn(text, " \t\r\n")] != '{' && text[strspn(text, " \t\r\n")] != '[')
        return find_in_line(f, text, depth, err);
    struct json *row = json_parse(text, strlen(text), err);
    int code = row ? find(f, row, depth, err) : find_cut(f, text);
    json_free(row);
    return code;
}

static int find_wrapped(const struct finding *f, const struct json *row, int depth, struct err *err)
{
    static const char *const names[] = { REQUEST_WRAPPERS };
    const struct request_line *l = f->l;
    int64_t before = l->n_requests + l->n_flawed;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && l->n_requests + l->n_flawed == before; i++) {
        const struct json *v = json_get(row, names[i]);
        int code = 0;
        if (json_is_object(v))
            code = find(f, v, depth + 1, err);
        else if (json_text(v))
            code = find_in_text(f, json_text(v), depth + 1, err);
        if (code)
            return code;
    }
    return 0;
}

/* `messages` may be a text with the list in it, as LiteLLM's database keeps it. */
static int find_messages(const struct finding *f, const struct json *row, const struct json *messages, struct err *err)
{
    if (!json_text(messages))
        return read_messages(f, row, messages, err);
    struct json *list = json_parse(json_text(messages), strlen(json_text(messages)), err);
    int code = json_is_array(list) ? read_messages(f, row, list, err) : 0;
    json_free(list);
    return code;
}

/* SGLang logs a request three times: the body as it came, the prompt or its ids, and at the end both with the answer;
 * older versions do not log the body, and the text of a conversation only at the end. True: this one counts. */
static bool is_counted(const struct finding *f, const struct json *row, const char *event)
{
    struct request_log *log = &f->l->log;
    const struct json *obj = json_get(row, "obj");

    if (strcmp(event, "request.received.openai") == 0) {
        log->has_bodies = true;
        log->n_pending++;
        return true;
    }
    if (strcmp(event, "request.received") == 0) {
        bool again = log->n_pending > 0;
        log->n_pending -= again;
        return !again;
    }
    return strcmp(event, "request.finished") != 0 || (!log->has_bodies && json_is_array(json_get(obj, "input_ids")));
}

static int find_event(const struct finding *f, const struct json *row, int depth, struct err *err)
{
    const char *event = json_text(json_get(row, "event"));
    struct finding in = *f;

    in.of_sglang = f->of_sglang || (event && strncmp(event, "request.", strlen("request.")) == 0);
    if (event && !is_counted(f, row, event))
        return 0;
    return find_wrapped(&in, row, depth, err);
}

static int find(const struct finding *f, const struct json *row, int depth, struct err *err)
{
    struct request *r = &f->l->request;
    const struct json *messages = json_get(row, "messages"), *prompt = json_get(row, "prompt");
    const char *model = json_text(json_get(row, "model")), *text = json_text(json_get(row, "text"));

    if (depth > MAX_DEPTH)
        return 0;
    f->l->asks |= !f->of_sglang && looks_asked(row);
    if (isnan(r->time))
        r->time = time_of(row);
    if (model) {
        buf_clear(&r->model);
        buf_adds(&r->model, model);
    }
    if (json_is_array(json_get(row, "hash_ids")))
        return read_hashes(f, row, json_get(row, "hash_ids"), err);
    if (json_is_array(messages) || json_text(messages))
        return find_messages(f, row, messages, err);
    if (json_is_array(prompt) || json_text(prompt))
        return read_prompt(f, prompt, err);
    if (text && json_get(row, "sampling_params"))
        return give_prompt(f, text, err);
    return find_event(f, row, depth, err);
}

int request_read(struct request_line *l, const char *line, size_t n, const struct request_visitor *visitor,
                 struct err *err)
{
    const struct finding f = { .l = l, .visitor = visitor };

    l->request.time = (double)NAN;
    l->asks = false;
    buf_clear(&l->request.model);
    if (line[strspn(line, " \t\r")] != '{')
        return find_in_line(&f, line, 0, err);
    struct json *row = json_parse(line, n, err);
    int code = row ? find_in_row(&f, row, 0, err) : err->code == ERR_FORMAT ? REQUEST_DAMAGED : err->code;
    json_free(row);
    return code;
}
