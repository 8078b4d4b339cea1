/* request.c - finds the requests in a line. Those that are not understood are counted, not guessed. */
#include "base/digest.h"
#include "base/parse.h"
#include "logs/request_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PREFIX = 256, /* bytes before the JSON of a line: time, process, source and the words before it */
    NOT_JSON = 1,
    SHOWN_FIELDS = 12,
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
    map_release(&l->unknown);
    free(l->request.message.at);
    free(l->request.hash.at);
    request_pieces_release(&l->pieces);
    trace_reading_release(&l->trace);
    buf_release(&l->text);
    buf_release(&l->fields);
    *l = (struct request_line){ 0 };
}

static double time_of(const struct json *row)
{
    static const char *const names[] = { "timestamp",
                                         "time",
                                         "ts",
                                         "created",
                                         "created_at",
                                         "startTime",
                                         "start_time",
                                         "@timestamp",
                                         "time_iso8601",
                                         "time_local",
                                         "msec",
                                         "date",
                                         "event_time",
                                         "__REALTIME_TIMESTAMP",
                                         "startTimeUnixNano",
                                         "timeUnixNano" };

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

/* The names of a row's fields, once for all logs: those that are names, not words of users. */
static void note_fields(struct buf *to, const struct json *row)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@";
    int n = 0;

    if (to->n)
        return;
    for (const struct json *m = json_first(row); m && json_name(m) && n < SHOWN_FIELDS; m = json_next(m)) {
        size_t length = strlen(json_name(m));
        if (length > 0 && length < TEXT_SHORT && strspn(json_name(m), letters) == length)
            buf_printf(to, n++ ? ", %s" : "%s", json_name(m));
    }
}

/* ---- bodies, and the prompts made of them --------------------------------- */

/* vLLM's id of a request, without the words that it puts before it; 0: none. */
static uint64_t id_in(const char *text)
{
    static const char *const words[] = { "Request ", "Received request " }, *const kinds[] = { "chatcmpl-", "cmpl-" };
    const char *id = NULL;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words) && !id; i++)
        id = strstr(text, words[i]) ? strstr(text, words[i]) + strlen(words[i]) : NULL;
    if (!id || strncmp(id, "N/A", 3) == 0)
        return 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        id += strncmp(id, kinds[i], strlen(kinds[i])) == 0 ? strlen(kinds[i]) : 0;
    size_t n = strcspn(id, " :"), tail = n;
    while (tail > 0 && isdigit((unsigned char)id[tail - 1]))
        tail--;
    n = n - tail == 1 && tail > 1 && id[tail - 1] == '-' ? tail - 1 : n; /* a completion's first prompt */
    return digest_xxh3(id, n) | 1;
}

/* Notes how a body went, so that its prompt is known when it comes. */
static void note_body(struct request_line *l, uint64_t id)
{
    struct request_log *log = &l->log;
    struct request_paired *b = log->body.at;

    log->has_bodies = true;
    if (log->body.n == REQUEST_PAIRED)
        memmove(b, b + 1, (size_t)--log->body.n * sizeof(*b));
    b += log->body.n++;
    *b = (struct request_paired){ .id = id, .flaw = l->refused };
    memcpy(b->model, buf_str(&l->request.model), strnlen(buf_str(&l->request.model), REQUEST_MODEL_MAX - 1));
}

/* The prompt of a body has come. True: the body was refused, and `usable`, so the prompt counts in its place. */
static bool take_refused(struct request_line *l, uint64_t id, bool usable)
{
    struct request_log *log = &l->log;
    int i = 0;

    while (i < log->body.n && log->body.at[i].id != id)
        i++;
    for (int k = 0; i == log->body.n && k < log->body.n; k++) /* those without an id come in order */
        i = log->body.at[k].id == 0 ? k : i;
    if (i == log->body.n)
        return false;
    const struct request_paired b = log->body.at[i];
    memmove(&log->body.at[i], &log->body.at[i + 1], (size_t)(--log->body.n - i) * sizeof(b));
    if (b.flaw >= REQUEST_ASIDE || !usable)
        return false;
    l->flaws[b.flaw]--;
    l->n_flawed--;
    buf_clear(&l->request.model);
    buf_adds(&l->request.model, b.model);
    return true;
}

/* ---- lines ---------------------------------------------------------------- */

