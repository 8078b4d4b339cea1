/* cells.c - rows become a set of (question, config), because a question belongs to one context alone. */
#include "formats/cells.h"

#include "base/rows.h"
#include "formats/manifest.h"

#include <stdlib.h>
#include <string.h>

/* A cell as a key of the set. */
struct cell_key {
    int32_t question, config;
};

struct cells_reading {
    struct cells *cells;
    const struct contexts *contexts;
    const struct questions *questions;
};

static int add_key(struct cells *c, int question, int config, bool *added)
{
    struct cell_key key = { question, config };

    return map_add(&c->wanted, (const char *)&key, sizeof(key), added);
}

bool cells_want(const struct cells *c, int question, int config)
{
    struct cell_key key = { question, config };

    return map_find(&c->wanted, (const char *)&key, sizeof(key)) >= 0;
}

/* The number of the question, or -1 if a row of this context may not ask it. */
static int find_question(const struct cells_reading *r, const char *context, const char *id, struct err *err)
{
    int q = map_find(&r->questions->ids, id, strlen(id));

    if (q < 0)
        err_set(err, ERR_FORMAT, "question '%s' is unknown", id);
    else if (strcmp(r->questions->at[q].context, context) != 0)
        err_set(err, ERR_FORMAT, "question '%s' is about context '%s', not '%s'", id, r->questions->at[q].context,
                context);
    else
        return q;
    return -1;
}

static int add_cell(const struct cells_reading *r, int question, const char *config, struct err *err)
{
    int v = map_add(&r->cells->configs, config, strlen(config), NULL);
    bool added = true;

    if (v == MAP_NOMEM || add_key(r->cells, question, v, &added) == MAP_NOMEM)
        return err_nomem(err);
    if (!added && v > 0)
        return err_set(err, ERR_FORMAT, "question '%s' is wanted over '%s' already", r->questions->at[question].id,
                       config);
    return 0;
}

/* ERR_FORMAT unless field `name` is an array of one or more texts. */
static int want_texts(const struct json *row, const char *name, const struct json **array, struct err *err)
{
    *array = json_get(row, name);
    if (!*array || !json_is_array(*array))
        return err_set(err, ERR_FORMAT, "field '%s' is not an array", name);
    if (json_count(*array) == 0)
        return err_set(err, ERR_FORMAT, "field '%s' is empty", name);
    for (const struct json *j = json_first(*array); j; j = json_next(j))
        if (!json_is_text(j) || !*json_text(j))
            return err_set(err, ERR_FORMAT, "field '%s' holds something that is not a name", name);
    return 0;
}

static int add_row(void *arg, const struct json *row, struct err *err)
{
    const struct cells_reading *r = arg;
    const struct json *configs, *questions;
    const char *context;

    if (json_want_text(row, "context", &context, err) || want_texts(row, "configs", &configs, err) ||
        want_texts(row, "questions", &questions, err))
        return err->code;
    if (map_find(&r->contexts->ids, context, strlen(context)) < 0)
        return err_set(err, ERR_FORMAT, "context '%s' is unknown", context);
    if (map_add(&r->cells->contexts, context, strlen(context), NULL) == MAP_NOMEM)
        return err_nomem(err);
    for (const struct json *j = json_first(questions); j; j = json_next(j)) {
        int q = find_question(r, context, json_text(j), err);
        if (q < 0 || add_cell(r, q, "none", err))
            return err->code;
        for (const struct json *k = json_first(configs); k; k = json_next(k))
            if (add_cell(r, q, json_text(k), err))
                return err->code;
    }
    return 0;
}

/* Closes the stream. */
static int read_rows(struct cells_reading *r, struct rows_in *in, struct err *err)
{
    struct cells *c = r->cells;
    int code = map_add(&c->configs, "none", strlen("none"), NULL) == MAP_NOMEM ? err_nomem(err) : 0;

    if (!code)
        code = rows_rest(in, add_row, r, err);
    c->header = in->header;
    in->header = NULL;
    rows_close(in);
    if (code)
        cells_release(c);
    return code;
}

