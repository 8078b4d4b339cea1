/* window.c - the attention of the context's last queries to all keys, layer by layer: first the log-sum-exps, then the
 * columns. The matrix of queries by keys is never stored.
 */
#include "methods/registry.h"

#include "kernels/pool.h"

#include <assert.h>

size_t window_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window)
{
    (void)value, (void)n_tokens;
    return pool_size((size_t)window * (size_t)shape->n_heads * sizeof(float)); // log-sum-exps of one layer
}

int window_attention(const struct kv_full *full, int w, float *out, struct err *err)
{
    struct backend *be = full->backend;
    const struct kv_shape *s = &full->shape;
    const struct attn_span span = { .row = full->window - w, .n_rows = w, .first = 0, .n_keys = full->n_tokens };
    float *lse = pool_take(full->pool, window_bytes(NULL, s, full->n_tokens, full->window), err); // (G, W, H/G)

    assert(w <= full->window);
    if (!lse)
        return err->code;
    for (int l = 0; l < s->n_layers; l++) {
        struct column_job columns = { .attn = { .kind = ATTN_TEXT,
                                                .q = full->window_q[l],
                                                .spans = { .host = &span, .n = 1 },
                                                .store = full->store,
                                                .n_tokens = full->window,
                                                .n_heads = s->n_heads,
                                                .n_kv_heads = s->n_kv_heads,
                                                .head_dim = s->head_dim,
                                                .layer = l,
                                                .scale = full->scale,
                                                .cap = full->cap,
                                                .lse = lse },
                                      .stat = COLUMN_MEAN,
                                      .into = COLUMN_SET,
                                      .column = out + (size_t)(l * s->n_kv_heads) * (size_t)full->n_tokens,
                                      .pitch = (size_t)full->n_tokens };
        be->attend(be, &columns.attn);
        be->column_stats(be, &columns);
    }
    return 0;
}