/* Finds the request in the row of a line, and notes what it is if it has none. */
static int find_in_row(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    struct request_line *l = f->l;
    int64_t before = l->n_found;
    int64_t lacks[N_REQUEST_LACKS];

    memcpy(lacks, l->log.lacks, sizeof(lacks));
    int code = request_find(f, row, depth, err);
    if (code || l->n_found > before)
        return code;
    request_note_row(&l->log, row);
    if (memcmp(lacks, l->log.lacks, sizeof(lacks)) == 0)
        note_fields(&l->fields, row);
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
    for (const char *at = begin; (at = strchr(at, '{')); at++)
        if (at[1 + strspn(at + 1, " ")] == '"')
            return text + (at - begin);
    return NULL;
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

/* True: there is no line yet; of one whose pieces are lost, counts the request. */
static bool find_piece(const struct request_finding *f, enum request_piece piece, const char *text)
{
    if (piece == PIECE_LOST)
        find_cut(f, text);
    return piece == PIECE_KEPT || piece == PIECE_LOST;
}

/* A line of vLLM, or of anything with JSON at its end. */
static int find_in_line(const struct request_finding *f, const char *text, int depth, struct err *err)
{
    static const char mark[] = "prompt: ", ids[] = "None, prompt_token_ids: [";
    struct request_log *log = &f->l->log;
    struct request_line *l = f->l;
    int is_piece = depth ? 0 : find_piece(f, request_piece_line(&l->pieces, &text), text);
    const char *json = json_in(text), *prompt = strstr(text, mark);
    const char *quoted = prompt ? prompt + sizeof(mark) - 1 : "";
    bool is_body = json && ends(text, json, " JSON body: ");

    int counted = is_piece || depth ? 0 : request_find_counts(f, text, err);
    if (is_piece || counted)
        return counted <= 1 ? 0 : counted;
    if (isnan(f->l->request.time))
        f->l->request.time = request_time_before(text, log->newest);
    if (json && (!prompt || json < prompt)) {
        l->refused = N_REQUEST_FLAWS;
        int code = find_at_end(f, json, depth, err);
        log->lacks[LACK_VLLM_REST] += is_body && code == NOT_JSON;
        if (is_body && code == NOT_JSON)
            code = request_flawed(f, REQUEST_CUT);
        if (is_body)
            note_body(l, id_in(text));
        if (code != NOT_JSON)
            return code;
    }
    bool is_text = *quoted == '\'' || *quoted == '"';
    if (is_text && strstr(text, "equest"))
        return log->has_bodies && !take_refused(l, id_in(text), true) ? 0 : request_give_vllm(f, quoted, err);
    request_note_text(log, text);
    if (strncmp(quoted, ids, sizeof(ids) - 1) == 0)
        return log->has_bodies ? 0 : request_give_ids(f, quoted + sizeof(ids) - 2, err);
    return json ? find_cut(f, json) : 0;
}

/* JSON in a text, or a line. */
int request_find_in_text(const struct request_finding *f, const char *text, int depth, struct err *err)
{
    if (text[strspn(text, " \t\r\n")] != '{' && text[strspn(text, " \t\r\n")] != '[')
        return find_in_line(f, text, depth, err);
    struct json *row = json_parse(text, strlen(text), err);
    int code = row ? request_find(f, row, depth, err) : find_cut(f, text);
    json_free(row);
    return code;
}

/* A text, or a list of its bytes, as journald has it where it is not UTF-8 or long. NULL: neither. */
static const char *text_of(struct buf *bytes, const struct json *v)
{
    if (!json_is_array(v) || !json_is_number(json_first(v)))
        return json_text(v);
    buf_clear(bytes);
    for (const struct json *b = json_first(v); b; b = json_next(b)) {
        double byte = json_real(b);
        buf_addc(bytes, byte >= 1 && byte <= 255 ? (char)(unsigned char)byte : ' ');
    }
    return buf_str(bytes);
}

/* The line in a row of a log, which may be a piece of one. */
static int find_logged(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    static const char *const names[] = { REQUEST_LINES };
    struct request_line *l = f->l;
    int64_t before = l->n_found;
    int code = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !code && l->n_found == before; i++) {
        const struct json *v = json_get(row, names[i]);
        const char *text = text_of(&l->text, v);
        if (json_is_object(v))
            code = request_find(f, v, depth + 1, err);
        else if (text && !find_piece(f, request_piece_row(&l->pieces, row, &text), text))
            code = request_find_in_text(f, text, depth + 1, err);
    }
    return code;
}

static int find_wrapped(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    static const char *const names[] = { REQUEST_WRAPPERS };
    const struct request_line *l = f->l;
    int64_t before = l->n_found;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && l->n_found == before; i++) {
        const struct json *v = json_get(row, names[i]);
        int code = 0;
        if (json_is_object(v))
            code = request_find(f, v, depth + 1, err);
        else if (json_text(v))
            code = request_find_in_text(f, json_text(v), depth + 1, err);
        if (code)
            return code;
    }
    int code = l->n_found == before ? find_logged(f, row, depth, err) : 0;
    return code || l->n_found > before ? code : request_find_below(f, row, depth, err);
}

/* SGLang logs a request three times: the body as it came, the prompt or its ids, and at the end both with the answer;
 * older versions do not log the body, and the text of a conversation only at the end. True: this one counts. */
static bool is_counted(const struct request_finding *f, const struct json *row, const char *event)
{
    struct request_log *log = &f->l->log;
    const struct json *obj = json_get(row, "obj");

    if (strcmp(event, "request.received") == 0)
        return log->body.n == 0 || take_refused(f->l, log->body.at[0].id, json_text(json_get(obj, "text")) != NULL);
    return strcmp(event, "request.finished") != 0 ||
           (!log->has_bodies && !f->l->bytes_suffice && json_is_array(json_get(obj, "input_ids")));
}

