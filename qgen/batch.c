/* batch.c - see batch.h. Reading keeps the first failure of each request until the end: a later line may have the
 * answer, when the files of several batches were put together.
 */
#include "qgen/batch.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/map.h"
#include "base/rows.h"
#include "qgen/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The custom_id of a request: short, whatever the context is called. */
static void put_id(struct buf *out, const struct asked *a, struct asked_slice s)
{
    const struct context *c = &a->contexts->at[s.context];
    char text[XXH3_HEX], all[XXH3_HEX];
    struct buf of = { 0 };

    digest_xxh3_hex(c->text, strlen(c->text), text);
    buf_printf(&of, "%s\n%d\n%s\n%s", a->model, a->per_context, c->id, text);
    digest_xxh3_hex(buf_str(&of), of.n, all);
    buf_printf(out, "evp-%s-%dof%d", all, s.slice + 1, s.n_slices);
    out->failed |= buf_failed(&of);
    buf_release(&of);
}

/* ---- requests ----------------------------------------------------------- */

/* One line; nothing if it may take too many tokens. */
static void put_request(struct buf *line, struct asked *a, struct asked_slice s)
{
    struct json_out w = { .buf = line };
    struct buf id = { 0 }, body = { 0 };

    put_id(&id, a, s);
    asked_body(a, s, PROMPT_SCHEMA, &body);
    line->failed |= buf_failed(&id) || buf_failed(&body);
    if (asked_affords(a, body.n)) {
        asked_sent(a, body.n);
        json_begin(&w, NULL, '{');
        json_put_text(&w, "custom_id", buf_str(&id));
        json_put_text(&w, "method", "POST");
        json_put_text(&w, "url", "/v1/chat/completions");
        json_put_raw(&w, "body", buf_str(&body));
        json_end(&w, '}');
        buf_addc(line, '\n');
    }
    buf_release(&id);
    buf_release(&body);
}

static int write_requests(FILE *f, const char *path, struct asked *a, int64_t *n, struct err *err)
{
    struct buf line = { 0 };
    struct asked_slice s;
    int code = 0;

    while (!code && asked_next(a, &s)) {
        buf_clear(&line);
        put_request(&line, a, s);
        if (buf_failed(&line))
            code = err_nomem(err);
        else if (fwrite(line.at, 1, line.n, f) != line.n)
            code = err_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        n[line.n == 0]++;
    }
    buf_release(&line);
    return code;
}

int batch_write(const char *path, struct asked *asked, int64_t *n, int64_t *n_left, struct err *err)
{
    int64_t counts[2] = { 0 }; /* written, left */
    struct file_out out;

    if (file_create(&out, path, err))
        return err->code;
    if (write_requests(out.f, path, asked, counts, err)) {
        file_abort(&out);
        return err->code;
    }
    *n = counts[0];
    *n_left = counts[1];
    return file_commit(&out, err);
}

/* ---- replies ------------------------------------------------------------ */

/* A request that remains. */
struct remaining {
    struct asked_slice slice;
    char *why; // why the first reply to it is of no use; NULL: there was none
};

struct reading {
    struct asked *asked;
    struct batch_totals *totals;
    struct map ids; // of requests -> requests.at
    struct {
        struct remaining *at;
        int n, cap;
    } requests;
};

static int list_requests(struct reading *r, struct err *err)
{
    struct remaining next = { 0 };

    while (asked_next(r->asked, &next.slice)) {
        struct buf id = { 0 };
        bool added = false;
        put_id(&id, r->asked, next.slice);
        int i = buf_failed(&id) ? MAP_NOMEM : map_add(&r->ids, buf_str(&id), id.n, &added);
        buf_release(&id);
        if (i == MAP_NOMEM || (added && ARRAY_PUSH(&r->requests, next)))
            return err_nomem(err);
    }
    return 0;
}

static void add_complaint(struct buf *out, const struct json *v)
{
    struct buf text = { 0 };

    if (v && out->n == 0) {
        json_print(&text, v);
        reply_complaint(out, &(struct reply_body){ buf_str(&text), text.n, NULL });
    }
    buf_release(&text);
}

