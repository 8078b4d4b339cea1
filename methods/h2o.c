/* h2o - keeps the tokens that get the most attention from the whole context, on average over the tokens that see them.
 *
 *     score[h][t] = sum over tokens i >= t and the H/G query heads of the group of A[i][t], / ((T - t) * H/G)
 * where A[i] is the softmax of token i over the tokens that it sees. The sums are accumulated during prefill, so no T x
 * T matrix exists; compress_s includes the time for that.
 *
 * This is kvpress' ObservedAttentionPress. The H2O paper differs: its heavy hitters are raw sums, which prefer early
 * tokens; half of its budget is the most recent tokens; and it evicts while decoding. Here every token is scored by its
 * mean: the most recent tokens by few queries, the last one only by its own.
 *
 * Source: Zhang et al., "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models" (NeurIPS
 * 2023); like kvpress' ObservedAttentionPress.
 */
#include "methods/registry.h"

#include "kernels/pool.h"

#include <assert.h>
#include <stdlib.h>

static size_t score_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window)
{
    (void)value, (void)shape, (void)window;
    return pool_size((size_t)n_tokens * sizeof(float)); // one factor per token
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, n_heads = full->shape.n_layers * full->shape.n_kv_heads;
    size_t row = (size_t)T * sizeof(float);
    float *factor = pool_take(full->pool, row, err), *host = factor ? malloc(row) : NULL; // (T)

    (void)value;
    assert(full->column_sums);
    if (!host)
        return factor ? err_nomem(err) : err->code;
    for (int t = 0; t < T; t++)
        host[t] = (float)(full->shape.n_kv_heads / ((double)(T - t) * full->shape.n_heads));
    be->write(be, factor, host, row);
    free(host);
    be->copy(be, out, full->column_sums, (size_t)n_heads * row);
    be->scale_columns(be, out, n_heads, T, factor);
    return 0;
}

const struct method method_h2o = {
    .name = "h2o",
    .summary = "keeps what the whole context attends to, on average",
    .source = "Zhang et al. 2023 (arXiv 2306.14048), kvpress ObservedAttentionPress",
    .kind = METHOD_DROP,
    .needs = NEED_COLUMN_SUMS,
    .param = { PARAM_DROP },
    .score = score,
    .score_bytes = score_bytes,
};
