/* placement_verify.c - checks a manifest against the table, with none of the solver's code.
 *
 * Checks: the manifest belongs to the table; every row's bytes, quality, TTFT, utility and variants; the fill of each
 * tier against its capacity; the objective; the expected loss; and the bound: for the header's prices, the sum over
 * tiers of price * capacity plus the sum over contexts of the best utility - price * bytes. Floors, pins and move costs
 * come from the input.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>
#include <string.h>

static const double relative = 1e-9; // sums of a million terms in another order differ by less

static bool close_to(double a, double b, double scale)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= relative * fmax(scale, 1e-9);
}

struct sums {
    double objective, scale, bound, written, fill[PLAN_TIERS];
};

static int mismatch(const struct placement *p, const char *what, double said, double is, struct err *err)
{
    return err_set(err, ERR_FORMAT, "context '%s': %s is %.12g in the manifest, %.12g by the table", p->id, what, said,
                   is);
}

/* Checks the variants that a row of evp-plan --online carries. */
static int check_variants(const struct placement_input *in, const struct placement *p, int row, struct err *err)
{
    const struct table *t = &in->table;
    const struct variants *f = p->variants;

    if (!close_to(f->prefill_s, t->prefill_s[row], f->prefill_s))
        return mismatch(p, "prefill_s", f->prefill_s, t->prefill_s[row], err);
    if (!close_to(f->question_s, t->question_s[row], f->question_s))
        return mismatch(p, "question_s", f->question_s, t->question_s[row], err);
    double prefill_sd_s = in->slo_weight > 0 ? placement_prefill_sd(in, row) : 0;
    double question_sd_s = in->slo_weight > 0 ? placement_question_sd(in, row) : 0;
    if (!close_to(f->prefill_sd_s, prefill_sd_s, prefill_sd_s))
        return mismatch(p, "prefill_sd_s", f->prefill_sd_s, prefill_sd_s, err);
    if (!close_to(f->question_sd_s, question_sd_s, question_sd_s))
        return mismatch(p, "question_sd_s", f->question_sd_s, question_sd_s, err);
    for (int i = 0; i < f->n; i++) {
        const struct variant_info *variant = &f->at[i];
        int config = table_find_config(t, variant->config);
        if (config < 0)
            return err_set(err, ERR_FORMAT, "context '%s': the table has no config '%s'", p->id, variant->config);
        size_t cell = table_cell(t, row, config);
        if (variant->bytes != t->cell_bytes[cell])
            return mismatch(p, "a variant's bytes", (double)variant->bytes, (double)t->cell_bytes[cell], err);
        if (!close_to(variant->quality, in->quality[cell], 1))
            return mismatch(p, "a variant's quality", variant->quality, in->quality[cell], err);
        if (!close_to(variant->decompress_s, t->decompress_s[cell], variant->decompress_s))
            return mismatch(p, "a variant's decompress_s", variant->decompress_s, t->decompress_s[cell], err);
    }
    return 0;
}

/* Where the manifest has a context; config -1: under one that the table lacks. */
static struct plan_placement placed_at(const struct placement_input *in, const struct placement *p)
{
    return (struct plan_placement){ table_find_config(&in->table, p->config), p->tier };
}

