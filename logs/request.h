/* request.h - the requests in one line of a request log of any server or proxy.
 *
 * A line is JSON, perhaps after a time and a name, or vLLM's own ("Request ID details: prompt: '...', ..."). In JSON
 * the request is the object that is a body of some API, with `messages`, `prompt`, `input` ...: the row itself, or the
 * value of one of REQUEST_WRAPPERS, an object or a text with JSON or a line of vLLM in it; a whole request is also
 * found below any other field, up to sixteen deep. docs/requests.md has an example of each log. vLLM and SGLang log a
 * request more than once; the body as it came is preferred, then the prompt.
 *
 * Every request becomes one string of bytes, so that two requests share a cache exactly as far as their strings agree:
 * for each message the byte 0xff, which UTF-8 never contains, the role (enum turn_role), and the text. A salt or an
 * adapter, which keeps the caches of equal prompts apart, is a digest beside it.
 *
 * Traces have ids of blocks in place of texts (logs/request_trace.h).
 */
#ifndef EVP_REQUEST_H
#define EVP_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "formats/context.h"
#include "logs/request_pieces.h"
#include "logs/request_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_WRAPPERS                                                                                               \
    "body", "request_body", "request", "requestBody", "req_body", "payload", "json", "proxy_server_request", "obj"
/* Fields that hold a line of a server, perhaps a piece of one. */
#define REQUEST_LINES "log", "message", "msg", "MESSAGE", "line"

enum {
    REQUEST_MARK = 2,             // bytes before the text of a message
    REQUEST_MEDIUM_TOKENS = 1024, // what an image, a sound or a file counts where bytes suffice
    REQUEST_MEDIA_MAX = 1000,     // of a request; more count two tokens each, so that no line becomes thousands of them
    REQUEST_UNKNOWN_MAX = 16,     // names of unknown fields; the last place counts all others
    REQUEST_PAIRED = 64,          // bodies whose prompts have not come yet
    REQUEST_MODEL_MAX = 128,
};

/* Why a prompt cannot be made from the log alone. */
#define REQUEST_FLAWS(X)                                                                                               \
    X(REQUEST_TOOLS, "tools, which every chat template writes in its own way")                                         \
    X(REQUEST_MEDIA, "images, audio, files or embeddings")                                                             \
    X(REQUEST_TOKENS, "token ids instead of text")                                                                     \
    X(REQUEST_ROLES, "roles other than system, user and assistant, or a system message that is not the first")         \
    X(REQUEST_THOUGHTS, "reasoning in an assistant message")                                                           \
    X(REQUEST_TEMPLATE, "a chat template, documents or a suffix of its own")                                           \
    X(REQUEST_ELSEWHERE, "parts that only the server has, or that it cuts off (previous_response_id ...)")             \
    X(REQUEST_DATE, "another date_string than the date of the chat template")                                          \
    X(REQUEST_END, "the last message is not the user's")                                                               \
    X(REQUEST_CUT, "a prompt that the log cut short or left out")                                                      \
    X(REQUEST_HASHES, "hash ids of blocks instead of text")                                                            \
    X(REQUEST_BLOCKS, "hash ids that are not one for each block of its input_length")                                  \
    X(REQUEST_COUNTS, "rows of Azure or BurstGPT, which name no contexts: --reuse zipf:1,200 draws them")              \
    X(REQUEST_UNKNOWN, "prompts in a form that is not recognised (docs/requests.md)")                                  \
    X(REQUEST_ADAPTER, "requests to a LoRA adapter, or with an extra_key, find no cache of the model")                 \
    X(REQUEST_FAILED, "requests that failed are no uses")

enum request_flaw {
#define X(name, text) name,
    REQUEST_FLAWS(X)
#undef X
        N_REQUEST_FLAWS,
    REQUEST_ASIDE = REQUEST_ADAPTER, // from here on nothing is missing: they would not use a cache
};
const char *request_flaw_text(enum request_flaw flaw);

/* Lines of servers and proxies that have no prompts, or only parts of them, and what would log them. */
#define REQUEST_LACKS(X)                                                                                               \
    X(LACK_VLLM, "lines of vLLM without prompts",                                                                      \
      "start it with `VLLM_LOGGING_LEVEL=DEBUG vllm serve ... --enable-log-requests`")                                 \
    X(LACK_VLLM_IDS, "prompts of vLLM as token ids",                                                                   \
      "vLLM 0.32 logs the bodies, too; with an older one log them in a proxy (docs/requests.md)")                      \
    X(LACK_VLLM_REST, "prompts of vLLM that look as if --max-log-len had cut them", "serve without that option")       \
    X(LACK_SGLANG, "lines of SGLang without whole prompts",                                                            \
      "start it with `--log-requests --log-requests-level 3 --log-requests-format json`")                              \
    X(LACK_LITELLM, "rows of LiteLLM without messages",                                                                \
      "set `store_prompts_in_spend_logs: true` in its general_settings, and no `turn_off_message_logging`")            \
    X(LACK_LITELLM_REST, "texts that LiteLLM cut",                                                                     \
      "set MAX_STRING_LENGTH_PROMPT_IN_DB=100000000 in the environment of its proxy")                                  \
    X(LACK_NGINX, "lines of a web server without bodies",                                                              \
      "add a log_format with escape=json and $request_body (docs/requests.md)")                                        \
    X(LACK_API, "only the access lines of vLLM, SGLang or LiteLLM",                                                    \
      "docs/requests.md says how each of them logs prompts")

enum request_lack {
#define X(name, what, remedy) name,
    REQUEST_LACKS(X)
#undef X
        N_REQUEST_LACKS
};

