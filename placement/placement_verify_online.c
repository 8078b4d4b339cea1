/* placement_verify_online.c - checks the manifest of a saved live plan from its own rows, which carry the variants of
 * each context (`forms`). The table is not enough: it lacks the contexts added later.
 *
 * Checks: every row's bytes, quality, TTFT, utility, floor and pin; the fill of each tier against its capacity; the
 * objective, minus the cost of writing; and the bound that the header's prices prove for those variants.
 */
#include "placement/placement_internal.h"
#include <string.h>

static const double relative = 1e-9; // sums of a million terms in another order differ by less

struct online_sums {
    double objective, scale, bound, fill[PLAN_TIERS];
    int n;
};

static bool is_near(double a, double b, double scale)
{
    return fabs(a - b) <= relative * fmax(scale, 1e-9);
}

static bool may_be_on(const struct variants *f, const char *tier)
{
    return !f->pin || strcmp(f->pin, tier) == 0;
}

static struct plan_goal goal_of(const struct manifest *m)
{
    return (struct plan_goal){ m->alpha, m->slo_ttft_s, m->slo_weight };
}

/* TTFT of a variant on a tier in seconds, and its standard deviation. */
static double stored_ttft(const struct manifest *m, const struct variants *f, const struct variant_info *v, int tier)
{
    return ttft_stored(tier_read_s(&m->tiers.at[tier], v->bytes), v->decompress_s, f->question_s);
}

static double stored_sd(const struct manifest *m, const struct variants *f, const struct variant_info *v, int tier)
{
    const struct tier *t = &m->tiers.at[tier];

    return sd_of_sum(tier_read_sd_s(t, tier_read_s(t, v->bytes)), f->question_sd_s);
}

static double recomputed_sd(const struct variants *f)
{
    return sd_of_sum(f->prefill_sd_s, f->question_sd_s);
}

/* The highest utility - price * bytes that a context can have. */
static double best_reduced_online(const struct manifest *m, const struct placement *p)
{
    const struct variants *f = p->variants;
    struct plan_goal goal = goal_of(m);
    double best = may_be_on(f, "recompute") ? utility_recomputed(&goal, ttft_recomputed(f->prefill_s, f->question_s),
                                                                 recomputed_sd(f), p->frequency)
                                            : -HUGE_VAL;

    for (int t = 0; t < m->tiers.n; t++) {
        for (int i = 0; i < f->n && may_be_on(f, m->tiers.at[t].name); i++) {
            const struct variant_info *v = &f->at[i];
            double worth = utility(&goal, v->quality, stored_ttft(m, f, v, t), stored_sd(m, f, v, t), p->frequency);
            if (v->bytes <= m->tiers.at[t].capacity && tier_allows(&m->tiers.at[t], v->config))
                best = fmax(best, worth - m->price[t] * (double)v->bytes);
        }
    }
    return best;
}

/* Checks a row's numbers. *worth: its utility. */
static int check_online_row(const struct manifest *m, const struct placement *p, double *worth, struct err *err)
{
    const struct variants *f = p->variants;
    const struct variant_info *v = p->tier < 0 ? NULL : variants_find(f, p->config);
    double quality = v ? v->quality : 1;
    double ttft_s = v ? stored_ttft(m, f, v, p->tier) : ttft_recomputed(f->prefill_s, f->question_s);
    struct plan_goal goal = goal_of(m);

    *worth = utility(&goal, quality, ttft_s, v ? stored_sd(m, f, v, p->tier) : recomputed_sd(f), p->frequency);
    if (p->tier >= 0 && (!v || v->bytes != p->bytes))
        return err_set(err, ERR_FORMAT, "context '%s': its forms lack config '%s' with %lld bytes", p->id, p->config,
                       (long long)p->bytes);
    if (!is_near(p->quality, quality, 1) || !is_near(p->ttft_s, ttft_s, ttft_s))
        return err_set(err, ERR_FORMAT,
                       "context '%s': quality %.9g and TTFT %.9g s, but its forms give %.9g and %.9g s", p->id,
                       p->quality, p->ttft_s, quality, ttft_s);
    if (!is_near(p->utility, *worth, fabs(*worth)))
        return err_set(err, ERR_FORMAT, "context '%s': utility is %.12g in the manifest, %.12g by its forms", p->id,
                       p->utility, *worth);
    if (v && quality < f->min_quality)
        return err_set(err, ERR_FORMAT, "context '%s': quality %.4g is below its floor", p->id, quality);
    if (v && !tier_allows(&m->tiers.at[p->tier], p->config))
        return err_set(err, ERR_FORMAT, "context '%s': tier '%s' may not hold config '%s'", p->id,
                       m->tiers.at[p->tier].name, p->config);
    if (!may_be_on(f, p->tier < 0 ? "recompute" : m->tiers.at[p->tier].name))
        return err_set(err, ERR_FORMAT, "context '%s' is not on the tier it is pinned to", p->id);
    return 0;
}

static int add_online_row(const struct manifest *m, const struct placement *p, struct online_sums *sums,
                          struct err *err)
{
    double worth;
    bool written = p->operation == OP_INSERT || p->operation == OP_RECOMPRESS || p->operation == OP_MOVE;

    if (!p->variants && p->operation == OP_EVICT)
        return 0;
    if (!p->variants)
        return err_set(err, ERR_FORMAT, "context '%s' has no forms: verify the manifest against its table", p->id);
    if (check_online_row(m, p, &worth, err))
        return err->code;
    sums->n++;
    sums->objective += worth - (written ? m->move_cost * (double)p->bytes : 0);
    sums->scale += fabs(worth);
    sums->bound += best_reduced_online(m, p);
    if (p->tier >= 0)
        sums->fill[p->tier] += (double)p->bytes;
    return 0;
}

int placement_verify_online(const struct manifest *m, struct placement_proof *proof, struct err *err)
{
    struct online_sums s = { 0 };
    int pool[PLAN_TIERS];

    tiers_pools(&m->tiers, pool);
    for (int t = 0; t < m->tiers.n; t++)
        s.bound += m->price[t] > 0 && pool[t] == t ? m->price[t] * (double)m->tiers.at[t].capacity : 0;
    for (int i = 0; i < m->n; i++)
        if (add_online_row(m, &m->at[i], &s, err))
            return err->code;
    if (placement_check_fills(&m->tiers, m->price, s.fill, err))
        return err->code;
    if (!is_near(m->objective, s.objective, s.scale))
        return err_set(err, ERR_FORMAT, "total utility is %.12g in the manifest, %.12g by its rows", m->objective,
                       s.objective);
    if (m->upper_bound < s.bound - relative * fmax(fabs(s.bound), s.scale))
        return err_set(err, ERR_FORMAT, "the manifest says that no plan exceeds %.12g, but its prices prove only %.12g",
                       m->upper_bound, s.bound);
    *proof = (struct placement_proof){ s.n, s.objective, s.bound };
    return 0;
}
