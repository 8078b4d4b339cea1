/* tiers_for.h - which configs a serving engine can hold, and tiers that a plan may use for it. docs/serving.md prints
 * the table. */
#ifndef EVP_TIERS_FOR_H
#define EVP_TIERS_FOR_H

#include "formats/tiers.h"

#define TIERS_ENGINES "any|vllm|vllm-drop|lmcache|sglang|llama|transformers"
enum { TIERS_VLLM = 1, TIERS_VLLM_DROP = 2 }; // numbers there

/* Can the engine hold variants of a config? */
bool tiers_for_holds(int engine, const char *config);

/* Lets the tiers hold only what the engine, by its number in TIERS_ENGINES, can hold. ERR_USAGE: a tier names a config
 * that it cannot. */
int tiers_for(struct tiers *tiers, int engine, struct err *err) MUST_CHECK;

/* Says what the engine can hold of a model's caches (config.json is enough). ERR_USAGE: nothing. ERR_FORMAT: no
 * payloads of the model can be made; or it cannot be read, as model_open_header() says. */
int tiers_for_model(int engine, const char *model, struct err *err) MUST_CHECK;

#endif
