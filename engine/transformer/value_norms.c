/* value_norms.c - how much each value of a cache can change a layer's output: the L1 norm of W_o v, where W_o are the
 * columns of the output projection that belong to a query head.
 *
 * The query heads that share a kv head are one product: their columns below each other, times the head's values. So a
 * row of the product has the projections of a value by all of them, and its absolute numbers sum up to the sum of the
 * norms.
 */
#include "engine/transformer/engine_internal.h"

#include <stdlib.h>

enum { NORM_ROWS = 512 }; // values multiplied at once

struct norms {
    const struct session *session;
    int n_tokens;
    struct mat o;     // of the layer: (D, H * K), on the host
    void *space;      // for it
    struct mat *part; // [H/G]: the columns of one query head
    float *out, *sum; // (NORM_ROWS, H/G * D) and (T), on the device
    double seconds;   // of the products
};

static size_t out_bytes(const struct model_config *c, int n_tokens)
{
    int rows = n_tokens < NORM_ROWS ? n_tokens : NORM_ROWS;

    return (size_t)rows * (size_t)(c->n_heads / c->n_kv_heads) * (size_t)c->d_model * sizeof(float);
}

size_t value_norms_bytes(const struct engine *e, int n_tokens)
{
    return pool_size(out_bytes(&e->config, n_tokens)) + pool_size((size_t)n_tokens * sizeof(float));
}

size_t value_norms_weight(const struct engine *e)
{
    const struct model_config *c = &e->config;
    struct weight_bytes w = e->backend->weight_bytes(e->backend, c->n_heads / c->n_kv_heads * c->d_model, c->head_dim);

    return w.kept + w.making;
}

/* The output projection's columns for a kv head. */
static struct weight *weight_of(const struct norms *n, int g, struct err *err)
{
    struct backend *be = n->session->engine->backend;
    const struct model_config *c = &n->session->engine->config;
    int group = c->n_heads / c->n_kv_heads, K = c->head_dim;

    for (int j = 0; j < group; j++) {
        n->part[j] = n->o;
        n->part[j].at = (char *)n->o.at + (size_t)((g * group + j) * K) * dtype_size(n->o.type);
        n->part[j].cols = K;
    }
    return be->weight_new(be, n->part, group, err);
}

/* Multiplies n values of a head from `first` on, and sums up. */
static void add_up(const struct norms *n, const struct kv_rows *head, const struct weight *w, int first, int rows)
{
    struct backend *be = n->session->engine->backend;
    int K = n->session->engine->config.head_dim;
    void *v = (char *)head->v + (size_t)first * (size_t)K * dtype_size(be->dtype);
    const struct mat x = { v, be->dtype, rows, K, K }, out = { n->out, DTYPE_F32, rows, w->out, w->out };

    be->gemm(be, out, x, w, NULL, GEMM_SET);
    be->abs_sums(be, n->sum + first, out);
}

static int head_norms(struct norms *n, int head, float *value, struct err *err)
{
    const struct model_config *c = &n->session->engine->config;
    struct backend *be = n->session->engine->backend;
    const struct kv_rows *rows = &n->session->rows[head];
    struct weight *w = weight_of(n, head % c->n_kv_heads, err);

    if (!w)
        return err->code;
    add_up(n, rows, w, 0, 1); // so that the choice of an algorithm for this shape is not timed
    double start = be->clock(be);
    for (int t = 0; t < n->n_tokens; t += NORM_ROWS)
        add_up(n, rows, w, t, n->n_tokens - t < NORM_ROWS ? n->n_tokens - t : NORM_ROWS);
    n->seconds += be->clock(be) - start;
    int code = be->read(be, value, n->sum, (size_t)n->n_tokens * sizeof(*value), err);
    be->weight_free(be, w);
    for (int t = 0; t < n->n_tokens; t++)
        value[t] *= (float)c->n_kv_heads / (float)c->n_heads;
    return code;
}

static int all_norms(struct norms *n, float *value, struct err *err)
{
    const struct engine *e = n->session->engine;
    const struct kv_shape *shape = &n->session->forward.shape;
    int G = e->config.n_kv_heads, code = 0;

    for (int l = 0; l < shape->n_layers && !code; l++) {
        n->o.at = n->space;
        code = weights_mat(e, TENSOR_O, kv_number(shape, l), &n->o, err);
        for (int g = 0; g < G && !code; g++)
            code = head_norms(n, l * G + g, value + (size_t)(l * G + g) * (size_t)n->n_tokens, err);
        model_forget(e->model);
    }
    return code;
}

int value_norms(struct session *s, int n_tokens, float *value, double *seconds, struct err *err)
{
    const struct model_config *c = &s->engine->config;
    size_t mark = pool_mark(&s->pool);
    struct norms n = { .session = s, .n_tokens = n_tokens };

    n.space = malloc((size_t)c->d_model * (size_t)(c->n_heads * c->head_dim) * sizeof(float));
    n.part = malloc((size_t)(c->n_heads / c->n_kv_heads) * sizeof(*n.part));
    if (!n.space || !n.part)
        err_nomem(err);
    else {
        n.out = pool_take(&s->pool, out_bytes(c, n_tokens), err);
        n.sum = n.out ? pool_take(&s->pool, (size_t)n_tokens * sizeof(*n.sum), err) : NULL;
    }
    int code = n.sum ? all_norms(&n, value, err) : err->code;
    pool_reset(&s->pool, mark);
    free(n.space);
    free(n.part);
    *seconds = n.seconds;
    return code;
}
