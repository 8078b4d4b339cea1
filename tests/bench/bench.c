/* bench.c - what evp-profile does before and after the contexts. */
#include "tests/bench/bench.h"

#include <stdlib.h>

int bench_open(struct bench *b, const struct bench_options *o, struct err *err)
{
    *b = (struct bench){ .shards.lock = -1, .made = { .model = "", .model_digest = "", .backend = "", .dtype = "" } };
    if (contexts_read(&b->contexts, o->contexts, err) || questions_read(&b->questions, o->questions, err) ||
        config_list(&b->config, &b->n_configs, o->configs, err))
        return err->code;
    b->list = calloc((size_t)b->n_configs, sizeof(struct config *));
    b->engine = b->list ? engine_open(&o->engine, err) : NULL;
    if (!b->engine)
        return b->list ? err->code : err_nomem(err);
    for (int v = 0; v < b->n_configs; v++)
        b->list[v] = &b->config[v];
    const struct grid_input in = { .contexts = &b->contexts,
                                   .questions = &b->questions,
                                   .config = b->config,
                                   .n_configs = b->n_configs,
                                   .shard = { 1, 1 },
                                   .max_new_tokens = o->max_new_tokens,
                                   .temperature = o->temperature,
                                   .model_tokens = model_config(engine_model(b->engine))->max_tokens,
                                   .tokenizer = engine_tokenizer(b->engine),
                                   .shards = &b->shards };
    return grid_begin(&b->grid, &in, err) ? err->code : grid_plan(&b->grid, &in, err);
}

int bench_start(struct bench *b, struct err *err)
{
    struct engine_work *work = calloc((size_t)b->grid.n_work, sizeof(*work));

    if (!work)
        return err_nomem(err);
    for (int i = 0; i < b->grid.n_work; i++)
        work[i] = work_at_most(&b->grid, &b->grid.work[i], b->list, b->n_configs);
    b->session = engine_start(b->engine, work, b->grid.n_work, 0, err);
    free(work);
    return b->session ? 0 : err->code;
}

struct run bench_run(const struct bench *b)
{
    return (
        struct run){ .engine = b->engine, .session = b->session, .grid = &b->grid, .made = &b->made, .lineage = "{}" };
}

void bench_close(struct bench *b)
{
    session_free(b->session);
    engine_close(b->engine);
    grid_release(&b->grid);
    free(b->list);
    free(b->config);
    questions_release(&b->questions);
    contexts_release(&b->contexts);
}
