/* times.c - reads times.json strictly, ignoring unknown members, and applies it to a table. */
#include "profiler/score/times.h"

#include "base/array.h"
#include "base/file.h"
#include "base/magic.h"
#include "formats/fields.h"
#include "profiler/score/serving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_FILE_MAX = 1 << 20, TIMES_LONGEST = 1000000000 };

/* ---- reading ----------------------------------------------------------------- */

static int add_point(struct times_curve *c, const struct json *point, struct err *err)
{
    struct times_point p;

    if (json_want_int(point, "n_tokens", &p.n_tokens, err) || field_check_tokens("n_tokens", p.n_tokens, err) ||
        json_want_real(point, "seconds", &p.seconds, err) || field_check_real("seconds", p.seconds, 0, err))
        return err->code;
    if (p.seconds > TIMES_LONGEST)
        return err_set(err, ERR_FORMAT, "field 'seconds' is %g, more than thirty years", p.seconds);
    if (c->n > 0 && (p.n_tokens <= c->at[c->n - 1].n_tokens || p.seconds < c->at[c->n - 1].seconds))
        return err_set(err, ERR_FORMAT, "the points do not rise: %lld tokens in %g s after %lld in %g s",
                       (long long)p.n_tokens, p.seconds, (long long)c->at[c->n - 1].n_tokens, c->at[c->n - 1].seconds);
    return ARRAY_PUSH(c, p) ? err_nomem(err) : 0;
}

static int read_curve(struct times_curve *c, const struct json *root, const char *name, struct err *err)
{
    const struct json *list = json_get(root, name);

    if (!json_is_array(list) || json_count(list) == 0)
        return err_set(err, ERR_FORMAT, "field '%s' is not a list of points", name);
    for (const struct json *p = json_first(list); p; p = json_next(p))
        if (add_point(c, p, err))
            return err_wrap(err, "field '%s'", name);
    return 0;
}

static int add_rate(struct times *t, const struct json *rate, struct err *err)
{
    const char *config;
    double v;

    if (json_want_text(rate, "config", &config, err) || json_want_real(rate, "bytes_per_s", &v, err) ||
        field_check_real("bytes_per_s", v, 0, err))
        return err->code;
    if (!*config || v <= 0)
        return err_set(err, ERR_FORMAT, *config ? "field 'bytes_per_s' is 0" : "field 'config' is empty");
    if (ARRAY_PUSH(&t->decompress, (struct times_rate){ strdup(config), v }))
        return err_nomem(err);
    return t->decompress.at[t->decompress.n - 1].config ? 0 : err_nomem(err);
}

static int read_rates(struct times *t, const struct json *root, struct err *err)
{
    const struct json *list = json_get(root, "decompress");

    if (list && !json_is_null(list) && !json_is_array(list))
        return err_set(err, ERR_FORMAT, "field 'decompress' is not a list");
    for (const struct json *r = json_first(list); r; r = json_next(r))
        if (add_rate(t, r, err))
            return err_wrap(err, "field 'decompress'");
    return 0;
}

static int check_kind(const struct json *root, struct err *err)
{
    const char *kind;
    int64_t version;

    if (json_want_text(root, "evp", &kind, err) || json_want_int(root, "version", &version, err))
        return err->code;
    if (strcmp(kind, "times") != 0)
        return err_set(err, ERR_FORMAT, "it holds '%.32s', not times", kind);
    return version == TIMES_VERSION ? 0
                                    : err_set(err, ERR_FORMAT, "it is of version %lld; this program reads version %d",
                                              (long long)version, TIMES_VERSION);
}

int times_from_json(struct times *t, const struct json *root, struct err *err)
{
    const char *name = "";

    *t = (struct times){ 0 };
    int code = check_kind(root, err) || json_may_text(root, "name", &name, err) ||
                       read_curve(&t->prefill, root, "prefill", err) ||
                       read_curve(&t->question, root, "question", err) || read_rates(t, root, err)
                   ? err->code
                   : 0;
    t->name = code ? NULL : strdup(name);
    if (!code && !t->name)
        code = err_nomem(err);
    if (code)
        times_release(t);
    return code;
}

