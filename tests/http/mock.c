/* mock.c - a chat completion service that misbehaves on request, for tests/cli/qgen/http-*.sh.
 *
 *     mock PORT_FILE LOG &      listens on a free port of 127.0.0.1, writes it to PORT_FILE (renamed into place), and
 *                               adds "PATH STATUS TRY KEY FORM" to LOG for every reply until it is killed
 *
 * The first folder of the request's path is the scenario, see `scenarios` and `refusals` below; TRY counts the requests
 * with the same text. The questions of a good reply depend on the text that was sent and on nothing else, so a run's
 * output does not depend on the order of its requests. KEY is the bearer token, FORM what the request uses: "schema" or
 * "json" or "plain" by its response_format, then "-user" when it has no system message, "-effort" when it has a
 * reasoning_effort. Replies marked as recorded are what such a server was seen to say, to the byte where that is known.
 */
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TEXTS = 4096 };

struct call {
    struct buf body;
    const char *path;
    int tries; // with this text, this one included
    bool schema, json, system, effort;
    uint64_t hash; // of the text that was sent
    int n_wanted;  // questions
    struct MHD_Connection *connection;
};

static struct {
    FILE *log;
    pthread_mutex_t lock; // each connection has a thread
    struct map texts;
    int tries[MAX_TEXTS]; // how often each was sent
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- replies ------------------------------------------------------------ */

static enum MHD_Result answer_with(struct call *c, int status, const char *text, const char *header, const char *value)
{
    const char *key = MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, "Authorization");
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    fprintf(state.log, "%s %d %d %s %s%s%s\n", c->path, status, c->tries, key ? key : "-",
            c->schema ? "schema"
            : c->json ? "json"
                      : "plain",
            c->system ? "" : "-user", c->effort ? "-effort" : "");
    fflush(state.log);
    MHD_add_response_header(r, "Content-Type", "application/json");
    if (header)
        MHD_add_response_header(r, header, value);
    enum MHD_Result result = MHD_queue_response(c->connection, (unsigned)status, r);
    MHD_destroy_response(r);
    return result;
}

/* A completion whose message is `content`. */
static void completion(struct buf *out, const char *content)
{
    struct json_out w = { .buf = out };

    json_begin(&w, NULL, '{');
    json_begin(&w, "choices", '[');
    json_begin(&w, NULL, '{');
    json_begin(&w, "message", '{');
    json_put_text(&w, "role", "assistant");
    json_put_text(&w, "content", content);
    json_end(&w, '}');
    json_end(&w, '}');
    json_end(&w, ']');
    json_begin(&w, "usage", '{');
    json_put_int(&w, "prompt_tokens", 1000);
    json_put_int(&w, "completion_tokens", 10);
    json_end(&w, '}');
    json_end(&w, '}');
}

/* A good reply that does not count tokens. */
static enum MHD_Result uncounted(struct call *c)
{
    return answer_with(c, 200, "{\"choices\":[{\"message\":{\"content\":\"[\\\"Who is it?\\\"]\"}}]}", NULL, NULL);
}

static void good_content(const struct call *c, struct buf *out)
{
    buf_adds(out, "{\"questions\": [");
    for (int i = 0; i < c->n_wanted; i++)
        buf_printf(out, "%s\"What is item %d of text %016llx?\"", i ? ", " : "", i, (unsigned long long)c->hash);
    buf_adds(out, "]}");
}

static enum MHD_Result good(struct call *c)
{
    struct buf content = { 0 }, text = { 0 };

    good_content(c, &content);
    completion(&text, buf_str(&content));
    enum MHD_Result result = answer_with(c, 200, buf_str(&text), NULL, NULL);
    buf_release(&content);
    buf_release(&text);
    return result;
}

static enum MHD_Result wrapped(struct call *c)
{
    struct buf content = { 0 }, text = { 0 };

    buf_adds(&content, "<think>[\"Is this a draft?\"]</think>Sure! Here they are:\n```json\n");
    good_content(c, &content);
    buf_adds(&content, "\n```\nAnything else?");
    completion(&text, buf_str(&content));
    enum MHD_Result result = answer_with(c, 200, buf_str(&text), NULL, NULL);
    buf_release(&content);
    buf_release(&text);
    return result;
}

