/* placement_manifest.c - writes a plan as a manifest: rows made one at a time, and a header whose totals compare the
 * plan with baselines. */
#include "placement/placement_internal.h"

#include "base/digest.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS_FROM = 1 << 12 }; /* contexts; below, starting threads takes longer than the work */

/* ---- rows ---------------------------------------------------------------- */

static struct placement row_of(const struct placement_plan *plan, int context, const struct placement_use *use)
{
    const struct placement_input *in = plan->in;
    const struct table *t = &in->table;
    struct plan_placement c = plan->plan.placement[context];
    int row = in->row[context];
    struct placement p = {
        .id = t->context_id[row],
        .token_digest = t->context_token_digest[row],
        .config = t->config_name[c.config],
        .tier = c.tier,
        .n_tokens = t->n_tokens[row],
        .bytes = c.tier == PLAN_RECOMPUTE ? 0 : t->cell_bytes[table_cell(t, row, c.config)],
        .kv_bytes = t->kv_bytes[row],
        .ttft_s = placement_ttft(in, row, c) - use_saved_s(use, context),
        .utility = placement_utility(in, row, c) + in->frequency[row] * use_gain(use, context),
        .frequency = in->frequency[row],
    };
    struct plan_placement of = use_placement(use, context, c, &row);
    p.quality = placement_quality(in, row, of);
    p.quality_test = placement_quality_test(in, row, of);
    if (of.tier != PLAN_RECOMPUTE && in->sd) {
        p.quality_sd = (double)in->sd[table_cell(t, row, of.config)];
        p.unmeasured = !placement_measured(in, table_cell(t, row, of.config));
    }
    struct cached before = manifest_cached(&in->previous.tiers, manifest_find(&in->previous, p.id));
    struct cached after = manifest_cached(&in->tiers, &p);

    p.operation = operation_between(&before, &after);
    return p;
}

/* Prefetches the data for row_of() that candidates() does not: the texts of a context, and the pointers to a later
 * one's. */
static void fetch_row(const struct placement_plan *plan, int context)
{
    const struct placement_input *in = plan->in;
    const struct table *t = &in->table;
    int last = plan->plan.n_contexts - 1;
    int next = context + PLACEMENT_AHEAD, row = in->row[next < last ? next : last];
    int later = next + PLACEMENT_AHEAD, far = in->row[later < last ? later : last];

    placement_fetch(&t->context_id[far], sizeof(*t->context_id));
    placement_fetch(&t->context_token_digest[far], sizeof(*t->context_token_digest));
    placement_fetch(t->context_id[row], 1);
    placement_fetch(t->context_token_digest[row], DIGEST_HEX);
    placement_fetch(&t->n_tokens[row], sizeof(*t->n_tokens));
    placement_fetch(&t->kv_bytes[row], sizeof(*t->kv_bytes));
    placement_fetch(&t->quality_test[table_cell(t, row, plan->plan.placement[next < last ? next : last].config)],
                    sizeof(double));
}

/* The manifest's rows: the contexts, then the evictions. */
struct output {
    const struct placement_plan *plan;
    struct placement_use *use; // placement_uses()
    int *gone;                 // rows of the previous manifest
    int n_gone;
    double *ones; // (C) for a live plan's variants; else NULL
};

static int put_contexts(const struct output *o, struct manifest_out *out, struct err *err)
{
    struct placement_variants variants = { 0 };
    int code = o->ones ? placement_variants_init(&variants, o->plan->in, o->ones, err) : 0;

    for (int i = 0; i < o->plan->plan.n_contexts && !code; i++) {
        fetch_row(o->plan, i);
        struct placement p = row_of(o->plan, i, o->use);
        code = o->ones ? placement_variants_find(&variants, i, o->plan->plan.placement[i], err) : 0;
        p.variants = o->ones ? &variants.variants : NULL;
        if (!code)
            code = manifest_put(out, &p, err);
    }
    placement_variants_release(&variants);
    return code;
}

static int put_rows(const struct output *o, struct manifest_out *out, struct err *err)
{
    if (put_contexts(o, out, err))
        return err->code;
    for (int i = 0; i < o->n_gone; i++) {
        struct placement p = manifest_eviction(&o->plan->in->previous.at[o->gone[i]]);
        if (manifest_put(out, &p, err))
            return err->code;
    }
    return 0;
}

