/* snapkv - keeps the last tokens of the context and the tokens that they attend to.
 *
 * With w = window (default 64) queries of the last tokens, post-rotary, and T > w tokens:
 *     A[q][t]     = softmax over t of q . k_t / sqrt(K), causal within the window         (all T keys)
 *     s[h][t]     = mean over the w queries and the H/G query heads of the group of A, for t < T - w
 *     score[h][t] = mean of s[h] over a centred window of `kernel` (default 5) positions, zero beyond both ends
 *     score[h][t] = 2 + (t - (T - w)) for the window itself: above any attention, the most recent first
 * The window counts inside n_keep; when n_keep < w the most recent n_keep tokens stay (kvpress takes any tokens of the
 * window). When T <= w every token belongs to the window (kvpress fails), so the most recent n_keep stay.
 *
 * Source: Li et al., "SnapKV: LLM Knows What You are Looking for Before Generation" (NeurIPS 2024); like kvpress'
 * SnapKVPress, which averages over the group of query heads and pools by the mean.
 */
#include "methods/registry.h"

#include <math.h>
#include <stdlib.h>

int snapkv_check(const double *value, int head_dim, struct err *err)
{
    (void)head_dim;
    if (fmod(value[SNAPKV_KERNEL], 2) != 1)
        return err_set(err, ERR_USAGE, "kernel must be odd, so that the pooling window has a centre");
    return 0;
}

/* Writes the scores of the window's own tokens, in every head. */
static int score_window(const struct kv_full *full, int w, float *out, struct err *err)
{
    int T = full->n_tokens, n_heads = full->shape.n_layers * full->shape.n_kv_heads;
    float *recent = malloc((size_t)w * sizeof(*recent)); // (w)

    if (!recent)
        return err_nomem(err);
    for (int i = 0; i < w; i++)
        recent[i] = (float)(2 + i);
    full->backend->repeat(full->backend, out + (T - w), (size_t)T * sizeof(float), n_heads, recent,
                          (size_t)w * sizeof(*recent));
    free(recent);
    return 0;
}

int snapkv_score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, w = value[SNAPKV_WINDOW] < T ? (int)value[SNAPKV_WINDOW] : T;

    if (w < T) {
        if (window_attention(full, w, out, err))
            return err->code;
        be->avg_pool(be, out, full->shape.n_layers * full->shape.n_kv_heads, T - w, T, (int)value[SNAPKV_KERNEL]);
    }
    return score_window(full, w, out, err);
}

size_t snapkv_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window)
{
    return value[SNAPKV_WINDOW] < n_tokens ? window_bytes(value, shape, n_tokens, window) : 0;
}

const struct method method_snapkv = {
    .name = "snapkv",
    .summary = "keeps what the context's last tokens attend to",
    .source = "Li et al. 2024 (arXiv 2404.14469), kvpress SnapKVPress",
    .needs = NEED_WINDOW_Q,
    .param = { PARAM_DROP, PARAM_WINDOW, PARAM_KERNEL },
    .check = snapkv_check,
    .drop = &(const struct method_drop){ .scores = { .all = snapkv_score, .bytes = snapkv_bytes } },
};
