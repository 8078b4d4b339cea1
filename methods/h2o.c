/* h2o - keeps the tokens that get the most attention from the whole context.
 *
 *     sum[h][t] = sum over tokens i >= t and the H/G query heads of the group of A[i][t]
 * where A[i] is the softmax of token i over the tokens that it sees. The sums are accumulated during prefill, so no T x
 * T matrix exists; compress_s includes the time for that.
 *     recent=none    score = sum / ((T - t) * H/G), the mean over those that see the token: kvpress'
 *                    ObservedAttentionPress. The most recent tokens are scored by few queries, the last one only by its
 *                    own
 *     recent=half    score = sum, the paper's heavy hitters, which prefers early tokens; of the n tokens that drop
 *                    leaves, (int)(n / 2) are the most recent
 * The paper and its code evict while decoding; here all is done once, after prefill. Their caches have as many heads as
 * there are query heads; here the query heads of a kv head are summed.
 *
 * Source: Zhang et al., "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models" (NeurIPS
 * 2023); like kvpress' ObservedAttentionPress, or with recent=half like the authors' H2OKVCache_LayerWise.
 */
#include "methods/registry.h"

#include "kernels/pool.h"

#include <assert.h>
#include <stdlib.h>

enum { DROP, RECENT };
enum { RECENT_NONE, RECENT_HALF };

static bool by_drop(const double *value)
{
    return value[RECENT] == RECENT_HALF;
}

static size_t score_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window)
{
    (void)value, (void)shape, (void)window;
    return pool_size((size_t)n_tokens * sizeof(float)); // one factor per token
}

/* Divides each sum by the number of its addends. */
static int take_means(const struct kv_full *full, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, n_heads = full->shape.n_layers * full->shape.n_kv_heads;
    size_t row = (size_t)T * sizeof(float);
    float *factor = pool_take(full->pool, row, err), *host = factor ? malloc(row) : NULL; // (T)

    if (!host)
        return factor ? err_nomem(err) : err->code;
    for (int t = 0; t < T; t++)
        host[t] = (float)(full->shape.n_kv_heads / ((double)(T - t) * full->shape.n_heads));
    be->write(be, factor, host, row);
    free(host);
    be->scale_columns(be, out, n_heads, T, factor);
    return 0;
}

/* Gives the last half of what is kept more than any sum: each query adds 1 to a head's sums. */
static int prefer_recent(const struct kv_full *full, double drop, float *out, struct err *err)
{
    struct backend *be = full->backend;
    const struct kv_shape *s = &full->shape;
    int T = full->n_tokens, n = keep_of_drop(drop, T) / 2;
    float *host = malloc((size_t)n * sizeof(*host) + 1);

    if (!host)
        return err_nomem(err);
    for (int i = 0; i < n; i++)
        host[i] = 2.0F * (float)T * (float)s->n_heads;
    if (n > 0)
        be->repeat(be, out + (T - n), (size_t)T * sizeof(*host), s->n_layers * s->n_kv_heads, host,
                   (size_t)n * sizeof(*host));
    free(host);
    return 0;
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;

    assert(full->column_sums);
    be->copy(be, out, full->column_sums,
             (size_t)(full->shape.n_layers * full->shape.n_kv_heads) * (size_t)full->n_tokens * sizeof(*out));
    return by_drop(value) ? prefer_recent(full, value[DROP], out, err) : take_means(full, out, err);
}

static const char *const recents[] = { [RECENT_NONE] = "none", [RECENT_HALF] = "half", NULL };

const struct method method_h2o = {
    .name = "h2o",
    .summary = "keeps what the whole context attends to",
    .source = "Zhang et al. 2023 (arXiv 2306.14048), kvpress ObservedAttentionPress",
    .needs = NEED_COLUMN_SUMS,
    .param = { PARAM_DROP,
               { .name = "recent",
                 .otherwise = RECENT_NONE,
                 .words = recents,
                 .help = "share of what is kept that is the most recent tokens" } },
    .drop = &(const struct method_drop){ .scores = { .all = score, .bytes = score_bytes, .by_drop = by_drop } },
};