static int output_init(struct output *o, const struct placement_plan *plan, struct err *err)
{
    const struct placement_input *in = plan->in;
    int n = plan->plan.n_contexts;

    *o = (struct output){ .plan = plan, .gone = calloc((size_t)in->previous.n + 1, sizeof(*o->gone)) };
    o->ones = in->online ? calloc((size_t)n + 1, sizeof(*o->ones)) : NULL;
    if (!o->gone || (in->online && !o->ones))
        return err_nomem(err);
    if (placement_uses(&o->use, in, plan->plan.placement, err))
        return err->code;
    for (int i = 0; o->ones && i < n; i++)
        o->ones[i] = 1;
    for (int i = 0; manifest_gone(&in->previous, &in->table.ids, &i); i++)
        o->gone[o->n_gone++] = i;
    return 0;
}

int placement_write(const struct manifest *m, const struct placement_plan *p, const char *path, struct rows_made made,
                    struct err *err)
{
    struct output o;
    struct manifest_out out;
    int code = output_init(&o, p, err);

    if (!code)
        code = manifest_create(&out, m, path, made, err);
    if (!code) {
        code = put_rows(&o, &out, err);
        if (!code)
            code = manifest_finish(&out, err);
        else
            manifest_abort(&out);
    }
    free(o.use);
    free(o.gone);
    free(o.ones);
    return code;
}

/* ---- totals --------------------------------------------------------------- */

enum { TOTAL_AHEAD = 4 * PLACEMENT_AHEAD }; // contexts; each needs little work here

static void fetch_outcome(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;
    size_t cell = table_cell(t, row, c.config);

    placement_fetch(&in->frequency[row], sizeof(double));
    placement_fetch(&t->prefill_s[row], sizeof(double));
    placement_fetch(&t->question_s[row], sizeof(double));
    if (c.tier == PLAN_RECOMPUTE)
        return;
    placement_fetch(&t->quality_test[cell], sizeof(double));
    if (t->quality_test_n)
        placement_fetch(&t->quality_test_n[cell], sizeof(*t->quality_test_n));
    if (in->sd)
        placement_fetch(&in->sd[cell], sizeof(*in->sd));
    placement_fetch(&t->cell_bytes[cell], sizeof(*t->cell_bytes));
    placement_fetch(&t->decompress_s[cell], sizeof(double));
    placement_fetch(&in->quality[cell], sizeof(double));
}

/* The standard error of each config's mean: over its contexts, and over their questions. The caller frees; NULL without
 * memory. */
static double *common_errors(const struct placement_input *in)
{
    const struct table *t = &in->table;
    double *error = calloc((size_t)t->n_configs + 1, sizeof(*error));

    for (int v = 1; error && v < t->n_configs; v++) {
        double contexts = 0, questions = 0;
        for (int c = 0; c < t->n_contexts && t->quality_train_n; c++) {
            int32_t n = t->quality_train_n[table_cell(t, c, v)];
            contexts += n > 0;
            questions += n > 0 ? n : 0;
        }
        error[v] = contexts > 0 && t->belief_within
                       ? sqrt(t->belief_between[v] / contexts + t->belief_within[v] / questions)
                       : (double)NAN;
    }
    return error;
}

static struct outcome placement_outcome(const struct placement_input *in, int context, struct plan_placement c,
                                        const struct placement_use *use, const double *common)
{
    const struct table *t = &in->table;
    int row = in->row[context];
    struct outcome o = { .utility = placement_utility(in, row, c) + in->frequency[row] * use_gain(use, context),
                         .ttft_s = placement_ttft(in, row, c) - use_saved_s(use, context) };

    c = use_placement(use, context, c, &row);
    size_t cell = table_cell(t, row, c.config);
    o.quality = placement_quality(in, row, c);
    o.compressed = c.tier != PLAN_RECOMPUTE && c.config != 0;

    if (!o.compressed)
        return o;
    bool counted = t->belief_within && t->quality_test_n && t->quality_test_n[cell] > 0;
    o.quality_sd = in->sd ? (double)in->sd[cell] : (double)NAN;
    o.common_sd = common[c.config];
    o.quality_test = t->quality_test[cell];
    o.quality_se = counted ? sqrt(t->belief_within[c.config] / t->quality_test_n[cell]) : (double)NAN;
    return o;
}