/* Checks the row's numbers about the placement against the table. use: (C) what serves each row; NULL: nothing. */
static int check_numbers(const struct placement_input *in, const struct placement *p, int row,
                         const struct placement_use *use, struct err *err)
{
    struct plan_placement c = placed_at(in, p);
    bool stored = c.tier != PLAN_RECOMPUTE;
    double bytes = stored ? (double)in->table.cell_bytes[table_cell(&in->table, row, c.config)] : 0;
    int of = row;
    struct plan_placement from = use_placement(use, row, c, &of);
    double quality = placement_quality(in, of, from);
    double ttft_s = placement_ttft(in, row, c) - use_saved_s(use, row);
    double worth = placement_utility(in, row, c) + in->frequency[row] * use_gain(use, row);

    if (!close_to((double)p->bytes, bytes, bytes))
        return mismatch(p, "bytes", (double)p->bytes, bytes, err);
    if (!close_to(p->quality, quality, 1))
        return mismatch(p, "quality", p->quality, quality, err);
    if (!close_to(p->ttft_s, ttft_s, p->ttft_s))
        return mismatch(p, "TTFT", p->ttft_s, ttft_s, err);
    if (!close_to(p->utility, worth, fabs(worth)))
        return mismatch(p, "utility", p->utility, worth, err);
    if (p->variants && check_variants(in, p, row, err))
        return err->code;
    if (stored && !placement_worst_allowed(in, table_cell(&in->table, row, c.config)))
        return err_set(err, ERR_FORMAT,
                       "context '%s': the quality of its worst question is below --min-quality-worst=%g", p->id,
                       in->min_quality_worst);
    if (stored && !placement_facts_allowed(in, table_cell(&in->table, row, c.config)))
        return err_set(err, ERR_FORMAT, "context '%s': the facts it surely keeps are fewer than its floor, %g", p->id,
                       placement_facts_floor(in, (size_t)row));
    if (stored && !placement_allowed(in, table_cell(&in->table, row, c.config), placement_floor(in, row)))
        return err_set(err, ERR_FORMAT, "context '%s': quality %.4g is below its floor", p->id, quality);
    if (stored && !tier_allows(&in->tiers.at[c.tier], p->config))
        return err_set(err, ERR_FORMAT, "context '%s': tier '%s' may not hold config '%s'", p->id,
                       in->tiers.at[c.tier].name, p->config);
    if (in->pin[row] != PIN_NONE && in->pin[row] != p->tier)
        return err_set(err, ERR_FORMAT, "context '%s' is not on the tier it is pinned to", p->id);
    return 0;
}

static void add_row(const struct placement_input *in, int row, struct plan_placement c, const struct placement_use *use,
                    struct sums *sums)
{
    double written = (double)placement_written(in, row, c);
    double term =
        placement_utility(in, row, c) - placement_write_cost(in, row, c) + in->frequency[row] * use_gain(use, row);

    if (c.tier != PLAN_RECOMPUTE)
        sums->fill[c.tier] += (double)in->table.cell_bytes[table_cell(&in->table, row, c.config)];
    sums->written += written;
    sums->objective += term;
    sums->scale += fabs(term);
}

static int check_row(const struct placement_input *in, const struct placement *p, const struct placement_use *use,
                     struct sums *sums, struct err *err)
{
    const struct table *t = &in->table;
    int row = map_find(&t->ids, p->id, strlen(p->id));

    if (row == MAP_ABSENT)
        return p->operation == OP_EVICT ? 0 : err_set(err, ERR_FORMAT, "context '%s' is not in the table", p->id);
    if (placed_at(in, p).config < 0)
        return err_set(err, ERR_FORMAT, "context '%s': the table has no config '%s'", p->id, p->config);
    if (strcmp(p->token_digest, t->context_token_digest[row]) != 0)
        return err_set(err, ERR_FORMAT, "context '%s': its token digest differs from the table's", p->id);
    if (check_numbers(in, p, row, use, err))
        return err->code;
    add_row(in, row, placed_at(in, p), use, sums);
    return 0;
}

/* The highest reduced value that a context can have at the prices. */
static double best_reduced(const struct placement_input *in, const struct manifest *m, int row)
{
    const struct table *t = &in->table;
    int pin = in->pin[row];
    double best = pin < 0 ? placement_utility(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE }) : -HUGE_VAL;

    for (int v = 0; v < t->n_configs; v++) {
        int64_t bytes = t->cell_bytes[table_cell(t, row, v)];
        if (!placement_allowed(in, table_cell(t, row, v), placement_floor(in, row)))
            continue;
        for (int d = 0; d < in->tiers.n; d++) {
            struct plan_placement c = { v, d };
            if ((pin != PIN_NONE && pin != d) || bytes > in->capacity[d] || !placement_tier_allows(in, v, d))
                continue;
            best = fmax(best, placement_utility(in, row, c) - placement_write_cost(in, row, c) -
                                  in->move_price * (double)placement_written(in, row, c) - m->price[d] * (double)bytes);
        }
    }
    return best;
}

