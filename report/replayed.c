/* replayed.c - what users would have seen with each policy (evp-replay): TTFT against quality, TTFT against the rate,
 * and a table with hits and promises. */
#include "report/report_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The rows of the policies that figures show. */
struct shown {
    const struct tsv *table;
    const char *policy[CHART_SERIES];
    int n;
    bool more; // than there are marks
};

static int series_of(const struct shown *s, int row)
{
    int k = 0;

    while (k < s->n && strcmp(s->policy[k], s->table->name[row]) != 0)
        k++;
    return k < s->n ? k : -1;
}

static struct shown choose(const struct tsv *t)
{
    struct shown s = { .table = t };

    for (int i = 0; i < t->n; i++) {
        if (series_of(&s, i) >= 0)
            continue;
        if (s.n < CHART_SERIES)
            s.policy[s.n++] = t->name[i];
        else
            s.more = true;
    }
    return s;
}

static void put_key(struct buf *out, const struct shown *s)
{
    buf_adds(out, "<ul class=\"key\">");
    for (int k = 0; k < s->n; k++) {
        buf_adds(out, "<li>");
        chart_key(out, k);
        html_short(out, s->policy[k], 60);
        buf_adds(out, "</li>");
    }
    buf_adds(out, "</ul>\n");
}

/* ---- against quality --------------------------------------------------------- */

/* The lowest rate at which requests may wait; 0: there is none. */
static double first_rate(const struct tsv *t)
{
    double first = (double)INFINITY;

    for (int i = 0; i < t->n; i++) {
        double rate = tsv_named(t, i, "rate");
        if (rate > 0 && rate < first)
            first = rate;
    }
    return isfinite(first) ? first : 0;
}

static struct chart_point point_of(const struct tsv *t, int row, const char *x, const char *y)
{
    return (struct chart_point){ tsv_named(t, row, x), tsv_named(t, row, y) };
}

static bool is_known(struct chart_point p)
{
    return isfinite(p.x) && isfinite(p.y);
}

static void draw_quality(struct buf *out, const struct shown *s, double rate)
{
    const struct tsv *t = s->table;
    struct chart c = { .out = out,
                       .x = axis_of(AXIS_SECONDS, "mean time to first token"),
                       .y = axis_of(AXIS_QUALITY, "quality") };
    char text[256];

    for (int i = 0; i < t->n; i++)
        if (tsv_named(t, i, "rate") == rate && series_of(s, i) >= 0) {
            axis_see(&c.x, tsv_named(t, i, "ttft_mean_s"));
            axis_see(&c.y, tsv_named(t, i, "quality"));
        }
    chart_begin(&c, "Mean time to first token against quality, by policy");
    for (int i = 0; i < t->n; i++) {
        struct chart_point at = point_of(t, i, "ttft_mean_s", "quality");
        if (tsv_named(t, i, "rate") != rate || series_of(s, i) < 0 || !is_known(at))
            continue;
        snprintf(text, sizeof(text), "%.120s, alpha %g: TTFT %.3g s, quality %.3f", t->name[i],
                 tsv_named(t, i, "alpha"), at.x, at.y);
        chart_mark(&c, series_of(s, i), at, text);
    }
    chart_end(&c);
}

/* ---- against the rate ---------------------------------------------------------- */

enum { RATES = 64 };

/* The points of a policy with its first alpha, in the order of the rows; returns how many. */
static int points_over_rates(const struct shown *s, int series, const char *column, struct chart_point *at)
{
    const struct tsv *t = s->table;
    double alpha = (double)NAN;
    int n = 0;

    for (int i = 0; i < t->n && n < RATES; i++) {
        struct chart_point p = point_of(t, i, "rate", column);
        if (series_of(s, i) != series || !(p.x > 0) || !is_known(p))
            continue;
        if (isnan(alpha))
            alpha = tsv_named(t, i, "alpha");
        if (tsv_named(t, i, "alpha") == alpha)
            at[n++] = p;
    }
    return n;
}

static void figure_rates(struct buf *out, const struct shown *s, const char *name, const char *label,
                         const char *column)
{
    struct chart c = { .out = out,
                       .x = axis_of(AXIS_NUMBER, "requests per second"),
                       .y = axis_of(AXIS_SECONDS, label) };
    struct chart_point at[RATES];
    int most = 0;

    for (int k = 0; k < s->n; k++) {
        int n = points_over_rates(s, k, column, at);
        most = n > most ? n : most;
        for (int i = 0; i < n; i++) {
            axis_see(&c.x, at[i].x);
            axis_see(&c.y, at[i].y);
        }
    }
    if (most < 2)
        return;
    figure_begin(out, name, NULL);
    chart_begin(&c, name);
    for (int k = 0; k < s->n; k++) {
        int n = points_over_rates(s, k, column, at);
        chart_line(&c, k, at, n);
        for (int i = 0; i < n; i++)
            chart_mark(&c, k, at[i], s->policy[k]);
    }
    chart_end(&c);
    put_key(out, s);
    buf_adds(out, "</figure>\n");
}

