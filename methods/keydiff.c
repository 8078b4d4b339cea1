/* keydiff - drops keys that point in the direction of most keys, and keeps keys that differ.
 *
 * With k_t the keys of a kv head, rotary embedding applied:
 *     a = mean over t of k_t / |k_t|,      score[h][t] = -cos(k_t, a)
 * The mean cosine of k_t with all keys is |a| * cos(k_t, a): the same order per head, in linear time. All tokens are
 * scored at once; no window, no sinks.
 *
 * Source: Park et al., "KeyDiff: Key Similarity-Based KV Cache Eviction" (arXiv 2504.15364). The paper iterates block
 * by block; kvpress' KeyDiffPress does not, and neither do we.
 */
#include "methods/registry.h"

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;

    (void)value, (void)err;
    full->backend->key_cosines(full->backend, out, full->rows, s->n_layers * s->n_kv_heads, s->head_dim);
    return 0;
}

const struct method method_keydiff = {
    .name = "keydiff",
    .summary = "drops keys most like the average key",
    .source = "Park et al. 2025 (arXiv 2504.15364), kvpress KeyDiffPress",
    .kind = METHOD_DROP,
    .param = { PARAM_DROP },
    .score = score,
};
