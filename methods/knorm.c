/* knorm - drops keys of high norm: keys of low norm get much attention.
 *
 * score[h][t] = -|k_t|_2 on keys with their rotary embedding (which keeps norms). No window, no sinks, no queries.
 *
 * Source: Devoto et al., "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression" (EMNLP 2024); like
 * kvpress' KnormPress. The EvicPress paper says the reverse ("drops those with low L2 norm") by mistake.
 */
#include "methods/registry.h"

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;

    (void)value, (void)err;
    full->backend->key_norms(full->backend, out, full->rows, s->n_layers * s->n_kv_heads, s->head_dim);
    return 0;
}

const struct method method_knorm = {
    .name = "knorm",
    .summary = "drops keys of high norm",
    .source = "Devoto et al. 2024 (arXiv 2406.11430), kvpress KnormPress",
    .param = { PARAM_DROP },
    .drop = &(const struct method_drop){ .scores = { .all = score } },
};
