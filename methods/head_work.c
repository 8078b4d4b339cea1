/* head_work.c - copies the cache to the host layer by layer and gives the heads of a layer to threads. */
#include "methods/head_work.h"

#include "codes/half.h"
#include "base/parallel.h"
#include "methods/method_plugin.h"

#include <math.h>
#include <stdlib.h>

/* ---- copies ------------------------------------------------------------- */

/* One layer in host memory, its heads one after another. */
struct layer_copy {
    const struct kv_full *full;
    size_t n_rows, n_q; // numbers of one head: of k or v, of its queries
    float *k, *v;       // (G, T, K)
    float *q;           // (G, W, H/G, K) or NULL
    float *sums;        // (G, T) or NULL
};

static void copy_free(struct layer_copy *c)
{
    free(c->k);
    free(c->v);
    free(c->q);
    free(c->sums);
}

static int copy_alloc(struct layer_copy *c, unsigned needs, struct err *err)
{
    const struct kv_shape *s = &c->full->shape;
    size_t G = (size_t)s->n_kv_heads, T = (size_t)c->full->n_tokens;

    c->n_rows = T * (size_t)s->head_dim;
    c->n_q = needs & NEED_WINDOW_Q ? (size_t)c->full->window * (size_t)(s->n_heads / s->n_kv_heads * s->head_dim) : 0;
    c->k = malloc(G * c->n_rows * sizeof(float));
    c->v = malloc(G * c->n_rows * sizeof(float));
    c->q = c->n_q ? malloc(G * c->n_q * sizeof(float)) : NULL;
    c->sums = needs & NEED_COLUMN_SUMS ? malloc(G * T * sizeof(float)) : NULL;
    return c->k && c->v && (c->q || !c->n_q) && (c->sums || !(needs & NEED_COLUMN_SUMS)) ? 0 : err_nomem(err);
}

int read_as_f32(struct backend *be, float *to, const void *at, size_t n, struct err *err)
{
    uint16_t *half = (uint16_t *)to + n; // the upper half, so that it is read before it is overwritten

    if (be->dtype == DTYPE_F32)
        return be->read(be, to, at, n * sizeof(*to), err);
    if (be->read(be, half, at, n * sizeof(*half), err))
        return err->code;
    for (size_t i = 0; i < n; i++)
        to[i] = bf16_to_f32(half[i]);
    return 0;
}

void write_from_f32(struct backend *be, void *at, const float *from, size_t n, uint16_t *narrow)
{
    if (be->dtype == DTYPE_F32) {
        be->write(be, at, from, n * sizeof(*from));
        return;
    }
    for (size_t i = 0; i < n; i++)
        narrow[i] = bf16_from_f32(from[i]);
    be->write(be, at, narrow, n * sizeof(*narrow));
}

static int copy_layer(struct layer_copy *c, int layer, struct err *err)
{
    const struct kv_full *full = c->full;
    size_t G = (size_t)full->shape.n_kv_heads, T = (size_t)full->n_tokens;
    struct backend *be = full->backend;
    const size_t q_bytes = c->n_q * dtype_size(full->shape.dtype);
    const float plain = 1 / sqrtf((float)full->shape.head_dim);

    for (size_t g = 0; g < G; g++) {
        const struct kv_rows *rows = &full->rows[(size_t)layer * G + g];
        if (read_as_f32(be, c->k + g * c->n_rows, rows->k, c->n_rows, err) ||
            read_as_f32(be, c->v + g * c->n_rows, rows->v, c->n_rows, err))
            return err->code;
        if (c->q && read_as_f32(be, c->q + g * c->n_q, (const char *)full->window_q[layer] + g * q_bytes, c->n_q, err))
            return err->code;
    }
    if (full->scale != plain) // methods divide by sqrt(K)
        for (size_t i = 0; c->q && i < G * c->n_q; i++)
            c->q[i] *= full->scale / plain;
    return c->sums ? be->read(be, c->sums, full->column_sums + (size_t)layer * G * T, G * T * sizeof(float), err) : 0;
}

