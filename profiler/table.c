/* The table in memory: allocation, release, and putting several together. The file is table_read.c, table_write.c. */
#include "profiler/table.h"

#include "base/map.h"
#include "profiler/table_column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *absent_text(void)
{
    return (void *)(uintptr_t) "";
}

static void fill_absent(const struct column *c, void *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c->type == COLUMN_TEXT)
            ((char **)at)[i] = absent_text();
        else if (c->type == COLUMN_I64)
            ((int64_t *)at)[i] = -1;
        else if (c->type == COLUMN_I32)
            ((int32_t *)at)[i] = -1;
        else if (c->type == COLUMN_F32)
            ((float *)at)[i] = NAN;
        else
            ((double *)at)[i] = c->optional ? 0 : (double)NAN;
    }
}

/* The end counts: a column without rows may stand there. Memory from malloc never does, its header comes first. */
static bool in_map(const struct table *t, const void *at)
{
    return t->map && (const char *)at >= (char *)t->map && (const char *)at <= (char *)t->map + t->map_bytes;
}

static void free_part(struct table *t, enum column_part part)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        if (c->part != part)
            continue;
        if (!in_map(t, column_get(t, c)))
            free(column_get(t, c));
        column_set(t, c, NULL);
    }
}

static int alloc_part(struct table *t, enum column_part part, struct err *err)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        size_t n;
        if (c->part != part)
            continue;
        if (!column_count(t, c, &n))
            return err_set(err, ERR_FORMAT, "%d contexts, %d configs, %d questions are too many for a table",
                           t->n_contexts, t->n_configs, t->n_questions);
        void *at = malloc(n ? n * column_size(c->type) : 1);
        if (!at)
            return err_nomem(err);
        fill_absent(c, at, n);
        column_set(t, c, at);
    }
    return 0;
}

int table_find_config(const struct table *t, const char *name)
{
    for (int v = 0; v < t->n_configs; v++)
        if (strcmp(t->config_name[v], name) == 0)
            return v;
    return -1;
}

/* Grows in steps of powers of two. */
int table_own(struct table *t, char *text, struct err *err)
{
    size_t n = (size_t)t->n_owned;
    bool full = (n & (n - 1)) == 0;
    char **owned = text && full ? reallocarray(t->owned, n ? 2 * n : 1, sizeof(*owned)) : t->owned;

    if (!text || !owned) {
        free(text);
        return err_nomem(err);
    }
    t->owned = owned;
    t->owned[t->n_owned++] = text;
    return 0;
}

int table_set_text(char **attribute, const char *text, struct err *err)
{
    char *copy = strdup(text);

    if (!copy)
        return err_nomem(err);
    free(*attribute);
    *attribute = copy;
    return 0;
}

int table_alloc(struct table *t, int n_contexts, int n_configs, int n_questions, struct err *err)
{
    int code = 0;

    *t = (struct table){ .n_contexts = n_contexts, .n_configs = n_configs, .n_questions = n_questions };
    t->max_new_tokens = -1;
    for (int i = 0; i < TABLE_ATTRIBUTES && !code; i++) {
        char *text = strdup("");
        attribute_set(t, &table_attributes[i], text);
        code = text ? 0 : err_nomem(err);
    }
    if (!code)
        code = alloc_part(t, PART_PROFILE, err);
    if (code)
        table_release(t);
    return code;
}

int table_alloc_scores(struct table *t, int n_tiers, struct err *err)
{
    free_part(t, PART_SCORES);
    free_part(t, PART_TIERS);
    t->n_tiers = n_tiers;
    if (alloc_part(t, PART_SCORES, err))
        return err->code;
    return n_tiers > 0 ? alloc_part(t, PART_TIERS, err) : 0;
}

void table_release(struct table *t)
{
    for (enum column_part part = PART_PROFILE; part < TABLE_PARTS; part++)
        free_part(t, part);
    for (int i = 0; i < TABLE_ATTRIBUTES; i++)
        free(attribute_get(t, &table_attributes[i]));
    if (t->map)
        munmap(t->map, t->map_bytes);
    for (int i = 0; i < t->n_owned; i++)
        free(t->owned[i]);
    free(t->owned);
    map_release(&t->ids);
    *t = (struct table){ 0 };
}

/* ---- several tables into one -------------------------------------------- */

struct axes {
    struct map contexts, configs, questions; // names -> rows of the united table
};

static int check_same(const struct table *a, const struct table *b, struct err *err)
{
    if (strcmp(a->model_digest, b->model_digest) != 0)
        return err_set(err, ERR_FORMAT, "the tables are of different models, '%s' and '%s'", a->model, b->model);
    if (strcmp(a->dtype, b->dtype) != 0 || strcmp(a->backend, b->backend) != 0)
        return err_set(err, ERR_FORMAT, "the tables were computed differently: '%s' in %s, and '%s' in %s", a->backend,
                       a->dtype, b->backend, b->dtype);
    if (a->max_new_tokens != b->max_new_tokens)
        return err_set(err, ERR_FORMAT, "the tables' answers have different limits: %lld and %lld tokens",
                       (long long)a->max_new_tokens, (long long)b->max_new_tokens);
    return 0;
}

