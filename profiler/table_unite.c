/* Several tables into one. First every name gets its row in the united table, in the order the names come. Then each
 * table's elements are copied to rows that are still empty. Strings are borrowed from the inputs until the end, when
 * they are copied into one block that the united table owns. */
#include "profiler/table_column.h"

#include "base/array.h"

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
    struct table_made first = table_made(from[0]);
    char text[TABLE_DIFFERENCE];

    for (int i = 0; i < n; i++) {
        struct table_made made = table_made(from[i]);
        const char *how = table_made_difference(text, &made, &first);
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

/* Copies one element of every column of a shape. */
static void copy_element(struct table *out, size_t to, const struct table *from, size_t at, const char *shape)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        size_t size = column_size(c->type);
        if (c->part == PART_PROFILE && strcmp(c->shape, shape) == 0)
            memcpy((char *)column_get(out, c) + to * size, (char *)column_get(from, c) + at * size, size);
    }
}

static int unite_contexts(struct table *out, const struct table_rows *rows, const struct table *from, struct err *err)
{
    for (int i = 0; i < from->n_contexts; i++) {
        int to = row_of(&rows->contexts, from->context_id[i]);
        if (!*out->context_id[to]) {
            copy_element(out, (size_t)to, from, (size_t)i, "C");
            continue;
        }
        if (strcmp(out->context_token_digest[to], from->context_token_digest[i]) != 0)
            return err_set(err, ERR_FORMAT, "context '%s' has different tokens in two tables", from->context_id[i]);
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
    }
    return 0;
}

/* Cells and answers come as a whole: sizes of one run are never mixed with times of another. */
static void unite_config(struct table *out, const struct table_rows *rows, const struct table *from, int v)
{
    int to_v = row_of(&rows->configs, from->config_name[v]);

    out->config_name[to_v] = from->config_name[v];
    for (int c = 0; c < from->n_contexts; c++) {
        size_t to = table_cell(out, row_of(&rows->contexts, from->context_id[c]), to_v);
        if (out->cell_bytes[to] < 0)
            copy_element(out, to, from, table_cell(from, c, v), "CV");
    }
    for (int q = 0; q < from->n_questions; q++) {
        size_t to = table_answer(out, row_of(&rows->questions, from->question_id[q]), to_v);
        if (out->answer_n_tokens[to] < 0)
            copy_element(out, to, from, table_answer(from, q, v), "QV");
    }
}

/* Copies every string of the table into the block `to` and points there; with `to` NULL only counts. Returns the bytes.
 */
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

static int unite_named(struct table *out, const struct table_rows *rows, const struct table *const *from, int n,
                       struct err *err)
{
    if (table_alloc(out, rows->contexts.n, rows->configs.n, rows->questions.n, err))
        return err->code;
    for (int i = 0; i < n; i++) {
        if (unite_contexts(out, rows, from[i], err) || unite_questions(out, rows, from[i], err))
            return err->code;
        for (int v = 0; v < from[i]->n_configs; v++)
            unite_config(out, rows, from[i], v);
    }
    for (int i = 0; i < TABLE_ATTRIBUTES; i++) {
        char *text = attribute_get(out, &table_attributes[i]);
        int code = table_set_text(&text, attribute_get(from[0], &table_attributes[i]), err);
        attribute_set(out, &table_attributes[i], text);
        if (code)
            return code;
    }
    out->max_new_tokens = from[0]->max_new_tokens;
    char *block = malloc(own_texts(out, NULL) + 1);
    if (table_own(out, block, err))
        return err->code;
    own_texts(out, block);
    return 0;
}

int table_unite(struct table *out, const struct table *const *from, int n, struct err *err)
{
    struct table_rows rows = { 0 };
    int code = name_rows(&rows, from, n, err);

    *out = (struct table){ 0 };
    if (!code)
        code = unite_named(out, &rows, from, n, err);
    if (code)
        table_release(out);
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
