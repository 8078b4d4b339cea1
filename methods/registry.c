/* registry.c - the list of methods, in the order in which messages list them. */
#include "methods/method.h"
#include "methods/registry.h"

#include <string.h>
#include <strings.h>

const struct method *method_registry[METHODS_MAX + 1] = {
    &method_knorm,      &method_keydiff,  &method_snapkv,       &method_pyramidkv,
    &method_tova,       &method_h2o,      &method_streamingllm, &method_kvzip,
    &method_lagkv,      &method_random,   &method_cur,          &method_expected_attention,
    &method_kvzap,      &method_impress,  &method_arkv,         &method_adakv,
    &method_criticalkv, &method_chunkkv,  &method_cam,          &method_merge_cos,
    &method_kivi,       &method_cachegen, &method_fp8,          &method_int8,
    &method_int4,       &method_nvfp4,    &method_turboquant,
};

const struct method *method_find(const char *name, size_t n)
{
    for (int i = 0; method_registry[i]; i++)
        if (strlen(method_registry[i]->name) == n && strncasecmp(method_registry[i]->name, name, n) == 0)
            return method_registry[i];
    return NULL;
}

enum method_kind method_kind(const struct method *m)
{
    return m->budget ? METHOD_BUDGET : m->drop ? METHOD_DROP : m->merge ? METHOD_MERGE : METHOD_QUANTISE;
}

bool method_add(const struct method *m)
{
    int n = 0;

    while (method_registry[n])
        n++;
    if (n < METHODS_MAX)
        method_registry[n] = m;
    return n < METHODS_MAX;
}

bool layer_rotates(const struct kv_full *full, int layer)
{
    return !full->unrotated || !(full->unrotated[layer / 64] >> layer % 64 & 1);
}

int keep_of_drop(double drop, int n_tokens)
{
    int n = (int)((double)n_tokens * (1.0 - drop));

    return n > 0 ? n : 1;
}