static int add_names(struct map *map, char *const *name, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (map_add(map, name[i], strlen(name[i]), NULL) == MAP_NOMEM)
            return err_nomem(err);
    return 0;
}

static int name_axes(struct axes *axes, const struct table *const *from, int n, struct err *err)
{
    for (int i = 0; i < n; i++) {
        const struct table *t = from[i];
        if (check_same(from[0], t, err) || add_names(&axes->contexts, t->context_id, t->n_contexts, err) ||
            add_names(&axes->configs, t->config_name, t->n_configs, err) ||
            add_names(&axes->questions, t->question_id, t->n_questions, err))
            return err->code;
    }
    return 0;
}

static size_t row_of(const struct map *map, const char *name)
{
    return (size_t)map_find(map, name, strlen(name));
}

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

static int unite_contexts(struct table *out, const struct axes *axes, const struct table *from, struct err *err)
{
    for (int i = 0; i < from->n_contexts; i++) {
        size_t to = row_of(&axes->contexts, from->context_id[i]);
        if (!*out->context_id[to]) {
            copy_element(out, to, from, (size_t)i, "C");
            continue;
        }
        if (strcmp(out->context_token_digest[to], from->context_token_digest[i]) != 0)
            return err_set(err, ERR_FORMAT, "context '%s' has different tokens in two tables", from->context_id[i]);
    }
    return 0;
}

static int unite_questions(struct table *out, const struct axes *axes, const struct table *from, struct err *err)
{
    for (int i = 0; i < from->n_questions; i++) {
        size_t to = row_of(&axes->questions, from->question_id[i]);
        int64_t context = (int64_t)row_of(&axes->contexts, from->context_id[from->question_context[i]]);
        if (!*out->question_id[to]) {
            copy_element(out, to, from, (size_t)i, "Q");
            out->question_context[to] = context;
            continue;
        }
        if (out->question_context[to] != context || strcmp(out->question_text[to], from->question_text[i]) != 0)
            return err_set(err, ERR_FORMAT, "question '%s' is different in two tables", from->question_id[i]);
    }
    return 0;
}

/* Cells and answers come as a whole: sizes of one run are never mixed with times of another. */
static void unite_cells(struct table *out, const struct axes *axes, const struct table *from)
{
    size_t n_configs = (size_t)out->n_configs;

    for (int v = 0; v < from->n_configs; v++) {
        size_t to_v = row_of(&axes->configs, from->config_name[v]);
        out->config_name[to_v] = from->config_name[v];
        for (int i = 0; i < from->n_contexts; i++) {
            size_t to = row_of(&axes->contexts, from->context_id[i]) * n_configs + to_v;
            size_t at = (size_t)i * (size_t)from->n_configs + (size_t)v;
            if (out->cell_bytes[to] < 0)
                copy_element(out, to, from, at, "CV");
        }
        for (int i = 0; i < from->n_questions; i++) {
            size_t to = row_of(&axes->questions, from->question_id[i]) * n_configs + to_v;
            size_t at = (size_t)i * (size_t)from->n_configs + (size_t)v;
            if (out->answer_n_tokens[to] < 0)
                copy_element(out, to, from, at, "QV");
        }
    }
}

/* Moves every string of the table into one block of its own. With to NULL only counts. */
static size_t own_texts(struct table *t, char *to)
{
    size_t total = 0;

    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        char **text = column_get(t, c);
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

static int unite_named(struct table *out, const struct axes *axes, const struct table *const *from, int n,
                       struct err *err)
{
    if (table_alloc(out, axes->contexts.n, axes->configs.n, axes->questions.n, err))
        return err->code;
    for (int i = 0; i < n; i++) {
        if (unite_contexts(out, axes, from[i], err) || unite_questions(out, axes, from[i], err))
            return err->code;
        unite_cells(out, axes, from[i]);
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
    struct axes axes = { 0 };
    int code = name_axes(&axes, from, n, err);

    *out = (struct table){ 0 };
    if (!code)
        code = unite_named(out, &axes, from, n, err);
    if (code)
        table_release(out);
    map_release(&axes.contexts);
    map_release(&axes.configs);
    map_release(&axes.questions);
    return code;
}

int table_merge(struct table *into, const struct table *from, struct err *err)
{
    struct table united;

    if (table_unite(&united, (const struct table *const[]){ into, from }, 2, err))
        return err->code;
    table_release(into);
    *into = united;
    return 0;
}
