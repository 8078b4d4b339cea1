/* report.c - writes the whole page. */
#include "report/report.h"

#include "profiler/score/score.h"
#include "report/report_internal.h"

#include <math.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>EvicPress report</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    "body{font-family:sans-serif;margin:1em auto;max-width:80em;padding:0 1em;color:#000;background:#fff}\n"
    "table{border-collapse:collapse;margin:.5em 0}td,th{border:1px solid #999;padding:.1em .5em;text-align:left;"
    "vertical-align:top}\nfigure{display:inline-block;margin:.5em;width:640px;max-width:100%;vertical-align:top}"
    "figcaption{font-weight:bold}\n"
    "svg{max-width:100%;height:auto}details{margin:.2em 0}summary{cursor:pointer}\n</style></head><body>\n"
    "<h1>EvicPress report</h1>\n";

static void put_plan(struct buf *out, const struct manifest *m)
{
    double used[TIER_MAX] = { 0 };
    int n[TIER_MAX + 1] = { 0 };

    buf_adds(out, "<h2>The plan compared with baselines</h2>\n<table><tr><th><th>utility<th>mean TTFT"
                  "<th>quality<th>held out\n");
    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        buf_adds(out, "<tr><td>");
        html_text(out, t->name);
        buf_printf(out, "<td>%.6g<td>", t->utility);
        html_seconds(out, t->ttft_s);
        buf_adds(out, "<td>");
        html_real(out, t->quality, 3);
        buf_adds(out, "<td>");
        html_real(out, t->quality_test, 3);
        buf_addc(out, '\n');
    }
    buf_printf(out, "</table>\n<p>Alpha is %.6g: a quality of 1 is worth %.6g seconds of TTFT.", m->alpha, m->alpha);
    if (m->slo_weight > 0)
        buf_printf(out, " The promised TTFT is %.6g s; each expected second beyond it costs %.6g seconds.",
                   m->slo_ttft_s, m->slo_weight);
    if (!isnan(m->upper_bound))
        buf_printf(out, " This plan has utility %.6g; no plan exceeds %.6g.", m->objective, m->upper_bound);
    buf_adds(out, "\n<h2>Tiers</h2>\n<table><tr><th>tier<th>contexts<th>used<th>capacity\n");
    for (int i = 0; i < m->n; i++) {
        n[m->at[i].tier < 0 ? TIER_MAX : m->at[i].tier]++;
        used[m->at[i].tier < 0 ? 0 : m->at[i].tier] += m->at[i].tier < 0 ? 0 : (double)m->at[i].bytes;
    }
    for (int i = 0; i < m->tiers.n; i++) {
        buf_printf(out, "<tr><td>%s<td>%d<td>", m->tiers.at[i].name, n[i]);
        html_bytes(out, used[i]);
        buf_adds(out, "<td>");
        if (m->tiers.at[i].capacity == INT64_MAX)
            buf_adds(out, "unlimited");
        else
            html_bytes(out, (double)m->tiers.at[i].capacity);
        buf_addc(out, '\n');
    }
    buf_printf(out, "<tr><td>recompute<td>%d<td>-<td>-\n</table>\n", n[TIER_MAX]);
}

static void put_receipt(struct buf *out, const struct receipt *r)
{
    buf_printf(out, "<h2>Loaded</h2>\n<p>%d of %d contexts have a payload on a tier.\n", r->in.n, r->ids.n);
}

/* The mean with its standard error. */
static void put_held_out(struct buf *out, const struct table *t, int v)
{
    double error = score_error(t, SPLIT_TEST, v);

    html_real(out, table_mean(t, t->quality_test, v), 3);
    if (!isnan(error))
        buf_printf(out, " &plusmn; %.3f", error);
}

static void put_configs(struct buf *out, const struct table *t)
{
    buf_adds(out, "<h2>Configs</h2>\n<table><tr><th>config<th>size<th>quality<th>held out<th>gold<th>decompression\n");
    for (int v = 0; v < t->n_configs; v++) {
        buf_adds(out, "<tr><td>");
        html_text(out, t->config_name[v]);
        buf_adds(out, "<td>");
        html_real(out, table_mean(t, t->size_frac, v), 3);
        buf_adds(out, "<td>");
        html_real(out, table_mean(t, t->quality_train, v), 3);
        buf_adds(out, "<td>");
        put_held_out(out, t, v);
        buf_adds(out, "<td>");
        html_real(out, table_mean(t, t->gold_mean, v), 3);
        buf_adds(out, "<td>");
        html_seconds(out, table_mean(t, t->decompress_s, v));
        buf_addc(out, '\n');
    }
    buf_adds(out, "</table>\n");
    report_scale(out, t);
    if (!t->quality_train)
        buf_adds(out, "<p>The profile has no qualities yet: run evp-score on it.\n");
}

static int put_figures(struct buf *out, const struct report *r, struct err *err)
{
    int code = 0;

    if (r->manifest)
        code = figure_fills(out, r->manifest, err);
    if (!code && r->manifest)
        code = figure_ttft(out, r, err);
    if (!code && r->table)
        code = figure_quality(out, r->table, err);
    if (!code && r->table)
        code = figure_held_out(out, r->table, err);
    return code;
}

int report_write(struct report *r, struct buf *html, struct err *err)
{
    const char *model = r->table ? r->table->model : "";

    buf_adds(html, head);
    if (*model) {
        buf_adds(html, "<p>Model ");
        html_text(html, model);
        buf_printf(html, ": %d contexts, %d configs, %d questions.\n", r->table->n_contexts, r->table->n_configs,
                   r->table->n_questions);
    }
    if (r->manifest)
        put_plan(html, r->manifest);
    if (r->receipt)
        put_receipt(html, r->receipt);
    int code = put_figures(html, r, err);
    r->no_plots = code == PLOT_ABSENT;
    if (r->no_plots)
        buf_adds(html, "<p>No plots: gnuplot is not installed.\n");
    else if (code)
        return code;
    if (r->table) {
        put_configs(html, r->table);
        report_examples(html, r->table);
    }
    if (r->manifest)
        report_contexts(html, r, err);
    buf_adds(html, "</body></html>\n");
    return buf_failed(html) ? err_nomem(err) : 0;
}
