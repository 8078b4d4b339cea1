/* api.h - questions from a model behind an OpenAI-compatible service: POST {base}/chat/completions.
 *
 * `concurrency` requests are in flight. A request that times out, breaks, is answered 408, 429, 5xx or nonsense is sent
 * again after an exponential backoff with full jitter, or after what Retry-After asks for. It keeps its place among the
 * requests in flight meanwhile, so a busy service does not get more to do. A context longer than the model's window is
 * asked about part by part. What the service does not have (a JSON schema, JSON, a system message, reasoning_effort) is
 * left out of later requests: at once when a refusal names it, and from the third try on when a service that has not
 * answered yet only fails; what then brings the answer is kept. The questions about a context do not depend on the
 * order in which replies arrive.
 */
#ifndef EVP_API_H
#define EVP_API_H

#include "base/err.h"
#include "base/http.h"
#include "base/rng.h"
#include "formats/context.h"
#include "qgen/question_list.h"
#include "qgen/reply.h"

#include <stdbool.h>
#include <stdint.h>

/* What becomes of each context, in the order in which they are done. */
struct api_events {
    void *arg;
    /* The list may be taken (and zeroed). A failure ends the run. */
    int (*answered)(void *arg, int context, struct question_list *list, struct err *err);
    void (*failed)(void *arg, int context, const struct err *why);
    void (*again)(void *arg, int context, double delay, const struct err *why); // a request will be sent again; or NULL
};

struct api {
    const char *base; // "https://api.example.com/v1"
    const char *model;
    const char *key;    // NULL: none
    const char *effort; // for reasoning models: how much they reason; NULL: not said
    int concurrency, retries;
    int per_context; // questions
    int window;      // tokens that the model takes
    double timeout;  // seconds for one request
    uint64_t seed;   // of the jitter
    struct api_events events;
};

struct api_totals {
    int64_t requests, again; // all that were sent; those that were sent again
    struct usage usage;
};

/* Asks about every context i with wanted[i]. Fails with ERR_NET when the service refuses the key (401, 403), cannot be
 * used at all, leaves several contexts in a row without an answer, or refuses several in a row in the same words,
 * unless these say that a text is too long. */
int api_ask(const struct api *api, const struct contexts *contexts, const bool *wanted, struct api_totals *totals,
            struct err *err) MUST_CHECK;

/* ---- decisions, on their own for tests ---------------------------------- */

enum api_verdict {
    API_TAKE,  // read the body
    API_AGAIN, // later, if there are retries left
    API_LESS,  // at once, without what the reply complains about
    API_FAIL,  // no questions about this context
    API_STOP,  // no request will succeed
};

/* use: what the request used, bits of enum prompt_use (qgen/prompt.h). */
enum api_verdict api_judge(const struct http_reply *reply, unsigned use);

/* Seconds to wait before try number `tries` + 1. */
double api_delay(int tries, double retry_after, struct rng *rng);

#endif
