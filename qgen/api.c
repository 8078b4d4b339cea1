/* api.c - a fixed number of slots, each free, or with one request that waits for its time or is in flight. One thread
 * sends due requests, waits for one reply, judges it (api_judge), and repeats until nothing is left.
 */
#include "qgen/api.h"

#include "base/clock.h"
#include "qgen/prompt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double first_backoff = 0.5, max_backoff = 30, max_retry_after = 120, max_connect = 10; /* seconds */
enum {
    MAX_REPLY = 4 << 20, /* bytes; a thousand questions have 200 KB */
    MIN_SILENT = 3,      /* contexts without a reply in a row before the service counts as gone */
    MIN_REFUSED = 3,     /* contexts refused in a row in the same words before the service refuses all */
    FULL_TRIES = 2,      /* tries with all features, while the service has not answered yet */
};

/* A request and its state. */
struct slot {
    enum { SLOT_FREE, SLOT_DUE, SLOT_FLYING } state;
    struct asked_slice ask;
    int endpoint;   // that is asked
    uint64_t asked; // one bit for each endpoint that was asked, this one included
    int tries;      // of this endpoint
    double since;   // clock_now() when it was given this request
    unsigned use;   // of the last try, bits of enum prompt_use
    unsigned less;  // features that the next try leaves out in addition to the run's
    double due;     // clock_now() when it may be sent
    size_t bytes;   // of the last try
};

struct endpoint {
    char *url;
    int64_t dealt;     // requests
    bool lost;         // gets no more
    unsigned use;      // features that requests use: all but those that the service is known to lack
    double answered;   // clock_now() when it last gave questions; 0: never
    char refusal[512]; // the last refusal
    int n_refused;     // contexts refused in the same words since the last answer
};

struct run {
    const struct api *api;
    struct asked *asked;
    struct api_totals *totals; // (n_endpoints)
    struct endpoint *endpoint; // (n_endpoints)
    struct http *http;
    struct slot *slot; // (concurrency)
    int silent;        // contexts that failed without a reply since the last reply
    struct rng rng;
};

/* ---- decisions ---------------------------------------------------------- */

enum api_verdict api_judge(const struct http_reply *r, unsigned use)
{
    switch (r->outcome) {
    case HTTP_REPLIED: break;
    case HTTP_TOO_LARGE: return API_FAIL;
    case HTTP_UNUSABLE: return API_STOP;
    case HTTP_TIMED_OUT:
    case HTTP_UNREACHABLE: return API_AGAIN;
    }
    if (r->status == 200)
        return API_TAKE;
    if (r->status == 401 || r->status == 403)
        return API_STOP;
    if (r->status == 408 || r->status == 429)
        return API_AGAIN;
    if (r->status >= 400 && r->status != 404 &&
        reply_refuses(&(struct reply_body){ buf_str(&r->body), r->body.n, NULL }, use))
        return API_LESS;
    return r->status >= 500 ? API_AGAIN : API_FAIL;
}

double api_delay(int tries, double retry_after, struct rng *rng)
{
    double max = fmin(max_backoff, ldexp(first_backoff, tries < 16 ? tries : 16));

    return fmax(rng_unit(rng) * max, fmin(retry_after, max_retry_after));
}

/* ---- endpoints ---------------------------------------------------------- */

int api_base_check(const char *base, struct err *err)
{
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        return err_set(err, ERR_USAGE, "--api-base does not start with http:// or https://");
    if (strpbrk(base, "@?#, "))
        return err_set(err, ERR_USAGE, "--api-base has more than a host and a path; put a key into --key-file");
    return 0;
}

/* The endpoint that got the fewest requests, of those without a bit in `except`; -1: none. */
static int pick_endpoint(const struct run *r, uint64_t except)
{
    int best = -1;

    for (int i = 0; i < r->api->n_endpoints; i++)
        if (!r->endpoint[i].lost && !(except >> i & 1) && (best < 0 || r->endpoint[i].dealt < r->endpoint[best].dealt))
            best = i;
    return best;
}

