/* request_trace.c - a row of a trace: ids of blocks in place of text, or counts alone. */
#include "logs/request_trace.h"

#include "base/array.h"
#include "base/digest.h"
#include "base/parse.h"
#include "logs/request_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct dialect {
    const char *name, *ids, *tokens, *output, *time, *block;
    int32_t usual;
    double unit;
} dialects[] = {
#define X(...) { __VA_ARGS__ },
    TRACE_DIALECTS(X)
#undef X
};
enum { LONG_NUMBER = 16, SESSION_EVERY = 60, ENOUGH = 8 }; // digits; seconds; times

/* ---- facts --------------------------------------------------------------- */

/* A prompt of so many tokens has an id for each block, or for each whole one. */
static bool fits(int64_t tokens, int64_t block, int n_ids)
{
    return tokens / block == n_ids || (tokens + block - 1) / block == n_ids;
}

void trace_facts_time(struct trace_facts *f, double time, double tokens)
{
    f->n++;
    f->tokens += tokens;
    if (isnan(time))
        return;
    f->first = f->n_times ? fmin(f->first, time) : time;
    f->last = f->n_times ? fmax(f->last, time) : time;
    f->fractions |= time != floor(time);
    f->n_times++;
}

double trace_facts_unit(const struct trace_facts *f)
{
    const double most = 100 * 3e4; // tokens that 100 GPUs compute in a second, of a model of 8B parameters on an H100

    if (f->first >= 1e9) // since 1970
        return f->first < 1e11 ? 1 : f->first < 1e14 ? 1e-3 : f->first < 1e17 ? 1e-6 : 1e-9;
    bool fast = f->n_times >= ENOUGH && f->tokens > most * 1e-3 * (f->last - f->first);
    return f->fractions || (fast && f->last > f->first) ? 1 : 1e-3;
}

int32_t trace_facts_block(const struct trace_facts *f)
{
    const int usual = 9; // 512
    int best = usual;

    for (int i = 0; i < TRACE_BLOCKS; i++)
        best = f->fits[i] > f->fits[best] ? i : best;
    return 1 << best;
}

/* ---- rows ---------------------------------------------------------------- */

/* A whole number of tokens from `min` on; -1: none. NULL: 0. */
static int32_t tokens_of(const struct json *number, int min)
{
    double n = number ? json_real(number) : 0;

    return n >= min && n <= TRACE_TOKENS_MAX && n == floor(n) ? (int32_t)n : -1;
}

bool request_quote_numbers(struct buf *to, const char *line, size_t n)
{
    const char *end = line + n, *done = line;

    for (const char *at = line; at < end; at++) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++)
                at += *at == '\\';
            continue;
        }
        const char *begin = at;
        while (at < end && isdigit((unsigned char)*at))
            at++;
        if (at - begin < LONG_NUMBER || begin == line || !strchr("[,: ", begin[-1]) || !strchr(",]} ", *at)) {
            at -= at > begin;
            continue;
        }
        buf_add(to, done, (size_t)(begin - done));
        buf_printf(to, "\"%.*s\"", (int)(at - begin), begin);
        done = at--;
    }
    buf_add(to, done, (size_t)(end - done));
    return done > line;
}

static uint64_t id_of(const struct json *id)
{
    const char *text = json_text(id);
    double number = json_real(id);

    return text ? digest_xxh3(text, strlen(text)) : digest_xxh3(&number, sizeof(number));
}

static int read_ids(struct request *r, const struct trace_reading *t, const struct json *ids, struct err *err)
{
    for (const struct json *id = json_first(ids); id; id = json_next(id)) {
        const uint64_t key[] = { t->session_key, id_of(id) };
        if (!json_is_number(id) && !json_text(id))
            return -1;
        if (ARRAY_PUSH(&r->hash, t->session_key ? digest_xxh3(key, sizeof(key)) : key[1]))
            return err_nomem(err);
    }
    return 0;
}

/* The time of a turn of AIPerf's: after the one before in its session. NAN: the row does not say. */
static double turn_time(struct trace_reading *t, const struct json *row, double time, double unit)
{
    const char *session = json_text(json_get(row, "session_id"));
    double delay = json_real(json_get(row, "delay"));
    bool added;
    int i = session ? map_add(&t->sessions, session, strlen(session), &added) : -1;

    if (i < 0 || (added && ARRAY_PUSH(&t->turn, (double)NAN)) || i >= t->turn.n)
        return time;
    double before = t->turn.at[i];
    if (isnan(time) && delay >= 0)
        time = (isnan(before) ? 0 : before) + delay * 1e-3 / unit;
    t->turn.at[i] = isnan(time) ? before : time;
    return time;
}