int cells_read(struct cells *c, const char *path, const struct contexts *contexts, const struct questions *questions,
               struct err *err)
{
    struct cells_reading r = { c, contexts, questions };
    struct rows_in in;

    *c = (struct cells){ 0 };
    return rows_open(&in, path, "cells", err) ? err->code : read_rows(&r, &in, err);
}

int cells_read_bytes(struct cells *c, const struct rows_bytes *bytes, const struct contexts *contexts,
                     const struct questions *questions, struct err *err)
{
    struct cells_reading r = { c, contexts, questions };
    struct rows_in in;

    *c = (struct cells){ 0 };
    return rows_open_bytes(&in, bytes, "cells", err) ? err->code : read_rows(&r, &in, err);
}

/* ---- what a plan chose ------------------------------------------------------------ */

struct compressed {
    struct map ids;      // of the known contexts that are compressed
    const char **config; // (ids.n): of each
};

/* Adds a test question over the variant that its context has. */
static int choose(const struct cells_reading *r, const struct compressed *of, int q, struct err *err)
{
    const struct question *question = &r->questions->at[q];
    size_t n = strlen(question->context);
    int i = question->split == SPLIT_TEST ? map_find(&of->ids, question->context, n) : -1;

    if (i < 0)
        return 0;
    if (map_add(&r->cells->contexts, question->context, n, NULL) == MAP_NOMEM)
        return err_nomem(err);
    return add_cell(r, q, "none", err) ? err->code : add_cell(r, q, of->config[i], err);
}

static int list_compressed(const struct cells_reading *r, const struct manifest *m, struct compressed *of,
                           struct err *err)
{
    of->config = calloc((size_t)m->n + 1, sizeof(*of->config));
    if (!of->config)
        return err_nomem(err);
    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        if (p->tier < 0 || strcmp(p->config, "none") == 0)
            continue;
        if (map_find(&r->contexts->ids, p->id, strlen(p->id)) < 0) {
            r->cells->n_unknown++;
            continue;
        }
        of->config[of->ids.n] = p->config;
        if (map_add(&of->ids, p->id, strlen(p->id), NULL) == MAP_NOMEM)
            return err_nomem(err);
    }
    return 0;
}

static int choose_all(const struct cells_reading *r, const struct manifest *m, struct err *err)
{
    struct compressed of = { 0 };
    int code = list_compressed(r, m, &of, err);

    for (int q = 0; q < r->questions->n && !code; q++)
        code = choose(r, &of, q, err);
    r->cells->n_untested = of.ids.n - r->cells->contexts.n;
    map_release(&of.ids);
    free(of.config);
    return code;
}

int cells_chosen(struct cells *c, const char *path, const struct contexts *contexts, const struct questions *questions,
                 struct err *err)
{
    const struct cells_reading r = { c, contexts, questions };
    struct manifest m;
    int code = manifest_read(&m, path, err);

    *c = (struct cells){ 0 };
    if (!code && map_add(&c->configs, "none", strlen("none"), NULL) == MAP_NOMEM)
        code = err_nomem(err);
    if (!code)
        code = choose_all(&r, &m, err);
    if (!code && m.header && !(c->header = json_parse(m.header, strlen(m.header), err)))
        code = err->code;
    manifest_release(&m);
    if (code)
        cells_release(c);
    return code;
}

void cells_release(struct cells *c)
{
    map_release(&c->configs);
    map_release(&c->contexts);
    map_release(&c->wanted);
    json_free(c->header);
    *c = (struct cells){ 0 };
}

char *cells_configs(const struct cells *c)
{
    struct buf list = { 0 };

    for (int v = 0; v < c->configs.n; v++)
        buf_printf(&list, "%s%s", v ? "," : "", c->configs.at[v].key);
    char *taken = buf_take(&list);
    buf_release(&list);
    return taken;
}