static void deal(struct run *r, struct slot *s, int endpoint)
{
    s->endpoint = endpoint;
    s->asked |= UINT64_C(1) << endpoint;
    s->tries = 0;
    s->less = 0;
    s->state = SLOT_DUE;
    s->due = 0;
    s->since = clock_now();
    r->endpoint[endpoint].dealt++;
}

/* Gives a request to an endpoint that was not asked yet; false: there is none. */
static bool hand_over(struct run *r, struct slot *s)
{
    int other = pick_endpoint(r, s->asked);

    if (other >= 0)
        deal(r, s, other);
    return other >= 0;
}

/* Gives an endpoint no more requests, unless it is the last. */
static void lose_endpoint(struct run *r, int endpoint, const struct err *why)
{
    if (r->endpoint[endpoint].lost || pick_endpoint(r, UINT64_C(1) << endpoint) < 0)
        return;
    r->endpoint[endpoint].lost = true;
    r->api->events.lost(r->api->events.arg, why);
}

/* ---- requests ----------------------------------------------------------- */

static int post_request(struct run *r, struct slot *s, const struct buf *body, struct err *err)
{
    struct api_totals *t = &r->totals[s->endpoint];

    s->state = SLOT_FLYING;
    s->tries++;
    s->bytes = body->n;
    asked_sent(r->asked, s->bytes);
    t->requests++;
    t->again += s->tries > 1;
    return http_post(r->http, r->endpoint[s->endpoint].url, body, s, err);
}

/* The slot stays due if the request may take too many tokens. */
static int send_request(struct run *r, struct slot *s, struct err *err)
{
    struct buf body = { 0 };

    s->use = r->endpoint[s->endpoint].use & ~s->less;
    asked_body(r->asked, s->ask, s->use, &body);
    int code = buf_failed(&body) ? err_nomem(err) : 0;
    if (!code && asked_affords(r->asked, body.n))
        code = post_request(r, s, &body, err);
    buf_release(&body);
    return code;
}

/* Sends due requests. *wait: seconds until the next request is due; *busy: is there anything to wait for? */
static int send_due(struct run *r, double *wait, bool *busy, struct err *err)
{
    double now = clock_now();

    *wait = 60;
    *busy = false;
    for (int i = 0; i < r->api->concurrency; i++) {
        struct slot *s = &r->slot[i];
        if (s->state == SLOT_DUE && !asked_is_open(r->asked, s->ask))
            s->state = SLOT_FREE; /* another slice of its context failed meanwhile */
        struct asked_slice next;
        if (s->state == SLOT_FREE && asked_next(r->asked, &next)) {
            *s = (struct slot){ .ask = next };
            deal(r, s, pick_endpoint(r, 0));
        }
        if (s->state == SLOT_DUE && r->endpoint[s->endpoint].lost)
            hand_over(r, s);
        if (s->state == SLOT_DUE && s->due <= now && send_request(r, s, err))
            return err->code;
        bool later = s->state == SLOT_DUE && s->due > now;
        if (later)
            *wait = fmin(*wait, s->due - now);
        *busy |= later || s->state == SLOT_FLYING;
    }
    return 0;
}

/* ---- replies ------------------------------------------------------------ */

/* Says why a reply cannot be used. */
static void explain(const struct run *r, const struct http_reply *reply, struct err *why)
{
    const struct slot *s = reply->tag;
    const char *url = r->endpoint[s->endpoint].url;
    struct reply_body body = { buf_str(&reply->body), reply->body.n, r->api->key };
    struct buf said = { 0 };

    if (reply->outcome != HTTP_REPLIED) {
        err_set(why, ERR_NET, "%s: %s", url,
                reply->outcome == HTTP_TOO_LARGE ? "the reply is larger than 4 MiB" : reply->why);
        return;
    }
    reply_complaint(&said, &body);
    err_set(why, ERR_NET, "%s answers with status %d%s%s", url, reply->status, said.n ? ": " : "", buf_str(&said));
    buf_release(&said);
}

static void send_again(const struct run *r, struct slot *s, double delay, const struct err *why)
{
    if (r->api->events.again)
        r->api->events.again(r->api->events.arg, s->ask.context, delay, why);
    s->state = SLOT_DUE;
    s->due = clock_now() + delay;
}

