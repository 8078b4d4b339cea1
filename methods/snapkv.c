/* snapkv - keeps the last tokens of the context and what they attend to.
 *
 * With w = window (default 64) queries of the last tokens, post-rotary, and T > w tokens:
 *     A[q][t]     = softmax over t of q . k_t / sqrt(K), causal within the window         (all T keys)
 *     s[h][t]     = mean over the w queries and the H/G query heads of the group of A, for t < T - w
 *     score[h][t] = mean of s[h] over a centred window of `kernel` (default 5) places, zero beyond both ends
 *     score[h][t] = 2 + (t - (T - w)) for the window itself: above any attention, the most recent first
 * The window counts inside n_keep; when n_keep < w the most recent n_keep tokens stay (kvpress takes any of them).
 * When T <= w every token belongs to the window (kvpress refuses), so the most recent n_keep stay.
 *
 * Source: Li et al., "SnapKV: LLM Knows What You are Looking for Before Generation" (NeurIPS 2024); as kvpress'
 * SnapKVPress, which averages over the group of query heads and pools by the mean.
 */
#include "methods/registry.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { DROP, WINDOW, KERNEL };

static int window(const double *value)
{
    return (int)value[WINDOW];
}

static int check(const double *value, int head_dim, struct err *err)
{
    (void)head_dim;
    if (fmod(value[KERNEL], 2) != 1)
        return err_set(err, ERR_USAGE, "snapkv: kernel must be odd, so that the pooling window has a centre");
    return 0;
}

/* out (G, T) = mean attention of the window's queries to each key. */
static int window_attention(const struct kv_full *full, int layer, int w, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;
    int G = s->n_kv_heads, group = s->n_heads / G;
    size_t row = (size_t)group * (size_t)s->head_dim * dtype_size(s->dtype); // a token's queries of one kv head
    struct attn_item *item = calloc((size_t)G, sizeof(*item));

    assert(w <= full->window);
    if (!item)
        return err_nomem(err);
    for (int g = 0; g < G; g++)
        item[g] = (struct attn_item){
            .q = (const char *)full->window_q[layer] + ((size_t)(g + 1) * (size_t)full->window - (size_t)w) * row,
            .n_q = w * group,
            .q_pitch = s->head_dim,
            .group = group,
            .causal = full->n_tokens - w,
            .kv = full->rows[(size_t)layer * (size_t)G + (size_t)g],
        };
    full->backend->mean_attention(full->backend, out, item, G, s->head_dim, 1 / sqrtf((float)s->head_dim));
    int code = full->backend->sync(full->backend, err);
    free(item);
    return code;
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, w = window(value) < T ? window(value) : T, G = full->shape.n_kv_heads;
    int n_heads = full->shape.n_layers * G;
    float *recent = malloc((size_t)w * sizeof(*recent)); // (w)

    if (!recent)
        return err_nomem(err);
    for (int i = 0; i < w; i++)
        recent[i] = (float)(2 + i);
    int code = 0;
    for (int l = 0; l < full->shape.n_layers && w < T && !code; l++)
        code = window_attention(full, l, w, out + (size_t)(l * G) * (size_t)T, err);
    if (w < T && !code)
        be->avg_pool(be, out, n_heads, T - w, T, (int)value[KERNEL]);
    for (int h = 0; h < n_heads; h++)
        be->write(be, out + (size_t)h * (size_t)T + (T - w), recent, (size_t)w * sizeof(*recent));
    if (!code)
        code = be->sync(be, err);
    free(recent);
    return code;
}

const struct method method_snapkv = {
    .name = "snapkv",
    .summary = "keeps what the context's last tokens attend to",
    .source = "Li et al. 2024 (arXiv 2404.14469), kvpress SnapKVPress",
    .kind = METHOD_DROP,
    .needs = NEED_WINDOW_Q,
    .window = window,
    .param = { PARAM_DROP,
               { .name = "window",
                 .min = 1,
                 .max = 4096,
                 .otherwise = 64,
                 .whole = true,
                 .help = "last tokens whose queries count" },
               { .name = "kernel",
                 .min = 1,
                 .max = 4095,
                 .otherwise = 5,
                 .whole = true,
                 .help = "places of the average pooling over attention" } },
    .check = check,
    .score = score,
};
