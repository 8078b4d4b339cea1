/* tova - keeps the tokens that the last token of the context attends to; the same tokens in all heads of a layer.
 *
 *     A[j][t]         = softmax over t of q_(T-1) . k_t / sqrt(K) in query head j
 *     score[h][t]     = mean of A[j][t] over the H query heads j of the layer, for t < T - 1
 *     score[h][T - 1] = 2: above any attention
 * With heads=own each kv head takes the mean over its own H/G query heads, so heads keep different tokens.
 *
 * Source: Oren et al., "Transformers are Multi-State RNNs" (EMNLP 2024); like kvpress' TOVAPress, which always keeps
 * the last token. heads=own is ours.
 */
#include "methods/registry.h"

enum { DROP, HEADS };
enum { HEADS_ALL, HEADS_OWN };

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, G = full->shape.n_kv_heads, n_heads = full->shape.n_layers * G;
    const float last = 2;

    if (window_attention(full, 1, out, err))
        return err->code;
    if (value[HEADS] == HEADS_ALL)
        be->mean_heads(be, out, n_heads, T, G);
    be->repeat(be, out + (T - 1), (size_t)T * sizeof(float), n_heads, &last, sizeof(last));
    return 0;
}

static const char *const heads[] = { [HEADS_ALL] = "all", [HEADS_OWN] = "own", NULL };

const struct method method_tova = {
    .name = "tova",
    .summary = "keeps what the context's last token attends to",
    .source = "Oren et al. 2024 (arXiv 2401.06104), kvpress TOVAPress",
    .needs = NEED_WINDOW_Q,
    .window = 1,
    .param = { PARAM_DROP,
               { .name = "heads",
                 .otherwise = HEADS_ALL,
                 .words = heads,
                 .help = "query heads that score a kv head: all of the layer, or its own" } },
    .drop = &(const struct method_drop){ .scores = { .all = score, .bytes = window_bytes } },
};
