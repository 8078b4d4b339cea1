/* gain.c - the choice in one picture: mean TTFT against mean quality of this plan, of the plans for other alphas
 * (frontier.tsv), and of plans that need no planner. Qualities are of held-out questions where all are known, so that
 * points can be compared; otherwise the ones that the plans were made with.
 */
#include "base/parse.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64, PLAN = 1, SWEEP = 0, BASELINE = 2 }; // series

static bool has_totals(const struct report *r)
{
    return r->manifest && r->manifest->n_totals > 0 && !isnan(r->manifest->total[0].ttft_s);
}

bool gain_known(const struct report *r)
{
    return has_totals(r) || (r->frontier && r->frontier->n > 0);
}

static bool is_held_out(const struct report *r)
{
    for (int i = 0; has_totals(r) && i < r->manifest->n_totals; i++)
        if (isnan(r->manifest->total[i].quality_test))
            return false;
    for (int i = 0; r->frontier && i < r->frontier->n; i++)
        if (isnan(tsv_cell(r->frontier, i, FRONTIER_TEST)))
            return false;
    return true;
}

struct gain {
    struct chart chart;
    struct chart_point sweep[POINTS], total[MANIFEST_TOTALS];
    double sweep_error[POINTS];
    int row[POINTS]; // of the frontier
    int n_sweep, n_total;
    bool held_out;
};

static void see(struct gain *g, struct chart_point p)
{
    axis_see(&g->chart.x, p.x);
    axis_see(&g->chart.y, p.y);
}

static void gather(struct gain *g, const struct report *r)
{
    const struct tsv *f = r->frontier;

    for (int i = 0; f && i < f->n && g->n_sweep < POINTS; i++) {
        struct chart_point p = { tsv_cell(f, i, FRONTIER_TTFT),
                                 tsv_cell(f, i, g->held_out ? FRONTIER_TEST : FRONTIER_QUALITY) };
        if (isnan(p.x) || isnan(p.y))
            continue;
        g->sweep_error[g->n_sweep] = tsv_named(f, i, g->held_out ? "quality_test_error" : "quality_error");
        g->row[g->n_sweep] = i;
        see(g, g->sweep[g->n_sweep++] = p);
    }
    for (int i = 0; has_totals(r) && i < r->manifest->n_totals; i++) {
        const struct manifest_total *t = &r->manifest->total[i];
        g->total[g->n_total] = (struct chart_point){ t->ttft_s, g->held_out ? t->quality_test : t->quality };
        see(g, g->total[g->n_total++]);
    }
}

static void title(char out[256], const char *name, struct chart_point p)
{
    char ttft[TEXT_SHORT];

    snprintf(out, 256, "%s: TTFT %s, quality %.3f", name, text_seconds(ttft, p.x), p.y);
}

static bool same_point(struct chart_point a, struct chart_point b)
{
    return fabs(a.x - b.x) <= 1e-3 * fabs(a.x) && fabs(a.y - b.y) <= 1e-3;
}

static void put_error(struct gain *g, struct chart_point p, double error)
{
    if (error > 0 && !isnan(p.x) && !isnan(p.y))
        chart_error(&g->chart, (struct chart_point){ p.x, p.y - error }, (struct chart_point){ p.x, p.y + error });
}

static void put_totals(struct gain *g, const struct report *r)
{
    char text[256];

    for (int i = g->n_total - 1; i >= 0; i--) {
        const struct manifest_total *t = &r->manifest->total[i];
        put_error(g, g->total[i], g->held_out ? t->quality_test_error : t->quality_error);
        title(text, r->manifest->total[i].name, g->total[i]);
        if (isnan(g->total[i].x) || isnan(g->total[i].y))
            continue;
        chart_mark(&g->chart, i ? BASELINE : PLAN, g->total[i], text);
        if (i == 0)
            chart_ring(&g->chart, g->total[i]);
    }
    for (int i = 0; i < g->n_total; i++) {
        bool hidden = isnan(g->total[i].x) || isnan(g->total[i].y);
        for (int k = 0; k < i; k++)
            hidden |= same_point(g->total[k], g->total[i]);
        snprintf(text, sizeof(text), i ? "%s" : "%s, alpha %g", r->manifest->total[i].name, r->manifest->alpha);
        if (!hidden)
            chart_label(&g->chart, g->total[i], text);
    }
}

void gain_svg(struct buf *out, const struct report *r)
{
    struct gain *g = calloc(1, sizeof(*g));
    char text[256];

    if (!g) {
        out->failed = true;
        return;
    }
    g->held_out = is_held_out(r);
    g->chart.out = out;
    g->chart.x = axis_of(AXIS_SECONDS, "mean time to first token");
    g->chart.y = axis_of(AXIS_QUALITY, g->held_out ? "quality, held-out questions" : "quality, training questions");
    gather(g, r);
    chart_begin(&g->chart, "Mean time to first token against mean quality");
    chart_line(&g->chart, SWEEP, g->sweep, g->n_sweep);
    for (int i = 0; i < g->n_sweep; i++) {
        char name[64];
        snprintf(name, sizeof(name), "alpha %g", tsv_cell(r->frontier, g->row[i], FRONTIER_ALPHA));
        put_error(g, g->sweep[i], g->sweep_error[i]);
        title(text, name, g->sweep[i]);
        chart_mark(&g->chart, SWEEP, g->sweep[i], text);
    }
    put_totals(g, r);
    for (int i = 0; i < g->n_sweep; i++) {
        bool hidden = false;
        for (int k = 0; k < g->n_total; k++)
            hidden |= same_point(g->total[k], g->sweep[i]);
        for (int k = 0; k < i; k++)
            hidden |= same_point(g->sweep[k], g->sweep[i]);
        snprintf(text, sizeof(text), "alpha %g", tsv_cell(r->frontier, g->row[i], FRONTIER_ALPHA));
        if (!hidden)
            chart_label(&g->chart, g->sweep[i], text);
    }
    chart_end(&g->chart);
    free(g);
}

void gain_table(struct buf *out, const struct report *r)
{
    const struct tsv *f = r->frontier;
    double slowest = 0;

    for (int i = 0; i < f->n; i++)
        slowest = fmax(slowest, tsv_cell(f, i, FRONTIER_TTFT));
    struct html_unit unit = html_seconds_unit(slowest);
    buf_adds(out, "<h3>One plan for each alpha</h3>\n");
    html_table(out, "Other alphas");
    html_column(out, "alpha, s");
    html_column_n(out, "mean TTFT", unit.name);
    html_column_n(out, "quality, training", NULL);
    html_column_n(out, "quality, held out", NULL);
    html_column_n(out, "recomputed", "%");
    html_rows(out);
    for (int i = 0; i < f->n; i++) {
        double alpha = tsv_cell(f, i, FRONTIER_ALPHA);
        char name[TEXT_SHORT];
        snprintf(name, sizeof(name), "%g", alpha);
        html_row(out, r->manifest && alpha == r->manifest->alpha ? ROW_CHOSEN : ROW_PLAIN, name, sizeof(name));
        html_cell_unit(out, tsv_cell(f, i, FRONTIER_TTFT), &unit);
        html_cell_error(out, tsv_cell(f, i, FRONTIER_QUALITY), tsv_named(f, i, "quality_error"));
        html_cell_error(out, tsv_cell(f, i, FRONTIER_TEST), tsv_named(f, i, "quality_test_error"));
        html_cell(out, 100 * tsv_named(f, i, "hits_recompute"), 1);
        html_row_end(out);
    }
    html_table_end(out);
}
