/* placement_problem.c - the planner's problem: utilities of candidates, and the candidates that floors and pins allow.
 * */
#include "placement/placement_internal.h"

double placement_ttft(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;

    if (c.tier == PLAN_RECOMPUTE)
        return ttft_recomputed(t->prefill_s[row], t->question_s[row]);
    size_t cell = table_cell(t, row, c.config);
    return ttft_stored(tier_read_s(&in->tiers.at[c.tier], table_bytes_read(t, cell)), t->decompress_s[cell],
                       t->question_s[row]);
}

double placement_ttft_sd(const struct placement_input *in, int row, struct plan_placement c)
{
    if (c.tier == PLAN_RECOMPUTE)
        return sd_of_sum(placement_prefill_sd(in, row), placement_question_sd(in, row));
    const struct tier *tier = &in->tiers.at[c.tier];
    double read_s = tier_read_s(tier, table_bytes_read(&in->table, table_cell(&in->table, row, c.config)));
    return sd_of_sum(tier_read_sd_s(tier, read_s), placement_question_sd(in, row));
}

double placement_utility(const struct placement_input *in, int row, struct plan_placement c)
{
    struct plan_goal goal = placement_goal(in);
    double sd_s = goal.slo_weight > 0 ? placement_ttft_sd(in, row, c) : 0; /* else not used */

    double worth = utility(&goal, placement_quality(in, row, c), placement_ttft(in, row, c), sd_s, in->frequency[row]) -
                   in->frequency[row] * placement_decode_s(in, row, c);
    if (in->load.rate > 0) {
        int64_t bytes =
            c.tier == PLAN_RECOMPUTE ? 0 : table_bytes_read(&in->table, table_cell(&in->table, row, c.config));
        worth -= in->frequency[row] * placement_load_cost(&in->load, placement_gpu_s(in, row, c), c.tier, bytes);
    }
    return worth;
}

int64_t placement_written(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct plan_placement *b = &in->before[row];

    if (c.tier == PLAN_RECOMPUTE || (b->config == c.config && b->tier == c.tier))
        return 0;
    return in->table.cell_bytes[table_cell(&in->table, row, c.config)];
}

struct placement_packing placement_packing(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct plan_placement *b = &in->before[row];
    double bytes = (double)placement_written(in, row, c);

    if (!(bytes > 0))
        return (struct placement_packing){ 0 };
    double writes = in->tiers.at[c.tier].write_bytes_per_s; /* 0: another host writes there */
    struct placement_packing s = { .tier_s = writes > 0 ? bytes / writes : 0 };
    if (b->config == c.config)
        s.tier_s += tier_read_s(&in->tiers.at[b->tier], (int64_t)bytes);
    else
        s.gpu_s = in->table.prefill_s[row];
    return s;
}

static double packing_cost(const struct placement_input *in, int row, struct plan_placement c)
{
    if (!(in->pack_weight > 0))
        return 0;
    struct placement_packing s = placement_packing(in, row, c);
    return in->pack_weight * (s.gpu_s + s.tier_s);
}

double placement_write_cost(const struct placement_input *in, int row, struct plan_placement c)
{
    return in->move_cost * (double)placement_written(in, row, c) + packing_cost(in, row, c);
}

/* Prefetches the data of a context's candidates. */
static void fetch_candidates(const struct placement_input *in, int context)
{
    int row = in->row[context];
    size_t first = table_cell(&in->table, row, 0), n = (size_t)in->table.n_configs;

    placement_fetch(in->table.cell_bytes + first, n * sizeof(*in->table.cell_bytes));
    if (in->table.cell_bytes_read)
        placement_fetch(in->table.cell_bytes_read + first, n * sizeof(*in->table.cell_bytes_read));
    placement_fetch(in->quality + first, n * sizeof(*in->quality));
    placement_fetch(in->table.decompress_s + first, n * sizeof(*in->table.decompress_s));
    if (in->sd)
        placement_fetch(in->sd + first, n * sizeof(*in->sd));
    placement_fetch(&in->table.prefill_s[row], sizeof(double));
    placement_fetch(&in->table.question_s[row], sizeof(double));
    placement_fetch(&in->frequency[row], sizeof(double));
    placement_fetch(&in->pin[row], sizeof(int));
    placement_fetch(&in->rule[row], sizeof(struct rule));
    placement_fetch(&in->before[row], sizeof(struct plan_placement));
}

