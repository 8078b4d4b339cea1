/* table_unite.c - several tables into one. First every name gets its row in the united table, in order of appearance.
 * Then each table's elements are copied to rows that are still empty. Strings are borrowed from the inputs until the
 * end, when they are copied into one block that the united table owns. */
#include "profiler/table/table_column.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names and rows ------------------------------------------------------ */

static int add_names(struct map *map, const char *const *name, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (map_add(map, name[i], strlen(name[i]), NULL) == MAP_NOMEM)
            return err_nomem(err);
    return 0;
}

int table_rows_add(struct table_rows *rows, const struct table *t, struct err *err)
{
    if (add_names(&rows->contexts, t->context_id, t->n_contexts, err) ||
        add_names(&rows->configs, t->config_name, t->n_configs, err))
        return err->code;
    return add_names(&rows->questions, t->question_id, t->n_questions, err);
}

void table_rows_release(struct table_rows *rows)
{
    map_release(&rows->contexts);
    map_release(&rows->configs);
    map_release(&rows->questions);
}

static int name_rows(struct table_rows *rows, const struct table *const *from, int n, struct err *err)
{
    struct table_made all = table_made(from[0]);
    char text[TABLE_DIFFERENCE];

    for (int i = 0; i < n; i++) {
        struct table_made made = table_made(from[i]);
        const char *how = table_made_difference(text, &made, &all);
        if (how)
            return err_set(err, ERR_FORMAT, "table %d of %d was made with %s", i + 1, n, how);
        if (table_rows_add(rows, from[i], err))
            return err->code;
    }
    return 0;
}

static int row_of(const struct map *map, const char *name)
{
    return map_find(map, name, strlen(name));
}

/* ---- content ------------------------------------------------------------- */

struct uniting {
    struct table *out;
    const struct table_rows *rows; // of out
    const struct table *const *from;
    int n;
    int *source, *row; // (C of out): the source table of a context, -1: none so far; its row there
};

/* Copies one element of every column of a shape. */
static void copy_element(struct table *out, size_t to, const struct table *from, size_t at, const char *shape)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        size_t size = column_size(c->type);
        if (c->section == SECTION_PROFILE && strcmp(c->shape, shape) == 0)
            memcpy((char *)column_get(out, c) + to * size, (char *)column_get(from, c) + at * size, size);
    }
}

/* Fills texts that earlier tables lack. A sampled answer is handled elsewhere, with its number of tokens. */
static void fill_texts(struct table *out, size_t to, const struct table *from, size_t at, const char *shape)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        if (c->section != SECTION_PROFILE || c->type != COLUMN_TEXT || strcmp(c->shape, shape) != 0 ||
            c->at == offsetof(struct table, sampled_text))
            continue;
        const char **text = column_get(out, c), *const *other = column_get(from, c);
        if (!*text[to])
            text[to] = other[at];
    }
}

/* Is row `at` of a table better than the one taken: does it have the tokens, or measurements, that the other lacks? */
static bool is_better_row(const struct uniting *u, int to, const struct table *from, int at)
{
    const struct table *taken = u->from[u->source[to]];

    if (u->out->n_tokens[to] < 0 || from->n_tokens[at] < 0)
        return from->n_tokens[at] > u->out->n_tokens[to];
    return table_is_measured(from, at) && !table_is_measured(taken, u->row[to]);
}

/* The same for a cell: only measured cells have a compress_s, and only some of these have decoding times. */
static bool is_better_cell(const struct table *out, size_t to, const struct table *from, size_t at)
{
    return out->cell_bytes[to] < 0 || (isnan(out->compress_s[to]) && !isnan(from->compress_s[at])) ||
           (isnan(out->decode_s[0][to]) && !isnan(from->decode_s[0][at]));
}

