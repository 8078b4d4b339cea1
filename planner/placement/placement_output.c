/* placement_output.c - the manifest that evp-plan writes, and what it says on stderr. */
#include "planner/placement/placement.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_FROM = 1 << 12 }; /* contexts; below, starting threads takes longer than the work */

/* ---- rows ---------------------------------------------------------------- */

static struct placement placement_of(const struct plan_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;
    bool stored = c.tier != PLAN_RECOMPUTE;
    size_t cell = (size_t)row * (size_t)t->n_configs + (size_t)c.config;
    struct placement p = {
        .id = t->context_id[row],
        .token_digest = t->context_token_digest[row],
        .config = t->config_name[c.config],
        .tier = c.tier,
        .n_tokens = t->n_tokens[row],
        .bytes = stored ? t->cell_bytes[cell] : 0,
        .kv_bytes = t->kv_bytes[row],
        .quality = stored ? t->quality_train[cell] : 1,
        .quality_test = stored || isnan(t->quality_test[cell]) ? t->quality_test[cell] : 1,
        .ttft_s = plan_ttft(in, row, c),
        .utility = plan_worth(in, row, c),
        .frequency = in->frequency[row],
    };

    p.operation = manifest_operation(manifest_find(&in->previous, p.id), &in->previous.tiers, &p, &in->tiers);
    return p;
}

/* The manifest's rows: the contexts, then what must go. */
struct output {
    const struct plan_input *in;
    const struct plan *plan;
    int *gone; // rows of the previous manifest
    int n_gone;
    double *ones; // (C) for --online; else NULL
};

static int put_placements(const struct output *o, struct manifest_piece *piece, int first, int end, struct err *err)
{
    struct plan_variants variants = { 0 };
    int code = o->ones ? plan_variants_init(&variants, o->in, o->ones, err) : 0;

    for (int i = first; i < end && !code; i++) {
        struct placement p = placement_of(o->in, o->in->row[i], o->plan->placement[i]);
        code = o->ones ? plan_variants_find(&variants, i, o->plan->placement[i], err) : 0;
        p.variants = o->ones ? &variants.variants : NULL;
        if (!code)
            code = manifest_put(piece, &p, err);
    }
    plan_variants_release(&variants);
    return code;
}

static int put_rows(const void *arg, struct manifest_piece *piece, int first, int n, struct err *err)
{
    const struct output *o = arg;
    int n_contexts = o->plan->n_contexts, end = first + n;

    if (first < n_contexts && put_placements(o, piece, first, end < n_contexts ? end : n_contexts, err))
        return err->code;
    for (int i = first > n_contexts ? first : n_contexts; i < end; i++) {
        struct placement p = manifest_eviction(&o->in->previous.at[o->gone[i - n_contexts]]);
        if (manifest_put(piece, &p, err))
            return err->code;
    }
    return 0;
}

static int output_init(struct output *o, const struct plan_input *in, const struct plan *plan, struct err *err)
{
    *o = (struct output){ .in = in, .plan = plan, .gone = calloc((size_t)in->previous.n + 1, sizeof(*o->gone)) };
    o->ones = in->online ? calloc((size_t)plan->n_contexts + 1, sizeof(*o->ones)) : NULL;
    if (!o->gone || (in->online && !o->ones))
        return err_nomem(err);
    for (int i = 0; o->ones && i < plan->n_contexts; i++)
        o->ones[i] = 1;
    for (int i = 0; i < in->previous.n; i++) {
        const struct placement *b = &in->previous.at[i];
        if (b->tier != PLAN_RECOMPUTE && map_find(&in->table.ids, b->id, strlen(b->id)) == MAP_ABSENT)
            o->gone[o->n_gone++] = i;
    }
    return 0;
}

int plan_write(const struct manifest *m, const struct plan_input *in, const struct plan *plan, const char *path,
               struct rows_made made, struct err *err)
{
    struct output o;
    int code = output_init(&o, in, plan, err);

    if (!code)
        code = manifest_write_rows(m, &(struct manifest_rows){ plan->n_contexts + o.n_gone, put_rows, &o }, path, made,
                                   err);
    free(o.gone);
    free(o.ones);
    return code;
}

/* ---- totals --------------------------------------------------------------- */

/* Means over accesses; NAN where nothing is known. */
static struct manifest_total plan_outcome(const struct plan_input *in, const struct plan *plan)
{
    const struct table *t = &in->table;
    double weight = 0, weight_test = 0;
    struct manifest_total sum = { 0 };

    for (int i = 0; i < plan->n_contexts; i++) {
        struct plan_placement c = plan->placement[i];
        int row = in->row[i];
        bool recompute = c.tier == PLAN_RECOMPUTE;
        double f = in->frequency[row];
        size_t cell = (size_t)row * (size_t)t->n_configs + (size_t)c.config;
        weight += f;
        sum.utility += plan_worth(in, row, c);
        sum.ttft_s += f * plan_ttft(in, row, c);
        sum.quality += f * (recompute ? 1 : t->quality_train[cell]);
        if (isnan(t->quality_test[cell]))
            continue;
        weight_test += f;
        sum.quality_test += f * (recompute ? 1 : t->quality_test[cell]);
    }
    sum.ttft_s /= weight;
    sum.quality /= weight;
    sum.quality_test /= weight_test;
    return sum;
}

