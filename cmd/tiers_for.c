/* tiers_for.c - engines and the configs that they can hold, as in "configs" of tiers.json: by the name of a config's
 * first method; and of which models. */
#include "cmd/tiers_for.h"

#include "base/log.h"
#include "base/parse.h"
#include "base/unconst.h"
#include "engine/model/shape.h"

#include <stdlib.h>

enum { CONFIGS = 32 };

/* Every token is kept; and as many in each layer and head. */
#define ALL_TOKENS "none", "kivi", "cachegen", "fp8", "int8", "int4", "nvfp4", "turboquant"
#define EQUAL_TOKENS                                                                                                   \
    "knorm", "keydiff", "snapkv", "tova", "h2o", "streamingllm", "lagkv", "random", "cur", "arkv",                     \
        "expected_attention", "criticalkv+snapkv", "criticalkv+expected_attention"

/* In the order of TIERS_ENGINES; without configs: all, and layers that keep a window. */
static const struct holder {
    const char *name, *config[CONFIGS];
} engine_list[] = {
    { "any", { NULL } },           { "vllm", { ALL_TOKENS } },   { "vllm-drop", { ALL_TOKENS, EQUAL_TOKENS } },
    { "lmcache", { ALL_TOKENS } }, { "sglang", { ALL_TOKENS } }, { "llama", { ALL_TOKENS, EQUAL_TOKENS } },
    { "transformers", { NULL } },
};

/* A tier that may hold what the engine can hold. */
static struct tier holds_of(int engine)
{
    struct tier holds = { .config = unconst(engine_list[engine].config) };

    while (holds.config[holds.n_configs])
        holds.n_configs++;
    return holds;
}

bool tiers_for_holds(int engine, const char *config)
{
    const struct tier holds = holds_of(engine);

    return tier_allows(&holds, config);
}

int tiers_for(struct tiers *tiers, int engine, struct err *err)
{
    const struct tier holds = holds_of(engine);

    for (int i = 0; i < tiers->n; i++) {
        struct tier *t = &tiers->at[i];
        bool own = t->n_configs > 0;
        for (int k = 0; k < t->n_configs; k++)
            if (!tier_allows(&holds, t->config[k]))
                return err_set(err, ERR_USAGE, "--for %s: tier '%s' has the config %s, which this engine cannot hold",
                               engine_list[engine].name, t->name, t->config[k]);
        for (int k = 0; k < holds.n_configs && !own; k++)
            if (tier_add_config(t, holds.config[k], err))
                return err->code;
    }
    return 0;
}

static int check_shape(const struct holder *e, const struct shape *s, struct err *err)
{
    if (e->config[0] && s->n_window > 0 && s->window > 0)
        return err_set(err, ERR_USAGE,
                       "--for %s: %d of the %d layers of '%s' keep a window of %d tokens, and its payloads cannot be "
                       "loaded into this engine",
                       e->name, s->n_window, s->n_layers, s->name, s->window);
    if (e->config[0] && s->unserved)
        return err_set(err, ERR_USAGE, "--for %s: no payloads of models like '%s' can be loaded into this engine",
                       e->name, s->name);
    return 0;
}

int tiers_for_model(int engine, const char *model, struct err *err)
{
    const struct holder *e = &engine_list[engine];
    char *path = model_path(model, err), token[TEXT_SHORT], constant[TEXT_SHORT];
    struct model *header = path ? model_open_header(path, err) : NULL, *computed = NULL;
    struct shape s;
    int code = header ? shape_read(header, &s, err) : err->code;

    if (!code)
        code = check_shape(e, &s, err);
    if (!code) {
        computed = model_open_config(path, err);
        code = computed ? 0 : err_wrap(err, "no payloads of '%s' can be made", s.name);
    }
    if (!code)
        log_info("--for %s: it can hold caches of '%s': %s for each token, %s for windows", e->name, s.name,
                 text_bytes(token, shape_per_token(&s)), text_bytes(constant, shape_constant(&s)));
    model_close(computed);
    model_close(header);
    free(path);
    return code;
}
