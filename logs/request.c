/* request.c - finds the requests in a line. Those that are not understood are counted, not guessed. */
#include "base/parse.h"
#include "logs/request_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 4,
    PREFIX = 256, /* bytes before the JSON of a line: time, process, source and the words before it */
    NOT_JSON = 1,
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

static int find(const struct request_finding *f, const struct json *row, int depth, struct err *err);

/* The same for the row of a line; notes what it is if it has no request. */
static int find_in_row(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    struct request_line *l = f->l;
    int64_t before = l->n_requests + l->n_flawed;
    int code = find(f, row, depth, err);
    if (code || l->n_requests + l->n_flawed > before)
        return code;
    request_note_row(&l->log, row);
    return l->asks ? request_flawed(f, REQUEST_UNKNOWN) : 0;
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
static int find_cut(const struct request_finding *f, const char *json)
{
    return strstr(json, "\"messages\"") || strstr(json, "\"prompt\"") ? request_flawed(f, REQUEST_CUT) : 0;
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
static int find_at_end(const struct request_finding *f, const char *json, int depth, struct err *err)
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
static int find_in_line(const struct request_finding *f, const char *text, int depth, struct err *err)
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
            return request_flawed(f, REQUEST_CUT);
    }
    if ((*quoted == '\'' || *quoted == '"') && strstr(text, "equest"))
        return log->has_bodies ? 0 : request_give_vllm(f, quoted, err);
    request_note_text(log, text);
    if (strncmp(quoted, ids, sizeof(ids) - 1) == 0)
        return log->has_bodies ? 0 : request_flawed(f, REQUEST_TOKENS);
    return json ? find_cut(f, json) : 0;
}

/* JSON in a text, or a line. */
static int find_in_text(const struct request_finding *f, const char *text, int depth, struct err *err)
{
    if (text[strspn(text, " \t\r\n")] != '{' && text[strspn(text, " \t\r\n")] != '[')
        return find_in_line(f, text, depth, err);
    struct json *row = json_parse(text, strlen(text), err);
    int code = row ? find(f, row, depth, err) : find_cut(f, text);
    json_free(row);
    return code;
}

static int find_wrapped(const struct request_finding *f, const struct json *row, int depth, struct err *err)
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
static int find_messages(const struct request_finding *f, const struct json *row, const struct json *messages,
                         struct err *err)
{
    if (!json_text(messages))
        return request_read_messages(f, row, messages, err);
    struct json *list = json_parse(json_text(messages), strlen(json_text(messages)), err);
    int code = json_is_array(list) ? request_read_messages(f, row, list, err) : 0;
    json_free(list);
    return code;
}

/* SGLang logs a request three times: the body as it came, the prompt or its ids, and at the end both with the answer;
 * older versions do not log the body, and the text of a conversation only at the end. True: this one counts. */
static bool is_counted(const struct request_finding *f, const struct json *row, const char *event)
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

static int find_event(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    const char *event = json_text(json_get(row, "event"));
    struct request_finding in = *f;

    in.of_sglang = f->of_sglang || (event && strncmp(event, "request.", strlen("request.")) == 0);
    if (event && !is_counted(f, row, event))
        return 0;
    return find_wrapped(&in, row, depth, err);
}

static int find(const struct request_finding *f, const struct json *row, int depth, struct err *err)
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
        return request_read_trace(f, row, json_get(row, "hash_ids"), err);
    if (json_is_array(messages) || json_text(messages))
        return find_messages(f, row, messages, err);
    if (json_is_array(prompt) || json_text(prompt))
        return request_read_prompt(f, prompt, err);
    if (text && json_get(row, "sampling_params"))
        return request_give_prompt(f, text, err);
    return find_event(f, row, depth, err);
}

int request_read(struct request_line *l, const char *line, size_t n, const struct request_visitor *visitor,
                 struct err *err)
{
    const struct request_finding f = { .l = l, .visitor = visitor };

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