/* Sums several plans over all contexts in one pass, because all placements of a context use one row of the table. Each
 * of two threads takes half of the plans. */
struct summing {
    const struct placement_input *in;
    const struct plan *plan;          // (n)
    struct placement_use *const *use; // (n)
    const double *common;             // (V)
    struct outcome_sums *sum;
    int n;
};

static void sum_half(void *arg, int half)
{
    const struct summing *s = arg;
    const struct placement_input *in = s->in;
    const struct plan *plan = s->plan;
    int first = half * s->n / 2, end = (half + 1) * s->n / 2;

    for (int i = 0; i < plan->n_contexts; i++) {
        int row = in->row[i];
        for (int k = first; k < end; k++) {
            struct plan_placement c = plan[k].placement[i];
            if (i + TOTAL_AHEAD < plan->n_contexts)
                fetch_outcome(in, in->row[i + TOTAL_AHEAD], plan[k].placement[i + TOTAL_AHEAD]);
            struct outcome o = placement_outcome(in, i, c, s->use[k], s->common);
            outcome_add(&s->sum[k], &o, in->frequency[row]);
        }
    }
}

/* A context and its frequency. */
struct use {
    double frequency;
    int context;
};

static int by_falling_use(const void *a, const void *b)
{
    const struct use *x = a, *y = b;

    if (x->frequency != y->frequency)
        return x->frequency > y->frequency ? -1 : 1;
    return x->context - y->context;
}

/* The contexts by falling frequency; the caller frees. NULL without memory. */
static int *order_by_use(const struct placement_input *in)
{
    size_t n = (size_t)in->table.n_contexts;
    struct use *use = calloc(n + 1, sizeof(*use));
    int *order = calloc(n + 1, sizeof(*order));

    if (use && order) {
        for (size_t i = 0; i < n; i++)
            use[i] = (struct use){ in->frequency[in->row[i]], (int)i };
        qsort(use, n, sizeof(*use), by_falling_use);
        for (size_t i = 0; i < n; i++)
            order[i] = use[i].context;
    } else {
        free(order);
        order = NULL;
    }
    free(use);
    return order;
}

/* This plan, then the baselines. */
static int add_totals(struct manifest *m, const struct placement_plan *p, struct err *err)
{
    static const char *const label[] = { "this plan", "recompute everything", "uncompressed, most used first",
                                         "one config for all: " };
    const struct placement_input *in = p->in;
    struct plan_problem problem = placement_problem(in);
    struct plan all[1 + BASELINE_COUNT] = { p->plan };
    double *common = common_errors(in);
    int *order = order_by_use(in), config = 0;
    int code = order && common ? plan_baselines(all + 1, &problem, order, &config, err) : err_nomem(err);

    free(order);
    if (code) {
        free(common);
        return code;
    }
    m->n_totals = 1 + BASELINE_COUNT;
    struct outcome_sums sum[1 + BASELINE_COUNT] = { 0 };
    struct placement_use *use[1 + BASELINE_COUNT] = { 0 };
    for (int i = 0; i < m->n_totals && !code; i++)
        code = placement_uses(&use[i], in, all[i].placement, err);
    if (!code)
        parallel_do(p->plan.n_contexts < THREADS_FROM ? 1 : parallel_threads(), 2, sum_half,
                    &(struct summing){ in, all, use, common, sum, m->n_totals });
    free(common);
    for (int i = 0; i < m->n_totals; i++) {
        free(use[i]);
        char name[MANIFEST_CONFIG];
        snprintf(name, sizeof(name), "%s%.80s", label[i],
                 i == 1 + BASELINE_SINGLE ? in->table.config_name[config] : "");
        m->total[i] = outcome_total(&sum[i], name);
        if (in->load.rate > 0 && !code)
            code = placement_wait(in, all[i].placement, &m->total[i].wait_s, err);
    }
    for (int b = 0; b < BASELINE_COUNT; b++)
        plan_release(&all[1 + b]);
    return code;
}

