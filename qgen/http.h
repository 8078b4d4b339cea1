/* http.h - HTTP POST requests, many in flight at once (libcurl's multi interface), each answered by one reply.
 *
 *     struct http *h = http_open(&(struct http_options){ .bearer = key, .total_s = 60, .reply_limit = 1 << 20 }, &err);
 *     http_post(h, url, &body, tag, &err);
 *     while (http_wait(h, 1.0, &reply, &err) == 0)
 *         ...
 *     http_reply_release(&reply);
 *     http_close(h);
 *
 * An unanswered request gets a reply too; its outcome says why. An `err` is a failure of this module itself. Redirects
 * are not followed, so the key goes to the named host only. Nothing is logged here.
 */
#ifndef EVP_HTTP_H
#define EVP_HTTP_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct http_options {
    const char *bearer; // sent as "Authorization: Bearer ..."; NULL: no such header. Copied
    double connect_s;   // for name, connection and TLS
    double total_s;     // for the whole exchange
    size_t reply_limit; // bytes of a body; a longer one is HTTP_TOO_LARGE
};

enum http_outcome {
    HTTP_REPLIED,     // status and body are whole
    HTTP_TIMED_OUT,   // after connect_s or total_s
    HTTP_UNREACHABLE, // no such host, no connection, or a broken one: a retry may help
    HTTP_TOO_LARGE,
    HTTP_UNUSABLE, // not a URL, unknown protocol, invalid certificate: a retry will not help
};

struct http_reply {
    void *tag; // http_post's
    enum http_outcome outcome;
    int status;         // 200, 429 ...; 0 unless HTTP_REPLIED
    double retry_after; // seconds from now, as the server asked (number or date); 0: not asked
    struct buf body;
    char why[256]; // for people, unless HTTP_REPLIED: "connection refused"
};

struct http *http_open(const struct http_options *o, struct err *err);
void http_close(struct http *h); /* abandons requests in flight; NULL is fine */

/* Sends a request: body.n bytes of JSON, which are copied. The reply comes out of http_wait() with the same tag. */
int http_post(struct http *h, const char *url, const struct buf *body, void *tag, struct err *err) MUST_CHECK;

/* 1 and one reply, which the caller releases; 0 after `seconds` without one. Waits even with nothing in flight. */
int http_wait(struct http *h, double seconds, struct http_reply *reply, struct err *err) MUST_CHECK;
void http_reply_release(struct http_reply *reply);

#endif
