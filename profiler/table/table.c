/* table.c - the table in memory. Allocation and release loop over the columns (table_column.c), so no array is named
 * here. An array is in the mapped image of a file or in its own memory; only the latter is freed. table_unite.c unites
 * several tables; table_read.c and table_write.c handle files. */
#include "profiler/table/table.h"

#include "base/array.h"
#include "base/json.h"
#include "profiler/table/table_column.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const int table_batch[TABLE_BATCHES] = { 1, 8, 32 };

/* The end of the map counts as inside: a column without rows may begin there. Memory from malloc never begins there,
 * because its header comes first. */
static bool in_map(const struct table *t, const void *at)
{
    return t->map && (const char *)at >= (char *)t->map && (const char *)at <= (char *)t->map + t->map_bytes;
}

static void free_section(struct table *t, enum column_section section)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        if (c->section != section)
            continue;
        if (!in_map(t, column_get(t, c)))
            free(column_get(t, c));
        column_set(t, c, NULL);
    }
}

static int alloc_section(struct table *t, enum column_section section, struct err *err)
{
    size_t n = 0;

    for (int i = 0; i < TABLE_COLUMNS; i++) // check all before allocating the first
        if (table_columns[i].section == section && !column_count(t, &table_columns[i], &n))
            return err_set(err, ERR_FORMAT, "%d contexts, %d configs, %d questions are too many for a table",
                           t->n_contexts, t->n_configs, t->n_questions);
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        if (c->section != section || !column_count(t, c, &n))
            continue;
        void *at = malloc(n ? n * column_size(c->type) : 1);
        if (!at)
            return err_nomem(err);
        column_fill_absent(c, at, n);
        column_set(t, c, at);
    }
    return 0;
}

int table_own(struct table *t, char *text, struct err *err)
{
    if (text && ARRAY_PUSH(&t->owned, text) == 0)
        return 0;
    free(text);
    return err_nomem(err);
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
        code = alloc_section(t, SECTION_PROFILE, err);
    if (code)
        table_release(t);
    return code;
}

int table_alloc_curve(struct table *t, int n_points, struct err *err)
{
    free_section(t, SECTION_CURVE);
    t->n_points = n_points;
    return n_points > 0 ? alloc_section(t, SECTION_CURVE, err) : 0;
}

int table_alloc_read(struct table *t, struct err *err)
{
    return t->cell_bytes_read ? 0 : alloc_section(t, SECTION_READ, err);
}

void table_all_read(struct table *t)
{
    free_section(t, SECTION_READ);
}

int table_alloc_scores(struct table *t, int n_tiers, struct err *err)
{
    free_section(t, SECTION_SCORES);
    free_section(t, SECTION_BELIEF);
    free_section(t, SECTION_TIERS);
    t->n_tiers = n_tiers;
    if (alloc_section(t, SECTION_SCORES, err))
        return err->code;
    return n_tiers > 0 ? alloc_section(t, SECTION_TIERS, err) : 0;
}

int table_alloc_belief(struct table *t, struct err *err)
{
    free_section(t, SECTION_BELIEF);
    return alloc_section(t, SECTION_BELIEF, err);
}

void table_release(struct table *t)
{
    for (enum column_section section = SECTION_PROFILE; section < TABLE_SECTIONS; section++)
        free_section(t, section);
    for (int i = 0; i < TABLE_ATTRIBUTES; i++)
        free(attribute_get(t, &table_attributes[i]));
    if (t->map)
        munmap(t->map, t->map_bytes);
    for (int i = 0; i < t->owned.n; i++)
        free(t->owned.at[i]);
    free(t->owned.at);
    map_release(&t->ids);
    *t = (struct table){ 0 };
}

/* ---- queries ------------------------------------------------------------ */

int table_find_config(const struct table *t, const char *name)
{
    for (int v = 0; v < t->n_configs; v++)
        if (strcmp(t->config_name[v], name) == 0)
            return v;
    return -1;
}

