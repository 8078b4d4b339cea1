/* live_uses.c - uses of a live plan's contexts, and of those that it does not know.
 *
 * Contexts that nobody has profiled enter with what is typical, and are forgotten again. Only what cannot make
 * operations, forgetting, comes before the used context's own event, which may be refused.
 */
#include "loader/libevicpress/live_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 4096 };

/* A plan forgets only what is above FREE contexts and PER_STORED for each that is stored. A use looks at STEPS. */
enum { FREE = 512, PER_STORED = 8, STEPS = 2 };

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
 * as far as those of the other contexts spread. Floors of single questions and facts only the uncompressed cache
 * keeps. */
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
int live_uses_init(struct live_plan *l, struct err *err)
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

/* ---- the events of a use ---------------------------------------------------------------- */

/* Is its use less likely than the average context's? */
static bool may_forget(const struct live_plan *l, int number)
{
    const struct live_context *c = &l->at[number];

    return c->id && c->by_use && density_placement(l->density, number).tier == PLAN_RECOMPUTE &&
           uses_chance(density_uses(l->density), density_counts(l->density, number)) *
                   density_state(l->density)->n_contexts <
               1;
}

static int forget(struct live_plan *l, struct err *err)
{
    const struct density_state *state = density_state(l->density);

    for (int k = 0; k < STEPS && state->n_contexts > FREE + PER_STORED * (double)state->n_stored; k++) {
        l->hand = l->hand + 1 < l->n ? l->hand + 1 : 0;
        if (may_forget(l, l->hand) && live_plan_remove(l, l->hand, err))
            return err->code;
    }
    return 0;
}

/* Adds a context that nobody has profiled. */
static int add_typical(struct live_plan *l, const struct live_context *use, int *number, struct err *err)
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
    c.by_use = true;
    c.variants = (struct variants){ .at = variant,
                                    .n = typical->n,
                                    .prefill_s = (typical->prefill_s_per_token + typical->prefill_s_per_token2 * n) * n,
                                    .question_s = typical->question_s };
    return live_plan_enter(l, &c, number, err);
}

int live_plan_used(struct live_plan *l, const struct live_context *use, double at_s, struct err *err)
{
    const struct density_use u = { .at_s = at_s };
    int number;

    if (forget(l, err))
        return err->code;
    number = live_plan_find(l, use->id);
    if (number < 0 && add_typical(l, use, &number, err))
        return err->code;
    live_plan_keep(l, number);
    l->learns = true;
    return live_plan_end(l, density_used(l->density, number, &u, err));
}
