/* plan_explain.c - answers the questions of a reader who sees a plan for the first time. */
#include "cmd/plan_explain.h"

#include "base/log.h"
#include "profiler/score/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        log_info("quality 1 = same answers; two good answers score %.3f, unrelated ones %.3f", same, unrelated);
    else if (!isnan(unrelated))
        log_info("quality 1 = same answers; unrelated ones score %.3f", unrelated);
}

void plan_explain_gap(const struct manifest *m)
{
    if (m->optimal)
        log_info("utility %.9g, optimal: no plan exceeds it", m->objective);
    else if (isnan(m->gain_gap))
        log_info("utility %.9g; no plan exceeds %.9g", m->objective, m->upper_bound);
    else
        log_info("utility %.9g; no plan exceeds %.9g: this plan misses at most %.2g %% of the best plan's gain over "
                 "recomputing everything",
                 m->objective, m->upper_bound, 100 * m->gain_gap);
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
