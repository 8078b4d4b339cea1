/* compressor.c - the scores that a list of configs needs, each computed once; then the cache is rounded to the numbers
 * that payloads hold.
 */
#include "methods/variant_internal.h"

#include "kernels/pool.h"
#include "methods/head_work.h"
#include "methods/method_plugin.h"

#include <assert.h>
#include <stdlib.h>

struct compressor {
    const struct kv_full *full;
    struct scores *scores; // [n_scores]
    int n_scores;
};

static int call_score(struct scores *s, const struct kv_full *full, struct err *err)
{
    const struct method_scores *scores = scores_of(s->stage.method);

    if (scores->all)
        return scores->all(full, s->stage.value, s->at, err);
    if (!scores->shares)
        return host_score(full, s->stage.method, s->stage.value, s->at, err);
    s->share = calloc((size_t)full->shape.n_layers, sizeof(*s->share));
    return s->share ? scores->shares(full, s->stage.value, s->at, s->share, err) : err_nomem(err);
}

double need_seconds(const struct kv_full *full, unsigned needs)
{
    return (needs & NEED_COLUMN_SUMS ? full->column_sums_s : 0) + (needs & NEED_REPEAT ? full->repeat_s : 0) +
           (needs & NEED_MOMENTS ? full->moments_s : 0) + (needs & NEED_VALUE_NORMS ? full->value_norms_s : 0);
}

static int compute_scores(struct scores *s, const struct kv_full *full, struct err *err)
{
    struct backend *be = full->backend;
    size_t mark = pool_mark(full->pool);
    const struct method *method = s->stage.method;
    double start = be->clock(be);
    int code = call_score(s, full, err);

    s->seconds = be->clock(be) - start + need_seconds(full, method->needs);
    pool_reset(full->pool, mark);
    if (code == 0)
        code = be->sync(be, err);
    return code ? err_wrap(err, "%s", method->name) : 0;
}

/* Takes all memory that stays before the first scoring, because scoring takes temporary memory from the same pool. */
static int compute_all(struct compressor *c, const struct config *const *configs, int n, struct err *err)
{
    const struct kv_full *full = c->full;

    for (int i = 0; i < n; i++)
        if (method_plugin_keep(full, configs[i], err))
            return err->code;
    for (int i = 0; i < n * SCORED_KINDS; i++) {
        const struct config_stage *stage = new_scores(configs, i / SCORED_KINDS, scored_kind[i % SCORED_KINDS]);
        if (!stage)
            continue;
        struct scores *s = &c->scores[c->n_scores++];
        s->stage = *stage;
        s->at = pool_take(full->pool, score_bytes(&full->shape, full->n_tokens), err);
        if (!s->at)
            return err->code;
    }
    for (int i = 0; i < c->n_scores; i++)
        if (compute_scores(&c->scores[i], full, err))
            return err->code;
    return 0;
}

struct compressor *compressor_new(const struct kv_full *full, const struct config *const *configs, int n,
                                  struct err *err)
{
    struct compressor *c = calloc(1, sizeof(*c));
    size_t mark = pool_mark(full->pool);

    if (c)
        c->scores = calloc((size_t)n * SCORED_KINDS + 1, sizeof(*c->scores));
    if (!c || !c->scores) {
        compressor_free(c);
        err_nomem(err);
        return NULL;
    }
    c->full = full;
    if (compute_all(c, configs, n, err) || round_cache(full, err)) {
        pool_reset(full->pool, mark);
        compressor_free(c);
        return NULL;
    }
    return c;
}

void compressor_free(struct compressor *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n_scores; i++)
        free(c->scores[i].share);
    free(c->scores);
    free(c);
}

const struct kv_full *compressor_full(const struct compressor *c)
{
    return c->full;
}

const struct scores *compressor_scores(const struct compressor *c, const struct config_stage *stage)
{
    int i = 0;

    if (!stage || !has_scores(stage->method))
        return NULL;
    while (i < c->n_scores && !same_scores(&c->scores[i].stage, stage))
        i++;
    assert(i < c->n_scores); // the compressor was made with a config that has these scores
    return &c->scores[i];
}
