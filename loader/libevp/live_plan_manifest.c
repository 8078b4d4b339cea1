/* live_plan_manifest.c - a live plan as a manifest: its rows in the order of their ids, then an eviction for each
 * context that the opened manifest stores and the plan no longer has.
 *
 * The totals compare the plan with recomputing everything; the other baselines would need the whole table.
 */
#include "loader/libevp/live_plan.h"

#include "loader/formats/outcome.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct totals {
    struct outcome_sums plan, recomputed;
};

/* A context's variants without holes, into `variant` (LIVE_VARIANTS). */
static struct variants without_holes(const struct live_context *c, struct variant_info *variant)
{
    struct variants f = c->variants;

    f.at = variant;
    f.n = 0;
    for (int i = 0; i < c->variants.n; i++)
        if (c->variants.at[i].config)
            variant[f.n++] = c->variants.at[i];
    return f;
}

static double ttft_of_recomputing(const struct live_context *c)
{
    return ttft_recomputed(c->variants.prefill_s, c->variants.question_s);
}

/* The row of a context without payload, variants, held-out quality and operation. */
static struct placement row_of(const struct live_plan *l, const struct live_context *c, struct plan_placement placement)
{
    struct placement p = { .id = c->id,
                           .token_digest = c->token_digest,
                           .config = "none",
                           .tier = placement.tier,
                           .n_tokens = c->n_tokens,
                           .kv_bytes = c->kv_bytes,
                           .quality = 1,
                           .quality_test = (double)NAN,
                           .ttft_s = ttft_of_recomputing(c),
                           .frequency = c->frequency };

    if (placement.tier != PLAN_RECOMPUTE) {
        const struct variant_info *variant = &c->variants.at[placement.config];
        double read_s = tier_read_s(&l->opened.tiers.at[placement.tier], variant->bytes);
        p.config = variant->config;
        p.bytes = variant->bytes;
        p.quality = variant->quality;
        p.ttft_s = ttft_stored(read_s, variant->decompress_s, c->variants.question_s);
    }
    p.utility = utility(l->opened.alpha, p.quality, p.ttft_s, p.frequency);
    return p;
}

/* The held-out quality of a variant is known when the opened manifest stores the context as that variant. */
static double quality_test(const struct placement *p, const struct placement *before)
{
    struct cached is = { .token_digest = p->token_digest, .config = p->config, .bytes = -1 };

    if (!before)
        return (double)NAN;
    struct cached was = { .token_digest = before->token_digest, .config = before->config, .bytes = -1 };
    return cached_same(&was, &is) ? before->quality_test : (double)NAN;
}

static void add_outcomes(struct totals *t, const struct live_plan *l, const struct live_context *c,
                         const struct placement *p)
{
    double recompute_s = ttft_of_recomputing(c);
    struct outcome plan = { p->utility, p->ttft_s, p->quality, p->quality_test };
    struct outcome recomputed = { utility_recomputed(l->opened.alpha, recompute_s, p->frequency), recompute_s, 1, 1 };

    outcome_add(&t->plan, &plan, p->frequency);
    outcome_add(&t->recomputed, &recomputed, p->frequency);
}

static int add_row(const struct live_plan *l, int number, struct manifest *m, struct totals *totals, struct err *err)
{
    const struct live_context *c = &l->at[number];
    const struct placement *before = manifest_find(&l->opened, c->id);
    struct variant_info variant[LIVE_VARIANTS];
    struct variants variants = without_holes(c, variant);
    struct placement p = row_of(l, c, incremental_placement(l->incremental, number));
    struct cached was = manifest_cached(&l->opened.tiers, before), is = manifest_cached(&m->tiers, &p);

    char *payload = p.tier >= 0 ? manifest_payload_name(p.id, p.token_digest, p.config) : NULL;
    if (p.tier >= 0 && !payload)
        return err_nomem(err);
    p.payload = payload;
    p.variants = &variants;
    p.quality_test = quality_test(&p, before);
    p.operation = operation_between(&was, &is);
    add_outcomes(totals, l, c, &p);
    int code = manifest_add(m, &p, err);
    free(payload);
    return code ? err_wrap(err, "context '%.80s'", c->id) : 0;
}

/* The contexts' rows in the order of their ids. id, number, order: (l->n) */
static int add_contexts(const struct live_plan *l, struct manifest *m, struct totals *totals, struct err *err)
{
    size_t cap = (size_t)l->n + 1;
    const char **id = malloc(cap * sizeof(*id));
    int *number = malloc(cap * sizeof(*number)), *order = malloc(cap * sizeof(*order));
    int n = 0, code = id && number && order ? 0 : err_nomem(err);

    for (int k = 0; k < l->n && !code; k++) {
        if (!l->at[k].id)
            continue;
        id[n] = l->at[k].id;
        number[n++] = k;
    }
    if (!code)
        code = manifest_order(order, id, n, err);
    for (int i = 0; i < n && !code; i++)
        code = add_row(l, number[order[i]], m, totals, err);
    free(id);
    free(number);
    free(order);
    return code;
}

static int add_evictions(const struct live_plan *l, struct manifest *m, struct err *err)
{
    const struct placement *before;

    for (int i = 0; (before = manifest_gone(&l->opened, &m->ids, &i)); i++) {
        struct placement p = manifest_eviction(before);
        if (manifest_add(m, &p, err))
            return err->code;
    }
    return 0;
}

int live_plan_manifest(const struct live_plan *l, struct manifest *m, struct err *err)
{
    const struct incremental_state *state = incremental_state(l->incremental);
    struct plan plan = { .objective = state->objective, .upper_bound = state->upper_bound };
    struct totals totals = { 0 };

    *m = (struct manifest){ .alpha = l->opened.alpha,
                            .solver = "online",
                            .objective = plan.objective,
                            .upper_bound = plan.upper_bound,
                            .gap = plan_gap(&plan),
                            .max_move = INT64_MAX,
                            .min_quality = l->opened.min_quality,
                            .tiers = l->opened.tiers,
                            .header = strdup(l->opened.header),
                            .borrows = true };
    memcpy(m->model_digest, l->opened.model_digest, sizeof(m->model_digest));
    memcpy(m->previous, l->opened.digest, sizeof(m->previous));
    memcpy(m->price, l->opened.price, sizeof(m->price));
    int code = m->header ? add_contexts(l, m, &totals, err) : err_nomem(err);
    if (!code)
        code = add_evictions(l, m, err);
    if (!code && !m->n)
        code = err_set(err, ERR_FORMAT, "the plan has no contexts, and a manifest must have one");
    if (code) {
        manifest_release(m);
        return code;
    }
    m->total[m->n_totals++] = outcome_total(&totals.plan, "this plan");
    m->total[m->n_totals++] = outcome_total(&totals.recomputed, "recompute everything");
    m->gain_gap = outcome_gain_gap(m->objective, m->upper_bound, m->total[1].utility);
    return 0;
}
