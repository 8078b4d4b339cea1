/* requests_write.c - the third pass: the end of each context, its questions, and their ids.
 *
 * A context ends where its requests differ, or a little before, after a line end or a colon, since questions may begin
 * with the same words; in any case not within a word, and not at the end of a prompt. The common end of all prompts
 * belongs to the ask, from the first line end or special token on.
 */
#include "base/array.h"
#include "base/digest.h"
#include "base/utf8.h"
#include "logs/requests_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_BACK = 96, WORD_BACK = 64, SHORT_MESSAGE = 1024, ID_DIGITS = 12 };

/* ---- where a context ends ------------------------------------------------- */

/* The message with byte `cut`, or the one that ends before it. */
static int message_of(const struct request *r, size_t cut)
{
    int m = r->message.n - 1;

    while (m > 0 && r->message.at[m] > cut)
        m--;
    return m;
}

static size_t message_end(const struct request *r, int m)
{
    return m + 1 < r->message.n ? r->message.at[m + 1] - REQUEST_MARK : r->bytes.n;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Are there only blanks and special tokens, as at the end of a templated prompt? */
static bool says_nothing(const char *s, const char *end)
{
    while (s < end) {
        size_t n = is_blank(*s) ? 1 : requests_marker(s, end);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

/* The beginning of the line that ends before or at `at` > begin. */
static size_t line_before(const char *text, size_t begin, size_t at)
{
    at--;
    while (at > begin && text[at - 1] != '\n')
        at--;
    return at;
}

/* For prompts that all begin with the shortest: the beginning of its last line that says something; or of its last
 * message if that is short; or of its last word. */
static size_t last_line(const struct request *r, size_t n)
{
    int m = message_of(r, n - 1);
    size_t begin = r->message.at[m], end = message_end(r, m) < n ? message_end(r, m) : n, at;
    const char *text = r->bytes.at;

    for (at = end; at > begin && says_nothing(text + at, text + end);)
        at = line_before(text, begin, at);
    if (at > begin)
        return at;
    while (end > begin && is_blank(text[end - 1]))
        end--;
    if (m > 0 && end - begin <= SHORT_MESSAGE)
        return begin;
    for (at = end; at > begin && !is_blank(text[at - 1]);)
        at--;
    return at;
}

/* Does a question begin here: after a line end, or after a colon and a blank? */
static bool begins_question(const char *text, size_t begin, size_t at)
{
    return text[at - 1] == '\n' || (text[at - 1] == ' ' && at - begin >= 2 && text[at - 2] == ':');
}

/* Moves the cut back to the beginning of a question, or of a word, or at least of a character. */
static size_t cut_back(const struct request *r, size_t cut)
{
    int m = message_of(r, cut);
    size_t begin = r->message.at[m], end = message_end(r, m), at = cut;
    const char *text = r->bytes.at;

    if (cut >= end || cut <= begin)
        return cut >= end ? end : begin;
    while (at > begin && cut - at < FRAME_BACK && !begins_question(text, begin, at))
        at--;
    if (at == begin || begins_question(text, begin, at))
        return at;
    at = cut;
    while (at > begin && cut - at < WORD_BACK && !is_blank(text[at - 1]))
        at--;
    if (at == begin || is_blank(text[at - 1]))
        return at;
    for (at = cut; at > begin && ((unsigned char)text[at] & 0xc0) == 0x80;)
        at--;
    return at;
}

/* The number of bytes at the end of all prompts that belong to the ask. */
static size_t ask_bytes(const struct requests_slot *s, const struct request *r)
{
    size_t n = s->tail, max = s->min_n - s->cut - 1;
    const char *end = r->bytes.at + r->bytes.n;

    n = n < max ? n : max;
    const char *mark = memrchr(end - n, '\xff', n);
    n = mark && n > 0 ? 0 : n;
    while (n > 0 && !strchr("\n<[", *(end - n)))
        n--;
    return n;
}

/* ---- contexts ------------------------------------------------------------- */

static int take_turns(struct context *c, const struct request *r, size_t cut, struct err *err)
{
    struct buf text = { 0 };
    int last = message_of(r, cut);

    for (int m = 0; m <= last; m++) {
        size_t begin = r->message.at[m], end = m < last ? message_end(r, m) : cut;
        buf_add(&text, r->bytes.at + begin, end - begin);
        if (ARRAY_PUSH(&c->turns, ((struct turn){ request_role(r, m), end - begin }))) {
            buf_release(&text);
            return err_nomem(err);
        }
    }
    c->chars = (int64_t)utf8_count(buf_str(&text), text.n);
    c->text = buf_take(&text);
    return c->text ? 0 : err_nomem(err);
}

/* Names the context by its text alone: a server may be renamed, or several may serve one model. */
static int name(const struct requests *rq, struct context *c, const struct request *r, size_t cut, struct err *err)
{
    struct digest *d = digest_new(err);
    struct buf id = { 0 };
    char hex[DIGEST_HEX];

    if (!d)
        return err->code;
    digest_add(d, r->bytes.at, cut);
    digest_end(d, hex);
    if (rq->ids == REQUESTS_IDS_READABLE && requests_add_slug(&id, c, err)) {
        buf_release(&id);
        return err->code;
    }
    buf_add(&id, hex, ID_DIGITS);
    c->id = buf_take(&id);
    c->dataset = strdup(buf_str(&r->model));
    return c->id && c->dataset ? 0 : err_nomem(err);
}

static int make_context(const struct requests *rq, struct requests_slot *s, const struct request *r, struct context *c,
                        struct err *err)
{
    struct buf ask = { 0 };

    if (take_turns(c, r, s->cut, err) || name(rq, c, r, s->cut, err))
        return err->code;
    if (message_of(r, s->cut) == r->message.n - 1)
        s->n_ask = ask_bytes(s, r);
    buf_adds(&ask, "{question}");
    buf_add(&ask, r->bytes.at + r->bytes.n - s->n_ask, s->n_ask);
    c->ask = buf_take(&ask);
    s->id = strdup(c->id);
    return c->ask && s->id ? 0 : err_nomem(err);
}

/* 1: another prefix was cut back to the same context, which gets the uses of this one. */
static int merge(struct requests *rq, struct requests_slot *s, const struct context *c, struct err *err)
{
    bool added;
    int i = map_add(&rq->written, c->id, strlen(c->id), &added);

    if (i == MAP_NOMEM)
        return err_nomem(err);
    if (added) {
        rq->order[i] = s;
        return 0;
    }
    s->state = SLOT_MERGED;
    s->into = rq->order[i];
    s->into->uses += s->uses;
    s->into->uses_before += s->uses_before;
    return 1;
}

static int write_context(struct requests *rq, struct requests_slot *s, const struct request *r,
                         const struct requests_sink *sink, struct err *err)
{
    struct context c = { .n_tokens = -1 };
    size_t limit = s->at + s->common;

    s->cut = cut_back(r, limit >= s->min_n ? last_line(r, s->min_n) : limit);
    int code = make_context(rq, s, r, &c, err);
    size_t n = c.text ? strlen(c.text) : 0;
    s->state = SLOT_DROPPED;
    if (!code)
        code = n == 0 || n > CONTEXT_MAX_TEXT ? 1 : merge(rq, s, &c, err);
    if (!code)
        code = sink->context(sink->arg, &c, err);
    if (!code)
        s->state = SLOT_WRITTEN;
    context_release(&c);
    return code == 1 ? 0 : code;
}

/* ---- questions ------------------------------------------------------------ */

/* The selected question that the request's rest is, unless it is written; NULL: none. */
static const struct requests_asked *drawn(const struct requests *rq, struct requests_slot *s, const struct request *r)
{
    bool asks;
    uint64_t rest = requests_rest(rq, s, r, &asks);

    for (int i = 0; i < s->n_asked; i++)
        if (s->asked[i].rest == rest) {
            s->asked[i].rest = 0;
            return requests_continues(r, s->cut) ? NULL : &s->asked[i];
        }
    return NULL;
}

static int write_question(struct requests_slot *s, const struct request *r, double asked_at,
                          const struct requests_sink *sink, struct err *err)
{
    const char *text = r->bytes.at + s->cut;
    size_t n = r->bytes.n - s->n_ask - s->cut, i = 0;
    char origin[] = "log";

    while (i < n && is_blank(text[i]))
        i++;
    if (i == n)
        return 0;
    char *asked = strndup(text, n);
    struct question q = { .context = s->id, .text = asked, .origin = origin };
    q.asked_at = isfinite(asked_at) ? asked_at : 0;
    q.id = asked ? question_new_id(s->id, asked) : NULL;
    if (q.id)
        q.split = question_split(q.id);
    int code = q.id ? sink->question(sink->arg, &q, err) : err_nomem(err);
    s->n_split[q.split]++;
    free(q.id);
    free(asked);
    return code;
}

struct writing {
    struct requests *rq;
    const struct requests_sink *sink;
};

static int write_request(void *arg, const struct request *r, struct err *err)
{
    const struct writing *w = arg;
    struct requests_slot *s = requests_slot_of(w->rq, r);

    if (!s)
        return 0;
    if (s->state == SLOT_NEW && write_context(w->rq, s, r, w->sink, err))
        return err->code;
    w->rq->n_covered += (s->state == SLOT_MERGED ? s->into : s)->state == SLOT_WRITTEN;
    const struct requests_asked *q = s->state == SLOT_WRITTEN ? drawn(w->rq, s, r) : NULL;
    return q ? write_question(s, r, q->at, w->sink, err) : 0;
}

int requests_write(struct requests *rq, const struct requests_sink *sink, struct err *err)
{
    struct writing w = { rq, sink };
    int code = rq->n_chosen ? requests_each(rq, REQUESTS_AGAIN, write_request, &w, err) : 0;

    for (int i = 0; i < rq->written.n && !code; i++) {
        const struct requests_slot *s = rq->order[i];
        if (s->state != SLOT_WRITTEN)
            continue;
        rq->n_lacking[SPLIT_TRAIN] += s->n_split[SPLIT_TRAIN] == 0;
        rq->n_lacking[SPLIT_TEST] += s->n_split[SPLIT_TEST] == 0;
        code = sink->access(sink->arg, s->id, s->uses, s->uses_before, err);
    }
    return code;
}