/* The response format to leave out when the service fails without saying why: the one in use, from the third try on and
 * only before the first answer. 0: none. */
static unsigned format_to_leave(const struct run *r, const struct slot *s, const struct http_reply *reply)
{
    bool failed = reply->outcome == HTTP_REPLIED && reply->status >= 500;

    if (r->endpoint[s->endpoint].answered > 0 || !failed || s->tries < FULL_TRIES)
        return 0;
    return s->use & PROMPT_SCHEMA ? PROMPT_SCHEMA : s->use & PROMPT_JSON;
}

static int try_again(struct run *r, struct slot *s, const struct http_reply *reply, struct err *why, struct err *err)
{
    const struct endpoint *e = &r->endpoint[s->endpoint];
    bool replied = reply->outcome == HTTP_REPLIED && reply->status == 200;

    s->less |= format_to_leave(r, s, reply);
    if (s->tries <= r->api->retries && !e->lost) {
        double delay = api_delay(s->tries - 1, reply->retry_after, &r->rng);
        send_again(r, s, delay, why);
        return 0;
    }
    err_wrap(why, "gave up after %d tries", s->tries);
    if (!replied && e->answered < s->since) /* else the trouble is with this request */
        lose_endpoint(r, s->endpoint, why);
    if ((!replied || e->lost) && hand_over(r, s))
        return 0;
    s->state = SLOT_FREE;
    asked_fail(r->asked, s->ask.context, why);
    r->silent += !replied;
    if (r->silent < MIN_SILENT || r->silent < r->api->concurrency)
        return 0;
    return err_set(err, ERR_NET, "the service left %d contexts in a row without an answer: %s", r->silent, why->msg);
}

static int take_questions(struct run *r, struct slot *s, const struct http_reply *reply, struct err *err)
{
    struct reply_body body = { buf_str(&reply->body), reply->body.n, r->api->key };
    struct endpoint *e = &r->endpoint[s->endpoint];
    struct err why;
    bool wanted = asked_is_open(r->asked, s->ask);
    struct usage *usage = &r->totals[s->endpoint].usage;
    int64_t before = usage->prompt;
    int code = asked_read(r->asked, s->ask, &body, usage, &why);

    r->silent = 0;
    if (!code && usage->prompt == before && r->asked->max_tokens)
        return err_set(err, ERR_NET, "%s does not say how many tokens a request takes, so no cap can be kept", e->url);
    if (code == ERR_FORMAT)
        return wanted ? try_again(r, s, reply, &why, err) : 0;
    if (code)
        return err_set(err, code, "%s", why.msg);
    if (e->answered == 0)
        e->use &= s->use; /* without the features left out after failures */
    e->answered = clock_now();
    e->n_refused = 0;
    return 0;
}

/* An endpoint refuses to answer about a context. Several refusals in a row in the same words concern the model's name,
 * the account or the address. */
static int take_refusal(struct run *r, struct slot *s, const struct http_reply *reply, const struct err *why,
                        struct err *err)
{
    struct reply_body body = { buf_str(&reply->body), reply->body.n, NULL };
    struct endpoint *e = &r->endpoint[s->endpoint];
    bool about_text = reply->outcome != HTTP_REPLIED || reply->status == 413 || reply_blames_length(&body);

    r->silent = 0;
    if (!about_text) {
        e->n_refused = strcmp(e->refusal, why->msg) == 0 ? e->n_refused + 1 : 1;
        snprintf(e->refusal, sizeof(e->refusal), "%s", why->msg);
        if (e->n_refused >= MIN_REFUSED)
            lose_endpoint(r, s->endpoint, why);
    }
    if (hand_over(r, s))
        return 0;
    asked_fail(r->asked, s->ask.context, why);
    if (about_text || e->lost || e->n_refused < MIN_REFUSED)
        return 0;
    return err_set(err, ERR_NET,
                   "the service refused %d contexts in a row in the same words: are --model and the key right?",
                   e->n_refused);
}

