/* figures.c - the figures. A series is a method or a plan, with its own mark and dashes; bars are the standard error of
 * a mean over contexts.
 */
#include "base/map.h"
#include "base/parse.h"
#include "profiler/score/score.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DATASETS = 6, TTFT_POINTS = 200 };

/* Dark colours, on white. */
static const char *const colours[] = { "black", "#c00000", "#0040c0", "#007000", "#8000a0", "#a05000", "#007080" };
enum { N_COLOURS = sizeof(colours) / sizeof(*colours) };

static void figure_begin(struct buf *out, const char *caption)
{
    buf_adds(out, "<figure><figcaption>");
    html_text(out, caption);
    buf_adds(out, "</figcaption>\n");
}

/* Draws a script; removes the figure if gnuplot is absent. */
static int figure_end(struct buf *out, size_t begin, struct buf *script, struct err *err)
{
    int code = plot_svg(out, script, err);

    if (code == PLOT_ABSENT)
        out->n = begin;
    else
        buf_adds(out, "</figure>\n");
    buf_release(script);
    return code;
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
 * */
struct point {
    struct mean size, train, test;
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
        if (!isnan(t->quality_test[cell]))
            mean_add(&p.test, t->quality_test[cell]);
    }
    return p;
}

/* ---- quality against size ------------------------------------------------- */

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

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Adds the data of one method by rising size: size, quality, error. Returns the number of points. */
static int put_method(struct buf *script, const struct table *t, const int *method, int m, const char *dataset)
{
    double(*at)[3] = calloc((size_t)t->n_configs + 1, sizeof(*at));
    int n = 0;

    if (!at) {
        script->failed = true;
        return 0;
    }
    for (int v = 0; v < t->n_configs; v++) {
        struct point p = method[v] == m ? point_of(t, v, dataset) : (struct point){ 0 };
        if (p.train.n == 0)
            continue;
        at[n][0] = mean_of(&p.size);
        at[n][1] = mean_of(&p.train);
        at[n++][2] = error_of(&p.train);
    }
    qsort(at, (size_t)n, sizeof(*at), by_size);
    if (n)
        buf_printf(script, "$m%d << EOD\n", m);
    for (int i = 0; i < n; i++)
        buf_printf(script, "%.6g %.6g %.6g\n", at[i][0], at[i][1], at[i][2]);
    buf_adds(script, n ? "EOD\n" : "");
    free(at);
    return n;
}

/* The configs of a table by method: config v has method methods.at[method[v]]. */
struct by_method {
    const struct table *table;
    struct map methods;
    int *method;
};

/* Adds both ends of the scale as horizontal lines. Counts them in *n. */
static void put_scale(struct buf *plot, const struct table *t, int *n)
{
    const double at[] = { score_same_meaning(t), score_unrelated(t) };
    static const char *const name[] = { "two good answers", "unrelated answers" };

    for (int i = 0; i < 2; i++)
        if (!isnan(at[i]))
            buf_printf(plot, "%s%.6g with lines linewidth 1 linecolor rgb '#606060' dashtype %d title '%s'",
                       (*n)++ ? ", " : "plot ", at[i], i + 2, name[i]);
}

static int quality_of(struct buf *out, const struct by_method *b, const char *dataset, struct err *err)
{
    struct buf script = { 0 }, plot = { 0 };
    size_t begin = out->n;
    int n = 0;

    buf_adds(out, "<figure><figcaption>Quality against size");
    if (dataset) {
        buf_adds(out, ", ");
        html_short(out, *dataset ? dataset : "contexts without a dataset", 80);
    }
    buf_adds(out, "</figcaption>\n");
    buf_adds(&script, "set xlabel 'size, uncompressed = 1'\nset ylabel 'quality, training questions'\n");
    if (!dataset)
        put_scale(&plot, b->table, &n);
    for (int m = 0; m < b->methods.n; m++) {
        if (!put_method(&script, b->table, b->method, m, dataset))
            continue;
        buf_printf(&plot,
                   "%s$m%d using 1:2:3 with yerrorlines linewidth 1.5 linecolor rgb '%s' dashtype %d "
                   "pointtype %d title ",
                   n++ ? ", " : "plot ", m, colours[m % N_COLOURS], m % 5 + 1, m % 13 + 1);
        plot_label(&plot, b->methods.at[m].key);
    }
    buf_add(&script, buf_str(&plot), plot.n);
    buf_addc(&script, '\n');
    script.failed |= buf_failed(&plot);
    buf_release(&plot);
    if (n == 0) {
        out->n = begin;
        buf_release(&script);
        return 0;
    }
    return figure_end(out, begin, &script, err);
}

/* Draws all contexts, then each of the first datasets. */
static int each_quality(struct buf *out, const struct by_method *b, struct err *err)
{
    const struct table *t = b->table;
    struct map datasets = { 0 };
    int code = quality_of(out, b, NULL, err);

    for (int c = 0; c < t->n_contexts && !code; c++)
        if (map_add(&datasets, t->context_dataset[c], strlen(t->context_dataset[c]), NULL) == MAP_NOMEM)
            code = err_nomem(err);
    for (int d = 0; d < datasets.n && d < MAX_DATASETS && datasets.n > 1 && !code; d++)
        code = quality_of(out, b, datasets.at[d].key, err);
    if (!code && datasets.n > MAX_DATASETS)
        buf_printf(out, "<p>%d more datasets are not drawn.\n", datasets.n - MAX_DATASETS);
    map_release(&datasets);
    return code;
}

