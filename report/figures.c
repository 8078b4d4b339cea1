/* figures.c - quality against size, held-out against training quality, and the times of the plan. A series is a method,
 * the same in all figures; a point is a config, named by its parameters; bars are the standard error of a mean over
 * contexts.
 */
#include "base/map.h"
#include "formats/outcome.h"
#include "report/report_internal.h"

#include "profiler/score/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DATASETS = 6, TTFT_POINTS = 200, MAX_LABEL = 24 };

void figure_begin(struct buf *out, const char *caption, const char *dataset)
{
    buf_adds(out, "<figure>\n<figcaption>");
    html_text(out, caption);
    if (dataset) {
        buf_adds(out, ", ");
        html_short(out, *dataset ? dataset : "contexts without a dataset", 80);
    }
    buf_adds(out, "</figcaption>\n");
}

/* ---- means over contexts -------------------------------------------------- */

struct mean {
    int n;
    double sum, squares;
};

static void mean_add(struct mean *m, double v)
{
    m->n++;
    m->sum += v;
    m->squares += v * v;
}

static double mean_of(const struct mean *m)
{
    return m->n ? m->sum / m->n : (double)NAN;
}

/* The standard error; 0 for a single value. */
static double error_of(const struct mean *m)
{
    double n = m->n, v = n > 1 ? (m->squares - m->sum * m->sum / n) / (n - 1) : 0;

    return v > 0 ? sqrt(v / n) : 0;
}

/* A config's mean size and qualities on train and test questions, over the contexts of a dataset; NULL: all contexts.
 * `paired`: the train quality of the contexts that have a test quality, too. */
struct point {
    struct mean size, train, test, paired;
};

static struct point point_of(const struct table *t, int v, const char *dataset)
{
    struct point p = { 0 };

    for (int c = 0; c < t->n_contexts; c++) {
        size_t cell = table_cell(t, c, v);
        if ((dataset && strcmp(t->context_dataset[c], dataset) != 0) || isnan(t->quality_train[cell]))
            continue;
        mean_add(&p.size, t->size_frac[cell]);
        mean_add(&p.train, t->quality_train[cell]);
        if (isnan(t->quality_test[cell]))
            continue;
        mean_add(&p.test, t->quality_test[cell]);
        mean_add(&p.paired, t->quality_train[cell]);
    }
    return p;
}

/* ---- methods --------------------------------------------------------------- */

/* The method of a config: its chain without parameters, "snapkv+kivi" for "snapkv:drop=0.5+kivi:bits=4". */
static int method_of(struct map *methods, const char *config)
{
    char name[256];
    size_t n = 0;

    for (const char *s = config; *s && n + 1 < sizeof(name); s++) {
        if (*s == ':')
            s += strcspn(s, "+") - 1;
        else
            name[n++] = *s;
    }
    return map_add(methods, name, n, NULL);
}

/* What tells a config from others of its method: "0.5 + 4 bits". */
static void parameters_of(char out[MAX_LABEL], const char *config)
{
    int n = 0;

    out[0] = '\0';
    for (const char *s = strchr(config, '='); s && n < MAX_LABEL; s = strchr(s + 1, '=')) {
        bool bits = s - config >= 4 && strncmp(s - 4, "bits", 4) == 0;
        n += snprintf(out + n, (size_t)(MAX_LABEL - n), "%s%.*s%s", n ? " + " : "", (int)strcspn(s + 1, ",+"), s + 1,
                      bits ? " bits" : "");
    }
    if (n == 0)
        snprintf(out, MAX_LABEL, "%s", strcmp(config, "none") == 0 ? "whole" : "");
}

/* The configs of a table by method: config v has method methods.at[method[v]]. */
struct by_method {
    const struct table *table;
    struct map methods;
    int *method, *uses;
    struct point *point;      // (V) of the figure being drawn
    struct chart_point *line; // (V) scratch
};

