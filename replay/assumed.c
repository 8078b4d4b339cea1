/* assumed.c - runs of blocks become rows. A row costs what it adds to a prompt: its own bytes, and the computing of its
 * tokens after those before it. */
#include "replay/assumed.h"

#include "base/parse.h"
#include "replay/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int assumed_parse(struct assumed_configs *c, const char *text, struct err *err)
{
    char part[64];

    c->n = 0;
    for (const char *at = text; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        bool fits = n < sizeof(part) && c->n < ASSUMED_CONFIGS;
        memcpy(part, at, fits ? n : 0);
        part[fits ? n : 0] = '\0';
        char *colon = strchr(part, ':');
        if (colon)
            *colon++ = '\0';
        if (!colon || !parse_real(part, &c->factor[c->n]) || !parse_real(colon, &c->quality[c->n]) ||
            !(c->factor[c->n] >= 1 && c->factor[c->n] <= 1e6 && c->quality[c->n] >= 0 && c->quality[c->n] <= 1))
            return err_set(err, ERR_USAGE,
                           "'%.40s' is not FACTOR:QUALITY, how many times smaller and how good, 3.6:0.97 for example",
                           at);
        c->n++;
        at += n;
    }
    return 0;
}

/* ---- rows ------------------------------------------------------------------ */

/* A name in memory of the table: a number between two texts. */
static const char *own_name(struct table *t, const char *before, double number, const char *after, struct err *err)
{
    char *text = malloc(TEXT_SHORT);

    if (text)
        snprintf(text, TEXT_SHORT, "%s%.9g%s", before, number, after);
    return table_own(t, text, err) ? NULL : text;
}

static int name_rows(struct table *t, const struct assumed_configs *c, struct err *err)
{
    t->config_name[0] = "none";
    for (int v = 0; v < c->n; v++) {
        t->config_name[v + 1] = own_name(t, "", c->factor[v], "x", err);
        if (!t->config_name[v + 1])
            return err->code;
        if (table_find_config(t, t->config_name[v + 1]) != v + 1)
            return err_set(err, ERR_USAGE, "--assume has two qualities for %s", t->config_name[v + 1]);
    }
    for (int r = 0; r < t->n_contexts; r++) {
        t->context_id[r] = own_name(t, "run ", r, "", err);
        if (!t->context_id[r])
            return err->code;
    }
    return 0;
}

static void set_cells(struct assumed *a, int row, const struct gain_model *m, const struct assumed_configs *c)
{
    struct table *t = &a->table;

    for (int v = 0; v <= c->n; v++) {
        size_t cell = table_cell(t, row, v);
        double factor = v ? c->factor[v - 1] : 1, block_bytes = (double)a->block_tokens * m->kv_token / factor;
        t->cell_bytes[cell] = t->n_tokens[row] / a->block_tokens * (int64_t)fmax(round(block_bytes), 1);
        t->quality_train[cell] = v ? c->quality[v - 1] : 1;
        double moved = (double)(t->cell_bytes[cell] + t->kv_bytes[row]);
        t->decompress_s[cell] = v ? serving_seconds(m->gpu, 0, moved) : 0;
    }
}

static int make_rows(struct assumed *a, const struct runs *runs, const struct gain_model *m,
                     const struct assumed_configs *c, struct err *err)
{
    struct table *t = &a->table;
    int64_t *end = malloc(((size_t)runs->n + 1) * sizeof(*end)); // tokens up to the end of a row

    if (!end || table_alloc(t, runs->n, c->n + 1, 0, err) || table_alloc_scores(t, 0, err) || name_rows(t, c, err)) {
        free(end);
        return end ? err->code : err_nomem(err);
    }
    for (int r = 0; r < runs->n; r++) {
        int64_t before = runs->at[r].parent < 0 ? 0 : end[runs->at[r].parent], n = runs->at[r].n * a->block_tokens;
        end[r] = before + n;
        t->n_tokens[r] = n;
        t->kv_bytes[r] = n * (int64_t)m->kv_token;
        t->prefill_s[r] = (double)n * (m->token_s + m->pair_s * (double)(before + end[r]) / 2);
        set_cells(a, r, m, c);
    }
    free(end);
    return 0;
}

/* ---- requests ---------------------------------------------------------------- */

static int64_t tokens_of(const struct assumed *a, const struct gain_log *log, const struct gain_request *q)
{
    double n = (double)q->units * (double)a->block_tokens / log->block_units;

    return (int64_t)fmax(round(n), 1);
}