/* No request to this endpoint will succeed. */
static int take_stop(struct run *r, struct slot *s, const struct err *why, struct err *err)
{
    lose_endpoint(r, s->endpoint, why);
    if (hand_over(r, s))
        return 0;
    if (!r->endpoint[s->endpoint].lost)
        return err_set(err, ERR_NET, "%s", why->msg);
    asked_fail(r->asked, s->ask.context, why);
    return 0;
}

/* Asks again at once without the feature that the service complains about; later requests leave it out too. */
static void ask_less(struct run *r, struct slot *s, const struct http_reply *reply, struct err *why)
{
    static const char *const name[] = { [PROMPT_SCHEMA] = "a JSON schema",
                                        [PROMPT_JSON] = "response_format",
                                        [PROMPT_SYSTEM] = "a system message",
                                        [PROMPT_MAX] = "max_tokens" };
    struct reply_body body = { buf_str(&reply->body), reply->body.n, NULL };
    unsigned refused = reply_refuses(&body, s->use);

    err_wrap(why, "the service does not support %s", name[refused]);
    r->endpoint[s->endpoint].use &= ~refused;
    s->tries--;
    send_again(r, s, 0, why);
}

static int take_reply(struct run *r, const struct http_reply *reply, struct err *err)
{
    struct slot *s = reply->tag;
    struct err why;
    enum api_verdict verdict = api_judge(reply, s->use);

    s->state = SLOT_FREE;
    asked_done(r->asked, s->bytes);
    if (verdict == API_TAKE)
        return take_questions(r, s, reply, err);
    if (!asked_is_open(r->asked, s->ask))
        return 0; /* another slice of its context failed meanwhile */
    explain(r, reply, &why);
    switch (verdict) {
    case API_STOP: return take_stop(r, s, &why, err);
    case API_AGAIN: return try_again(r, s, reply, &why, err);
    case API_LESS: ask_less(r, s, reply, &why); return 0;
    default: return take_refusal(r, s, reply, &why, err);
    }
}

/* ---- the run ------------------------------------------------------------ */

static int run_all(struct run *r, struct err *err)
{
    struct http_reply reply;
    double wait;
    bool busy;

    for (;;) {
        if (send_due(r, &wait, &busy, err))
            return err->code;
        if (!busy)
            return 0;
        int got = http_wait(r->http, wait, &reply, err);
        if (got < 0)
            return got;
        int code = got ? take_reply(r, &reply, err) : 0;
        if (got)
            http_reply_release(&reply);
        if (code)
            return code;
    }
}

static char *url_of(const char *base)
{
    struct buf url = { 0 };
    size_t n = strlen(base);

    while (n && base[n - 1] == '/')
        n--;
    buf_add(&url, base, n);
    buf_adds(&url, "/chat/completions");
    return buf_take(&url);
}

static int open_endpoints(struct run *r, struct err *err)
{
    r->endpoint = calloc((size_t)r->api->n_endpoints, sizeof(*r->endpoint));
    for (int i = 0; r->endpoint && i < r->api->n_endpoints; i++) {
        struct endpoint *e = &r->endpoint[i];
        e->url = url_of(r->api->base[i]);
        if (!e->url)
            return err_nomem(err);
        e->use = PROMPT_SCHEMA | PROMPT_JSON | PROMPT_SYSTEM | (r->asked->reply_tokens ? PROMPT_MAX : 0);
    }
    return r->endpoint ? 0 : err_nomem(err);
}

int api_ask(const struct api *api, struct asked *asked, struct api_totals *totals, struct err *err)
{
    struct http_options options = { .bearer = api->key,
                                    .connect_s = fmin(api->timeout, max_connect),
                                    .total_s = api->timeout,
                                    .reply_limit = MAX_REPLY };
    struct run r = { .api = api, .asked = asked, .totals = totals, .rng = rng_named(api->seed, "retry") };
    int code = open_endpoints(&r, err);

    r.slot = calloc((size_t)api->concurrency, sizeof(*r.slot));
    r.http = http_open(&options, err);
    if (!code)
        code = !r.slot || !r.http ? err_nomem(err) : run_all(&r, err);
    http_close(r.http);
    for (int i = 0; r.endpoint && i < api->n_endpoints; i++)
        free(r.endpoint[i].url);
    free(r.endpoint);
    free(r.slot);
    return code;
}