static int by_method_init(struct by_method *b, const struct report *r, struct err *err)
{
    size_t n = (size_t)r->table->n_configs + 1;

    *b = (struct by_method){ .table = r->table,
                             .uses = report_uses(r, err),
                             .method = calloc(n, sizeof(*b->method)),
                             .point = calloc(n, sizeof(*b->point)),
                             .line = calloc(n, sizeof(*b->line)) };
    int code = b->method && b->uses && b->point && b->line ? 0 : err_nomem(err);
    for (int v = 0; v < r->table->n_configs && !code; v++) {
        b->method[v] = method_of(&b->methods, r->table->config_name[v]);
        code = b->method[v] == MAP_NOMEM ? err_nomem(err) : 0;
    }
    return code;
}

static void by_method_release(struct by_method *b)
{
    free(b->method);
    free(b->uses);
    free(b->point);
    free(b->line);
    map_release(&b->methods);
}

/* A legend of the methods that have points; `chosen`: with the ring, and what it means. */
static void put_key(struct buf *out, const struct by_method *b, bool chosen)
{
    buf_adds(out, "<ul class=\"key\">");
    for (int m = 0; m < b->methods.n; m++) {
        bool drawn = false;
        for (int v = 0; v < b->table->n_configs; v++)
            drawn |= b->method[v] == m && b->point[v].train.n > 0;
        if (!drawn)
            continue;
        buf_adds(out, "<li>");
        chart_key(out, m);
        html_short(out, b->methods.at[m].key, 60);
        buf_adds(out, "</li>");
    }
    if (chosen)
        buf_adds(out, "<li><svg class=\"chart\" viewBox=\"-12 -9 24 18\" aria-hidden=\"true\"><circle class=\"ring\" "
                      "r=\"7\"/></svg>in this plan</li>");
    buf_adds(out, "</ul>\n");
}

/* ---- quality against size ------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
    const struct chart_point *x = a, *y = b;

    return x->x < y->x ? -1 : x->x > y->x;
}

static struct chart_point size_point(const struct point *p)
{
    return (struct chart_point){ mean_of(&p->size), mean_of(&p->train) };
}

static void put_lines(struct chart *c, const struct by_method *b)
{
    for (int m = 0; m < b->methods.n; m++) {
        int n = 0;
        for (int v = 0; v < b->table->n_configs; v++)
            if (b->method[v] == m && b->point[v].train.n)
                b->line[n++] = size_point(&b->point[v]);
        qsort(b->line, (size_t)n, sizeof(*b->line), by_x);
        if (n > 1)
            chart_line(c, m, b->line, n);
    }
}

static void title_of(char out[256], const struct by_method *b, int v, double quality)
{
    int uses = b->uses[v];
    int n = snprintf(out, 256, "%.120s: quality %.3f, size %.3f", b->table->config_name[v], quality,
                     mean_of(&b->point[v].size));

    if (uses)
        snprintf(out + n, 256 - (size_t)n, ", chosen for %d context%s", uses, uses == 1 ? "" : "s");
}

/* Adds both ends of the scale as horizontal lines. */
static void put_scale(struct chart *c, const struct table *t)
{
    if (t->temperature > 0)
        chart_level(c, score_same_meaning(t), "uncompressed cache, asked again");
    chart_level(c, score_unrelated(t), "unrelated answers");
}

static bool draw_quality(struct chart *c, const struct by_method *b, const char *dataset)
{
    char text[256];
    bool chosen = false;

    put_lines(c, b);
    for (int v = 0; v < b->table->n_configs; v++) {
        struct chart_point at = size_point(&b->point[v]);
        double error = error_of(&b->point[v].train);
        if (!b->point[v].train.n)
            continue;
        chart_error(c, (struct chart_point){ at.x, at.y - error }, (struct chart_point){ at.x, at.y + error });
        title_of(text, b, v, at.y);
        chart_mark(c, b->method[v], at, text);
        if (dataset || !b->uses[v])
            continue;
        chart_ring(c, at);
        chosen = true;
    }
    for (int v = 0; v < b->table->n_configs; v++)
        if (b->point[v].train.n) {
            parameters_of(text, b->table->config_name[v]);
            chart_label(c, size_point(&b->point[v]), text);
        }
    return chosen;
}