/* Like real services, repeats the key in the complaint. */
static enum MHD_Result denied(struct call *c)
{
    const char *key = MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, "Authorization");
    struct buf text = { 0 };

    buf_printf(&text, "{\"error\":{\"message\":\"no such key: %s\"}}", key ? key : "none");
    enum MHD_Result result = answer_with(c, 401, buf_str(&text), NULL, NULL);
    buf_release(&text);
    return result;
}

static enum MHD_Result denied_c(struct call *c)
{
    return strstr(buf_str(&c->body), "context c") ? denied(c) : good(c);
}

static enum MHD_Result busy(struct call *c)
{
    return c->tries > 1 ? good(c) : answer_with(c, 429, "{\"error\":{\"message\":\"slow down\"}}", "Retry-After", "1");
}

static enum MHD_Result busy_until_date(struct call *c)
{
    time_t then = time(NULL) + 2;
    struct tm tm;
    char date[64];

    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &tm));
    return c->tries > 1 ? good(c) : answer_with(c, 429, "{}", "Retry-After", date);
}

static enum MHD_Result broken_twice(struct call *c)
{
    return c->tries > 2 ? good(c) : answer_with(c, 500, "oops", NULL, NULL);
}

static enum MHD_Result broken(struct call *c)
{
    return answer_with(c, 503, "{\"error\":\"overloaded\"}", NULL, NULL);
}

static enum MHD_Result slow(struct call *c)
{
    usleep(150000);
    return good(c);
}

static enum MHD_Result slow_once(struct call *c)
{
    if (c->tries == 1)
        usleep(700000);
    return good(c);
}

static enum MHD_Result garbage_once(struct call *c)
{
    return c->tries > 1 ? good(c) : answer_with(c, 200, "<html>It works!</html>", NULL, NULL);
}

static enum MHD_Result nonsense(struct call *c)
{
    struct buf text = { 0 };

    completion(&text, "I am sorry, I cannot do that.");
    enum MHD_Result result = answer_with(c, 200, buf_str(&text), NULL, NULL);
    buf_release(&text);
    return result;
}

/* Announces more than it sends. */
static ssize_t give_half(void *arg, uint64_t at, char *to, size_t cap)
{
    static const char half[] = "{\"choices\":[{\"message\":{\"con";

    (void)arg;
    if (at > 0 || cap < sizeof(half))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    memcpy(to, half, sizeof(half) - 1);
    return sizeof(half) - 1;
}