static int unite_contexts(struct uniting *u, int table, struct err *err)
{
    const struct table *from = u->from[table];
    struct table *out = u->out;

    for (int i = 0; i < from->n_contexts; i++) {
        int to = row_of(&u->rows->contexts, from->context_id[i]);
        if (u->source[to] < 0) {
            u->source[to] = table;
            u->row[to] = i;
            copy_element(out, (size_t)to, from, (size_t)i, "C");
            continue;
        }
        if (strcmp(out->context_token_digest[to], from->context_token_digest[i]) != 0)
            return err_set(err, ERR_FORMAT, "context '%s' has different tokens in two tables", from->context_id[i]);
        if (is_better_row(u, to, from, i)) {
            const char *dataset = out->context_dataset[to], *digests = out->context_prefix_digests[to];
            u->source[to] = table;
            u->row[to] = i;
            copy_element(out, (size_t)to, from, (size_t)i, "C");
            out->context_dataset[to] = *dataset ? dataset : out->context_dataset[to];
            out->context_prefix_digests[to] = *digests ? digests : out->context_prefix_digests[to];
        }
        fill_texts(out, (size_t)to, from, (size_t)i, "C");
    }
    return 0;
}

static int unite_questions(struct table *out, const struct table_rows *rows, const struct table *from, struct err *err)
{
    for (int i = 0; i < from->n_questions; i++) {
        int to = row_of(&rows->questions, from->question_id[i]);
        int context = row_of(&rows->contexts, from->context_id[from->question_context[i]]);
        if (!*out->question_id[to]) {
            copy_element(out, (size_t)to, from, (size_t)i, "Q");
            out->question_context[to] = context;
            continue;
        }
        if (out->question_context[to] != context || strcmp(out->question_text[to], from->question_text[i]) != 0)
            return err_set(err, ERR_FORMAT, "question '%s' is different in two tables", from->question_id[i]);
        fill_texts(out, (size_t)to, from, (size_t)i, "Q");
        out->asked_at[to] = fmax(out->asked_at[to], from->asked_at[i]); /* ignores NAN */
        if (out->sampled_n_tokens[to] < 0) {
            out->sampled_text[to] = from->sampled_text[i];
            out->sampled_n_tokens[to] = from->sampled_n_tokens[i];
        }
    }
    return 0;
}

/* Cells and answers are copied whole: sizes of one run are never mixed with times of another. */
static void unite_config(struct table *out, const struct table_rows *rows, const struct table *from, int v)
{
    int to_v = row_of(&rows->configs, from->config_name[v]);

    out->config_name[to_v] = from->config_name[v];
    for (int c = 0; c < from->n_contexts; c++) {
        size_t to = table_cell(out, row_of(&rows->contexts, from->context_id[c]), to_v), at = table_cell(from, c, v);
        if (!is_better_cell(out, to, from, at))
            continue;
        copy_element(out, to, from, at, "CV");
        if (out->cell_bytes_read)
            out->cell_bytes_read[to] = from->cell_bytes_read ? from->cell_bytes_read[at] : -1;
    }
    for (int q = 0; q < from->n_questions; q++) {
        size_t to = table_answer(out, row_of(&rows->questions, from->question_id[q]), to_v);
        if (out->answer_n_tokens[to] < 0)
            copy_element(out, to, from, table_answer(from, q, v), "QV");
    }
}

/* Unites the points of contexts whose row comes from this table, so that a curve stays with its prefill_s. With `next`
 * NULL counts them per context in count[to + 1], else copies each to index next[to]++. */
static void unite_points(const struct uniting *u, int table, int *count, int *next)
{
    const struct table *from = u->from[table];
    struct table *out = u->out;

    for (int i = 0; from->curve_context && i < from->n_points; i++) {
        int to = row_of(&u->rows->contexts, from->context_id[from->curve_context[i]]);
        if (u->source[to] != table)
            continue;
        if (!next) {
            count[to + 1]++;
            continue;
        }
        int at = next[to]++;
        out->curve_context[at] = to;
        out->curve_n_tokens[at] = from->curve_n_tokens[i];
        out->curve_s[at] = from->curve_s[i];
    }
}

static int unite_curves(const struct uniting *u, struct err *err)
{
    int n = u->out->n_contexts, *next = calloc((size_t)n + 1, sizeof(*next)), code = next ? 0 : err_nomem(err);

    for (int i = 0; i < u->n && !code; i++)
        unite_points(u, i, next, NULL);
    for (int c = 0; c < n && !code; c++)
        if (__builtin_add_overflow(next[c + 1], next[c], &next[c + 1]))
            code = err_set(err, ERR_FORMAT, "the prefill curves have too many points for a table");
    if (!code)
        code = table_alloc_curve(u->out, next[n], err);
    for (int i = 0; i < u->n && !code; i++)
        unite_points(u, i, NULL, next);
    free(next);
    return code;
}

