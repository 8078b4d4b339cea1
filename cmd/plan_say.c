/* plan_say.c - one line per fact; text_bytes() and text_seconds() choose the units. */
#include "cmd/plan_say.h"

#include "base/log.h"
#include "base/parse.h"

void plan_say_left_out(const struct placement_left_out *left_out)
{
    if (left_out->cells)
        log_warn("%zu cells that break a rule were left out", left_out->cells);
    if (left_out->accesses_unknown)
        log_warn("%lld of %lld accesses are to contexts that the table does not have",
                 (long long)left_out->accesses_unknown, (long long)left_out->accesses);
    if (left_out->rules_unknown)
        log_warn("%lld rules are for contexts that the table does not have", (long long)left_out->rules_unknown);
    if (left_out->pins_unknown)
        log_warn("%lld pins to unknown tiers were left out", (long long)left_out->pins_unknown);
}

/* "new": the context was nowhere that it could stay. */
static void say_moves(const struct placement_plan *p)
{
    const struct tiers *tiers = &p->in->tiers;
    struct placement_moves moves;
    char text[TEXT_SHORT];

    placement_moves(p, &moves);
    for (int from = -1; from < tiers->n; from++)
        for (int to = 0; to < tiers->n; to++)
            if (moves.at[from + 1][to].n)
                log_info("write %-12s -> %-12s %d contexts, %s", from < 0 ? "new" : tiers->at[from].name,
                         tiers->at[to].name, moves.at[from + 1][to].n, text_bytes(text, moves.at[from + 1][to].bytes));
}

static void say_tier(const struct placement_plan *p, int tier)
{
    const struct placement_input *in = p->in;
    char fill[TEXT_SHORT], capacity[TEXT_SHORT];
    int n = 0;

    for (int i = 0; i < p->plan.n_contexts; i++)
        n += p->plan.placement[i].tier == tier;
    if (tier == PLAN_RECOMPUTE) {
        log_info("tier %-12s %d contexts", "recompute", n);
        return;
    }
    log_info("tier %-12s %d contexts, %s of %s, price %.3g per GiB", in->tiers.at[tier].name, n,
             text_bytes(fill, (double)p->plan.fill[tier]),
             in->capacity[tier] == INT64_MAX ? "unlimited" : text_bytes(capacity, (double)in->capacity[tier]),
             p->plan.price[tier] * 0x1p30);
}

void plan_say(const struct placement_plan *p, const struct manifest *m)
{
    char ttft[TEXT_SHORT];

    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        log_info("%-40s utility %10.4f  TTFT %9s  quality %.3f, held out %.3f", t->name, t->utility,
                 text_seconds(ttft, t->ttft_s), t->quality, t->quality_test);
    }
    for (int t = 0; t < p->in->tiers.n; t++)
        say_tier(p, t);
    say_tier(p, PLAN_RECOMPUTE);
    if (p->in->previous.n)
        say_moves(p);
    log_info("utility %.9g, no plan exceeds %.9g: gap %.2g, of the possible gain %.2g", m->objective, m->upper_bound,
             m->gap, m->gain_gap);
}
