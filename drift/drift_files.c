/* drift_files.c - evp-drift's lists of cells, and the state that it keeps from night to night. */
#include "drift/drift.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

/* ---- lists --------------------------------------------------------------------- */

struct rectangle {
    int config;   // or -1: all
    int from, to; // of the context's questions
};

static int put_cells(const struct drift *d, struct rows_out *out, const struct drift_context *c, struct rectangle r,
                     struct err *err)
{
    struct json_out w = rows_begin(out);

    json_put_text(&w, "context", c->id);
    json_begin(&w, "configs", '[');
    for (int v = 1; v < d->table->n_configs; v++)
        if (r.config < 0 || r.config == v)
            json_put_text(&w, NULL, d->table->config_name[v]);
    json_end(&w, ']');
    json_begin(&w, "questions", '[');
    for (int i = r.from; i < r.to; i++)
        json_put_text(&w, NULL, d->questions->at[c->question[i]].id);
    json_end(&w, ']');
    return rows_put(out, &w, err);
}

int drift_write_list(struct drift *d, const char *path, struct rows_made made, struct err *err)
{
    struct rows_out out = { 0 };

    made.kind = "cells";
    int code = rows_create(&out, path, &made, err);
    for (int i = 0; i < d->n && !code; i++) {
        const struct drift_context *c = &d->at[i];
        if (c->moved && c->n_new)
            code = put_cells(d, &out, c, (struct rectangle){ -1, 0, c->n_new }, err);
        d->n_unlisted += c->moved && !c->n_new;
    }
    if (!code)
        code = rows_finish(&out, err);
    rows_abort(&out);
    return code;
}

int drift_write_round(const struct drift *d, const char *path, struct drift_round round, int *n, struct err *err)
{
    struct rows_made made = { .kind = "cells", .tool = "evp-drift" };
    struct rows_out out = { 0 };
    int code = rows_create(&out, path, &made, err);

    *n = 0;
    for (int i = 0; i < d->n && !code; i++) {
        const struct drift_context *c = &d->at[i];
        int to = c->n_ask < round.to ? c->n_ask : round.to;
        if (round.from >= to || !drift_undecided(c))
            continue;
        code = put_cells(d, &out, c, (struct rectangle){ c->config, round.from, to }, err);
        (*n)++;
    }
    if (!code)
        code = rows_finish(&out, err);
    rows_abort(&out);
    return code;
}

/* ---- the state ------------------------------------------------------------------- */

/* More than any test reaches: it stops at contexts / rate. */
static const double max_wealth = 1e30;

static int read_wealth(struct drift_test *t, const struct json *row, struct err *err)
{
    const struct json *list = json_get(row, "wealth");

    if (!json_is_array(list) || json_count(list) != DRIFT_BETS)
        return err_set(err, ERR_FORMAT, "field 'wealth' is not a list of %d numbers", DRIFT_BETS);
    for (int k = 0; k < DRIFT_BETS; k++)
        if (json_to_real(json_at(list, k), "wealth", &t->wealth[k], err))
            return err->code;
        else if (!(t->wealth[k] >= 0 && t->wealth[k] <= max_wealth))
            return err_set(err, ERR_FORMAT, "field 'wealth' has a number that is not 0 to 1e30");
    return 0;
}

int drift_row_read(struct drift_row *r, const struct json *row, struct err *err)
{
    if (json_want_text(row, "context", &r->context, err) || json_want_text(row, "config", &r->config, err) ||
        json_want_int(row, "questions", &r->n_known, err) || read_wealth(&r->test, row, err) ||
        json_want_real(row, "asked_until", &r->asked_until, err))
        return err->code;
    r->facts = json_true(json_get(row, "facts"));
    if (!(r->asked_until >= 0 && isfinite(r->asked_until)))
        return err_set(err, ERR_FORMAT, "field 'asked_until' is not a time");
    return 0;
}

static int add_row(void *arg, const struct json *row, struct err *err)
{
    struct drift *d = arg;
    struct drift_row r;

    if (drift_row_read(&r, row, err))
        return err->code;
    int at = map_find(&d->ids, r.context, strlen(r.context));
    if (at < 0)
        return 0;
    struct drift_context *c = &d->at[at];
    if (c->tested)
        return err_set(err, ERR_FORMAT, "context '%.200s' is there twice", r.context);
    if (strcmp(r.config, d->table->config_name[c->config]) != 0 || r.n_known != c->n_known || r.facts != d->facts)
        return 0;
    c->tested = true;
    c->test = r.test;
    c->asked_until = r.asked_until;
    c->moved = drift_test_wealth(&c->test) >= d->n_compressed / d->false_alarms;
    return 0;
}

int drift_read_state(struct drift *d, const char *path, struct err *err)
{
    struct rows_in in;

    if (!file_exists(path))
        return 0;
    if (rows_open(&in, path, "drift", err))
        return err->code;
    int code = in.header ? rows_rest(&in, add_row, d, err)
                         : err_set(err, ERR_FORMAT, "'%s' is not a state of evp-drift: it has no header", path);
    rows_close(&in);
    return code;
}

static int put_state(const struct drift *d, struct rows_out *out, const struct drift_context *c, struct err *err)
{
    struct json_out w = rows_begin(out);

    json_put_text(&w, "context", c->id);
    json_put_text(&w, "config", d->table->config_name[c->config]);
    json_put_int(&w, "questions", c->n_known);
    json_begin(&w, "wealth", '[');
    for (int k = 0; k < DRIFT_BETS; k++)
        json_put_real(&w, NULL, c->test.wealth[k]);
    json_end(&w, ']');
    json_put_real(&w, "asked_until", c->asked_until);
    if (d->facts)
        json_put_bool(&w, "facts", true);
    return rows_put(out, &w, err);
}

int drift_write_state(const struct drift *d, const char *path, struct rows_made made, struct err *err)
{
    struct rows_out out = { 0 };

    made.kind = "drift";
    int code = rows_create(&out, path, &made, err);
    for (int i = 0; i < d->n && !code; i++)
        if (d->at[i].tested)
            code = put_state(d, &out, &d->at[i], err);
    if (!code)
        code = rows_finish(&out, err);
    rows_abort(&out);
    return code;
}