/* ---- heads -------------------------------------------------------------- */

static struct evp_head head_of(const struct layer_copy *c, int layer, int g)
{
    const struct kv_full *full = c->full;
    const struct kv_shape *s = &full->shape;

    return (struct evp_head){
        .layer = layer,
        .head = g,
        .n_layers = s->n_layers,
        .n_kv_heads = s->n_kv_heads,
        .n_group = s->n_heads / s->n_kv_heads,
        .head_dim = s->head_dim,
        .n_tokens = full->n_tokens,
        .window = c->q ? full->window : 0,
        .k = c->k + (size_t)g * c->n_rows,
        .v = c->v + (size_t)g * c->n_rows,
        .window_q = c->q ? c->q + (size_t)g * c->n_q : NULL,
        .cap = full->cap,
        .column_sums = c->sums ? c->sums + (size_t)g * (size_t)full->n_tokens : NULL,
    };
}

struct heads {
    const struct layer_copy *copy;
    int layer;
    const struct host_work *work;
    struct err *failed; // [G]
};

static void work_on(void *arg, int g)
{
    const struct heads *h = arg;
    const struct evp_head head = head_of(h->copy, h->layer, g);

    h->failed[g].code = h->work->head(&head, h->work->arg, &h->failed[g]);
}

static int each_head_of_layer(const struct layer_copy *c, int layer, const struct host_work *work, struct err *err)
{
    int G = c->full->shape.n_kv_heads;
    struct err *failed = calloc((size_t)G, sizeof(*failed));
    int code = 0;

    if (!failed)
        return err_nomem(err);
    parallel_do(parallel_cores(), G, work_on, &(struct heads){ c, layer, work, failed });
    for (int g = 0; g < G && !code; g++)
        if (failed[g].code) {
            *err = failed[g];
            code = err->code;
        }
    free(failed);
    return code;
}

int host_each_head(const struct kv_full *full, const struct host_work *work, struct err *err)
{
    struct layer_copy c = { .full = full };
    int code = copy_alloc(&c, work->needs, err);

    for (int l = 0; l < full->shape.n_layers && !code; l++) {
        code = copy_layer(&c, l, err);
        if (!code)
            code = each_head_of_layer(&c, l, work, err);
        if (!code && work->layer)
            code = work->layer(l, work->arg, err);
    }
    copy_free(&c);
    return code;
}

/* ---- scores ------------------------------------------------------------- */

struct scoring {
    const struct method *method;
    const double *value;
    float *score; // (L * G, T)
};

static int score_one(const struct evp_head *head, void *arg, struct err *err)
{
    const struct scoring *s = arg;
    float *score = s->score + (size_t)(head->layer * head->n_kv_heads + head->head) * (size_t)head->n_tokens;
    const struct method *m = s->method;

    if (m->drop->scores.plugin ? method_plugin_score(m, head, s->value, score, err)
                               : m->drop->scores.head(head, s->value, score, err))
        return err->code;
    for (int t = 0; t < head->n_tokens; t++)
        if (isnan(score[t]))
            return err_set(err, ERR_FAIL, "the score of token %d in head %d of layer %d is not a number", t, head->head,
                           head->layer);
    return 0;
}

int host_score(const struct kv_full *full, const struct method *method, const double *value, float *out,
               struct err *err)
{
    size_t bytes = (size_t)(full->shape.n_layers * full->shape.n_kv_heads) * (size_t)full->n_tokens * sizeof(float);
    struct scoring scoring = { method, value, malloc(bytes) };

    if (!scoring.score)
        return err_nomem(err);
    int code =
        host_each_head(full, &(struct host_work){ .needs = method->needs, .head = score_one, .arg = &scoring }, err);
    if (!code)
        full->backend->write(full->backend, out, scoring.score, bytes);
    free(scoring.score);
    return code;
}
