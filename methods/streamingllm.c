/* streamingllm - keeps the first tokens (attention sinks) and the most recent ones; the same for all layers and heads.
 *
 * Of T tokens n are kept: the first n_sink (default 4) and the last n - n_sink; with n < n_sink, the first n. The score
 * of a sink is T, of any other token its position, so ties and small n need no special case. Up to 2^21 tokens,
 * neighbours are more than SCORE_ALIKE floats apart (kernels/order.h).
 *
 * Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (ICLR 2024). As in kvpress'
 * StreamingLLMPress, kept keys keep their original rotation (the paper re-rotates them).
 */
#include "methods/registry.h"

#include <stdlib.h>

enum { DROP, N_SINK };

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    size_t T = (size_t)full->n_tokens, row = T * sizeof(float);
    float *host = malloc(row); // (T)

    if (!host)
        return err_nomem(err);
    for (size_t t = 0; t < T; t++)
        host[t] = (double)t < value[N_SINK] ? (float)T : (float)t;
    full->backend->repeat(full->backend, out, row, full->shape.n_layers * full->shape.n_kv_heads, host, row);
    free(host);
    return 0;
}

const struct method method_streamingllm = {
    .name = "streamingllm",
    .summary = "keeps the first tokens and the most recent",
    .source = "Xiao et al. 2024 (arXiv 2309.17453), kvpress StreamingLLMPress",
    .param = { PARAM_DROP, PARAM_N_SINK },
    .drop = &(const struct method_drop){ .scores = { .all = score } },
};
