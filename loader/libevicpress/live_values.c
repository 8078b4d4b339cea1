/* live_values.c - the contexts of a live plan in the planner's numbers: what they could be, and what they are worth. */
#include "loader/libevicpress/live_plan.h"

#include <math.h>
#include <string.h>

static bool may_hold(const struct live_plan *l, const struct variants *f, int variant, int tier)
{
    const struct tier *t = &l->opened.tiers.at[tier];

    return (!f->pin || strcmp(f->pin, t->name) == 0) && tier_allows(t, f->at[variant].config);
}

double live_candidates(const struct live_plan *l, const struct live_context *c, int64_t *bytes, double *out)
{
    const struct tiers *tiers = &l->opened.tiers;
    const struct variants *f = &c->variants;
    const struct plan_goal goal = live_plan_goal(l);
    double recomputed = utility_recomputed(&goal, ttft_recomputed(f->prefill_s, f->question_s),
                                           sd_of_sum(f->prefill_sd_s, f->question_sd_s), c->frequency);

    for (int v = f->n; v < LIVE_VARIANTS; v++)
        bytes[v] = -1;
    for (int v = 0; v < f->n; v++) {
        bytes[v] = f->at[v].config ? f->at[v].bytes : -1;
        for (int t = 0; t < tiers->n && bytes[v] >= 0; t++) {
            double read_s = tier_read_s(&tiers->at[t], bytes[v]),
                   sd_s = sd_of_sum(tier_read_sd_s(&tiers->at[t], read_s), f->question_sd_s);
            double ttft_s = ttft_stored(read_s, f->at[v].decompress_s, f->question_s);
            out[v * tiers->n + t] =
                may_hold(l, f, v, t) ? utility(&goal, f->at[v].quality, ttft_s, sd_s, c->frequency) : (double)NAN;
        }
    }
    return f->pin && strcmp(f->pin, "recompute") != 0 ? utility_unpinned(recomputed) : recomputed;
}

int live_check_utilities(const struct live_plan *l, const struct live_context *c, struct plan_candidates *to,
                         struct err *err)
{
    int n_tiers = l->problem.n_tiers;

    to->recompute = live_candidates(l, c, to->bytes, to->utility);
    if (!(fabs(to->recompute) <= LIVE_UTILITY_MAX))
        return err_set(err, ERR_FORMAT, "utility is out of range: it is above %g in size", LIVE_UTILITY_MAX);
    for (int v = 0; v < c->variants.n; v++)
        for (int t = 0; t < n_tiers && to->bytes[v] >= 0; t++)
            if (fabs(to->utility[v * n_tiers + t]) > LIVE_UTILITY_MAX)
                return err_set(err, ERR_FORMAT, "variant '%s': utility is out of range: it is above %g in size",
                               c->variants.at[v].config, LIVE_UTILITY_MAX);
    return 0;
}

struct density_context live_planned(const struct live_plan *l, const struct live_context *c, struct density_form *form)
{
    const struct variants *f = &c->variants;
    struct density_context all = { f->prefill_s,
                                   f->question_s,
                                   f->prefill_sd_s,
                                   f->question_sd_s,
                                   form,
                                   f->n,
                                   -1,
                                   f->pin && strcmp(f->pin, "recompute") != 0 };

    for (int v = 0; v < f->n; v++) {
        const struct variant_info *from = &f->at[v];
        form[v] = (struct density_form){ from->config ? from->bytes : -1, from->quality, from->decompress_s, 0 };
        all.whole = from->config && strcmp(from->config, "none") == 0 ? v : all.whole;
        for (int t = 0; t < l->opened.tiers.n && from->config; t++)
            form[v].tiers |= (uint64_t)may_hold(l, f, v, t) << t;
    }
    return all;
}

/* ---- sums -------------------------------------------------------------------------- */

void live_sums_begin(struct live_sums *s, const struct live_plan *l)
{
    *s = (struct live_sums){ .objective = { 0, 0 } };
    for (int t = 0; t < l->problem.n_tiers; t++)
        if (l->pool[t] == t && l->opened.price[t] > 0 && l->capacity[t] < INT64_MAX)
            sum_add(&s->bound, l->opened.price[t] * (double)l->capacity[t]);
}

void live_sums_add(struct live_sums *s, const struct live_plan *l, const struct live_context *c,
                   struct plan_placement at, struct plan_candidates *candidates)
{
    candidates->recompute = live_candidates(l, c, candidates->bytes, candidates->utility);
    double best = candidates->recompute;

    for (int v = 0; v < c->variants.n; v++)
        for (int t = 0; t < l->problem.n_tiers; t++)
            if (plan_candidate_ok(candidates, &l->problem, v, t))
                best = fmax(best, candidates->utility[plan_cell(&l->problem, v, t)] -
                                      l->opened.price[l->pool[t]] * (double)candidates->bytes[v]);
    sum_add(&s->bound, best);
    sum_add(&s->objective, plan_candidate_utility(candidates, &l->problem, at));
}

double live_sums_bound(const struct live_sums *s)
{
    return s->bound.value + 64 * 0x1p-52 * fabs(s->bound.value);
}

/* ---- the planner ------------------------------------------------------------------- */

struct density_setup live_setup(const struct live_plan *l)
{
    struct density_setup s = { .n_tiers = l->opened.tiers.n,
                               .n_gpus = l->opened.load.gpus > 0 ? (int)fmin((double)l->opened.load.gpus, 1e6) : 1,
                               .goal = live_plan_goal(l),
                               .move_cost = l->opened.move_cost };

    for (int t = 0; t < s.n_tiers; t++) {
        const struct tier *tier = &l->opened.tiers.at[t];
        s.tier[t] = (struct density_tier){ l->capacity[t],
                                           l->pool[t],
                                           tier->latency_s,
                                           tier_read_s_per_byte(tier),
                                           tier_write_s_per_byte(tier),
                                           tier_read_sd_s(tier, 1) };
    }
    return s;
}
