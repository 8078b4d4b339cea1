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
               "<p class=\"note\">Utility of a use: alpha &times; quality &minus; TTFT, in seconds. Alpha is %g s: a "
               "loss of 0.1 in quality must save %g s.",
               m->alpha, m->alpha / 10);
    if (m->slo_weight > 0)
        buf_printf(out, " The promised TTFT is %g s; each expected second beyond it costs %g.", m->slo_ttft_s,
                   m->slo_weight);
    if (m->optimal)
        buf_adds(out, " No plan has a higher utility.");
    else if (!isnan(m->gain_gap))
        buf_printf(out, " The best plan gains at most %.2g %% more over recomputing everything.", 100 * m->gain_gap);
    buf_adds(out, " Quality is planned from training questions; held-out questions are not seen by the planner.\n");
}

void report_totals(struct buf *out, const struct manifest *m)
{
    double slowest = 0, most = 0, uses = uses_of(m);

    if (m->n_totals == 0)
        return;
    for (int i = 0; i < m->n_totals; i++) {
        slowest = fmax(slowest, m->total[i].ttft_s);
        most = fmax(most, fabs(m->total[i].utility / uses));
    }
    struct html_unit unit = html_seconds_unit(slowest);
    html_table(out, "The plan and its baselines");
    buf_printf(
        out,
        "<caption>Means over all uses</caption>\n<thead><tr><th scope=\"col\">plan<th scope=\"col\" class=\"n\">"
        "TTFT,&nbsp;%s<th scope=\"col\" class=\"n\">quality, planned<th scope=\"col\" class=\"n\">quality, held out"
        "<th scope=\"col\" class=\"n\">utility,&nbsp;s\n<tbody>\n",
        unit.name);
    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        buf_adds(out, i ? "<tr><th scope=\"row\">" : "<tr class=\"chosen\"><th scope=\"row\">");
        html_text(out, t->name);
        html_cell_unit(out, t->ttft_s, &unit);
        html_cell(out, t->quality, 3);
        html_cell(out, t->quality_test, 3);
        html_cell(out, t->utility / uses, html_digits(most));
        buf_addc(out, '\n');
    }
    html_table_end(out);
    put_alpha(out, m);
}

/* ---- tiers ----------------------------------------------------------------- */

struct fill {
    int contexts, loaded;
    double bytes;
};

/* fill[TIER_MAX]: recomputed contexts. */
static void fills_of(const struct report *r, struct fill fill[TIER_MAX + 1])
{
    const struct manifest *m = r->manifest;

    for (int i = 0; i < m->n; i++) {
        struct fill *f = &fill[m->at[i].tier < 0 ? TIER_MAX : m->at[i].tier];
        f->contexts++;
        f->bytes += (double)m->at[i].bytes;
    }
    for (int i = 0; r->receipt && i < r->receipt->in.n; i++)
        for (int t = 0; t < m->tiers.n; t++)
            fill[t].loaded += strcmp(r->receipt->tiers.at[r->receipt->in.at[i].tier].name, m->tiers.at[t].name) == 0;
}

static void put_bar(struct buf *out, double share)
{
    double shown = share < 0 ? 0 : share > 1 ? 1 : share;

    buf_printf(out, "<td class=\"fill\"><span class=\"bar\"><span style=\"width:%.1f%%\"></span></span> %.0f %%",
               100 * shown, 100 * share);
}

static void put_tier(struct buf *out, const struct report *r, int i, const struct fill *f)
{
    const struct tier *t = &r->manifest->tiers.at[i];
    double price = r->manifest->price[i] * 0x1p30;
    struct html_unit unit = html_bytes_unit(t->capacity == INT64_MAX ? f->bytes : (double)t->capacity);

    buf_printf(out, "<tr><th scope=\"row\">%s<td class=\"n\">%d", t->name, f->contexts);
    if (t->capacity == INT64_MAX || t->capacity <= 0)
        buf_adds(out, "<td class=\"fill\">-");
    else
        put_bar(out, f->bytes / (double)t->capacity);
    buf_printf(out, "<td class=\"n\">%.*f of ", unit.digits, f->bytes / unit.size);
    if (t->capacity == INT64_MAX)
        buf_printf(out, "unlimited %s", unit.name);
    else
        buf_printf(out, "%.*f %s", unit.digits, (double)t->capacity / unit.size, unit.name);
    html_cell(out, price, html_digits(price));
    if (r->receipt)
        buf_printf(out, "<td class=\"n\">%d", f->loaded);
    buf_addc(out, '\n');
}

void report_tiers(struct buf *out, const struct report *r)
{
    struct fill fill[TIER_MAX + 1] = { 0 };

    fills_of(r, fill);
    html_table(out, "Tiers");
    buf_printf(
        out,
        "<caption>What the tiers hold</caption>\n<thead><tr><th scope=\"col\">tier<th scope=\"col\" class=\"n\">"
        "contexts<th scope=\"col\">filled<th scope=\"col\" class=\"n\">used<th scope=\"col\" class=\"n\">rent, s "
        "per GiB%s\n<tbody>\n",
        r->receipt ? "<th scope=\"col\" class=\"n\">loaded" : "");
    for (int i = 0; i < r->manifest->tiers.n; i++)
        put_tier(out, r, i, &fill[i]);
    buf_printf(
        out,
        "<tr><th scope=\"row\">recompute<td class=\"n\">%d<td class=\"fill\">-<td class=\"n\">-<td class=\"n\">-%s\n",
        fill[TIER_MAX].contexts, r->receipt ? "<td class=\"n\">-" : "");
    html_table_end(out);
    buf_adds(out, "<p class=\"note\">Rent: what one more GiB would gain, in seconds of utility over all uses. It is 0 "
                  "where there is room left.\n");
}