/* ---- the header ------------------------------------------------------------- */

static bool has_floors(const struct placement_input *in)
{
    return in->min_quality > 0 || in->min_quality_worst > 0 || in->min_facts > 0 || *in->rules_digest;
}

int placement_manifest(struct manifest *m, const struct placement_plan *p, struct err *err)
{
    static const char *const name[] = { "evicpress", "adaptcache", "optimal" };
    const struct placement_input *in = p->in;

    *m = (struct manifest){ .alpha = in->alpha,
                            .slo_ttft_s = in->slo_weight > 0 ? in->slo_ttft_s : 0,
                            .slo_weight = in->slo_weight,
                            .objective = p->plan.objective,
                            .upper_bound = p->plan.upper_bound,
                            .gap = plan_gap(&p->plan),
                            .optimal = p->plan.optimal,
                            .move_cost = in->move_cost,
                            .pack_weight = in->pack_weight,
                            .decode_s_per_byte = in->decode_s_per_byte,
                            .move_price = in->move_price,
                            .max_move = in->max_move,
                            .load = in->load,
                            .predicted = in->kind == QUALITY_PREDICTED,
                            .scale_same = in->scale_same,
                            .sharing = in->prefixes.n > 0 ? in->sharing : SHARING_NONE,
                            .min_quality = in->min_quality,
                            .min_quality_worst = in->min_quality_worst,
                            .min_facts = in->min_facts,
                            .sure_z = has_floors(in) ? in->sure_z : 0,
                            .measured_only = in->measured_only,
                            .tiers = in->tiers,
                            .borrows = true };
    snprintf(m->model_digest, sizeof(m->model_digest), "%s", in->table.model_digest);
    snprintf(m->previous, sizeof(m->previous), "%s", in->previous.digest);
    snprintf(m->rules_digest, sizeof(m->rules_digest), "%s", in->rules_digest);
    snprintf(m->solver, sizeof(m->solver), "%s", name[p->solver]);
    memcpy(m->price, p->plan.price, (size_t)in->tiers.n * sizeof(*m->price));
    snprintf(m->table_digest, sizeof(m->table_digest), "%s", in->table.digest);
    if (add_totals(m, p, err))
        return err->code;
    for (int v = 0; v < in->table.n_configs && in->online; v++)
        if (manifest_list_config(m, in->table.config_name[v], err))
            return err->code;
    m->gain_gap = outcome_gain_gap(m->objective, m->upper_bound, m->total[1 + BASELINE_RECOMPUTE].utility);
    return 0;
}

double placement_lateness(const struct placement_plan *p)
{
    const struct placement_input *in = p->in;
    double late = 0, all = 0;

    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i];
        struct plan_placement c = p->plan.placement[i];
        all += in->frequency[row];
        late +=
            in->frequency[row] * lateness(placement_ttft(in, row, c), placement_ttft_sd(in, row, c), in->slo_ttft_s);
    }
    return all > 0 ? late / all : (double)NAN;
}

int placement_mean_quality(const struct placement_plan *p, double *mean, struct err *err)
{
    const struct placement_input *in = p->in;
    struct placement_use *use;
    double quality = 0, all = 0;

    if (placement_uses(&use, in, p->plan.placement, err))
        return err->code;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i];
        double frequency = in->frequency[row];
        struct plan_placement of = use_placement(use, i, p->plan.placement[i], &row);
        all += frequency;
        quality += frequency * placement_quality(in, row, of);
    }
    free(use);
    *mean = quality / all;
    return 0;
}

void placement_shares(const struct placement_plan *p, double *share)
{
    const struct placement_input *in = p->in;
    double all = 0;

    for (int t = 0; t <= in->tiers.n; t++)
        share[t] = 0;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int tier = p->plan.placement[i].tier;
        share[tier == PLAN_RECOMPUTE ? in->tiers.n : tier] += in->frequency[in->row[i]];
        all += in->frequency[in->row[i]];
    }
    for (int t = 0; t <= in->tiers.n; t++)
        share[t] = all > 0 ? share[t] / all : 0;
}
