/* live_uses.c - a live plan learns from uses how often each context is used.
 *
 * A use is several events of the planner: the hand forgets contexts and brings others up to date, the used context gets
 * its new frequency, and what that evicts counts as unused from now on. Only what cannot make operations comes before
 * the used context's own event, which may be refused.
 */
#include "loader/libevicpress/live_plan.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REFRESHES = 2, LIFE_MIN = 100, SAMPLE = 4096 };

static const double forgotten = .05; // of a use's weight: a context that uses brought has left the plan below that

/* ---- what is typical -------------------------------------------------------------- */

/* Sums over contexts: of their tokens, seconds of prefill, and variants. */
struct sample {
    double n, tokens, tokens2, prefill_s, prefill_s_per_token, question_s;
    struct sample_config {
        double n, quality, quality2, bytes_per_token, decompress_s_per_token;
    } * of; // for each of the manifest's configs
};

static void add_to_sample(struct sample *s, const struct map *configs, const struct live_context *c)
{
    double tokens = (double)c->n_tokens;

    s->n++;
    s->tokens += tokens;
    s->tokens2 += tokens * tokens;
    s->prefill_s += c->variants.prefill_s;
    s->prefill_s_per_token += c->variants.prefill_s / tokens;
    s->question_s += c->variants.question_s;
    for (int v = 0; v < c->variants.n; v++) {
        const struct variant_info *variant = &c->variants.at[v];
        int config = map_find(configs, variant->config, strlen(variant->config));
        if (config < 0)
            continue;
        struct sample_config *to = &s->of[config];
        to->n++;
        to->quality += variant->quality;
        to->quality2 += variant->quality * variant->quality;
        to->bytes_per_token += (double)variant->bytes / tokens;
        to->decompress_s_per_token += isnan(variant->decompress_s) ? 0 : variant->decompress_s / tokens;
    }
}

/* Whether a context that nobody has profiled may be stored under a config: the quality must keep the manifest's floor,
 * as far as those of the other contexts spread. Floors of single questions and facts only the untouched cache keeps. */
static bool may_offer(const struct manifest *m, const char *config, const struct sample_config *s)
{
    double quality = s->quality / s->n, variance = fmax(s->quality2 / s->n - quality * quality, 0);

    if (strcmp(config, "none") == 0)
        return true;
    return !m->measured_only && !(m->min_quality_worst > 0) && !(m->min_facts > 0) &&
           quality - fmax(m->sure_z, 0) * sqrt(variance) >= m->min_quality;
}

/* Configs that less than a tenth of the contexts could use are not offered. */
static void offer_configs(struct live_typical *typical, const struct manifest *m, const struct sample *sample)
{
    for (int c = 0; c < m->configs.n && typical->n < VARIANTS_MAX; c++) {
        const struct sample_config *s = &sample->of[c];
        const char *config = m->configs.at[c].key;
        if (s->n < sample->n / 10 || s->n < 1 || !may_offer(m, config, s))
            continue;
        typical->variant[typical->n].config = config;
        typical->variant[typical->n].quality = fmin(s->quality / s->n, 1);
        typical->variant[typical->n].bytes_per_token = s->bytes_per_token / s->n;
        typical->variant[typical->n++].decompress_s_per_token = s->decompress_s_per_token / s->n;
    }
}

/* Fits a * n + b * n^2 to the prefills by least squares of the seconds per token, a and b at least 0. */
static void fit_prefill(struct live_typical *typical, const struct sample *s)
{
    double spread = s->n * s->tokens2 - s->tokens * s->tokens;
    double slope = (s->n * s->prefill_s - s->tokens * s->prefill_s_per_token) / spread;

    if (!(spread > 1e-9 * s->n * s->tokens2) || slope < 0)
        slope = 0;
    slope = fmin(slope, s->prefill_s_per_token / s->tokens);
    typical->prefill_s_per_token2 = slope;
    typical->prefill_s_per_token = fmax((s->prefill_s_per_token - slope * s->tokens) / s->n, 0);
    typical->question_s = s->question_s / s->n;
}

/* From some thousand contexts, spread over the manifest. */
static int find_typical(struct live_plan *l, struct err *err)
{
    struct sample sample = { .of = calloc((size_t)l->opened.configs.n + 1, sizeof(*sample.of)) };

    if (!sample.of)
        return err_nomem(err);
    for (int i = 0; i < l->n; i += 1 + l->n / SAMPLE)
        if (l->at[i].n_tokens > 0)
            add_to_sample(&sample, &l->opened.configs, &l->at[i]);
    if (sample.n > 0)
        fit_prefill(&l->typical, &sample);
    offer_configs(&l->typical, &l->opened, &sample);
    free(sample.of);
    return 0;
}

static bool is_stored(const struct live_plan *l, int number)
{
    return incremental_placement(l->incremental, number).tier != PLAN_RECOMPUTE;
}

/* ---- weights ------------------------------------------------------------------------- */

int live_uses_init(struct live_plan *l, struct err *err)
{
    double uses = 0, stored = 0;

    for (int i = 0; i < l->n; i++) {
        uses += l->at[i].frequency;
        stored += is_stored(l, i);
    }
    l->life = fmax(stored, LIFE_MIN);
    l->unit = fmax(uses / l->life, 1);
    return find_typical(l, err);
}

static double weight_now(const struct live_plan *l, const struct live_context *c)
{
    return c->weight * exp(c->at - l->age);
}

