/* adakv - a budget: the heads of a layer share the pairs that the layer keeps, so heads with more high scores keep
 * more.
 *
 * Used in front of a dropping method: adakv+snapkv:drop=0.5. Where that alone keeps n pairs of each of a layer's G
 * heads, adakv keeps G * n pairs of the layer: first the best max(1, (int)(n * safeguard)) pairs of each head (none
 * with safeguard=0), then the best of the layer's other pairs. Layers do not share. With pyramidkv, where n differs
 * from layer to layer, this is the paper's Ada-PyramidKV; kvpress' AdaKVPress takes only the scores and gives every
 * layer the same n.
 *
 * Scores of different heads are compared. That is meaningful where scores are attention (snapkv, pyramidkv, tova, h2o).
 * Norms and cosines (knorm, keydiff) have another scale in every head; we allow them too, like kvpress, which takes any
 * ScorerPress. Methods with the same scores in all heads (streamingllm, tova) keep the same number in each.
 *
 * Source: Feng et al., "Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM Inference"
 * (arXiv 2407.11550); like kvpress' AdaKVPress, which masks the pairs that are dropped here.
 */
#include "methods/registry.h"

enum { SAFEGUARD };

static int floor_of(const double *value, int n_keep)
{
    int floor = (int)(n_keep * value[SAFEGUARD]);

    return value[SAFEGUARD] > 0 && floor < 1 ? 1 : floor;
}

const struct method method_adakv = {
    .name = "adakv",
    .summary = "shares a layer's budget among its heads",
    .source = "Feng et al. 2024 (arXiv 2407.11550), kvpress AdaKVPress",
    .param = { { .name = "safeguard",
                 .min = 0,
                 .max = 1,
                 .otherwise = 0.2,
                 .budget = true,
                 .help = "share of its own budget that each head keeps" } },
    .budget = &(const struct method_budget){ .floor = floor_of },
};
