/* request.h - the requests in one line of a request log of any server or proxy.
 *
 * A line is JSON, or vLLM's own ("Received request ID: prompt: '...', params: ..."). In JSON the request is the object
 * that has `messages`, `prompt` or SGLang's `text`: the row itself, or the value of one of REQUEST_WRAPPERS, an object
 * or a text with JSON or a line of vLLM in it, up to four deep. docs/requests.md has an example of each log.
 *
 * Every request becomes one string of bytes, so that two requests share a cache exactly as far as their strings agree:
 * for each message the byte 0xff, which UTF-8 never contains, the role (enum turn_role), and the text.
 *
 * Mooncake's traces have no texts: `hash_ids` has an id for each block of REQUEST_BLOCK tokens, `input_length` the
 * tokens, and `timestamp` milliseconds from any moment.
 */
#ifndef EVP_REQUEST_H
#define EVP_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_WRAPPERS                                                                                               \
    "body", "request_body", "request", "requestBody", "req_body", "payload", "json", "proxy_server_request", "obj",    \
        "log", "message", "msg"

enum {
    REQUEST_MARK = 2,    // bytes before the text of a message
    REQUEST_BLOCK = 512, // tokens
};

/* Why a prompt cannot be made from the log alone. */
#define REQUEST_FLAWS(X)                                                                                               \
    X(REQUEST_TOOLS, "tools, which every chat template writes in its own way")                                         \
    X(REQUEST_MEDIA, "images, audio or files")                                                                         \
    X(REQUEST_TOKENS, "token ids instead of text")                                                                     \
    X(REQUEST_ROLES, "roles other than system, user and assistant, or a system message that is not the first")         \
    X(REQUEST_THOUGHTS, "reasoning in an assistant message")                                                           \
    X(REQUEST_TEMPLATE, "a chat template of its own")                                                                  \
    X(REQUEST_END, "the last message is not the user's")                                                               \
    X(REQUEST_CUT, "a prompt cut short in the log")                                                                    \
    X(REQUEST_HASHES, "hash ids of blocks instead of text")                                                            \
    X(REQUEST_BLOCKS, "hash ids that are not one for each 512 tokens of its input_length")

enum request_flaw {
#define X(name, text) name,
    REQUEST_FLAWS(X)
#undef X
        N_REQUEST_FLAWS
};
const char *request_flaw_text(enum request_flaw flaw);

struct request {
    struct buf bytes;
    struct {
        size_t *at; // where the text of each message begins in bytes
        int n, cap;
    } message;
    struct {
        double *at; // the ids of a trace; then there are no messages
        int n, cap;
    } hash;
    int64_t n_tokens; // of a trace
    struct buf model; // the model asked; "": unknown
    double time;      // seconds since 1970; NaN: unknown
};

/* The request being read, and counts over all lines. */
struct request_line {
    bool hashes; // set by the caller: take requests of traces without texts, too; false: they are flawed
    struct request request;
    int64_t flaws[N_REQUEST_FLAWS];
    int64_t n_requests; // with a prompt; flawed ones not counted
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

void request_line_release(struct request_line *l); // zeroed is fine

/* The role of message i. */
enum turn_role request_role(const struct request *r, int i);

/* A time in any of the forms of logs: seconds, milliseconds, microseconds or nanoseconds since 1970, ISO 8601, or
 * 22/Nov/2026:05:58:00 +0000. NaN for anything else. */
double request_time(const char *text);

#endif
