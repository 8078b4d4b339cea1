/* api.c - a fixed number of slots, each with at most one request: waiting for its time, in flight, or free. One thread
 * sends what is due, waits for one reply, decides about it (api_judge), and begins again until nothing is left.
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
};

/* A request and its state. */
struct slot {
    enum { SLOT_FREE, SLOT_DUE, SLOT_FLYING } state;
    int context, part;
    int tries;
    enum prompt_form form; // of the last try
    double due;            // clock_now() when it may be sent
};

/* A context that is being asked about. */
struct asking {
    struct question_list *part; // (n_parts)
    int n_parts, n_open;        // n_open: parts without their questions yet
    bool failed;
};

struct run {
    const struct api *api;
    const struct contexts *contexts;
    const bool *wanted;
    struct api_totals *totals;
    struct http *http;
    char *url;
    struct slot *slot;           // (concurrency)
    struct asking *asking;       // (contexts->n)
    int next_context, next_part; // the next request to make
    enum prompt_form form;       // PROMPT_PLAIN once the service refused the other
    int silent;                  // contexts that failed without a reply since the last reply
    struct rng rng;
};

/* ---- decisions ---------------------------------------------------------- */

enum api_verdict api_judge(const struct http_reply *r)
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
    if (r->status == 408 || r->status == 429 || r->status >= 500)
        return API_AGAIN;
    return reply_refuses_schema(r->status, buf_str(&r->body), r->body.n) ? API_PLAIN : API_FAIL;
}

double api_delay(int tries, double retry_after, struct rng *rng)
{
    double max = fmin(max_backoff, ldexp(first_backoff, tries < 16 ? tries : 16));

    return fmax(rng_unit(rng) * max, fmin(retry_after, max_retry_after));
}

/* Says why a reply cannot be used. */
static void explain(const struct run *r, const struct http_reply *reply, struct err *why)
{
    struct reply_body body = { buf_str(&reply->body), reply->body.n, r->api->key };
    struct buf said = { 0 };

    if (reply->outcome != HTTP_REPLIED) {
        err_set(why, ERR_NET, "%s: %s", r->url,
                reply->outcome == HTTP_TOO_LARGE ? "the reply is larger than 4 MiB" : reply->why);
        return;
    }
    reply_complaint(&said, &body);
    err_set(why, ERR_NET, "%s answers with status %d%s%s", r->url, reply->status, said.n ? ": " : "", buf_str(&said));
    buf_release(&said);
}

/* ---- contexts ----------------------------------------------------------- */

static int asking_open(struct run *r, int context, struct err *err)
{
    struct asking *a = &r->asking[context];

    a->n_parts = prompt_parts(strlen(r->contexts->at[context].text), r->api->window, r->api->per_context);
    a->part = calloc((size_t)a->n_parts, sizeof(*a->part));
    if (!a->part)
        return err_nomem(err);
    for (int p = 0; p < a->n_parts; p++)
        a->n_open += prompt_share(r->api->per_context, p, a->n_parts) > 0;
    return 0;
}

static void asking_close(struct asking *a)
{
    for (int p = 0; a->part && p < a->n_parts; p++)
        question_list_release(&a->part[p]);
    free(a->part);
    a->part = NULL;
}

/* All parts have their questions: they become one list in the order of the text, with at most as many as were asked
 * for. */
static int finish_context(struct run *r, int context, struct err *err)
{
    struct asking *a = &r->asking[context];
    struct question_list all = { 0 };
    int code = 0;

    for (int p = 0; p < a->n_parts && !code; p++) {
        question_list_cut(&a->part[p], prompt_share(r->api->per_context, p, a->n_parts));
        for (int q = 0; q < a->part[p].n && !code; q++)
            code = question_list_add(&all, a->part[p].at[q].text, strlen(a->part[p].at[q].text), (size_t)p, err);
    }
    asking_close(a);
    if (!code)
        code = r->api->events.answered(r->api->events.arg, context, &all, err);
    question_list_release(&all);
    return code;
}

static void fail_context(struct run *r, int context, const struct err *why)
{
    struct asking *a = &r->asking[context];

    if (!a->failed)
        r->api->events.failed(r->api->events.arg, context, why);
    a->failed = true;
    asking_close(a);
}

/* ---- requests ----------------------------------------------------------- */

/* Gives the slot the next request; leaves it free when there is none. */
static int take_next(struct run *r, struct slot *s, struct err *err)
{
    for (; r->next_context < r->contexts->n; r->next_context++, r->next_part = 0) {
        struct asking *a = &r->asking[r->next_context];
        if (!r->wanted[r->next_context] || a->failed)
            continue;
        if (r->next_part == 0 && asking_open(r, r->next_context, err))
            return err->code;
        while (r->next_part < a->n_parts && !prompt_share(r->api->per_context, r->next_part, a->n_parts))
            r->next_part++;
        if (r->next_part == a->n_parts)
            continue;
        *s = (struct slot){ .state = SLOT_DUE, .context = r->next_context, .part = r->next_part++ };
        return 0;
    }
    return 0;
}

