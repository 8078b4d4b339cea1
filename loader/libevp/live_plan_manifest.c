/* live_plan_manifest.c - an online plan as a manifest: rows in order of their ids, then what the opened manifest stores
 * and is gone. */
#include "loader/libevp/live_plan.h"

#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums over accesses, for the totals. */
struct sums {
    struct manifest_total now, recomputed;
    double weight, weight_test;
};

static int by_id(const void *a, const void *b, void *arg)
{
    const struct live_plan *o = arg;

    return strcmp(o->at[*(const int *)a].id, o->at[*(const int *)b].id);
}

/* A context's variants without holes, into `variant` (LIVE_VARIANTS). */
static struct variants dense(const struct live_context *c, struct variant_info *variant)
{
    struct variants f = c->variants;

    f.at = variant;
    f.n = 0;
    for (int i = 0; i < c->variants.n; i++)
        if (c->variants.at[i].config)
            variant[f.n++] = c->variants.at[i];
    return f;
}

static void place(const struct live_plan *o, const struct live_context *c, struct plan_placement placement,
                  struct placement *p)
{
    *p = (struct placement){ .id = c->id,
                             .token_digest = c->token_digest,
                             .config = "none",
                             .tier = placement.tier,
                             .n_tokens = c->n_tokens,
                             .kv_bytes = c->kv_bytes,
                             .quality = 1,
                             .quality_test = (double)NAN,
                             .ttft_s = ttft_recompute(c->variants.prefill_s, c->variants.question_s),
                             .frequency = c->frequency };
    if (placement.tier != PLAN_RECOMPUTE) {
        const struct variant_info *variant = &c->variants.at[placement.config];
        const struct tier *tier = &o->opened.tiers.at[placement.tier];
        struct tier_speed speed = { tier->latency_s, tier->read_bytes_per_s };
        p->config = variant->config;
        p->bytes = variant->bytes;
        p->quality = variant->quality;
        p->ttft_s = ttft_stored(speed, variant->bytes, variant->decompress_s, c->variants.question_s);
    }
    p->utility = utility(o->opened.alpha, p->quality, p->ttft_s, p->frequency);
}

/* The held-out quality of a variant is known when the opened manifest has the context in that variant. */
static double quality_test(const struct placement *p, const struct placement *before)
{
    bool same = before && strcmp(before->token_digest, p->token_digest) == 0 && strcmp(before->config, p->config) == 0;

    return same ? before->quality_test : (double)NAN;
}

static void count(struct sums *s, const struct live_plan *o, const struct live_context *c, const struct placement *p)
{
    double f = c->frequency, recompute_s = ttft_recompute(c->variants.prefill_s, c->variants.question_s);

    s->weight += f;
    s->now.utility += p->utility;
    s->now.ttft_s += f * p->ttft_s;
    s->now.quality += f * p->quality;
    s->recomputed.utility += utility(o->opened.alpha, 1, recompute_s, f);
    s->recomputed.ttft_s += f * recompute_s;
    if (isnan(p->quality_test))
        return;
    s->weight_test += f;
    s->now.quality_test += f * p->quality_test;
}

static int add_row(const struct live_plan *o, int number, struct manifest *m, struct sums *sums, struct err *err)
{
    const struct live_context *c = &o->at[number];
    const struct placement *before = manifest_find(&o->opened, c->id);
    struct variant_info variant[LIVE_VARIANTS];
    struct variants variants = dense(c, variant);
    struct placement p;

    place(o, c, incremental_placement(o->incremental, number), &p);
    char *payload = p.tier >= 0 ? manifest_payload_name(p.id, p.token_digest, p.config) : NULL;
    if (p.tier >= 0 && !payload)
        return err_nomem(err);
    p.payload = payload;
    p.variants = &variants;
    p.quality_test = quality_test(&p, before);
    p.operation = manifest_operation(before, &o->opened.tiers, &p, &o->opened.tiers);
    count(sums, o, c, &p);
    int code = manifest_add(m, &p, err);
    free(payload);
    return code ? err_wrap(err, "context '%.80s'", c->id) : 0;
}

static int add_rows(const struct live_plan *o, struct manifest *m, struct sums *sums, struct err *err)
{
    int *order = malloc(((size_t)o->n + 1) * sizeof(*order)), n = 0, code = 0;

    if (!order)
        return err_nomem(err);
    for (int k = 0; k < o->n; k++)
        if (o->at[k].id)
            order[n++] = k;
    qsort_r(order, (size_t)n, sizeof(*order), by_id, (void *)(uintptr_t)o);
    for (int i = 0; i < n && !code; i++)
        code = add_row(o, order[i], m, sums, err);
    free(order);
    for (int i = 0; i < o->opened.n && !code; i++) {
        const struct placement *before = &o->opened.at[i];
        if (before->tier < 0 || live_plan_find(o, before->id) >= 0)
            continue;
        struct placement gone = manifest_eviction(before);
        code = manifest_add(m, &gone, err);
    }
    return code;
}

static void add_totals(struct manifest *m, struct sums *s)
{
    snprintf(s->now.name, sizeof(s->now.name), "this plan");
    s->now.ttft_s /= s->weight;
    s->now.quality /= s->weight;
    s->now.quality_test /= s->weight_test;
    snprintf(s->recomputed.name, sizeof(s->recomputed.name), "recompute everything");
    s->recomputed.ttft_s /= s->weight;
    s->recomputed.quality = s->recomputed.quality_test = 1;
    m->total[m->n_totals++] = s->now;
    m->total[m->n_totals++] = s->recomputed;
    double gain = m->upper_bound - s->recomputed.utility;
    m->gain_gap = gain > 0 ? (m->upper_bound - m->objective) / gain : 0;
}

int live_plan_manifest(const struct live_plan *o, struct manifest *m, struct err *err)
{
    const struct incremental_state *state = incremental_state(o->incremental);
    struct plan plan = { .objective = state->objective, .upper_bound = state->upper_bound };
    struct sums sums = { 0 };

    *m = (struct manifest){ .alpha = o->opened.alpha,
                            .solver = "online",
                            .objective = plan.objective,
                            .upper_bound = plan.upper_bound,
                            .gap = plan_gap(&plan),
                            .max_move = INT64_MAX,
                            .min_quality = o->opened.min_quality,
                            .tiers = o->opened.tiers,
                            .header = o->opened.header };
    memcpy(m->model_digest, o->opened.model_digest, sizeof(m->model_digest));
    memcpy(m->previous, o->opened.digest, sizeof(m->previous));
    memcpy(m->price, o->opened.price, sizeof(m->price));
    int code = add_rows(o, m, &sums, err);
    if (!code && !m->n)
        code = err_set(err, ERR_FORMAT, "a manifest without contexts is none");
    if (code) {
        live_plan_manifest_release(m);
        return code;
    }
    add_totals(m, &sums);
    return 0;
}

void live_plan_manifest_release(struct manifest *m)
{
    m->tiers = (struct tiers){ 0 };
    m->header = NULL;
    manifest_release(m);
}
