/* placement_problem.c - the problem that is posed to the planner: what a candidate is worth, and which candidates
 * floors and pins leave. */
#include "planner/placement/placement_internal.h"

#include "planner/utility.h"

double placement_ttft(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;

    if (c.tier == PLAN_RECOMPUTE)
        return ttft_recomputed(t->prefill_s[row], t->question_s[row]);
    size_t cell = table_cell(t, row, c.config);
    return ttft_stored(tier_read_s(&in->tiers.at[c.tier], t->cell_bytes[cell]), t->decompress_s[cell],
                       t->question_s[row]);
}

double placement_utility(const struct placement_input *in, int row, struct plan_placement c)
{
    return utility(in->alpha, placement_quality(in, row, c), placement_ttft(in, row, c), in->frequency[row]);
}

int64_t placement_written(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct plan_placement *b = &in->before[row];

    if (c.tier == PLAN_RECOMPUTE || (b->config == c.config && b->tier == c.tier))
        return 0;
    return in->table.cell_bytes[table_cell(&in->table, row, c.config)];
}

/* Prefetches. Rows come in an order that the processor cannot predict, and a table does not fit its caches: asking for
 * everything at once is faster than waiting for one piece after the other. */
static void fetch_soon(const void *at, size_t bytes)
{
    enum { CACHE_LINE = 64 };

    for (size_t k = 0; k < bytes; k += CACHE_LINE)
        __builtin_prefetch((const char *)at + k);
}

/* Called hundreds of millions of times: what a context or a tier has is looked up once. (V) and (V, T) */
static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct placement_input *in = arg;
    int row = in->row[context], pin = in->pin[row], n_tiers = in->tiers.n, n_configs = in->table.n_configs;
    size_t first = table_cell(&in->table, row, 0), row_bytes = (size_t)n_configs * sizeof(*bytes);
    const int64_t *size = in->table.cell_bytes + first;
    const double *quality = in->table.quality_train + first, min = placement_floor(in, row);
    const double *decompress_s = in->table.decompress_s + first, question_s = in->table.question_s[row];
    const double alpha = in->alpha, frequency = in->frequency[row], move = in->move_cost + in->move_price;
    const struct plan_placement before = in->before[row];

    fetch_soon(size, row_bytes);
    fetch_soon(quality, row_bytes);
    fetch_soon(decompress_s, row_bytes);
    double recomputed = placement_utility(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });
    for (int v = 0; v < n_configs; v++)
        bytes[v] = placement_allowed(size[v], quality[v], min) ? size[v] : -1;
    for (int t = 0; t < n_tiers; t++) {
        const struct tier tier = in->tiers.at[t];
        bool open = pin == PIN_NONE || pin == t;
        for (int v = 0; v < n_configs; v++) {
            double ttft_s = ttft_stored(tier_read_s(&tier, size[v]), decompress_s[v], question_s);
            double written = before.config == v && before.tier == t ? 0 : (double)size[v];
            out[v * n_tiers + t] = open ? utility(alpha, quality[v], ttft_s, frequency) - move * written : (double)NAN;
        }
    }
    return pin >= 0 ? utility_unpinned(recomputed) : recomputed;
}

struct plan_problem placement_problem(const struct placement_input *in)
{
    return (struct plan_problem){ .n_contexts = in->table.n_contexts,
                                  .n_configs = in->table.n_configs,
                                  .n_tiers = in->tiers.n,
                                  .capacity = in->capacity,
                                  .candidates = candidates,
                                  .arg = in };
}

/* ---- rules that cannot be respected ---------------------------------------- */

int placement_check_rules(const struct placement_input *in, struct err *err)
{
    for (int row = 0; row < in->table.n_contexts; row++) {
        int pin = in->pin[row];
        double best = -1;
        bool allowed = pin < 0; /* recomputing is always good enough */
        for (int v = 0; v < in->table.n_configs && !allowed; v++) {
            double quality = in->table.quality_train[table_cell(&in->table, row, v)];
            int64_t bytes = in->table.cell_bytes[table_cell(&in->table, row, v)];
            if (bytes < 0 || bytes > in->capacity[pin] || isnan(quality))
                continue;
            best = fmax(best, quality);
            allowed = placement_allowed(bytes, quality, placement_floor(in, row));
        }
        if (allowed)
            continue;
        if (best < 0)
            return err_set(err, ERR_FAIL, "context '%s' is pinned to tier '%s', where no variant of it fits",
                           in->table.context_id[row], in->tiers.at[pin].name);
        return err_set(err, ERR_FAIL, "context '%s' cannot have quality %.4g on tier '%s': the best there is %.4g",
                       in->table.context_id[row], placement_floor(in, row), in->tiers.at[pin].name, best);
    }
    return 0;
}

int placement_check_pins(const struct placement_plan *p, struct err *err)
{
    const struct placement_input *in = p->in;

    for (int i = 0; i < p->plan.n_contexts; i++) {
        int pin = in->pin[in->row[i]];
        if (pin < 0 || p->plan.placement[i].tier == pin)
            continue;
        return err_set(err, ERR_FAIL, "the contexts pinned to tier '%s' do not fit there together: '%s' is left over",
                       in->tiers.at[pin].name, in->table.context_id[in->row[i]]);
    }
    return 0;
}