/* Did the server refuse the request, or fail? As nginx, LiteLLM and others say it. */
static bool has_failed(const struct json *row)
{
    static const char *const names[] = { "status", "status_code", "response_status", "statusCode", "http_status" };
    static const char *const errors[] = { "error", "error_str", "exception" };
    static const char *const words[] = { "failure", "failed", "error" };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct json *v = json_get(row, names[i]);
        double code = json_text(v) ? strtod(json_text(v), NULL) : json_is_number(v) ? json_real(v) : 0;
        if (code >= 100 && code < 600 && (code < 200 || code >= 300))
            return true;
        for (size_t w = 0; json_text(v) && w < sizeof(words) / sizeof(*words); w++)
            if (strcasecmp(json_text(v), words[w]) == 0)
                return true;
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (json_text(json_get(row, errors[i])) ? request_says(json_get(row, errors[i]))
                                                : json_count(json_get(row, errors[i])) > 0)
            return true;
    return json_is_object(json_get(row, "response")) && has_failed(json_get(row, "response"));
}

/* Does a row name the path of an API? */
static bool is_sent_to(const struct json *row, const char *api)
{
    static const char *const names[] = { "url", "path", "uri", "request_uri", "endpoint" };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (json_text(json_get(row, names[i])) && strstr(json_text(json_get(row, names[i])), api))
            return true;
    return false;
}

/* What a row says of the request in it. */
static struct request_finding about(const struct request_finding *f, const struct json *row)
{
    const char *event = json_text(json_get(row, "event"));
    struct request_finding in = *f;

    in.of_sglang |= event && strncmp(event, "request.", strlen("request.")) == 0;
    in.of_responses |= is_sent_to(row, "/responses");
    in.of_generate |= is_sent_to(row, "/api/generate");
    in.of_gateway |= json_text(json_get(row, "call_type")) != NULL;
    in.failed |= has_failed(row);
    return in;
}

static int find_event(const struct request_finding *in, const struct json *row, int depth, struct err *err)
{
    const char *event = json_text(json_get(row, "event"));
    bool is_body = event && strcmp(event, "request.received.openai") == 0;
    struct request_line *l = in->l;

    if (event && in->of_sglang && !is_counted(in, row, event))
        return 0;
    l->refused = N_REQUEST_FLAWS;
    int code = find_wrapped(in, row, depth, err);
    if (is_body && !code)
        note_body(l, 0);
    return code;
}

/* Below a field of another name, only what has the other fields of a request is one. */
static bool is_request(const struct request_finding *f, const struct json *row)
{
    return !f->below || json_get(json_first(json_get(row, "messages")), "role") || json_get(row, "model");
}

int request_find(const struct request_finding *f, const struct json *row, int depth, struct err *err)
{
    struct request *r = &f->l->request;
    const struct request_finding in = about(f, row);
    const struct json *body = in.of_gateway ? json_get(row, "proxy_server_request") : NULL;
    const char *model = json_text(json_get(row, "model"));
    int64_t before = f->l->n_found;

    if (depth > REQUEST_DEPTH)
        return 0;
    f->l->asks |= !f->of_sglang && !f->below && looks_asked(row);
    if (isnan(r->time))
        r->time = time_of(row);
    if (model) {
        buf_clear(&r->model);
        buf_adds(&r->model, model);
    }
    int traced = request_find_trace(f, row, err);
    if (traced)
        return traced == 1 ? 0 : traced;
    if (!is_request(f, row))
        return find_event(&in, row, depth, err);
    int code = json_is_object(body) ? request_find(&in, body, depth + 1, err) : 0; /* as it came, with its tools */
    if (code || f->l->n_found > before)
        return code;
    if (request_read_body(&in, row, err))
        return err->code;
    return find_event(&in, row, depth, err);
}

int request_read(struct request_line *l, const char *line, size_t n, const struct request_visitor *visitor,
                 struct err *err)
{
    const struct request_finding f = { .l = l, .visitor = visitor };

    l->request.time = (double)NAN;
    l->asks = false;
    buf_clear(&l->request.model);
    bool is_object = line[strspn(line, " \t")] == '{',
         is_list = *line == '[' && strchr("{[", line[1 + strspn(line + 1, " \t")]);
    request_note_writer(l, line);
    buf_clear(&l->text);
    if (l->hashes && is_object && request_quote_numbers(&l->text, line, n)) {
        line = buf_str(&l->text);
        n = l->text.n;
    }
    struct json *row = is_object || is_list ? json_parse(line, n, err) : NULL;
    if (!row && !is_object)
        return find_in_line(&f, line, 0, err);
    int code = row ? find_in_row(&f, row, 0, err) : err->code == ERR_FORMAT ? REQUEST_DAMAGED : err->code;
    json_free(row);
    return code;
}

void request_end(struct request_line *l)
{
    const struct request_finding f = { .l = l };

    buf_clear(&l->request.model);
    for (const char *text; (text = request_piece_left(&l->pieces));)
        find_cut(&f, text);
    l->pieces.ends = false;
}
