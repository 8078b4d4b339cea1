/* verify.c - is a manifest what it says? Recomputed from the table with none of the solver's code.
 *
 * Checked: it belongs to this table; every row's bytes, quality, TTFT, utility and variants; what each tier holds
 * against its capacity; the objective; and the bound: for the header's prices, the sum over tiers of price * capacity
 * and over contexts of the best utility less price * bytes. Floors, pins and move costs count as they are given on the
 * command line.
 */
#include "planner/placement/placement.h"

#include "base/log.h"
#include "base/parse.h"

#include <math.h>
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

static int find_config(const struct table *t, const char *name)
{
    for (int v = 0; v < t->n_configs; v++)
        if (strcmp(t->config_name[v], name) == 0)
            return v;
    return -1;
}

/* What a row of an online plan carries besides. */
static int check_variants(const struct plan_input *in, const struct placement *p, int row, struct err *err)
{
    const struct table *t = &in->table;
    const struct variants *f = p->variants;

    if (!close_to(f->prefill_s, t->prefill_s[row], f->prefill_s))
        return mismatch(p, "prefill_s", f->prefill_s, t->prefill_s[row], err);
    if (!close_to(f->question_s, t->question_s[row], f->question_s))
        return mismatch(p, "question_s", f->question_s, t->question_s[row], err);
    for (int i = 0; i < f->n; i++) {
        const struct variant_info *variant = &f->at[i];
        int config = find_config(t, variant->config);
        size_t cell = (size_t)row * (size_t)t->n_configs + (size_t)config;
        if (config < 0)
            return err_set(err, ERR_FORMAT, "context '%s': form '%s' is not the table's", p->id, variant->config);
        if (variant->bytes != t->cell_bytes[cell])
            return mismatch(p, "a form's bytes", (double)variant->bytes, (double)t->cell_bytes[cell], err);
        if (!close_to(variant->quality, t->quality_train[cell], 1))
            return mismatch(p, "a form's quality", variant->quality, t->quality_train[cell], err);
        if (!close_to(variant->decompress_s, t->decompress_s[cell], variant->decompress_s))
            return mismatch(p, "a form's decompress_s", variant->decompress_s, t->decompress_s[cell], err);
    }
    return 0;
}

static int check_row(const struct plan_input *in, const struct placement *p, struct sums *sums, struct err *err)
{
    int row = map_find(&in->table.ids, p->id, strlen(p->id)), config = find_config(&in->table, p->config);
    const struct table *t = &in->table;

    if (row == MAP_ABSENT)
        return p->operation == OP_EVICT ? 0 : err_set(err, ERR_FORMAT, "context '%s' is not in the table", p->id);
    if (config < 0 || strcmp(p->token_digest, t->context_token_digest[row]) != 0)
        return err_set(err, ERR_FORMAT, "context '%s': %s is not the table's", p->id,
                       config < 0 ? "its config" : "its token digest");
    struct plan_placement c = { config, p->tier };
    size_t cell = (size_t)row * (size_t)t->n_configs + (size_t)config;
    bool stored = p->tier != PLAN_RECOMPUTE;
    double bytes = stored ? (double)t->cell_bytes[cell] : 0, quality = stored ? t->quality_train[cell] : 1;
    double worth = plan_worth(in, row, c);
    if (!close_to((double)p->bytes, bytes, bytes))
        return mismatch(p, "bytes", (double)p->bytes, bytes, err);
    if (!close_to(p->quality, quality, 1))
        return mismatch(p, "quality", p->quality, quality, err);
    if (!close_to(p->ttft_s, plan_ttft(in, row, c), p->ttft_s))
        return mismatch(p, "TTFT", p->ttft_s, plan_ttft(in, row, c), err);
    if (!close_to(p->utility, worth, fabs(worth)))
        return mismatch(p, "utility", p->utility, worth, err);
    if (p->variants && check_variants(in, p, row, err))
        return err->code;
    if (stored && quality < fmax(in->rule[row].min_quality, in->min_quality))
        return err_set(err, ERR_FORMAT, "context '%s': quality %.4g is below its floor", p->id, quality);
    if (in->pin[row] != PIN_NONE && in->pin[row] != p->tier)
        return err_set(err, ERR_FORMAT, "context '%s' is not on the tier it is pinned to", p->id);
    if (stored)
        sums->fill[p->tier] += bytes;
    double term = worth - in->move_cost * (double)plan_written(in, row, c);
    sums->written += (double)plan_written(in, row, c);
    sums->objective += term;
    sums->scale += fabs(term);
    return 0;
}

/* The most one context can be worth at the prices. */
static double best_worth(const struct plan_input *in, const struct manifest *m, int row)
{
    const struct table *t = &in->table;
    int pin = in->pin[row];
    double most = pin < 0 ? plan_worth(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE }) : -HUGE_VAL;

    for (int v = 0; v < t->n_configs; v++) {
        size_t cell = (size_t)row * (size_t)t->n_configs + (size_t)v;
        int64_t bytes = t->cell_bytes[cell];
        if (bytes < 0 || !(t->quality_train[cell] >= fmax(in->rule[row].min_quality, in->min_quality)))
            continue;
        for (int d = 0; d < in->tiers.n; d++) {
            struct plan_placement c = { v, d };
            if ((pin != PIN_NONE && pin != d) || bytes > in->capacity[d])
                continue;
            most = fmax(most, plan_worth(in, row, c) -
                                  (in->move_cost + in->move_price) * (double)plan_written(in, row, c) -
                                  m->price[d] * (double)bytes);
        }
    }
    return most;
}

static int check_sums(const struct plan_input *in, const struct manifest *m, const struct sums *s, struct err *err)
{
    for (int d = 0; d < in->tiers.n; d++)
        if (s->fill[d] > (double)in->capacity[d])
            return err_set(err, ERR_FORMAT, "tier '%s' holds %.0f of %lld bytes", in->tiers.at[d].name, s->fill[d],
                           (long long)in->capacity[d]);
    if (s->written > (double)in->max_move)
        return err_set(err, ERR_FORMAT, "the plan writes %.0f bytes where %lld were allowed", s->written,
                       (long long)in->max_move);
    if (!close_to(m->objective, s->objective, s->scale))
        return err_set(err, ERR_FORMAT, "the manifest says utility %.12g, the table %.12g", m->objective, s->objective);
    if (m->upper_bound < s->bound - relative * fabs(s->bound))
        return err_set(err, ERR_FORMAT, "the manifest says that no plan exceeds %.12g, its prices prove %.12g only",
                       m->upper_bound, s->bound);
    return 0;
}

int plan_verify(const struct plan_input *in, const struct manifest *m, struct err *err)
{
    struct sums sums = { 0 };
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        n += map_find(&in->table.ids, m->at[i].id, strlen(m->at[i].id)) != MAP_ABSENT;
        if (check_row(in, &m->at[i], &sums, err))
            return err->code;
    }
    if (n != in->table.n_contexts)
        return err_set(err, ERR_FORMAT, "the manifest has %d of the table's %d contexts", n, in->table.n_contexts);
    if (in->move_price > 0)
        sums.bound += in->move_price * (double)in->max_move;
    for (int d = 0; d < in->tiers.n; d++)
        sums.bound += m->price[d] > 0 ? m->price[d] * (double)in->capacity[d] : 0;
    for (int row = 0; row < in->table.n_contexts; row++)
        sums.bound += best_worth(in, m, row);
    if (check_sums(in, m, &sums, err))
        return err->code;
    log_info("verified: %d contexts, utility %.9g, no plan exceeds %.9g", n, sums.objective, sums.bound);
    return 0;
}