/* Called hundreds of millions of times, so values of a context or tier are looked up once. Contexts are mostly
 * requested in order. bytes: (V), out: (V, T) */
static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct placement_input *in = arg;
    int row = in->row[context], pin = in->pin[row], n_tiers = in->tiers.n, n_configs = in->table.n_configs;
    size_t first = table_cell(&in->table, row, 0);
    const int64_t *size = in->table.cell_bytes + first;
    const double *quality = in->quality + first, min = placement_floor(in, row);
    const double *decompress_s = in->table.decompress_s + first, question_s = in->table.question_s[row];
    const struct plan_goal goal = placement_goal(in);
    const bool promised = goal.slo_weight > 0, loaded = in->load.rate > 0;
    const double question_sd_s = promised ? placement_question_sd(in, row) : 0;
    const double frequency = in->frequency[row], move = in->move_cost + in->move_price;
    const struct plan_placement before = in->before[row];
    const bool *allowed = in->allowed;

    if (context + PLACEMENT_AHEAD < in->table.n_contexts)
        fetch_candidates(in, context + PLACEMENT_AHEAD);
    double recomputed = placement_utility(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });
    for (int v = 0; v < n_configs; v++)
        bytes[v] = placement_allowed(in, first + (size_t)v, min) ? size[v] : -1;
    for (int t = 0; t < n_tiers; t++) {
        const struct tier tier = in->tiers.at[t];
        bool open = pin == PIN_NONE || pin == t;
        int64_t max_bytes = in->max_bytes[t];
        for (int v = 0; v < n_configs; v++) {
            int64_t read = table_bytes_read(&in->table, first + (size_t)v);
            double read_s = tier_read_s(&tier, read);
            double sd_s = promised ? sd_of_sum(tier_read_sd_s(&tier, read_s), question_sd_s) : 0;
            double ttft_s = ttft_stored(read_s, decompress_s[v], question_s);
            double written = before.config == v && before.tier == t ? 0 : (double)size[v];
            struct plan_placement at = { v, t };
            double gpu_s = ttft_stored(0, decompress_s[v], question_s);
            double cost = loaded ? frequency * placement_load_cost(&in->load, gpu_s, t, read) : 0;
            cost += packing_cost(in, row, at) + frequency * placement_decode_s(in, row, at);
            bool may = open && size[v] <= max_bytes && (!allowed || allowed[v * n_tiers + t]);
            out[v * n_tiers + t] =
                may ? utility(&goal, quality[v], ttft_s, sd_s, frequency) - move * written - cost : (double)NAN;
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
                                  .arg = in,
                                  .pool = in->pool };
}

/* ---- rules that cannot be respected ---------------------------------------- */

int placement_check_rules(const struct placement_input *in, struct err *err)
{
    for (int row = 0; row < in->table.n_contexts; row++) {
        int pin = in->pin[row];
        double best = -1;
        bool allowed = pin < 0, worst = false, facts = false; /* recomputing is always good enough */
        for (int v = 0; v < in->table.n_configs && !allowed; v++) {
            size_t cell = table_cell(&in->table, row, v);
            int64_t bytes = in->table.cell_bytes[cell];
            if (bytes < 0 || bytes > in->capacity[pin] || isnan(in->quality[cell]) ||
                !placement_tier_allows(in, v, pin))
                continue;
            best = fmax(best, placement_sure(in, cell));
            allowed = placement_allowed(in, cell, placement_floor(in, row));
            worst |= !placement_worst_allowed(in, cell);
            facts |= !placement_facts_allowed(in, cell);
        }
        if (allowed)
            continue;
        if (worst)
            return err_set(
                err, ERR_FAIL,
                "context '%s' is pinned to tier '%s', where no variant has --min-quality-worst=%g in every question",
                in->table.context_id[row], in->tiers.at[pin].name, in->min_quality_worst);
        if (facts)
            return err_set(err, ERR_FAIL,
                           "context '%s' is pinned to tier '%s', where no variant surely keeps %g of the facts",
                           in->table.context_id[row], in->tiers.at[pin].name, placement_facts_floor(in, (size_t)row));
        if (best < 0)
            return err_set(err, ERR_FAIL, "context '%s' is pinned to tier '%s', where no variant fits",
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