/* ---- the table ------------------------------------------------------------------ */

static void put_columns(struct buf *out, const struct tsv *t, const struct html_unit *unit)
{
    html_table(out, "What users would have seen");
    html_column(out, "policy");
    html_column_n(out, "rate", "1/s");
    html_column_n(out, "alpha", NULL);
    html_column_n(out, "mean TTFT", unit->name);
    html_column_n(out, "95th percentile", unit->name);
    html_column_n(out, "promised", unit->name);
    html_column_n(out, "quality", NULL);
    for (int k = 0; k < t->n_columns; k++)
        if (strncmp(t->column[k], "hits_", 5) == 0)
            html_column_n(out, t->column[k] + 5, NULL);
    html_column_n(out, "GPU busy", NULL);
    html_column(out, "busiest");
    html_column_n(out, "busy", NULL);
    html_rows(out);
}

static void put_rows(struct buf *out, const struct tsv *t)
{
    enum { ROWS_MAX = 500 };
    double slowest = 0;

    for (int i = 0; i < t->n; i++)
        slowest = fmax(slowest, tsv_named(t, i, "ttft_mean_s"));
    const struct html_unit unit = html_seconds_unit(slowest);
    put_columns(out, t, &unit);
    for (int i = 0; i < t->n && i < ROWS_MAX; i++) {
        html_row(out, ROW_PLAIN, t->name[i], 60);
        html_cell(out, tsv_named(t, i, "rate"), 3);
        html_cell(out, tsv_named(t, i, "alpha"), 2);
        html_cell_unit(out, tsv_named(t, i, "ttft_mean_s"), &unit);
        html_cell_unit(out, tsv_named(t, i, "ttft_p95_s"), &unit);
        html_cell_unit(out, tsv_named(t, i, "promised_ttft_s"), &unit);
        html_cell_error(out, tsv_named(t, i, "quality"), tsv_named(t, i, "quality_ci"));
        for (int k = 0; k < t->n_columns; k++)
            if (strncmp(t->column[k], "hits_", 5) == 0)
                html_cell(out, tsv_cell(t, i, k), 3);
        html_cell(out, tsv_named(t, i, "gpu_busy"), 3);
        const char *busiest = tsv_text(t, i, "busiest");
        html_cell_text(out, busiest ? busiest : "-");
        html_cell(out, tsv_named(t, i, "busiest_busy"), 3);
        html_row_end(out);
    }
    html_table_end(out);
    if (t->n > ROWS_MAX)
        buf_printf(out, "<p class=\"note\">%d further lines are left out.</p>\n", t->n - ROWS_MAX);
}

static void put_inputs(struct buf *out, const struct tsv *t)
{
    const char *inputs = t->n ? tsv_text(t, 0, "inputs") : NULL;

    if (!inputs)
        return;
    buf_adds(out, "<p>Replayed: ");
    html_short(out, inputs, 2000);
    buf_adds(out, "</p>\n");
}

void report_replayed(struct buf *out, const struct tsv *t)
{
    const struct shown s = choose(t);
    double rate = first_rate(t);

    buf_adds(out, "<section>\n<h2 id=\"replay\">What users would have seen</h2>\n");
    put_inputs(out, t);
    buf_adds(out, "<div class=\"figures\">\n");
    figure_begin(out, "Time to first token against quality, replayed", NULL);
    draw_quality(out, &s, rate);
    put_key(out, &s);
    if (rate > 0)
        buf_printf(out, "<p class=\"note\">With %.4g requests per second, of all rates the lowest.", rate);
    else
        buf_adds(out, "<p class=\"note\">One request after the other: nobody waits.");
    buf_adds(out, s.more ? " Further policies are in the table.</p>\n</figure>\n" : "</p>\n</figure>\n");
    figure_rates(out, &s, "Time to first token against the rate", "mean time to first token", "ttft_mean_s");
    figure_rates(out, &s, "95th percentile against the rate", "TTFT of the slowest twentieth", "ttft_p95_s");
    figure_rates(out, &s, "Latency against the rate", "mean time to last token", "e2e_s");
    buf_adds(out, "</div>\n");
    put_rows(out, t);
    buf_adds(out, "<p class=\"note\">Tiers: shares of what requests found there; the last of them: what was computed. "
                  "Promised: what the plan expected, without queues.</p>\n</section>\n");
}
