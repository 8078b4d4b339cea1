/* totals.c - the plan beside plans that need no planner, and what its tiers hold. */
#include "report/report_internal.h"

#include <math.h>
#include <string.h>

static double uses_of(const struct manifest *m)
{
    double uses = 0;

    for (int i = 0; i < m->n; i++)
        uses += m->at[i].frequency;
    return uses > 0 ? uses : (double)NAN;
}

static void put_alpha(struct buf *out, const struct manifest *m)
{
    buf_printf(out,
               "<p class=\"note\">Utility of a use: alpha &#215; quality &#8722; TTFT, in seconds. Alpha is %g s: a "
               "loss of 0.1 in quality must save %g s.",
               m->alpha, m->alpha / 10);
    if (m->slo_weight > 0)
        buf_printf(out, " The promised TTFT is %g s; each expected second beyond it costs %g.", m->slo_ttft_s,
                   m->slo_weight);
    if (m->optimal)
        buf_adds(out, " No plan has a higher utility.");
    else if (!isnan(m->gain_gap))
        buf_printf(out, " The best plan gains at most %.2g %% more over recomputing everything.", 100 * m->gain_gap);
    buf_adds(
        out,
        " Quality is planned from training questions; the planner does not see held-out ones, and a mean over them "
        "needs answers of all compressed contexts. &#177;: standard error.</p>\n");
}

struct totals_form {
    struct html_unit unit;
    int digits;
};

static void put_total(struct buf *out, const struct manifest *m, int i, const char *name,
                      const struct totals_form *form)
{
    const struct manifest_total *t = &m->total[i];

    html_row(out, i || name != t->name ? ROW_PLAIN : ROW_CHOSEN, name, sizeof(t->name));
    html_cell_unit(out, t->ttft_s, &form->unit);
    html_cell_error(out, t->quality, t->quality_error);
    if (t->n_tested < t->n_compressed)
        buf_printf(out, "<td>%d of %d tested</td>", t->n_tested, t->n_compressed);
    else
        html_cell_error(out, t->quality_test, t->quality_test_error);
    html_cell(out, t->utility / uses_of(m), form->digits);
    html_row_end(out);
}

void report_totals(struct buf *out, const struct report *r)
{
    const struct manifest *m = r->manifest;
    double slowest = 0, most = 0, uses = uses_of(m);

    if (m->n_totals == 0)
        return;
    for (int i = 0; i < m->n_totals; i++) {
        slowest = fmax(slowest, m->total[i].ttft_s);
        most = fmax(most, fabs(m->total[i].utility / uses));
    }
    struct totals_form form = { html_seconds_unit(slowest), html_digits(most) };
    buf_adds(out, "<h3>Means over all uses</h3>\n");
    html_table(out, "The plan and its baselines");
    html_column(out, "plan");
    html_column_n(out, "TTFT", form.unit.name);
    html_column_n(out, "quality, planned", NULL);
    html_column_n(out, "quality, held out", NULL);
    html_column_n(out, "utility", "s");
    html_rows(out);
    for (int i = 0; i < m->n_totals; i++) {
        put_total(out, m, i, m->total[i].name, &form);
        if (i == 0 && r->before && r->before->n_totals)
            put_total(out, r->before, 0, "the plan before, over its uses", &form);
    }
    html_table_end(out);
    put_alpha(out, m);
}

/* ---- tiers ----------------------------------------------------------------- */

struct fill {
    int contexts, before, loaded;
    double bytes;
};

/* Counts the contexts of the plan before on tiers of the same names. */
static void count_before(const struct report *r, struct fill fill[TIER_MAX + 1])
{
    const struct manifest *b = r->before;

    for (int i = 0; b && i < b->n; i++) {
        int tier = b->at[i].tier < 0 ? TIER_MAX : tiers_find(&r->manifest->tiers, b->tiers.at[b->at[i].tier].name);
        if (tier >= 0)
            fill[tier].before++;
    }
}

/* fill[TIER_MAX]: recomputed contexts. */
static void fills_of(const struct report *r, struct fill fill[TIER_MAX + 1])
{
    const struct manifest *m = r->manifest;

    for (int i = 0; i < m->n; i++) {
        struct fill *f = &fill[m->at[i].tier < 0 ? TIER_MAX : m->at[i].tier];
        f->contexts++;
        f->bytes += (double)m->at[i].bytes;
    }
    count_before(r, fill);
    for (int i = 0; r->receipt && i < r->receipt->in.n; i++)
        for (int t = 0; t < m->tiers.n; t++)
            fill[t].loaded += strcmp(r->receipt->tiers.at[r->receipt->in.at[i].tier].name, m->tiers.at[t].name) == 0;
}

/* A cell with the filled share, as a bar and in per cent. */
static void put_fill(struct buf *out, const struct tier *t, double bytes)
{
    double share = t->capacity == INT64_MAX || t->capacity <= 0 ? (double)NAN : bytes / (double)t->capacity;

    if (isnan(share))
        buf_adds(out, "<td class=\"fill\">-</td>");
    else
        buf_printf(out,
                   "<td class=\"fill\"><span class=\"bar\"><span style=\"width:%.1f%%\"></span></span> %.0f %%</td>",
                   100 * fmin(share, 1), 100 * share);
}

static void put_tier(struct buf *out, const struct report *r, int i, const struct fill *f)
{
    const struct tier *t = &r->manifest->tiers.at[i];
    double price = r->manifest->price[i] * 0x1p30;
    struct html_unit unit = html_bytes_unit(t->capacity == INT64_MAX ? f->bytes : (double)t->capacity);

    html_row(out, ROW_PLAIN, t->name, sizeof(t->name));
    html_cell_int(out, f->contexts);
    if (r->before)
        html_cell_int(out, f->before);
    put_fill(out, t, f->bytes);
    buf_printf(out, "<td>%.*f of ", unit.digits, f->bytes / unit.size);
    if (t->capacity == INT64_MAX)
        buf_printf(out, "unlimited %s</td>", unit.name);
    else
        buf_printf(out, "%.*f %s</td>", unit.digits, (double)t->capacity / unit.size, unit.name);
    html_cell(out, price, html_digits(price));
    if (r->receipt)
        html_cell_int(out, f->loaded);
    html_row_end(out);
}

void report_tiers(struct buf *out, const struct report *r)
{
    struct fill fill[TIER_MAX + 1] = { 0 };

    fills_of(r, fill);
    buf_adds(out, "<h3>What the tiers hold</h3>\n");
    html_table(out, "Tiers");
    html_column(out, "tier");
    html_column_n(out, "contexts", NULL);
    if (r->before)
        html_column_n(out, "before", NULL);
    html_column(out, "filled");
    html_column_n(out, "used", NULL);
    html_column_n(out, "rent", "s per GiB");
    if (r->receipt)
        html_column_n(out, "loaded", NULL);
    html_rows(out);
    for (int i = 0; i < r->manifest->tiers.n; i++)
        put_tier(out, r, i, &fill[i]);
    html_row(out, ROW_PLAIN, "recompute", TIER_NAME);
    html_cell_int(out, fill[TIER_MAX].contexts);
    if (r->before)
        html_cell_int(out, fill[TIER_MAX].before);
    buf_adds(out, "<td class=\"fill\">-</td>");
    for (int i = r->receipt ? 0 : 1; i < 3; i++)
        html_cell(out, (double)NAN, 0);
    html_row_end(out);
    html_table_end(out);
    buf_adds(out, "<p class=\"note\">Rent: what one more GiB would gain, in seconds of utility over all uses. It is 0 "
                  "where there is room left.</p>\n");
}