static void quality_of(struct buf *out, struct by_method *b, const char *dataset)
{
    struct chart c = { .out = out,
                       .x = axis_of(AXIS_SHARE, "size of the cache, whole = 1"),
                       .y = axis_of(AXIS_QUALITY, "quality, training questions") };
    int n = 0;

    for (int v = 0; v < b->table->n_configs; v++) {
        b->point[v] = point_of(b->table, v, dataset);
        axis_see(&c.x, mean_of(&b->point[v].size));
        axis_see(&c.y, mean_of(&b->point[v].train));
        n += b->point[v].train.n > 0;
    }
    if (n == 0)
        return;
    if (!dataset)
        axis_see(&c.y, score_unrelated(b->table));
    figure_begin(out, "Quality against size", dataset);
    chart_begin(&c, "Quality against size, a point for each config");
    bool chosen = draw_quality(&c, b, dataset);
    if (!dataset)
        put_scale(&c, b->table);
    chart_end(&c);
    put_key(out, b, chosen);
    buf_adds(out, "</figure>\n");
}

/* Draws each of the first datasets. */
static int each_dataset(struct buf *out, struct by_method *b, struct err *err)
{
    const struct table *t = b->table;
    struct map datasets = { 0 };
    int code = 0;

    for (int c = 0; c < t->n_contexts && !code; c++)
        if (map_add(&datasets, t->context_dataset[c], strlen(t->context_dataset[c]), NULL) == MAP_NOMEM)
            code = err_nomem(err);
    if (datasets.n > 1 && !code) {
        buf_printf(out, "<details><summary>By dataset: %d of %d</summary>\n<div class=\"figures\">\n",
                   datasets.n < MAX_DATASETS ? datasets.n : MAX_DATASETS, datasets.n);
        for (int d = 0; d < datasets.n && d < MAX_DATASETS; d++)
            quality_of(out, b, datasets.at[d].key);
        buf_adds(out, "</div></details>\n");
    }
    map_release(&datasets);
    return code;
}

int figure_quality(struct buf *out, const struct report *r, struct err *err)
{
    struct by_method b;
    int code = by_method_init(&b, r, err);

    if (!code)
        quality_of(out, &b, NULL);
    by_method_release(&b);
    return code;
}

int figure_datasets(struct buf *out, const struct report *r, struct err *err)
{
    struct by_method b;
    int code = by_method_init(&b, r, err);

    if (!code)
        code = each_dataset(out, &b, err);
    by_method_release(&b);
    return code;
}

/* ---- held-out quality ----------------------------------------------------- */

static void draw_held_out(struct buf *out, const struct by_method *b, struct chart *c)
{
    char text[256];

    chart_begin(c, "Held-out quality against training quality, a point for each config");
    chart_diagonal(c);
    for (int pass = 0; pass < 2; pass++)
        for (int v = 1; v < b->table->n_configs; v++) {
            const struct point *p = &b->point[v];
            struct chart_point at = { mean_of(&p->paired), mean_of(&p->test) };
            if (!p->test.n)
                continue;
            if (pass) {
                parameters_of(text, b->table->config_name[v]);
                chart_label(c, at, text);
                continue;
            }
            double x = error_of(&p->paired), y = error_of(&p->test);
            chart_error(c, (struct chart_point){ at.x - x, at.y }, (struct chart_point){ at.x + x, at.y });
            chart_error(c, (struct chart_point){ at.x, at.y - y }, (struct chart_point){ at.x, at.y + y });
            snprintf(text, sizeof(text), "%.120s: held out %.3f, training %.3f, %d of %d contexts",
                     b->table->config_name[v], at.y, at.x, p->test.n, b->table->n_contexts);
            chart_mark(c, b->method[v], at, text);
        }
    chart_end(c);
    put_key(out, b, false);
}

