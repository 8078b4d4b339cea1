/* compressor.c - the scores that a list of configs needs, each computed once; then the cache is rounded to the numbers
 * that payloads hold.
 */
#include "variants/variant_internal.h"

#include "kernels/pool.h"
#include "methods/head_work.h"
#include "methods/method_plugin.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- stages with scores ------------------------------------------------- */

/* NULL: the stage has none, or is none. */
static const struct method_scores *scores_of(const struct config_stage *stage)
{
    const struct method *m = stage->method;

    return m && m->drop ? &m->drop->scores : m && m->merge && m->merge->scores.all ? &m->merge->scores : NULL;
}

/* Do two stages have the same scores? */
static bool same_scores(const struct config_stage *a, const struct config_stage *b)
{
    const struct method_scores *x = scores_of(a), *y = scores_of(b);

    if (!x || !y || memcmp(x, y, sizeof(*x)) != 0)
        return false;
    bool by_drop = x->by_drop && x->by_drop(a->value);
    for (int i = 0; i < CONFIG_PARAMS && a->method->param[i].name && b->method->param[i].name; i++)
        if ((!a->method->param[i].budget || by_drop) && a->value[i] != b->value[i])
            return false;
    return true;
}

/* The stages with scores of a config: dropping, then merging. */
enum { SCORED_KINDS = 2 };
static const enum method_kind scored_kind[SCORED_KINDS] = { METHOD_DROP, METHOD_MERGE };

/* Stage i of those of all configs; NULL when it has no scores, or an earlier config has the same. */
static const struct config_stage *new_scores(const struct config *const *configs, int i)
{
    enum method_kind kind = scored_kind[i % SCORED_KINDS];
    const struct config_stage *mine = &configs[i / SCORED_KINDS]->stage[kind];

    for (int j = 0; j < i / SCORED_KINDS; j++)
        if (same_scores(mine, &configs[j]->stage[kind]))
            return NULL;
    return scores_of(mine) ? mine : NULL;
}

struct memory_need configs_score_bytes(const struct config *const *configs, int n, const struct kv_shape *shape,
                                       int n_tokens)
{
    struct memory_need need = { 0 };
    unsigned needs;
    int window;

    configs_need(configs, n, &needs, &window);
    window = window < n_tokens ? window : n_tokens;
    for (int i = 0; i < n * SCORED_KINDS; i++) {
        const struct config_stage *stage = new_scores(configs, i);
        const struct method_scores *scores = stage ? scores_of(stage) : NULL;
        size_t making = scores && scores->bytes ? scores->bytes(stage->value, shape, n_tokens, window) : 0;
        need.kept += scores ? score_bytes(shape, n_tokens) : 0;
        need.making = making > need.making ? making : need.making;
    }
    return need;
}

/* ---- scoring ------------------------------------------------------------ */

static int call_score(struct scores *s, const struct kv_full *full, struct err *err)
{
    const struct method_scores *scores = scores_of(&s->stage);

    if (scores->all)
        return scores->all(full, s->stage.value, s->at, err);
    if (!scores->shares)
        return host_score(full, s->stage.method, s->stage.value, s->at, err);
    s->share = calloc((size_t)full->shape.n_layers, sizeof(*s->share));
    return s->share ? scores->shares(full, s->stage.value, s->at, s->share, err) : err_nomem(err);
}

/* The seconds that prefill took for side outputs (enum method_need). */
static double need_seconds(const struct kv_full *full, unsigned needs)
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

    if (full->shape.n_layers == 0) // all have a window
        return 0;
    for (int i = 0; i < n; i++)
        if (method_plugin_keep(full, configs[i], err))
            return err->code;
    for (int i = 0; i < n * SCORED_KINDS; i++) {
        const struct config_stage *stage = new_scores(configs, i);
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

const struct scores *compressor_scores(const struct compressor *c, const struct config_stage *stage)
{
    int i = 0;

    if (!scores_of(stage) || c->full->shape.n_layers == 0)
        return NULL;
    while (i < c->n_scores && !same_scores(&c->scores[i].stage, stage))
        i++;
    assert(i < c->n_scores); // the compressor was made with a config that has these scores
    return &c->scores[i];
}

double compressor_seconds(const struct compressor *c, const struct config *config)
{
    double seconds = config->budget ? need_seconds(c->full, config->stage[METHOD_BUDGET].method->needs) : 0;

    for (int i = 0; i < SCORED_KINDS; i++) {
        const struct scores *scores = compressor_scores(c, &config->stage[scored_kind[i]]);
        seconds += scores ? scores->seconds : 0;
    }
    return seconds;
}