/* A context and how much it is used. */
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
static int *order_by_use(const struct plan_input *in)
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
static int add_totals(struct manifest *m, const struct plan_input *in, const struct plan *plan, struct err *err)
{
    static const char *const label[] = { "this plan", "recompute everything", "uncompressed, most used first",
                                         "one config for all: " };
    struct plan_problem problem = plan_input_problem(in);
    struct plan all[1 + BASELINE_COUNT] = { *plan };
    int *order = order_by_use(in), config = 0;
    int code = order ? plan_baselines(all + 1, &problem, order, &config, err) : err_nomem(err);

    free(order);
    if (code)
        return code;
    m->n_totals = 1 + BASELINE_COUNT;
#pragma omp parallel for schedule(dynamic) if (plan->n_contexts >= THREADS_FROM)
    for (int i = 0; i < m->n_totals; i++) {
        m->total[i] = plan_outcome(in, &all[i]);
        snprintf(m->total[i].name, MANIFEST_CONFIG, "%s%.80s", label[i],
                 i == 1 + BASELINE_SINGLE ? in->table.config_name[config] : "");
    }
    for (int b = 0; b < BASELINE_COUNT; b++)
        plan_release(&all[1 + b]);
    return 0;
}

/* ---- the whole -------------------------------------------------------------- */

int plan_manifest(struct manifest *m, const struct plan_input *in, const struct plan *plan, enum plan_solver solver,
                  struct err *err)
{
    static const char *const name[] = { "evicpress", "adaptcache", "optimal" };

    *m = (struct manifest){ .alpha = in->alpha,
                            .objective = plan->objective,
                            .upper_bound = plan->upper_bound,
                            .gap = plan_gap(plan),
                            .move_cost = in->move_cost,
                            .move_price = in->move_price,
                            .max_move = in->max_move,
                            .min_quality = in->online ? in->min_quality : 0,
                            .tiers = in->tiers };
    snprintf(m->model_digest, sizeof(m->model_digest), "%s", in->table.model_digest);
    snprintf(m->previous, sizeof(m->previous), "%s", in->previous.digest);
    snprintf(m->solver, sizeof(m->solver), "%s", name[solver]);
    memcpy(m->price, plan->price, (size_t)in->tiers.n * sizeof(*m->price));
    snprintf(m->table_digest, sizeof(m->table_digest), "%s", in->table.digest);
    if (add_totals(m, in, plan, err))
        return err->code;
    double gain = plan->upper_bound - m->total[1 + BASELINE_RECOMPUTE].utility;
    m->gain_gap = gain > 0 ? (plan->upper_bound - plan->objective) / gain : 0;
    return 0;
}

void plan_manifest_release(struct manifest *m)
{
    m->tiers = (struct tiers){ 0 };
    manifest_release(m);
}

void plan_shares(const struct plan_input *in, const struct plan *plan, double *share)
{
    double all = 0;

    for (int t = 0; t <= in->tiers.n; t++)
        share[t] = 0;
    for (int i = 0; i < plan->n_contexts; i++) {
        int tier = plan->placement[i].tier;
        share[tier == PLAN_RECOMPUTE ? in->tiers.n : tier] += in->frequency[in->row[i]];
        all += in->frequency[in->row[i]];
    }
    for (int t = 0; t <= in->tiers.n; t++)
        share[t] /= all;
}

/* ---- what is said ----------------------------------------------------------- */

static const char *tier_name(const struct plan_input *in, int tier)
{
    return tier == PLAN_RECOMPUTE ? "recompute" : in->tiers.at[tier].name;
}

/* Bytes written by where a context was and where it goes. "new": it was nowhere that could be kept. */
static void say_moves(const struct plan_input *in, const struct plan *plan)
{
    for (int from = -1; from < in->tiers.n; from++) {
        for (int to = 0; to < in->tiers.n; to++) {
            double bytes = 0;
            int n = 0;
            char text[TEXT_SHORT];
            for (int i = 0; i < plan->n_contexts; i++) {
                const struct plan_placement *b = &in->before[in->row[i]];
                int was = b->config < 0 ? -1 : b->tier;
                int64_t written = plan_written(in, in->row[i], plan->placement[i]);
                n += was == from && plan->placement[i].tier == to && written > 0;
                bytes += was == from && plan->placement[i].tier == to ? (double)written : 0;
            }
            if (n)
                log_info("write %-12s -> %-12s %d contexts, %s", from < 0 ? "new" : in->tiers.at[from].name,
                         in->tiers.at[to].name, n, text_bytes(text, bytes));
        }
    }
}

static void say_tier(const struct plan_input *in, const struct plan *plan, int tier)
{
    char fill[TEXT_SHORT], room[TEXT_SHORT];
    int n = 0;

    for (int i = 0; i < plan->n_contexts; i++)
        n += plan->placement[i].tier == tier;
    if (tier == PLAN_RECOMPUTE) {
        log_info("tier %-12s %d contexts", tier_name(in, tier), n);
        return;
    }
    int64_t capacity = in->capacity[tier];
    log_info("tier %-12s %d contexts, %s of %s, price %.3g per GiB", tier_name(in, tier), n,
             text_bytes(fill, (double)plan->fill[tier]),
             capacity == INT64_MAX ? "unlimited" : text_bytes(room, (double)capacity), plan->price[tier] * 0x1p30);
}

void plan_say(const struct plan_input *in, const struct plan *plan, const struct manifest *m)
{
    char ttft[TEXT_SHORT];

    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        log_info("%-40s utility %10.4f  TTFT %9s  quality %.3f, held out %.3f", t->name, t->utility,
                 text_seconds(ttft, t->ttft_s), t->quality, t->quality_test);
    }
    for (int t = 0; t < in->tiers.n; t++)
        say_tier(in, plan, t);
    say_tier(in, plan, PLAN_RECOMPUTE);
    if (in->previous.n)
        say_moves(in, plan);
    log_info("utility %.9g, no plan exceeds %.9g: gap %.2g, of the attainable gain %.2g", plan->objective,
             plan->upper_bound, plan_gap(plan), m->gain_gap);
}