static enum MHD_Result half(struct call *c, uint64_t announced)
{
    if (c->tries > 1)
        return good(c);
    struct MHD_Response *r = MHD_create_response_from_callback(announced, 1000, give_half, NULL, NULL);
    enum MHD_Result result = MHD_queue_response(c->connection, 200, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result half_once(struct call *c)
{
    return half(c, 1000);
}

static enum MHD_Result half_chunked_once(struct call *c)
{
    return half(c, MHD_SIZE_UNKNOWN);
}

static enum MHD_Result dropped_once(struct call *c)
{
    return c->tries > 1 ? good(c) : MHD_NO; /* MHD closes the connection */
}

/* Recorded of Ollama with a model that thinks until its tokens are used up. */
static enum MHD_Result ollama_thinks(struct call *c)
{
    return c->effort ? good(c)
                     : answer_with(c, 200,
                                   "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"\","
                                   "\"reasoning\":\"The user wants questions.\"},\"finish_reason\":\"length\"}]}",
                                   NULL, NULL);
}

/* Each context refused in words of its own. */
static enum MHD_Result moody(struct call *c)
{
    struct buf text = { 0 };

    buf_printf(&text, "{\"error\":{\"message\":\"not %016llx\"}}", (unsigned long long)c->hash);
    enum MHD_Result result = answer_with(c, 400, buf_str(&text), NULL, NULL);
    buf_release(&text);
    return result;
}

static enum MHD_Result elsewhere(struct call *c)
{
    return answer_with(c, 307, "", "Location", "/ok/v1/chat/completions");
}

static enum MHD_Result unknown_c(struct call *c)
{
    return strstr(buf_str(&c->body), "context c")
               ? answer_with(c, 404, "{\"error\":{\"message\":\"no such \\u001bmodel\"}}", NULL, NULL)
               : good(c);
}

/* A good reply of exactly n bytes. */
static enum MHD_Result padded(struct call *c, size_t n)
{
    struct buf content = { 0 }, text = { 0 };

    good_content(c, &content);
    completion(&text, buf_str(&content));
    while (!buf_failed(&text) && text.n < n)
        buf_addc(&text, ' ');
    enum MHD_Result result = answer_with(c, 200, buf_str(&text), NULL, NULL);
    buf_release(&content);
    buf_release(&text);
    return result;
}

enum { MAX_REPLY = 4 << 20 }; // of evp-qgen

static enum MHD_Result large(struct call *c)
{
    return padded(c, MAX_REPLY - 1);
}

static enum MHD_Result largest(struct call *c)
{
    return padded(c, MAX_REPLY);
}

static enum MHD_Result vast(struct call *c)
{
    return padded(c, MAX_REPLY + 1);
}

static const struct {
    const char *name;
    enum MHD_Result (*reply)(struct call *c);
} scenarios[] = {
    { "ok", good },
    { "wrapped", wrapped },
    { "uncounted", uncounted },
    { "denied", denied },
    { "denied-c", denied_c },
    { "busy", busy },
    { "busy-date", busy_until_date },
    { "broken-twice", broken_twice },
    { "broken", broken },
    { "slow", slow },
    { "slow-once", slow_once },
    { "garbage-once", garbage_once },
    { "nonsense", nonsense },
    { "half-once", half_once },
    { "half-chunked-once", half_chunked_once },
    { "dropped-once", dropped_once },
    { "ollama-thinks", ollama_thinks },
    { "moody", moody },
    { "elsewhere", elsewhere },
    { "unknown-c", unknown_c },
    { "large", large },
    { "largest", largest },
    { "vast", vast },
};

/* What services answer to requests that use something they lack; ANYTHING: to every request. Of one name the first row
 * whose use matches; without one the reply is good. */
enum { ANYTHING = 0, SCHEMA = 1, JSON = 2, SYSTEM = 4, EFFORT = 8 };

static const struct {
    const char *name;
    int use, status;
    const char *text;
} refusals[] = {
    { "plain-only", SCHEMA | JSON, 400, "{\"error\":{\"message\":\"unknown field response_format\"}}" },
    /* Recorded of OpenAI's first reasoning models, and of those that do not reason. */
    { "openai-o1", SYSTEM, 400,
      "{\"error\":{\"message\":\"Unsupported value: 'messages[0].role' does not support 'system' with this model.\","
      "\"type\":\"invalid_request_error\",\"param\":\"messages[0].role\",\"code\":\"unsupported_value\"}}" },
    { "openai-4o", EFFORT, 400,
      "{\"error\":{\"message\":\"Unrecognized request argument supplied: reasoning_effort\","
      "\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}" },
    /* Recorded of llama.cpp's server before it took schemas. */
    { "llama-cpp", SCHEMA, 500,
      "{\"error\":{\"code\":500,\"message\":\"response_format type must be one of \\\"text\\\" or "
      "\\\"json_object\\\", but got: json_schema\",\"type\":\"server_error\"}}" },
    /* Recorded of a chat template without a place for a system message (Gemma), as llama.cpp and vLLM pass it on. */
    { "gemma", SYSTEM, 400,
      "{\"object\":\"error\",\"message\":\"System role not supported\",\"type\":\"BadRequestError\",\"param\":null,"
      "\"code\":400}" },
    /* Recorded of vLLM before structured output: fields that it does not know; and where a schema fails inside: nothing
     * says why. */
    { "vllm-old", SCHEMA | JSON, 400,
      "{\"object\":\"error\",\"message\":\"[{'type': 'extra_forbidden', 'loc': ('body', 'response_format'), 'msg': "
      "'Extra inputs are not permitted', 'input': {'type': 'json_object'}}]\",\"type\":\"BadRequestError\","
      "\"param\":null,\"code\":400}" },
    { "vllm-mute", SCHEMA, 500,
      "{\"error\":{\"message\":\"\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}" },
    /* Recorded of Ollama: a model that does not think, with reasoning_effort; 0.5.2 with a schema; a wrong model. */
    { "ollama", EFFORT, 400,
      "{\"error\":{\"message\":\"\\\"m\\\" does not support thinking\",\"type\":\"invalid_request_error\","
      "\"param\":null,\"code\":null}}" },
    { "ollama", SCHEMA, 400,
      "{\"error\":{\"message\":\"invalid format: expected \\\"json\\\" or a JSON schema\",\"type\":"
      "\"invalid_request_error\",\"param\":null,\"code\":null}}" },
    { "no-model", ANYTHING, 404,
      "{\"error\":{\"message\":\"model \\\"m\\\" not found, try pulling it first\",\"type\":\"api_error\","
      "\"param\":null,\"code\":null}}" },
    /* A key that is refused with 400, as some services do; a text that is too long. */
    { "bad-key", ANYTHING, 400, "{\"error\":{\"message\":\"API key not valid. Please pass a valid API key.\"}}" },
    { "too-long", ANYTHING, 400, "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens.\"}}" },
};

/* ---- requests ----------------------------------------------------------- */

/* Counts the requests with this text to this path; 0 without memory. */
static int count_try(const char *path, uint64_t hash)
{
    struct buf key = { 0 };

    buf_printf(&key, "%s %llx", path, (unsigned long long)hash);
    pthread_mutex_lock(&state.lock);
    int text = map_add(&state.texts, buf_str(&key), key.n, NULL);
    int tries = text >= 0 && text < MAX_TEXTS ? ++state.tries[text] : 0;
    pthread_mutex_unlock(&state.lock);
    buf_release(&key);
    return tries;
}

static void read_request(struct call *c)
{
    struct err err;
    struct json *v = json_parse(buf_str(&c->body), c->body.n, &err);
    const struct json *messages = json_get(v, "messages");
    const char *said = json_text(json_get(json_at(messages, json_count(messages) - 1), "content"));
    const char *text = said ? strstr(said, "<text>") : NULL; // with or without the instructions before it
    const char *format = json_text(json_get(json_get(v, "response_format"), "type"));
    const char *wanted = text ? strstr(text, "Write exactly ") : NULL;

    c->schema = format && strcmp(format, "json_schema") == 0;
    c->json = format && strcmp(format, "json_object") == 0;
    c->system = json_count(messages) == 2;
    c->effort = json_get(v, "reasoning_effort") != NULL;
    c->hash = text ? digest_xxh3(text, strlen(text)) : 0;
    c->n_wanted = wanted ? (int)strtol(wanted + strlen("Write exactly "), NULL, 10) : 0;
    c->tries = count_try(c->path, c->hash);
    json_free(v);
}

static bool is_named(const char *name, const char *scenario, size_t n)
{
    return strlen(name) == n && memcmp(name, scenario, n) == 0;
}

static enum MHD_Result answer(struct call *c)
{
    const int uses =
        (c->schema ? SCHEMA : 0) | (c->json ? JSON : 0) | (c->system ? SYSTEM : 0) | (c->effort ? EFFORT : 0);
    const char *scenario = c->path + 1;
    size_t n = strcspn(scenario, "/");
    bool refuses = false;

    if (strcmp(scenario + n, "/v1/chat/completions") != 0)
        return answer_with(c, 404, "{}", NULL, NULL);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        if (!is_named(refusals[i].name, scenario, n))
            continue;
        refuses = true;
        if (refusals[i].use == ANYTHING || (refusals[i].use & uses))
            return answer_with(c, refusals[i].status, refusals[i].text, NULL, NULL);
    }
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
        if (is_named(scenarios[i].name, scenario, n))
            return scenarios[i].reply(c);
    return refuses ? good(c) : answer_with(c, 404, "{}", NULL, NULL);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **call)
{
    struct call *c = *call;

    (void)arg, (void)method, (void)version;
    if (!c) {
        *call = calloc(1, sizeof(*c));
        return *call ? MHD_YES : MHD_NO;
    }
    if (*n) {
        buf_add(&c->body, data, *n);
        *n = 0;
        return MHD_YES;
    }
    c->path = url;
    c->connection = connection;
    read_request(c);
    return answer(c);
}

static void on_end(void *arg, struct MHD_Connection *connection, void **call, enum MHD_RequestTerminationCode why)
{
    struct call *c = *call;

    (void)arg, (void)connection, (void)why;
    if (c)
        buf_release(&c->body);
    free(c);
}

int main(int argc, char **argv)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct buf port = { 0 };
    struct err err;

    state.log = argc == 3 ? fopen(argv[2], "a") : NULL;
    if (!state.log)
        return 2;
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request,
                         NULL, MHD_OPTION_SOCK_ADDR, &any, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
    if (!d)
        return 1;
    buf_printf(&port, "%d\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    if (file_write(argv[1], port.at, port.n, &err))
        return 1;
    for (;;)
        pause();
}