/* Programs that write logs, by their own lines; engines have the names of evp-tiers --for. */
#define REQUEST_WRITERS(X)                                                                                             \
    X(WRITER_VLLM, "vllm")                                                                                             \
    X(WRITER_SGLANG, "sglang") X(WRITER_LLAMA, "llama") X(WRITER_LITELLM, "litellm") X(WRITER_OLLAMA, "ollama")

enum request_writer {
#define X(name, text) name,
    REQUEST_WRITERS(X)
#undef X
        N_REQUEST_WRITERS
};

/* What is known of one log while it is read; zeroed, except for the times, before its first line. */
struct request_log {
    double newest; // its lines are not newer, in seconds since 1970; a time without a year is in the last year possible
    double future; // times after this are wrong, and become unknown
    int64_t n_requests, n_timeless; // those that the caller wants; of these, without a time
    int64_t n_prompts;              // wanted or not
    int64_t lacks[N_REQUEST_LACKS]; // lines
    bool has_bodies;                // vLLM or SGLang logs bodies: of the prompts made of them those count whose body
                                    // was refused
    struct {
        struct request_paired {
            uint64_t id; // a digest; 0: the log has none
            int flaw;    // why it was refused; N_REQUEST_FLAWS: it was not
            char model[REQUEST_MODEL_MAX];
        } at[REQUEST_PAIRED]; // the oldest are forgotten
        int n;
    } body;
    bool sglang_cuts;                 // SGLang cut a prompt in its middle
    size_t longest;                   // characters of the longest prompt that vLLM logged as text
    int64_t n_longest, n_vllm;        // how many have this length; how many there are
    char longest_end;                 // last byte of the first of them
    bool ends_differ;                 // another one ends with another byte
    int tokens_column, output_column; // of a CSV, from 1; 0: none
};

/* What a log has in place of whole prompts, N_REQUEST_LACKS: nothing known. */
enum request_lack request_log_lack(const struct request_log *log);
const char *request_lack_what(enum request_lack lack);
const char *request_lack_remedy(enum request_lack lack);

/* For request.c: notes what a line without a prompt is. */
struct json;
void request_note_text(struct request_log *log, const char *line);
void request_note_row(struct request_log *log, const struct json *row);
struct request_line;
void request_note_writer(struct request_line *l, const char *line);

struct request {
    struct buf bytes;
    struct {
        size_t *at; // where the text of each message begins in bytes
        int n, cap;
    } message;
    struct {
        uint64_t *at; // the ids of a trace; then there are no messages
        int n, cap;
    } hash;
    int64_t n_tokens;        // of a trace
    int32_t block, n_output; // tokens of its blocks, and of the answer; 0: unknown
    struct buf model;        // the model asked; "": unknown
    size_t n_front;          // bytes that stand before all messages: tools
    uint64_t apart;          // only requests with the same one share a cache: a digest of salt and adapter
    bool salted;             // it has a cache salt
    int n_media;
    bool opaque; // some bytes are no text: ids, media
    double time; // seconds since 1970; NaN: unknown
};

/* The request being read, and counts over all lines. */
struct request_line {
    /* set by the caller */
    bool hashes;        // take requests of traces without texts, too; false: they are flawed
    bool bytes_suffice; // only equal beginnings matter: tools, reasoning, ids and media become bytes instead of flaws
    const char *date;   // requests with another date_string than the chat template's are flawed; NULL: not looked at
    const struct map *wanted; // models; flaws of requests to others do not count; NULL or empty: all do
    struct trace_reading trace;
    /* results */
    struct request request;
    struct request_log log;
    int64_t flaws[N_REQUEST_FLAWS];
    int64_t n_requests;                     // with a prompt; flawed ones not counted
    int64_t n_flawed;                       // all flaws
    int64_t n_failed;                       // the server refused them, or gave no answer: no uses, and not left out
    int64_t n_salted;                       // of n_requests
    int64_t n_found;                        // all of these, wanted or not
    struct map unknown;                     // names of fields that are not known; "": not a plain name
    int64_t n_unknown[REQUEST_UNKNOWN_MAX]; // requests with each; the last: with others
    int refused;                            // the flaw of the body just read, or N_REQUEST_FLAWS
    bool asks;                              // something in the line looks like a prompt
    int64_t writers[N_REQUEST_WRITERS];     // lines that each writes
    struct buf fields;                      // of the first row without a request
    /* for request.c */
    struct request_pieces pieces; // of lines
    struct buf text;
};

typedef int request_visit(void *arg, const struct request *r, struct err *err);
struct request_visitor {
    request_visit *each;
    void *arg;
};

/* Calls each(arg, request) for every request of a line and adds to the counts. A line without a request is not an
 * error. REQUEST_DAMAGED: the line begins like JSON and is not JSON; *err says where, without quoting it. */
enum { REQUEST_DAMAGED = 1 };
int request_read(struct request_line *l, const char *line, size_t n, const struct request_visitor *visitor,
                 struct err *err) MUST_CHECK;

/* Who wrote most of the lines that tell: "vllm"; NULL: unknown. */
const char *request_writer(const struct request_line *l);

/* At the end of a log: requests whose line did not end are flawed. */
void request_end(struct request_line *l);

void request_line_release(struct request_line *l); // zeroed is fine

/* The role of message i. */
enum turn_role request_role(const struct request *r, int i);

/* A time in any of the forms of logs: seconds, milliseconds, microseconds or nanoseconds since 1970, ISO 8601, or
 * 22/Nov/2026:05:58:00 +0000. NaN for anything else. */
double request_time(const char *text);

/* The time at the beginning of a line of text: ISO 8601, perhaps in brackets, or vLLM's "11-22 05:58:00", whose year is
 * the last one that does not make it later than `newest`. NaN: none. */
double request_time_before(const char *line, double newest);

#endif
