/* adakv - a budget: the heads of a layer share what the layer keeps, so heads with more high scores keep more.
 *
 * In front of a dropping method that keeps n of each of a layer's G heads: adakv+snapkv:drop=0.5. First the f = max(1,
 * (int)(n * safeguard)) best pairs of each head (none with safeguard=0), then the best of all other pairs of the layer,
 * G * n together. Layers do not share. With pyramidkv, whose n differs from layer to layer, this is the paper's
 * Ada-PyramidKV; kvpress' AdaKVPress takes the scores alone and gives every layer the same n.
 *
 * Scores of different heads are compared, which means something where they are attention (snapkv, pyramidkv, tova,
 * h2o). Norms and cosines (knorm, keydiff) have another scale in every head: as kvpress, which takes any ScorerPress,
 * we allow them too. Methods with the same scores in all heads (streamingllm, tova) keep the same number in each.
 *
 * Source: Feng et al., "Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM Inference"
 * (arXiv 2407.11550); as kvpress' AdaKVPress, which masks what is dropped here.
 */
#include "methods/registry.h"

enum { SAFEGUARD };

static void share(const struct kv_full *full, const double *value, int n_keep, const float *score, int32_t *count)
{
    int G = full->shape.n_kv_heads, floor = (int)(n_keep * value[SAFEGUARD]);

    if (value[SAFEGUARD] > 0 && floor < 1)
        floor = 1;
    full->backend->joint_counts(full->backend, count, score, G, full->n_tokens,
                                &(struct joint_keep){ .group = G, .n_keep = G * n_keep, .floor = floor });
}

const struct method method_adakv = {
    .name = "adakv",
    .summary = "shares a layer's budget among its heads",
    .source = "Feng et al. 2024 (arXiv 2407.11550), kvpress AdaKVPress",
    .kind = METHOD_BUDGET,
    .param = { { .name = "safeguard",
                 .min = 0,
                 .max = 1,
                 .otherwise = 0.2,
                 .budget = true,
                 .help = "share of its own budget that each head keeps" } },
    .share = share,
};