int figure_held_out(struct buf *out, const struct report *r, struct err *err)
{
    struct chart c = { .out = out,
                       .x = axis_of(AXIS_QUALITY, "quality, training questions"),
                       .y = axis_of(AXIS_QUALITY, "quality, held-out questions") };
    struct by_method b;
    int n = 0, code = by_method_init(&b, r, err);

    for (int v = 1; v < r->table->n_configs && !code; v++) {
        struct point p = point_of(r->table, v, NULL);
        b.point[v] = p.test.n ? p : (struct point){ 0 };
        axis_see(&c.x, mean_of(&p.paired));
        axis_see(&c.y, mean_of(&p.test));
        n += p.test.n > 0;
    }
    c.x.min = c.y.min = fmin(c.x.min, c.y.min); /* one scale, so that the diagonal is one */
    if (n && !code) {
        figure_begin(out, "Held-out against training quality", NULL);
        draw_held_out(out, &b, &c);
        buf_adds(out, "<p class=\"note\">The dashed line: as promised. Configs below it promise too much. A point is a "
                      "mean over the contexts that have held-out answers under its config.</p>\n</figure>\n");
    }
    by_method_release(&b);
    return code;
}

/* ---- TTFT ----------------------------------------------------------------- */

struct weighed {
    double v, weight;
};

static int by_value(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;

    return x->v < y->v ? -1 : x->v > y->v;
}

/* Draws a cumulative distribution as steps: the share of uses that are answered within a time. */
static void put_curve(struct chart *c, int series, struct weighed *at, int n)
{
    struct chart_point line[2 * TTFT_POINTS + 8];
    double total = 0, sum = 0, step = 0;
    int k = 0;

    for (int i = 0; i < n; i++)
        total += at[i].weight;
    qsort(at, (size_t)n, sizeof(*at), by_value);
    for (int i = 0; i < n && k + 2 <= (int)(sizeof(line) / sizeof(*line)); i++) {
        double before = 100 * sum / total;
        sum += at[i].weight;
        if (sum < step && i + 1 < n)
            continue;
        line[k] = (struct chart_point){ at[i].v, k ? line[k - 1].y : before };
        line[k + 1] = (struct chart_point){ at[i].v, 100 * sum / total };
        k += 2;
        step = sum + total / TTFT_POINTS;
    }
    chart_line(c, series, line, k);
}

static void draw_ttft(struct buf *out, struct weighed *plan, int n, struct weighed *whole, int n_whole)
{
    struct chart c = { .out = out,
                       .x = axis_of(AXIS_SECONDS, "time to first token"),
                       .y = axis_of(AXIS_PERCENT, "uses answered by then, %") };

    for (int i = 0; i < n; i++)
        axis_see(&c.x, plan[i].v);
    for (int i = 0; i < n_whole; i++)
        axis_see(&c.x, whole[i].v);
    figure_begin(out, "Time to first token, by use", NULL);
    chart_begin(&c, "Share of uses that are answered within a time");
    put_curve(&c, 1, plan, n);
    if (n_whole)
        put_curve(&c, 0, whole, n_whole);
    chart_end(&c);
    buf_adds(out, "<ul class=\"key\"><li>");
    chart_key_line(out, 1);
    buf_adds(out, "this plan</li>");
    if (n_whole) {
        buf_adds(out, "<li>");
        chart_key_line(out, 0);
        buf_adds(out, "every context recomputed</li>");
    }
    buf_adds(out, "</ul>\n</figure>\n");
}

int figure_ttft(struct buf *out, const struct report *r, struct err *err)
{
    const struct manifest *m = r->manifest;
    struct weighed *plan = calloc((size_t)m->n + 1, sizeof(*plan)), *whole = calloc((size_t)m->n + 1, sizeof(*whole));
    int n = 0, n_whole = 0, code = plan && whole ? 0 : err_nomem(err);

    for (int i = 0; i < m->n && !code; i++) {
        const struct placement *p = &m->at[i];
        int c = r->table ? map_find(&r->table->ids, p->id, strlen(p->id)) : MAP_ABSENT;
        if (!(p->frequency > 0) || isnan(p->ttft_s))
            continue;
        plan[n++] = (struct weighed){ p->ttft_s, p->frequency / OUTCOME_UNIT };
        if (c >= 0 && !isnan(r->table->prefill_s[c]))
            whole[n_whole++] =
                (struct weighed){ r->table->prefill_s[c] + r->table->question_s[c], p->frequency / OUTCOME_UNIT };
    }
    if (n && !code)
        draw_ttft(out, plan, n, whole, n_whole);
    free(plan);
    free(whole);
    return code;
}
