/* criticalkv - a stage in front: half of what a head keeps are its highest scores, the rest also depends on how much a
 * value can change the output of the layer.
 *
 * Used in front of a dropping method with scores s: criticalkv+snapkv:drop=0.5. Where that keeps n pairs of a head:
 *     |v_t|       = the L1 norm of W_o v_t, mean over the H/G query heads of the group; W_o: a query head's columns of
 *                   the layer's output projection
 *     score[h][t] = the largest float for the (int)(n * first_stage_ratio) highest s (default 0.5; at least one, unless
 *                   it is 0; of equals the lower positions)
 *     score[h][t] = (s[h][t] + epsilon) * |v_t| for the others (epsilon: default 0.0001)
 * Heads keep as many pairs as without it. Scores of the dropping method should be attention and not contain the norm of
 * the value: expected_attention:use_vnorm=no. compress_s includes the time for the norms.
 *
 * Source: Feng et al., "Identify Critical KV Cache in LLM Inference from an Output Perturbation Perspective" (arXiv
 * 2502.03805); like kvpress' CriticalKVPress. There the first stage is (int)(T * (1 - drop) * first_stage_ratio), at
 * most one more than here, and of pyramidkv the same in every layer. Tokens that snapkv and tova always keep score
 * higher here than there, which matters only where the first stage does not take all of them.
 */
#include "methods/registry.h"

#include "kernels/order.h"

#include <assert.h>
#include <float.h>

enum { EPSILON, FIRST_STAGE_RATIO };

/* The n-th largest of T scores, in the order of score_order(): bit by bit. */
static uint32_t nth_largest(const float *score, int T, int n)
{
    uint32_t limit = 0;

    for (int bit = 31; bit >= 0; bit--) {
        uint32_t higher = limit | 1u << bit;
        int count = 0;
        for (int t = 0; t < T; t++)
            count += score_order(score[t]) >= higher;
        if (count >= n)
            limit = higher;
    }
    return limit;
}

/* Rewrites the scores of a head: those of the first stage become the largest float. */
static void rescore_head(float *score, const float *norm, int T, int n_first, double epsilon)
{
    uint32_t limit = n_first > 0 ? nth_largest(score, T, n_first) : UINT32_MAX;
    int equals = n_first;

    for (int t = 0; t < T; t++)
        equals -= score_order(score[t]) > limit;
    for (int t = 0; t < T; t++) {
        uint32_t order = score_order(score[t]);
        bool is_first = order > limit || (order == limit && equals-- > 0);
        score[t] = is_first ? FLT_MAX : (float)(((double)score[t] + epsilon) * (double)norm[t]);
    }
}

static int rescore(const struct layer_scores *layer, const double *value, struct err *err)
{
    const struct kv_full *full = layer->full;
    int G = full->shape.n_kv_heads, T = full->n_tokens, n_first = (int)(layer->n_keep * value[FIRST_STAGE_RATIO]);

    (void)err;
    assert(full->value_norms);
    if (value[FIRST_STAGE_RATIO] > 0 && n_first < 1)
        n_first = 1;
    for (int g = 0; g < G; g++) {
        size_t head = (size_t)(layer->layer * G + g);
        rescore_head(layer->score + (size_t)g * (size_t)T, full->value_norms + head * (size_t)T, T, n_first,
                     value[EPSILON]);
    }
    return 0;
}

const struct method method_criticalkv = {
    .name = "criticalkv",
    .summary = "also weighs how much a value can change the output",
    .source = "Feng et al. 2025 (arXiv 2502.03805), kvpress CriticalKVPress",
    .needs = NEED_VALUE_NORMS,
    .param = { { .name = "epsilon",
                 .min = 0,
                 .max = 1,
                 .otherwise = 1e-4,
                 .budget = true,
                 .help = "added to the scores before the norm multiplies them" },
               { .name = "first_stage_ratio",
                 .min = 0,
                 .max = 1,
                 .otherwise = 0.5,
                 .budget = true,
                 .help = "share of the kept pairs that the scores alone choose" } },
    .budget = &(const struct method_budget){ .rescore = rescore },
};