/* Copies every string of the table into the block `to` and points there; with `to` NULL only counts. Returns the
 * bytes. */
static size_t own_texts(struct table *t, char *to)
{
    size_t total = 0;

    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        const char **text = column_get(t, c);
        size_t n = 0;
        if (c->type != COLUMN_TEXT || !text || !column_count(t, c, &n))
            continue;
        for (size_t k = 0; k < n; k++) {
            size_t length = strlen(text[k]) + 1;
            if (to)
                text[k] = memcpy(to + total, text[k], length);
            total += length;
        }
    }
    return total;
}

/* Copies the attributes of the first table. */
static int unite_attributes(const struct uniting *u, struct err *err)
{
    for (int i = 0; i < TABLE_ATTRIBUTES; i++) {
        char *text = attribute_get(u->out, &table_attributes[i]);
        int code = table_set_text(&text, attribute_get(u->from[0], &table_attributes[i]), err);
        attribute_set(u->out, &table_attributes[i], text);
        if (code)
            return code;
    }
    u->out->max_new_tokens = u->from[0]->max_new_tokens;
    for (int i = 0; i < u->n && !(u->out->temperature > 0); i++)
        u->out->temperature = u->from[i]->temperature;
    return 0;
}

static int unite_named(struct uniting *u, struct err *err)
{
    for (int c = 0; c < u->out->n_contexts; c++)
        u->source[c] = -1;
    for (int i = 0; i < u->n; i++)
        if (u->from[i]->cell_bytes_read && table_alloc_read(u->out, err))
            return err->code;
    for (int i = 0; i < u->n; i++) {
        if (unite_contexts(u, i, err) || unite_questions(u->out, u->rows, u->from[i], err))
            return err->code;
        for (int v = 0; v < u->from[i]->n_configs; v++)
            unite_config(u->out, u->rows, u->from[i], v);
    }
    if (unite_curves(u, err) || unite_attributes(u, err))
        return err->code;
    char *block = malloc(own_texts(u->out, NULL) + 1);
    if (table_own(u->out, block, err))
        return err->code;
    own_texts(u->out, block);
    return 0;
}

int table_unite(struct table *out, const struct table *const *from, int n, struct err *err)
{
    struct table_rows rows = { 0 };
    struct uniting u = { .out = out, .rows = &rows, .from = from, .n = n };
    int code = name_rows(&rows, from, n, err);

    *out = (struct table){ 0 };
    if (!code)
        code = table_alloc(out, rows.contexts.n, rows.configs.n, rows.questions.n, err);
    if (!code) {
        u.source = malloc((size_t)rows.contexts.n * sizeof(*u.source) + 1);
        u.row = calloc((size_t)rows.contexts.n + 1, sizeof(*u.row));
        code = u.source && u.row ? unite_named(&u, err) : err_nomem(err);
    }
    if (code)
        table_release(out);
    free(u.source);
    free(u.row);
    table_rows_release(&rows);
    return code;
}

/* ---- tables read from files ---------------------------------------------- */

int tables_read(struct tables *tables, const char *path, struct err *err)
{
    if (ARRAY_GROW(tables, tables->n + 1))
        return err_nomem(err);
    if (table_read(&tables->at[tables->n], path, TABLE_ALL, err))
        return err->code;
    tables->n++;
    return 0;
}

int tables_unite(struct table *out, const struct tables *tables, struct err *err)
{
    const struct table **each = calloc((size_t)tables->n + 1, sizeof(*each));

    if (!each)
        return err_nomem(err);
    for (int i = 0; i < tables->n; i++)
        each[i] = &tables->at[i];
    int code = table_unite(out, each, tables->n, err);
    free(each);
    return code;
}

void tables_release(struct tables *tables)
{
    for (int i = 0; i < tables->n; i++)
        table_release(&tables->at[i]);
    free(tables->at);
    *tables = (struct tables){ 0 };
}