/* The bound that the header's prices prove. */
static int bound_of(const struct placement_input *in, const struct manifest *m, double *proven, struct err *err)
{
    double trees = 0, bound = in->move_price > 0 ? in->move_price * (double)in->max_move : 0;

    for (int d = 0; d < in->tiers.n; d++) /* a pool counts once */
        bound += m->price[d] > 0 && in->pool[d] == d ? m->price[d] * (double)in->capacity[d] : 0;
    if (in->prefixes.n > 0 && placement_bound_prefixes(in, m->price, &trees, err))
        return err->code;
    for (int row = 0; row < in->table.n_contexts && in->prefixes.n == 0; row++)
        bound += best_reduced(in, m, row);
    *proven = bound + trees;
    return 0;
}

/* What serves each row of the table under the manifest; NULL: contexts do not serve each other. */
static int find_uses(const struct placement_input *in, const struct manifest *m, struct placement_use **use,
                     struct err *err)
{
    *use = NULL;
    if (in->prefixes.n == 0)
        return 0;
    struct plan_placement *at = calloc((size_t)in->table.n_contexts + 1, sizeof(*at));
    if (!at)
        return err_nomem(err);
    for (int row = 0; row < in->table.n_contexts; row++) {
        const struct placement *p = manifest_find(m, in->table.context_id[row]);
        int config = p && p->tier >= 0 ? table_find_config(&in->table, p->config) : -1;
        at[row] =
            config < 0 ? (struct plan_placement){ 0, PLAN_RECOMPUTE } : (struct plan_placement){ config, p->tier };
    }
    int code = placement_serving(use, in, at, err);
    free(at);
    return code;
}

int placement_check_fills(const struct tiers *tiers, const double *price, const double *fill, struct err *err)
{
    double used[PLAN_TIERS] = { 0 };
    int pool[PLAN_TIERS];

    tiers_pools(tiers, pool);
    for (int d = 0; d < tiers->n; d++) {
        const struct tier *t = &tiers->at[d];
        used[pool[d]] += fill[d];
        if (price[d] < price[pool[d]] || price[d] > price[pool[d]])
            return err_set(err, ERR_FORMAT, "tiers '%s' and '%s' share a pool but have different prices",
                           tiers->at[pool[d]].name, t->name);
        if (used[pool[d]] > (double)t->capacity)
            return err_set(err, ERR_FORMAT, "%s '%s' holds %.0f of %lld bytes", *t->pool ? "pool" : "tier",
                           *t->pool ? t->pool : t->name, used[pool[d]], (long long)t->capacity);
    }
    return 0;
}

static int check_sums(const struct placement_input *in, const struct manifest *m, const struct sums *s, struct err *err)
{
    if (placement_check_fills(&in->tiers, m->price, s->fill, err))
        return err->code;
    if (s->written > (double)in->max_move)
        return err_set(err, ERR_FORMAT, "the plan writes %.0f bytes, but only %lld are allowed", s->written,
                       (long long)in->max_move);
    if (!close_to(m->objective, s->objective, s->scale))
        return err_set(err, ERR_FORMAT, "total utility is %.12g in the manifest, %.12g by the table", m->objective,
                       s->objective);
    if (m->upper_bound < s->bound - relative * fabs(s->bound))
        return err_set(err, ERR_FORMAT, "the manifest says that no plan exceeds %.12g, but its prices prove only %.12g",
                       m->upper_bound, s->bound);
    return 0;
}

int placement_verify(const struct placement_input *in, const struct manifest *m, struct placement_proof *proof,
                     struct err *err)
{
    struct placement_use *use;
    struct sums sums = { 0 };
    int n = 0, code = find_uses(in, m, &use, err);

    for (int i = 0; i < m->n && !code; i++) {
        n += map_find(&in->table.ids, m->at[i].id, strlen(m->at[i].id)) != MAP_ABSENT;
        code = check_row(in, &m->at[i], use, &sums, err);
    }
    free(use);
    if (code)
        return code;
    if (n != in->table.n_contexts)
        return err_set(err, ERR_FORMAT, "the manifest has %d of the table's %d contexts", n, in->table.n_contexts);
    if (bound_of(in, m, &sums.bound, err))
        return err->code;
    *proof = (struct placement_proof){ n, sums.objective, sums.bound };
    return check_sums(in, m, &sums, err);
}
