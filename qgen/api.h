/* api.h - questions from a model behind OpenAI-compatible services: POST {base}/chat/completions.
 *
 * Requests are dealt to the endpoints in turn. A request that an endpoint does not answer goes
 * to another one; an endpoint that answers none gets no more.
 *
 * `concurrency` requests are in flight. A request that times out, breaks, or is answered with 408, 429, 5xx or nonsense
 * is sent again after an exponential backoff with full jitter, or after the delay in Retry-After. Meanwhile it keeps
 * its slot among the requests in flight, so a busy service does not get more work. A feature that the service lacks
 * (JSON schema, JSON, system message) is left out of later requests as soon as a refusal names it.
 * While a service has only failed so far, the third try of a request leaves out its response format; if that brings the
 * first answer, later requests do the same.
 */
#ifndef EVP_API_H
#define EVP_API_H

#include "base/err.h"
#include "qgen/http.h"
#include "base/rng.h"
#include "qgen/asked.h"
#include "qgen/reply.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_ENDPOINTS = 64 };

/* Checks the value of --api-base, "https://api.example.com/v1"; refuses an address with a key in it. */
int api_base_check(const char *base, struct err *err) MUST_CHECK;

struct api_events {
    void *arg;
    void (*again)(void *arg, int context, double delay, const struct err *why); // a request will be sent again; or NULL
    void (*lost)(void *arg, const struct err *why); // an endpoint gets no more requests; `why` has its address
};

struct api {
    const char *const *base; // (n_endpoints): their addresses
    int n_endpoints;
    const char *key; // for all endpoints; NULL: none
    int concurrency, retries;
    double timeout; // seconds for one request
    uint64_t seed;  // of the jitter
    struct api_events events;
};

struct api_totals {
    int64_t requests, again; // sent in all; of these, retries
    struct usage usage;
};

/* Asks about everything that asked_next() gives, as far as the cap on tokens allows; totals: (n_endpoints). Fails
 * with ERR_NET when the last endpoint refuses the key (401, 403), cannot be used at all, leaves several contexts in a
 * row without an answer, or refuses several in a row in the same words (except that the text is too long); and under a
 * cap when a reply does not say how many tokens it took. */
int api_ask(const struct api *api, struct asked *asked, struct api_totals *totals, struct err *err) MUST_CHECK;

/* ---- decisions, on their own for tests ---------------------------------- */

enum api_verdict {
    API_TAKE,  // read the body
    API_AGAIN, // later, if there are retries left
    API_LESS,  // again at once, without the feature that the reply complains about
    API_FAIL,  // no questions about this context
    API_STOP,  // no request will succeed
};

/* use: the features that the request used, bits of enum prompt_use (qgen/prompt.h). */
enum api_verdict api_judge(const struct http_reply *reply, unsigned use);

/* Seconds to wait before try number `tries` + 1. */
double api_delay(int tries, double retry_after, struct rng *rng);

#endif