static int make_requests(struct assumed *a, const struct gain_log *log, const struct runs *runs, struct err *err)
{
    const struct gain_request *q = log->requests.at;
    size_t n_path = 0, n = (size_t)log->requests.n;

    a->trace.request = malloc((n + 1) * sizeof(*a->trace.request));
    a->token = malloc((n + 1) * sizeof(*a->token));
    a->first = calloc(n + 1, sizeof(*a->first));
    for (size_t i = 0; i < n; i++)
        for (int32_t r = q[i].block < 0 ? -1 : runs->of[q[i].block]; r >= 0; r = runs->at[r].parent)
            n_path++;
    a->path = n_path < INT32_MAX ? malloc((n_path + 1) * sizeof(*a->path)) : NULL;
    if (!a->trace.request || !a->token || !a->first || !a->path)
        return err_nomem(err);
    a->trace.n = (int)n;
    for (int i = 0; i < a->trace.n; i++) {
        int64_t at_ns = a->trace.timed ? llround((q[i].at - q[0].at) * 1e9) : 0;
        a->trace.request[i] = (struct trace_request){ at_ns, -1, i, q[i].output };
        a->token[i] = tokens_of(a, log, &q[i]);
        a->first[i + 1] = a->first[i];
        int32_t last = q[i].block < 0 ? -1 : runs->of[q[i].block];
        for (int32_t r = last; r >= 0; r = runs->at[r].parent)
            a->first[i + 1]++;
        int32_t at = a->first[i + 1];
        for (int32_t r = last; r >= 0; r = runs->at[r].parent)
            a->path[--at] = r;
    }
    return 0;
}

static int by_arrival(const void *a, const void *b)
{
    const struct gain_request *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static int sort_requests(const struct assumed *a, struct gain_log *log, struct err *err)
{
    struct gain_request *q = log->requests.at;
    int n = log->requests.n;

    if (!a->trace.timed)
        return 0;
    qsort(q, (size_t)n, sizeof(*q), by_arrival);
    if (!(q[n - 1].at - q[0].at <= 1e9))
        return err_set(err, ERR_FORMAT, "from the first request to the last it is more than thirty years");
    return 0;
}

static int find_runs(const struct gain_log *log, struct runs *runs, struct err *err)
{
    uint8_t *ends = calloc((size_t)log->n_blocks + 1, 1);

    if (!ends)
        return err_nomem(err);
    for (int i = 0; i < log->requests.n; i++)
        if (log->requests.at[i].block >= 0)
            ends[log->requests.at[i].block] = 1;
    int code = runs_make(runs, log->parent, ends, log->n_blocks, err);
    free(ends);
    return code;
}

int assumed_make(struct assumed *a, struct gain_log *log, const struct gain_model *m, const struct assumed_configs *c,
                 struct err *err)
{
    struct runs runs;

    *a = (struct assumed){ .trace.timed = log->n_timeless < log->requests.n };
    a->block_tokens = (int64_t)fmax(round(log->block_units * m->unit_tokens), 1);
    if (sort_requests(a, log, err) || find_runs(log, &runs, err))
        return err->code;
    int code = make_rows(a, &runs, m, c, err);
    if (!code)
        code = make_requests(a, log, &runs, err) ? err->code : trace_spread(&a->trace, err);
    runs_release(&runs);
    return code;
}

int assumed_gpus(const struct assumed *a, const struct gain_model *m, double span_s)
{
    const double busy = 0.7;
    double seconds = 0;

    for (int i = 0; i < a->trace.n; i++) {
        double n = (double)a->token[i];
        seconds += n * (m->token_s + m->pair_s * n / 2);
    }
    return span_s > 0 ? (int)fmin(fmax(ceil(seconds / span_s / busy), 1), 1e6) : 1;
}

struct replay_world assumed_world(const struct assumed *a, const struct gain_model *m, const struct placement_input *in)
{
    return (struct replay_world){ .in = in,
                                  .path = a->path,
                                  .first = a->first,
                                  .n = a->trace.n,
                                  .block_tokens = a->block_tokens,
                                  .tokens = a->token,
                                  .token_s = m->token_s,
                                  .pair_s = m->pair_s,
                                  .kv_token_bytes = m->kv_token };
}

void assumed_release(struct assumed *a)
{
    table_release(&a->table);
    trace_release(&a->trace);
    free(a->token);
    free(a->path);
    free(a->first);
    *a = (struct assumed){ 0 };
}