int times_read(struct times *t, const char *path, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, TIMES_FILE_MAX, err);

    *t = (struct times){ 0 };
    if (!code) {
        struct json *root = json_parse(buf_str(&text), text.n, err);
        if (!root || times_from_json(t, root, err))
            code = err_wrap(err, "'%s'", path);
        json_free(root);
        if (code)
            magic_refuse(err, path, "times");
    }
    buf_release(&text);
    return code;
}

void times_release(struct times *t)
{
    for (int i = 0; i < t->decompress.n; i++)
        free(t->decompress.at[i].config);
    free(t->decompress.at);
    free(t->prefill.at);
    free(t->question.at);
    free(t->name);
    *t = (struct times){ 0 };
}

/* ---- curves ------------------------------------------------------------------- */

/* The value at n_tokens on the line from a to b. */
static double line(const struct times_point *a, const struct times_point *b, int64_t n_tokens)
{
    return a->seconds +
           (b->seconds - a->seconds) * (double)(n_tokens - a->n_tokens) / (double)(b->n_tokens - a->n_tokens);
}

/* first: the point before the curve's first one. */
static double curve_at(const struct times_curve *c, const struct times_point *first, int64_t n_tokens)
{
    int i = 0;

    while (i + 1 < c->n && c->at[i].n_tokens < n_tokens)
        i++;
    return line(i ? &c->at[i - 1] : first, &c->at[i], n_tokens);
}

double times_prefill_s(const struct times *t, int64_t n_tokens)
{
    return curve_at(&t->prefill, &(struct times_point){ 0, 0 }, n_tokens);
}

double times_question_s(const struct times *t, int64_t n_tokens)
{
    return curve_at(&t->question, &(struct times_point){ 0, t->question.at[0].seconds }, n_tokens);
}

/* ---- a table --------------------------------------------------------------------- */

/* The rate of a config, by its whole name or a link of its chain. */
static const struct times_rate *rate_of(const struct times *t, const char *config)
{
    for (const char *link = config; link; link = strchr(link, '+'), link += link != NULL)
        for (int i = 0; i < t->decompress.n; i++) {
            size_t n = strlen(t->decompress.at[i].config);
            if (strncmp(link, t->decompress.at[i].config, n) == 0 && (!link[n] || link[n] == ':' || link[n] == '+'))
                return &t->decompress.at[i];
        }
    return NULL;
}

static int apply_config(struct table *t, int v, const struct times *times, struct err *err)
{
    const struct times_rate *rate = rate_of(times, t->config_name[v]);

    for (int c = 0; c < t->n_contexts; c++) {
        size_t i = table_cell(t, c, v);
        if (!(t->decompress_s[i] > 0))
            continue;
        if (!rate)
            return err_set(err, ERR_FORMAT, "it has no decompression rate for config '%s'", t->config_name[v]);
        if (t->kv_bytes[c] > 0)
            t->decompress_s[i] = t->keep_frac[i] * (double)t->kv_bytes[c] / rate->bytes_per_s;
    }
    return 0;
}

static void apply_context(struct table *t, int c, const struct times *times)
{
    t->prefill_s[c] = times_prefill_s(times, t->n_tokens[c]);
    t->question_s[c] = times_question_s(times, t->n_tokens[c]);
    t->prefill_n[c] = -1;
    t->prefill_spread[c] = t->question_spread[c] = (double)NAN;
}

int times_apply(struct table *t, const struct times *times, int *n_longer, struct err *err)
{
    int64_t last = times->prefill.at[times->prefill.n - 1].n_tokens;

    *n_longer = 0;
    for (int c = 0; c < t->n_contexts; c++) {
        if (t->n_tokens[c] <= 0)
            return err_set(err, ERR_FORMAT, "the times of context '%s' are unknown: it has no number of tokens",
                           t->context_id[c]);
        apply_context(t, c, times);
        *n_longer += t->n_tokens[c] > last;
    }
    for (int i = 0; t->curve_s && i < t->n_points; i++)
        t->curve_s[i] = times_prefill_s(times, t->curve_n_tokens[i]);
    for (int v = 0; v < t->n_configs; v++)
        if (apply_config(t, v, times, err))
            return err->code;
    serving_forget_decoding(t);
    return 0;
}
