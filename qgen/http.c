/* http.c - one CURLM holds all exchanges. Each has a struct transfer, which curl carries as CURLOPT_PRIVATE; a list of
 * them lets http_close() find those in flight.
 */
#include "qgen/http.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http {
    CURLM *multi;
    struct curl_slist *headers;
    struct http_options o; // without bearer
    struct transfer *flying;
};

struct transfer {
    struct transfer *next, **from; // list of transfers in flight
    CURL *easy;
    void *tag;
    struct buf body;
    size_t limit;
    char why[CURL_ERROR_SIZE];
};

/* ---- one exchange ------------------------------------------------------- */

static size_t take_body(char *bytes, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;

    (void)one; /* always 1 */
    if (n > t->limit - t->body.n)
        return 0; /* curl ends the transfer with CURLE_WRITE_ERROR */
    buf_add(&t->body, bytes, n);
    return buf_failed(&t->body) ? 0 : n;
}

static void transfer_free(struct http *h, struct transfer *t)
{
    if (t->from) {
        *t->from = t->next;
        if (t->next)
            t->next->from = t->from;
        curl_multi_remove_handle(h->multi, t->easy);
    }
    curl_easy_cleanup(t->easy);
    buf_release(&t->body);
    free(t);
}

static CURLcode set_options(struct http *h, struct transfer *t, const char *url, const struct buf *body)
{
    CURL *e = t->easy;
    CURLcode bad = CURLE_OK;

    /* POSTFIELDSIZE before COPYPOSTFIELDS, which copies that many bytes. */
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_URL, url);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->n);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, buf_str(body));
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HTTPHEADER, h->headers);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)(h->o.connect_s * 1e3));
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(h->o.total_s * 1e3));
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->why);
    bad = bad ? bad : curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    return bad;
}

int http_post(struct http *h, const char *url, const struct buf *body, void *tag, struct err *err)
{
    struct transfer *t = calloc(1, sizeof(*t));

    if (!t)
        return err_nomem(err);
    t->tag = tag;
    t->limit = h->o.reply_limit;
    t->easy = curl_easy_init();
    CURLcode bad = t->easy ? set_options(h, t, url, body) : CURLE_OUT_OF_MEMORY;
    CURLMcode worse = bad ? CURLM_OK : curl_multi_add_handle(h->multi, t->easy);
    if (bad || worse) {
        transfer_free(h, t);
        return err_set(err, ERR_FAIL, "cannot make a request: %s",
                       bad ? curl_easy_strerror(bad) : curl_multi_strerror(worse));
    }
    t->next = h->flying;
    t->from = &h->flying;
    if (t->next)
        t->next->from = &t->next;
    h->flying = t;
    return 0;
}

/* ---- replies ------------------------------------------------------------ */

static enum http_outcome outcome_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK: return HTTP_REPLIED;
    case CURLE_OPERATION_TIMEDOUT: return HTTP_TIMED_OUT;
    case CURLE_WRITE_ERROR: return HTTP_TOO_LARGE;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM: return HTTP_UNUSABLE;
    default: return HTTP_UNREACHABLE;
    }
}

static void fill_reply(struct http_reply *r, struct transfer *t, CURLcode code)
{
    long status = 0;
    curl_off_t after = 0;

    *r = (struct http_reply){ .tag = t->tag, .outcome = outcome_of(code) };
    if (code != CURLE_OK) {
        snprintf(r->why, sizeof(r->why), "%s", *t->why ? t->why : curl_easy_strerror(code));
        return;
    }
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &after);
    r->status = (int)status;
    r->retry_after = after > 0 ? (double)after : 0;
    r->body = t->body;
    t->body = (struct buf){ 0 };
}

/* The next finished exchange, if any. */
static bool take_reply(struct http *h, struct http_reply *reply)
{
    int more;

    for (CURLMsg *m = curl_multi_info_read(h->multi, &more); m; m = curl_multi_info_read(h->multi, &more)) {
        struct transfer *t = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        fill_reply(reply, t, code);
        transfer_free(h, t);
        return true;
    }
    return false;
}

int http_wait(struct http *h, double seconds, struct http_reply *reply, struct err *err)
{
    double end = clock_now() + seconds;

    for (;;) {
        int running;
        CURLMcode bad = curl_multi_perform(h->multi, &running);
        if (!bad && take_reply(h, reply))
            return 1;
        double left = end - clock_now();
        if (!bad && left <= 0)
            return 0;
        if (!bad)
            bad = curl_multi_poll(h->multi, NULL, 0, left < 60 ? (int)(left * 1e3) + 1 : 60000, NULL);
        if (bad)
            return err_set(err, ERR_FAIL, "cannot wait for replies: %s", curl_multi_strerror(bad));
    }
}

void http_reply_release(struct http_reply *reply)
{
    buf_release(&reply->body);
    *reply = (struct http_reply){ 0 };
}

/* ---- opening ------------------------------------------------------------ */

static bool add_header(struct http *h, const char *line)
{
    struct curl_slist *all = curl_slist_append(h->headers, line);

    if (all)
        h->headers = all;
    return all != NULL;
}

static bool add_headers(struct http *h, const char *bearer)
{
    struct buf line = { 0 };

    /* "Expect:" removes curl's "Expect: 100-continue", which costs a second on servers that ignore it. */
    bool ok = add_header(h, "Content-Type: application/json") && add_header(h, "Expect:");
    if (ok && bearer) {
        buf_printf(&line, "Authorization: Bearer %s", bearer);
        ok = !buf_failed(&line) && add_header(h, line.at);
    }
    buf_release(&line);
    return ok;
}

struct http *http_open(const struct http_options *o, struct err *err)
{
    struct http *h = calloc(1, sizeof(*h));

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(h);
        err_nomem(err);
        return NULL;
    }
    h->o = *o;
    h->o.bearer = NULL;
    h->multi = curl_multi_init();
    if (h->multi && add_headers(h, o->bearer))
        return h;
    http_close(h);
    err_nomem(err);
    return NULL;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    while (h->flying)
        transfer_free(h, h->flying);
    if (h->multi)
        curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    curl_global_cleanup();
    free(h);
}