bool table_is_measured(const struct table *t, int context)
{
    for (int v = 0; v < t->n_configs; v++)
        if (!isnan(t->compress_s[table_cell(t, context, v)]))
            return true;
    return false;
}

double table_mean(const struct table *t, const double *column, int config)
{
    double sum = 0;
    int n = 0;

    for (int c = 0; column && c < t->n_contexts; c++) {
        double v = column[table_cell(t, c, config)];
        sum += isnan(v) ? 0 : v;
        n += !isnan(v);
    }
    return n ? sum / n : (double)NAN;
}

double table_read_frac(const struct table *t, int config)
{
    double sum = 0;
    int n = 0, n_fewer = 0;

    for (int c = 0; c < t->n_contexts; c++) {
        size_t cell = table_cell(t, c, config);
        int64_t bytes = t->cell_bytes[cell], read = table_bytes_read(t, cell);
        if (bytes < 0)
            continue;
        sum += t->size_frac[cell] * (read < bytes ? (double)read / (double)bytes : 1);
        n_fewer += read < bytes;
        n++;
    }
    return n_fewer ? sum / n : (double)NAN;
}

struct json *table_lineage(const struct table *t)
{
    struct err ignored;

    return *t->lineage ? json_parse(t->lineage, strlen(t->lineage), &ignored) : NULL;
}

/* ---- how it was made ---------------------------------------------------- */

struct table_made table_made(const struct table *t)
{
    return (struct table_made){ t->model,          t->model_digest, t->backend,     t->dtype,
                                t->max_new_tokens, t->chat_digest,  t->temperature, t->measure };
}

int table_set_made(struct table *t, const struct table_made *made, struct err *err)
{
    t->max_new_tokens = made->max_new_tokens;
    t->temperature = made->temperature;
    if (table_set_text(&t->model, made->model, err) || table_set_text(&t->model_digest, made->model_digest, err) ||
        table_set_text(&t->backend, made->backend, err) || table_set_text(&t->dtype, made->dtype, err) ||
        table_set_text(&t->chat_digest, made->chat_digest ? made->chat_digest : "", err) ||
        table_set_text(&t->measure, made->measure ? made->measure : "", err))
        return err->code;
    return 0;
}

static bool same_temperature(double a, double b)
{
    return !(a > 0) || !(b > 0) || a == b;
}

static const char *measure_of(const struct table_made *made)
{
    return made->measure && *made->measure ? made->measure : "answers";
}

static bool same_chat(const char *a, const char *b)
{
    return !a || !b || !*a || !*b || strcmp(a, b) == 0;
}

const char *table_made_difference(char text[TABLE_DIFFERENCE], const struct table_made *is,
                                  const struct table_made *want)
{
    size_t n = TABLE_DIFFERENCE;

    if (strcmp(is->model_digest, want->model_digest) != 0 && strcmp(is->model, want->model) == 0)
        snprintf(text, n, "another model named '%.80s'", is->model);
    else if (strcmp(is->model_digest, want->model_digest) != 0)
        snprintf(text, n, "model '%.80s', not '%.80s'", is->model, want->model);
    else if (want->backend && strcmp(is->backend, want->backend) != 0)
        snprintf(text, n, "backend %.80s, not %.80s", is->backend, want->backend);
    else if (want->dtype && strcmp(is->dtype, want->dtype) != 0)
        snprintf(text, n, "--dtype %.80s, not %.80s", is->dtype, want->dtype);
    else if (is->max_new_tokens != want->max_new_tokens)
        snprintf(text, n, "--max-new-tokens %lld, not %lld", (long long)is->max_new_tokens,
                 (long long)want->max_new_tokens);
    else if (strcmp(measure_of(is), measure_of(want)) != 0)
        snprintf(text, n, "--measure %.80s, not %.80s", measure_of(is), measure_of(want));
    else if (!same_chat(is->chat_digest, want->chat_digest))
        snprintf(text, n, "another chat template");
    else if (!same_temperature(is->temperature, want->temperature))
        snprintf(text, n, "--temperature %g, not %g", is->temperature, want->temperature);
    else
        return NULL;
    return text;
}
