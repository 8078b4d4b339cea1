/* tiers_for.c - engines and the configs that they can hold, as in "configs" of tiers.json: by the name of a config's
 * first method. */
#include "cmd/tiers_for.h"

#include "base/unconst.h"

enum { CONFIGS = 32 };

/* Every token is kept; and as many in each layer and head. */
#define ALL_TOKENS "none", "kivi", "cachegen", "fp8", "int8", "int4", "nvfp4", "turboquant"
#define EQUAL_TOKENS                                                                                                   \
    "knorm", "keydiff", "snapkv", "tova", "h2o", "streamingllm", "lagkv", "random", "cur", "arkv",                     \
        "expected_attention", "criticalkv+snapkv", "criticalkv+expected_attention"

/* In the order of TIERS_ENGINES; without configs: all. */
static const struct {
    const char *name, *config[CONFIGS];
} engine_list[] = {
    { "any", { NULL } },           { "vllm", { ALL_TOKENS } },   { "vllm-drop", { ALL_TOKENS, EQUAL_TOKENS } },
    { "lmcache", { ALL_TOKENS } }, { "sglang", { ALL_TOKENS } }, { "llama", { ALL_TOKENS, EQUAL_TOKENS } },
    { "transformers", { NULL } },
};

int tiers_for(struct tiers *tiers, int engine, struct err *err)
{
    const char *const *config = engine_list[engine].config;
    struct tier holds = { .config = unconst(config) };

    while (config[holds.n_configs])
        holds.n_configs++;
    for (int i = 0; i < tiers->n; i++) {
        struct tier *t = &tiers->at[i];
        bool own = t->n_configs > 0;
        for (int k = 0; k < t->n_configs; k++)
            if (!tier_allows(&holds, t->config[k]))
                return err_set(err, ERR_USAGE, "--for %s: tier '%s' has the config %s, which this engine cannot hold",
                               engine_list[engine].name, t->name, t->config[k]);
        for (int k = 0; k < holds.n_configs && !own; k++)
            if (tier_add_config(t, config[k], err))
                return err->code;
    }
    return 0;
}
