/* api.h - questions from a model behind an OpenAI-compatible service: POST {base}/chat/completions.
 *
 * `concurrency` requests are in flight. One that times out, breaks, is answered 408, 429 or 5xx, or with nonsense, is
 * sent again after an exponential backoff with full jitter, or after what Retry-After asks for; it keeps its place in
 * the queue meanwhile, so a busy service is not given more to do. A context longer than the model's window is asked
 * about part by part. What comes of a context does not depend on the order in which replies arrive.
 */
#ifndef EVP_API_H
#define EVP_API_H

#include "base/context.h"
#include "base/err.h"
#include "base/http.h"
#include "base/rng.h"
#include "qgen/list.h"
#include "qgen/reply.h"

#include <stdbool.h>
#include <stdint.h>

struct api {
    const char *base; // "https://api.example.com/v1"
    const char *model;
    const char *key; // NULL: none
    int concurrency, retries;
    int per_context; // questions
    int window;      // tokens the model takes
    double timeout;  // seconds for one request
    uint64_t seed;   // of the jitter
};

/* What becomes of each context; in the order in which they are done. */
struct api_events {
    void *arg;
    /* The list may be taken (and zeroed). A failure ends the run. */
    int (*answered)(void *arg, int context, struct asked_list *list, struct err *err);
    void (*failed)(void *arg, int context, const struct err *why);
};

struct api_totals {
    int64_t requests, again; // sent; of these, sent again
    struct usage usage;
};

/* Asks about every context i with wanted[i]. Fails with ERR_NET when the service refuses the key (401, 403), cannot be
 * used at all, or leaves contexts without an answer several times in a row. */
int api_ask(const struct api *api, const struct contexts *contexts, const bool *wanted, const struct api_events *events,
            struct api_totals *totals, struct err *err) MUST_CHECK;

/* ---- decisions, on their own for tests ---------------------------------- */

enum api_verdict {
    API_TAKE,  // read the body
    API_AGAIN, // later, if there are retries left
    API_PLAIN, // at once, without a response_format
    API_FAIL,  // this context goes without
    API_STOP,  // no request will do better
};

enum api_verdict api_judge(const struct http_reply *reply);

/* Seconds to wait before try number `tries` + 1. */
double api_delay(int tries, double retry_after, struct rng *rng);

#endif