int figure_quality(struct buf *out, const struct table *t, struct err *err)
{
    struct by_method b = { .table = t, .method = calloc((size_t)t->n_configs + 1, sizeof(*b.method)) };
    int code = b.method ? 0 : err_nomem(err);

    for (int v = 0; v < t->n_configs && !code; v++) {
        b.method[v] = method_of(&b.methods, t->config_name[v]);
        code = b.method[v] == MAP_NOMEM ? err_nomem(err) : 0;
    }
    if (!code && t->quality_train)
        code = each_quality(out, &b, err);
    free(b.method);
    map_release(&b.methods);
    return code;
}

/* ---- held-out quality ----------------------------------------------------- */

int figure_held_out(struct buf *out, const struct table *t, struct err *err)
{
    struct buf script = { 0 };
    size_t begin = out->n;
    int n = 0;

    buf_adds(&script, "$d << EOD\n");
    for (int v = 1; t->quality_train && v < t->n_configs; v++) {
        struct point p = point_of(t, v, NULL);
        if (p.test.n == 0)
            continue;
        buf_printf(&script, "%.6g %.6g %.6g %.6g\n", mean_of(&p.train), mean_of(&p.test), error_of(&p.train),
                   error_of(&p.test));
        n++;
    }
    buf_adds(&script,
             "EOD\nset samples 2\nset xlabel 'quality, training questions'\nset ylabel 'quality, held-out questions'\n"
             "plot $d using 1:2:3:4 with xyerrorbars linecolor 'black' pointtype 7 pointsize 0.6 title 'configs', "
             "x with lines linecolor 'black' dashtype 2 title 'as promised'\n");
    if (n == 0) {
        buf_release(&script);
        return 0;
    }
    figure_begin(out, "Held-out against training quality: configs below the line promise too much");
    return figure_end(out, begin, &script, err);
}

/* ---- fills ---------------------------------------------------------------- */

int figure_fills(struct buf *out, const struct manifest *m, struct err *err)
{
    struct buf script = { 0 };
    size_t begin = out->n;

    buf_adds(&script, "$d << EOD\n");
    for (int i = 0; i < m->tiers.n; i++) {
        double used = 0, capacity = (double)m->tiers.at[i].capacity;
        for (int k = 0; k < m->n; k++)
            used += m->at[k].tier == i ? (double)m->at[k].bytes : 0;
        bool unlimited = m->tiers.at[i].capacity == INT64_MAX || capacity <= 0;
        buf_printf(&script, "%s %.6g %s\n", m->tiers.at[i].name, unlimited ? 0 : 100 * used / capacity,
                   unlimited ? "unlimited" : "-");
    }
    buf_adds(&script, "EOD\nset yrange [0:105]\nset ylabel 'filled, %'\nset style fill pattern 1 border -1\n"
                      "set boxwidth 0.5\nset xtics noenhanced\nunset key\n"
                      "plot $d using 0:2:xtic(1) with boxes linecolor 'black'\n");
    figure_begin(out, "Tier fills");
    return figure_end(out, begin, &script, err);
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

/* Adds a cumulative distribution: the share of uses that are answered within a time. */
static void put_curve(struct buf *script, const char *name, struct weighed *at, int n)
{
    double total = 0, sum = 0, step = 0;

    for (int i = 0; i < n; i++)
        total += at[i].weight;
    qsort(at, (size_t)n, sizeof(*at), by_value);
    buf_printf(script, "$%s << EOD\n", name);
    for (int i = 0; i < n; i++) {
        sum += at[i].weight;
        if (sum < step && i + 1 < n)
            continue;
        buf_printf(script, "%.6g %.6g\n", at[i].v > 0 ? at[i].v : 1e-6, 100 * sum / total);
        step = sum + total / TTFT_POINTS;
    }
    buf_adds(script, "EOD\n");
}

int figure_ttft(struct buf *out, const struct report *r, struct err *err)
{
    const struct manifest *m = r->manifest;
    struct weighed *plan = calloc((size_t)m->n + 1, sizeof(*plan)), *whole = calloc((size_t)m->n + 1, sizeof(*whole));
    struct buf script = { 0 };
    size_t begin = out->n;
    int n = 0, n_whole = 0;

    for (int i = 0; i < m->n && plan && whole; i++) {
        const struct placement *p = &m->at[i];
        int c = r->table ? map_find(&r->table->ids, p->id, strlen(p->id)) : MAP_ABSENT;
        if (!(p->frequency > 0) || isnan(p->ttft_s))
            continue;
        plan[n++] = (struct weighed){ p->ttft_s, p->frequency };
        if (c >= 0)
            whole[n_whole++] = (struct weighed){ r->table->prefill_s[c] + r->table->question_s[c], p->frequency };
    }
    bool failed = !plan || !whole;
    if (n) {
        put_curve(&script, "plan", plan, n);
        if (n_whole)
            put_curve(&script, "whole", whole, n_whole);
        buf_adds(&script, "set logscale x\nset xlabel 'seconds to the first token'\nset ylabel 'uses answered, %'\n"
                          "set yrange [0:105]\nplot $plan with steps linecolor 'black' linewidth 2 title 'this plan'");
        buf_adds(&script, n_whole
                              ? ", $whole with steps linecolor 'black' dashtype 2 linewidth 2 title 'nothing stored'\n"
                              : "\n");
    }
    free(plan);
    free(whole);
    if (failed || n == 0) {
        buf_release(&script);
        return failed ? err_nomem(err) : 0;
    }
    figure_begin(out, "Time to the first token, weighted by use");
    return figure_end(out, begin, &script, err);
}