static int send_request(struct run *r, struct slot *s, struct err *err)
{
    const char *text = r->contexts->at[s->context].text;
    int n_parts = r->asking[s->context].n_parts;
    struct text_part part = prompt_part(text, strlen(text), s->part, n_parts);
    struct prompt prompt = { .model = r->api->model,
                             .text = text + part.at,
                             .n = part.n,
                             .questions = prompt_share(r->api->per_context, s->part, n_parts),
                             .form = r->form };
    struct buf body = { 0 };

    prompt_request(&body, &prompt);
    int code = buf_failed(&body) ? err_nomem(err) : http_post(r->http, r->url, &body, s, err);
    buf_release(&body);
    s->state = SLOT_FLYING;
    s->form = r->form;
    s->tries++;
    r->totals->requests++;
    r->totals->again += s->tries > 1;
    return code;
}

/* Sends what is due. *wait: seconds until the next request is due; *busy: is any slot in use? */
static int send_due(struct run *r, double *wait, bool *busy, struct err *err)
{
    double now = clock_now();

    *wait = 60;
    *busy = false;
    for (int i = 0; i < r->api->concurrency; i++) {
        struct slot *s = &r->slot[i];
        if (s->state == SLOT_DUE && r->asking[s->context].failed)
            s->state = SLOT_FREE; /* another part of its context failed meanwhile */
        if (s->state == SLOT_FREE && take_next(r, s, err))
            return err->code;
        if (s->state == SLOT_DUE && s->due <= now && send_request(r, s, err))
            return err->code;
        if (s->state == SLOT_DUE)
            *wait = fmin(*wait, s->due - now);
        *busy |= s->state != SLOT_FREE;
    }
    return 0;
}

/* ---- replies ------------------------------------------------------------ */

static void send_again(const struct run *r, struct slot *s, double delay, const struct err *why)
{
    if (r->api->events.again)
        r->api->events.again(r->api->events.arg, s->context, delay, why);
    s->state = SLOT_DUE;
    s->due = clock_now() + delay;
}

static int try_again(struct run *r, struct slot *s, const struct http_reply *reply, struct err *why, struct err *err)
{
    bool replied = reply->outcome == HTTP_REPLIED && reply->status == 200;

    if (s->tries <= r->api->retries) {
        double delay = api_delay(s->tries - 1, reply->retry_after, &r->rng);
        send_again(r, s, delay, why);
        return 0;
    }
    s->state = SLOT_FREE;
    err_wrap(why, "gave up after %d tries", s->tries);
    fail_context(r, s->context, why);
    r->silent += !replied;
    if (r->silent < MIN_SILENT || r->silent < r->api->concurrency)
        return 0;
    return err_set(err, ERR_NET, "the service left %d contexts in a row without an answer: %s", r->silent, why->msg);
}

static int take_questions(struct run *r, struct slot *s, const struct http_reply *reply, struct err *err)
{
    struct asking *a = &r->asking[s->context];
    struct reply_body body = { buf_str(&reply->body), reply->body.n, r->api->key };
    struct err why;
    int code = reply_read(&a->part[s->part], (size_t)s->part, &r->totals->usage, &body, &why);

    r->silent = 0;
    if (code == ERR_FORMAT)
        return try_again(r, s, reply, &why, err);
    s->state = SLOT_FREE;
    if (code)
        return err_set(err, why.code, "%s", why.msg);
    return --a->n_open == 0 ? finish_context(r, s->context, err) : 0;
}

static int take_reply(struct run *r, const struct http_reply *reply, struct err *err)
{
    struct slot *s = reply->tag;
    struct err why;
    enum api_verdict verdict = api_judge(reply);

    s->state = SLOT_FREE;
    if (r->asking[s->context].failed)
        return 0;
    if (verdict == API_TAKE)
        return take_questions(r, s, reply, err);
    explain(r, reply, &why);
    if (verdict == API_STOP)
        return err_set(err, ERR_NET, "%s", why.msg);
    if (verdict == API_AGAIN)
        return try_again(r, s, reply, &why, err);
    if (verdict == API_PLAIN && s->form == PROMPT_SCHEMA) {
        err_wrap(&why, "the service refuses response_format");
        r->form = PROMPT_PLAIN;
        s->tries--;
        send_again(r, s, 0, &why);
        return 0;
    }
    r->silent = 0;
    fail_context(r, s->context, &why);
    return 0;
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

int api_ask(const struct api *api, const struct contexts *contexts, const bool *wanted, struct api_totals *totals,
            struct err *err)
{
    struct http_options options = { .bearer = api->key,
                                    .connect_s = fmin(api->timeout, max_connect),
                                    .total_s = api->timeout,
                                    .reply_limit = MAX_REPLY };
    struct run r = {
        .api = api, .contexts = contexts, .wanted = wanted, .totals = totals, .rng = rng_named(api->seed, "retry")
    };

    r.slot = calloc((size_t)api->concurrency, sizeof(*r.slot));
    r.asking = calloc((size_t)contexts->n + 1, sizeof(*r.asking));
    r.url = url_of(api->base);
    r.http = http_open(&options, err);
    int code = !r.slot || !r.asking || !r.url || !r.http ? err_nomem(err) : run_all(&r, err);
    http_close(r.http);
    for (int i = 0; r.asking && i < contexts->n; i++)
        asking_close(&r.asking[i]);
    free(r.slot);
    free(r.asking);
    free(r.url);
    return code;
}