/* The reply has a status other than 200, or there is none. OpenAI says why in the body of the response or in "error",
 * vLLM in an object in "error". */
static void explain(struct err *why, const struct json *row, int status)
{
    struct buf said = { 0 };

    add_complaint(&said, json_get(json_get(row, "response"), "body"));
    add_complaint(&said, row);
    add_complaint(&said, json_get(row, "error"));
    if (status)
        err_set(why, ERR_NET, "the batch answers with status %d%s%s", status, said.n ? ": " : "", buf_str(&said));
    else
        err_set(why, ERR_NET, "the batch has no answer%s%s", said.n ? ": " : "", buf_str(&said));
    buf_release(&said);
}

static int read_body(struct reading *r, struct asked_slice s, const struct json *body, struct err *err)
{
    struct buf text = { 0 };

    json_print(&text, body);
    int code = buf_failed(&text)
                   ? err_nomem(err)
                   : asked_read(r->asked, s, &(struct reply_body){ text.at, text.n, NULL }, &r->totals->usage, err);
    buf_release(&text);
    return code;
}

static bool is_given(const struct json *v)
{
    return v && !json_is_null(v);
}

/* A reply to a request that remains. *why: the reason if it is of no use (ERR_NET or ERR_FORMAT), or if the run
 * ends. */
static int read_reply(struct reading *r, struct asked_slice s, const struct json *row, struct err *why)
{
    const struct json *response = json_get(row, "response"), *body = json_get(response, "body");
    double status = json_real(json_get(response, "status_code"));

    if (status == 200 && json_is_object(body))
        return read_body(r, s, body, why);
    explain(why, row, status > 0 && status < 1000 ? (int)status : 0);
    return why->code;
}

static int check_row(const struct json *row, struct err *err)
{
    const struct json *response = json_get(row, "response");
    const char *id = NULL;
    int64_t status;

    if (json_want_text(row, "custom_id", &id, err))
        return err->code;
    if (is_given(response))
        return json_want_int(response, "status_code", &status, err);
    if (is_given(json_get(row, "error")))
        return 0;
    return err_set(err, ERR_FORMAT, "no 'response' and no 'error': only replies of a batch have them");
}

static int read_row(void *arg, const struct json *row, struct err *err)
{
    struct reading *r = arg;

    if (check_row(row, err))
        return err->code;
    const char *id = json_text(json_get(row, "custom_id"));
    int i = map_find(&r->ids, id, strlen(id));
    struct remaining *request = i >= 0 ? &r->requests.at[i] : NULL;
    if (!request || !asked_is_open(r->asked, request->slice)) {
        r->totals->others++;
        return 0;
    }
    struct err why;
    int code = read_reply(r, request->slice, row, &why);
    r->totals->replies++;
    if (code && code != ERR_FORMAT && code != ERR_NET)
        return err_set(err, code, "%s", why.msg);
    if (code && !request->why)
        request->why = strdup(why.msg);
    return code && !request->why ? err_nomem(err) : 0;
}

static void give_up(struct reading *r)
{
    for (int i = 0; i < r->requests.n; i++) {
        const struct remaining *request = &r->requests.at[i];
        struct err why;
        if (!request->why || !asked_is_open(r->asked, request->slice))
            continue;
        err_set(&why, ERR_NET, "%s", request->why);
        asked_fail(r->asked, request->slice.context, &why);
    }
}

int batch_read(const char *path, struct asked *asked, struct batch_totals *totals, struct err *err)
{
    struct reading r = { .asked = asked, .totals = totals };

    *totals = (struct batch_totals){ 0 };
    int code = list_requests(&r, err);
    if (!code)
        code = rows_each(path, "replies of a batch", read_row, &r, err);
    if (!code)
        give_up(&r);
    for (int i = 0; i < r.requests.n; i++)
        free(r.requests.at[i].why);
    free(r.requests.at);
    map_release(&r.ids);
    return code;
}
