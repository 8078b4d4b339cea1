/* plan_explain.c - answers the questions of a reader who sees a plan for the first time. */
#include "cmd/plan_explain.h"

#include "base/log.h"
#include "profiler/score/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double NEARLY_ALL = 0.95;

const char *plan_text_per_use(char out[TEXT_SHORT], const struct placement_plan *p, double sum)
{
    double uses = 0;

    for (int i = 0; i < p->in->table.n_contexts; i++)
        uses += p->in->frequency[i];
    snprintf(out, TEXT_SHORT, "%.4f", sum / uses);
    return uses > 0 ? out : "-";
}

const char *plan_text_price(char out[TEXT_SHORT], double price)
{
    double per_gib = price * 0x1p30;

    snprintf(out, TEXT_SHORT, "%.3g", per_gib < 1e-9 ? 0 : per_gib);
    return out;
}

void plan_explain_fit(const struct placement_plan *p)
{
    int n = 0;

    for (int i = 0; i < p->plan.n_contexts; i++) {
        const struct plan_placement *at = &p->plan.placement[i];
        if (p->in->frequency[p->in->row[i]] <= 0)
            continue;
        if (at->tier == PLAN_RECOMPUTE || strcmp(p->in->table.config_name[at->config], "none") != 0)
            return;
        n++;
    }
    if (n)
        log_info("every context fits uncompressed: compression is not needed on these tiers");
}

void plan_explain_quality(const struct placement_plan *p)
{
    double unrelated = score_unrelated(&p->in->table), same = score_same_meaning(&p->in->table);

    if (!isnan(unrelated) && !isnan(same))
        log_info("quality 1 = same answers; second answers of the uncompressed cache score %.3f, unrelated ones %.3f",
                 same, unrelated);
    else if (!isnan(unrelated))
        log_info("quality 1 = same answers; unrelated ones score %.3f", unrelated);
}

void plan_explain_gap(const struct manifest *m)
{
    char moved[2 * TEXT_SHORT + 64] = "";
    double utility = m->n_totals ? m->total[0].utility : m->objective;

    if (utility - m->objective > 1e-9 * fabs(utility))
        snprintf(moved, sizeof(moved), " (%.9g less %.3g for %s)", utility, utility - m->objective,
                 m->pack_weight > 0 ? "packing and moving" : "moving");
    if (m->optimal)
        log_info("utility %.9g%s, optimal: no plan exceeds it", m->objective, moved);
    else if (isnan(m->gain_gap))
        log_info("utility %.9g%s; no plan exceeds %.9g", m->objective, moved, m->upper_bound);
    else
        log_info("utility %.9g%s; no plan exceeds %.9g: this plan misses at most %.2g %% of the best plan's gain over "
                 "recomputing everything",
                 m->objective, moved, m->upper_bound, 100 * m->gain_gap);
}

/* The shortest TTFT of a context from any tier, whatever its quality; infinite: no variant has a size. */
static double fastest_load(const struct placement_input *in, int row)
{
    double least = HUGE_VAL;

    for (int v = 0; v < in->table.n_configs; v++)
        for (int t = 0; t < in->tiers.n && in->table.cell_bytes[table_cell(&in->table, row, v)] >= 0; t++)
            least = fmin(least, placement_ttft(in, row, (struct plan_placement){ v, t }));
    return least;
}

/* The uses that are recomputed; *all: of all contexts. */
static double recomputed_uses(const struct placement_plan *p, double *all)
{
    double recomputed = 0;

    *all = 0;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        double frequency = p->in->frequency[p->in->row[i]];
        *all += frequency;
        recomputed += p->plan.placement[i].tier == PLAN_RECOMPUTE && frequency > 0 ? frequency : 0;
    }
    return recomputed;
}

void plan_explain_recompute(const struct placement_plan *p)
{
    const struct placement_input *in = p->in;
    double uses, recomputed = recomputed_uses(p, &uses), recompute_s = 0, load_s = 0, slower = 0;
    char recompute[TEXT_SHORT], load[TEXT_SHORT];

    if (!(recomputed >= NEARLY_ALL * uses) || !(uses > 0))
        return;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i];
        double frequency = in->frequency[row];
        if (p->plan.placement[i].tier != PLAN_RECOMPUTE || !(frequency > 0))
            continue;
        double own_s = placement_ttft(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });
        double least_s = fastest_load(in, row);
        recompute_s += frequency * own_s;
        load_s += frequency * least_s;
        slower += least_s >= own_s ? frequency : 0;
    }
    if (isinf(load_s))
        return;
    text_seconds(recompute, recompute_s / recomputed);
    text_seconds(load, load_s / recomputed);
    if (slower >= NEARLY_ALL * recomputed)
        log_info("recomputing is best for %.0f %% of the uses: it takes %s, and loading the fastest variant from any "
                 "tier %s; nothing needs to be stored",
                 100 * recomputed / uses, recompute, load);
    else
        log_info("recomputing is chosen for %.0f %% of the uses, at %s; loading the fastest variant would take %s, but "
                 "does not fit, or loses more quality than the time is worth at this alpha",
                 100 * recomputed / uses, recompute, load);
}

/* Prints a line of cells between tabs in columns. */
static void say_line(const char *line, size_t n)
{
    char text[1024];
    int at = 0;

    for (size_t i = 0; i <= n && at < (int)sizeof(text) - 32;) {
        size_t cell = 0;
        while (i + cell < n && line[i + cell] != '\t')
            cell++;
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%*.*s", at ? "  " : "", cell > 12 ? 0 : 12,
                       (int)(cell > 31 ? 31 : cell), line + i);
        i += cell + 1;
    }
    log_info("%s", text);
}

void plan_explain_frontier(const char *tsv)
{
    for (const char *line = tsv, *end; (end = strchr(line, '\n')); line = end + 1)
        say_line(line, (size_t)(end - line));
    log_info("a larger alpha buys quality with TTFT: take the smallest alpha with a quality you accept; hits_recompute "
             "is the share of uses that no tier serves");
}