/* Sets the frequency that the planner sees, and the weight. */
static int set_frequency(struct live_plan *l, int number, double frequency, double weight, struct err *err)
{
    if (frequency != l->at[number].frequency &&
        live_plan_update(l, number, &(struct live_update){ .frequency = frequency }, err))
        return err->code;
    l->at[number].weight = weight;
    l->at[number].at = l->age;
    return 0;
}

/* ---- the events of a use ---------------------------------------------------------------- */

struct use {
    struct live_plan *l;
    live_took *took;
    void *arg;
    struct {
        int *at;
        int n, cap;
    } evicted; // by the last event
};

/* Ends one event: its operations go to the caller, and what is not stored any more counts as unused. */
static int end_event(struct use *u, struct err *err)
{
    struct live_plan *l = u->l;
    const struct incremental_state *state = incremental_state(l->incremental);

    u->evicted.n = 0;
    for (int k = 0; k < state->n_ops; k++)
        if (state->op[k].to.tier == PLAN_RECOMPUTE && ARRAY_PUSH(&u->evicted, state->op[k].context))
            return err_nomem(err);
    if (u->took(u->arg, err))
        return err->code;
    for (int k = 0; k < u->evicted.n; k++) {
        int number = u->evicted.at[k];
        if (!is_stored(l, number) && set_frequency(l, number, 0, weight_now(l, &l->at[number]), err))
            return err->code;
    }
    return 0;
}

/* Sets the frequency of a context; if that is an event, ends it. */
static int change(struct use *u, int number, double frequency, double weight, struct err *err)
{
    bool event = frequency != u->l->at[number].frequency;

    if (set_frequency(u->l, number, frequency, weight, err))
        return err->code;
    return event ? end_event(u, err) : 0;
}

static bool may_forget(const struct live_plan *l, int number)
{
    const struct live_context *c = &l->at[number];

    return c->id && c->by_use && !is_stored(l, number) && weight_now(l, c) < forgotten * l->unit;
}

/* The numbers that the hand passes at one use. */
static int hand_steps(const struct live_plan *l)
{
    return (int)fmin(ceil(REFRESHES * (l->n / l->life)), l->n);
}

static int forget(struct live_plan *l, struct err *err)
{
    for (int k = 0, n = hand_steps(l); k < n; k++) {
        int number = (l->hand + k) % l->n;
        if (may_forget(l, number) && live_plan_remove(l, number, err))
            return err->code;
    }
    return 0;
}

static int refresh(struct use *u, int number, struct err *err)
{
    struct live_plan *l = u->l;
    const struct live_context *c = &l->at[number];

    if (!c->id)
        return 0;
    double weight = weight_now(l, c);
    return change(u, number, is_stored(l, number) ? weight : 0, weight, err);
}

/* Moves the hand; after a round the life of a use is the number of contexts that are stored. */
static int refresh_some(struct use *u, struct err *err)
{
    struct live_plan *l = u->l;

    for (int k = 0, n = hand_steps(l); k < n; k++) {
        if (refresh(u, l->hand, err))
            return err->code;
        l->n_stored += l->at[l->hand].id && is_stored(l, l->hand);
        if (++l->hand < l->n)
            continue;
        l->life = fmax(l->n_stored, LIFE_MIN);
        l->hand = l->n_stored = 0;
    }
    return 0;
}

/* Adds a context that nobody has profiled. */
static int add_typical(struct live_plan *l, const struct live_context *use, struct err *err)
{
    const struct live_typical *typical = &l->typical;
    struct variant_info variant[VARIANTS_MAX];
    struct live_context c = *use;
    double n = (double)use->n_tokens;

    for (int v = 0; v < typical->n; v++) {
        variant[v] =
            (struct variant_info){ .config = typical->variant[v].config,
                                   .bytes = (int64_t)fmin(ceil(typical->variant[v].bytes_per_token * n), 0x1p62),
                                   .quality = typical->variant[v].quality,
                                   .decompress_s = typical->variant[v].decompress_s_per_token * n };
        if (strcmp(variant[v].config, "none") == 0)
            c.kv_bytes = variant[v].bytes;
    }
    c.frequency = l->unit;
    c.variants = (struct variants){ .at = variant,
                                    .n = typical->n,
                                    .prefill_s = (typical->prefill_s_per_token + typical->prefill_s_per_token2 * n) * n,
                                    .question_s = typical->question_s };
    return live_plan_add(l, &c, err);
}

/* The event of the used context itself. */
static int count_use(struct use *u, const struct live_context *use, struct err *err)
{
    struct live_plan *l = u->l;
    int number = live_plan_find(l, use->id), code;

    if (number < 0) {
        if (add_typical(l, use, err))
            return err->code;
        number = live_plan_find(l, use->id);
        l->at[number].by_use = true;
        code = end_event(u, err);
    } else {
        double weight = weight_now(l, &l->at[number]) + l->unit;
        code = change(u, number, weight, weight, err);
    }
    if (code)
        return code;
    return is_stored(l, number) ? 0 : set_frequency(l, number, 0, l->at[number].weight, err);
}

int live_plan_used(struct live_plan *l, const struct live_context *use, live_took *took, void *arg, struct err *err)
{
    struct use u = { l, took, arg, { 0 } };

    l->age += 1 / l->life;
    int code = forget(l, err);
    if (!code)
        code = count_use(&u, use, err);
    if (!code)
        code = refresh_some(&u, err);
    free(u.evicted.at);
    return code;
}