/* In units, which a text may name itself. */
static double time_of(const struct json *v, double unit)
{
    double time = json_real(v);

    if (json_text(v) && !parse_real(json_text(v), &time))
        time = request_time(json_text(v)) / unit;
    return time >= 0 && time < 1e20 ? time : (double)NAN;
}

static void add_facts(struct trace_facts *facts, double time, int32_t tokens, int n_ids)
{
    trace_facts_time(facts, time, tokens);
    for (int i = 0; i < TRACE_BLOCKS && n_ids > 1; i++) // one id says little
        facts->fits[i] += fits(tokens, 1 << i, n_ids);
}

static int read_row(const struct request_finding *f, const struct json *row, const struct dialect *d, struct err *err)
{
    struct request *r = &f->l->request;
    struct trace_reading *t = &f->l->trace;
    const struct json *block = json_get(row, d->block);
    int32_t tokens = tokens_of(json_get(row, d->tokens), 1), usual = t->session_block ? t->session_block : d->usual;
    double found = t->found_unit > 0 ? t->found_unit : 1e-3;
    double unit = t->unit > 0 ? t->unit : d->unit > 0 ? d->unit : found;

    if (!f->l->hashes)
        return request_flawed(f, REQUEST_HASHES);
    request_begin(r);
    err->code = 0;
    if (read_ids(r, t, json_get(row, d->ids), err))
        return err->code ? err->code : request_flawed(f, REQUEST_BLOCKS);
    r->n_output = tokens_of(json_get(row, d->output), 0);
    r->block = block ? tokens_of(block, 1) : usual ? usual : t->block ? t->block : TRACE_BLOCK;
    double time = turn_time(t, row, time_of(json_get(row, d->time), unit), unit);
    if (t->facts && tokens > 0 && !d->unit) {
        add_facts(t->facts, time, tokens, r->hash.n);
        return t->facts->n < TRACE_ROWS ? 0 : TRACE_SEEN;
    }
    if (r->hash.n == 0 || tokens < 0 || r->block < 0 || r->n_output < 0 || !fits(tokens, r->block, r->hash.n))
        return request_flawed(f, REQUEST_BLOCKS);
    r->n_tokens = tokens;
    r->time = time * unit + (t->session_block ? SESSION_EVERY * (double)(t->n_sessions - 1) : 0);
    return request_deliver(f, err);
}

/* A session of kv-cache-tester: requests with ids of its own and times from its beginning. */
static int read_session(const struct request_finding *f, const struct json *row, struct err *err)
{
    struct trace_reading *t = &f->l->trace;
    const char *id = json_text(json_get(row, "id")), *scope = json_text(json_get(row, "hash_id_scope"));

    t->n_sessions++;
    t->session_block = tokens_of(json_get(row, "block_size"), 1);
    t->session_key = scope && strcmp(scope, "local") != 0 ? 0
                     : id                                 ? digest_xxh3(id, strlen(id)) | 1
                                                          : (uint64_t)t->n_sessions;
    int code = request_find_below(f, json_get(row, "requests"), 1, err);
    t->session_block = 0;
    t->session_key = 0;
    return code ? code : 1;
}

int request_find_trace(const struct request_finding *f, const struct json *row, struct err *err)
{
    const struct json *first = json_first(json_get(row, "requests"));

    if (json_is_object(first) && json_get(first, "t") && tokens_of(json_get(row, "block_size"), 1) > 0)
        return read_session(f, row, err);
    const struct dialect *of_row = NULL;
    for (size_t i = 0; i < sizeof(dialects) / sizeof(*dialects); i++)
        if (json_is_array(json_get(row, dialects[i].ids)) && (!of_row || !json_get(row, of_row->tokens)))
            of_row = &dialects[i];
    int code = of_row ? read_row(f, row, of_row, err) : 0;
    return code ? code : of_row != NULL;
}

void trace_reading_release(struct trace_reading *t)
{
    map_release(&t->sessions);
    free(t->turn.at);
    t->turn.at = NULL;
    t->turn.n = t->turn.cap = 0;
}
