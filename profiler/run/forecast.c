/* forecast.c - operations and bytes of a profile, divided by a GPU's per second. */
#include "profiler/run/forecast.h"

#include "profiler/run/groups.h"
#include "variants/sizes.h"

#include <math.h>
#include <stdlib.h>

/* Operations per second of attention to shared keys, in those that serving_seconds() assumes: an H200 reached .30 of
 * its peak in it, and .59 in all else of the answers (tests/bench/results/2026-11-27-h200.md). */
static const double SHARED_RATE = 0.6;

/* All weights, at 2 bytes each. */
static double weight_bytes(const struct engine *e)
{
    const struct model_config *c = model_config(engine_model(e));
    double D = c->d_model, heads = (double)c->n_heads * c->head_dim, kv = (double)c->n_kv_heads * c->head_dim;
    double mlp = 3 * D * (c->d_ff + (double)c->n_experts * c->expert_ff);

    return 2 * (c->n_layers * (2 * D * (heads + kv) + mlp) + (c->tied ? 1 : 2) * D * c->n_vocab);
}

/* Adds the time of one context's questions over the configs of one group, without the prefill. */
static int add_answers(const struct forecast *f, const struct engine_work *w, double *seconds, struct err *err)
{
    const struct kv_shape shape = engine_kv_shape(f->engine, w->n_tokens);
    double weights = weight_bytes(f->engine), full = (double)kv_bytes(&shape, w->n_tokens), rows = 0, held = 0;
    double space = 0.9 * f->gpu->memory_bytes - weights - full;

    if (space <= 0)
        return err_set(err, ERR_FAIL,
                       "%.0f GB of weights and a cache of %.1f GB do not fit the %.0f GB of memory of %s",
                       weights / 1e9, full / 1e9, f->gpu->memory_bytes / 1e9, f->gpu->name);
    for (int i = 0; i < w->n_configs; i++) {
        double some = full * config_keep_frac(w->config[i], &shape, w->n_tokens);
        rows += some;
        held += i > 0 && w->config[i] == w->config[0] ? 0 : some; // a second answer uses the same rows
    }
    const struct engine_cost cost = engine_cost(f->engine, w);
    double batches = ceil(held / space), steps = w->max_new_tokens;
    double flop = cost.decode_flop + (1 / SHARED_RATE - 1) * cost.shared_flop;
    *seconds += serving_seconds(f->gpu, flop, steps * (batches * weights + rows));
    return 0;
}

/* Of the prefill, and of the side pass that some methods need. */
static double prefill_seconds(const struct forecast *f, const struct engine_work *w)
{
    const struct engine_cost cost = engine_cost(f->engine, w);
    double side = cost.side_flop > 0 ? serving_seconds(f->gpu, cost.side_flop, weight_bytes(f->engine)) : 0;

    return serving_seconds(f->gpu, cost.prefill_flop, weight_bytes(f->engine)) + side;
}

static int add_context(const struct forecast *f, const struct work *w, double *seconds, struct err *err)
{
    struct work_groups groups;

    if (work_groups_make(&groups, f->grid, w, err))
        return err->code;
    const struct engine_work all = work_of_group(f->grid, w, &groups, 0, groups.n);
    int code = 0;
    *seconds += prefill_seconds(f, &all);
    for (int first = 0, end; first < groups.n && !code; first = end) {
        end = work_group_end(&groups, w, first);
        struct engine_work work = work_of_group(f->grid, w, &groups, first, end);
        code = add_answers(f, &work, seconds, err);
    }
    work_groups_release(&groups);
    return code ? err_wrap(err, "context '%s'", w->context->id) : 0;
}

int forecast_open(const struct forecast *f, double *seconds, struct err *err)
{
    *seconds = 0;
    for (int i = 0; i < f->grid->n_work; i++)
        if (f->grid->work[i].n_open > 0 && add_context(f, &f->grid->work[i], seconds, err))
            return err->code;
    return 0;
}

/* The work of a mean context: its questions, at least one. */
static struct engine_work mean_work(const struct grid *g, const struct config *const *config, int n_configs)
{
    double n = g->n_work > 0 ? g->n_work : 1, questions = 0, tokens = 0, shared = 0;
    struct engine_work w = { .config = config, .n_configs = n_configs, .max_new_tokens = g->max_new_tokens };

    for (int i = 0; i < g->n_work; i++) {
        questions += g->work[i].n_questions;
        shared += g->work[i].n_shared;
        for (int q = 0; q < g->work[i].n_questions; q++)
            tokens += g->work[i].question_ids[q].n;
    }
    w.n_questions = (int)fmax(1, ceil(questions / n));
    w.n_shared = (int)(shared / n);
    w.question_tokens = (int)(questions > 0 ? tokens / questions * w.n_questions : 0);
    return w;
}

int forecast_sized(const struct forecast *f, struct forecast_size size, double *seconds, struct err *err)
{
    int n_configs;
    const struct config **config = grid_configs(f->grid, &n_configs, err);
    double one = 0;

    if (!config)
        return err->code;
    struct engine_work w = mean_work(f->grid, config, n_configs);
    w.n_tokens = (int)size.n_tokens;
    int code = add_answers(f, &w, &one, err);
    one += prefill_seconds(f, &w);
    free(config);
    *seconds = (double)size.n * one;
    return code;
}
