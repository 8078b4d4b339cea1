/* forward.c - one pass of some tokens through the model: the Llama architecture, written once over the backend's ops.
 *
 *     x += o(attend(rope(qkv(rmsnorm(x)))))        per layer
 *     x += down(silu(gate) * up),  gate, up of rmsnorm(x)
 *
 * Attention has up to two parts: the rows of a variant, shared by all its questions, and the tokens of a row's own
 * sequence, new ones included. Two parts are merged by their log-sum-exp.
 */
#include "base/array.h"
#include "engine/engine_internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- memory ------------------------------------------------------------- */

/* Hands out pieces of one allocation; with at NULL it only counts. */
struct divider {
    char *at;
    size_t used;
};

static void *divide(struct divider *d, size_t n, size_t size)
{
    enum { ALIGNMENT = 64 };
    size_t from = d->used;
    d->used += (n * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return d->at ? d->at + from : NULL;
}

static void lay_out(struct forward *f, struct divider *d, const struct model_config *c)
{
    size_t R = FORWARD_ROWS, D = (size_t)c->d_model, F = (size_t)c->d_ff;
    size_t H = (size_t)c->n_heads, G = (size_t)c->n_kv_heads, K = (size_t)c->head_dim;

    f->x = divide(d, R * D, sizeof(float));
    f->normed = divide(d, R * D, sizeof(float));
    f->picked = divide(d, R * D, sizeof(float));
    f->qkv = divide(d, R * (H + 2 * G) * K, sizeof(float));
    f->q = divide(d, R * H * K, sizeof(float));
    f->attended = divide(d, R * H * K, sizeof(float));
    for (int i = 0; i < 2; i++) {
        f->part[i] = divide(d, R * H * K, sizeof(float));
        f->lse[i] = divide(d, R * H, sizeof(float));
    }
    f->gate_up = divide(d, R * 2 * F, sizeof(float));
    f->mlp = divide(d, R * F, sizeof(float));
    f->logits = divide(d, LOGIT_ROWS * (size_t)c->n_vocab, sizeof(float));
    f->ids = divide(d, R, sizeof(int32_t));
    f->position = divide(d, R, sizeof(int32_t));
    f->slot = divide(d, R, sizeof(int32_t));
    f->best = divide(d, R, sizeof(int32_t));
}

size_t forward_bytes(const struct model_config *c)
{
    struct forward f = { 0 };
    struct divider count = { 0 };
    lay_out(&f, &count, c);
    return count.used;
}

int forward_open(struct forward *f, struct engine *e, struct err *err)
{
    *f = (struct forward){ .engine = e };
    f->arena = e->backend->alloc(e->backend, forward_bytes(&e->config), err);
    if (!f->arena)
        return err->code;
    lay_out(f, &(struct divider){ .at = (char *)f->arena }, &e->config);
    return 0;
}

void forward_close(struct forward *f)
{
    if (f->arena)
        f->engine->backend->free(f->engine->backend, f->arena);
    free(f->items.at);
    *f = (struct forward){ 0 };
}

size_t kv_store_bytes(const struct model_config *c, size_t n_tokens)
{
    return 2 * (size_t)c->n_layers * (size_t)c->n_kv_heads * (size_t)c->head_dim * sizeof(float) * n_tokens;
}

int kv_store_alloc(struct kv_store *s, const struct engine *e, size_t head_rows, struct err *err)
{
    size_t bytes = kv_store_bytes(&e->config, head_rows);
    *s = (struct kv_store){ .k = e->backend->alloc(e->backend, bytes, err), .head_rows = head_rows };
    if (!s->k)
        return err->code;
    s->v = s->k + bytes / sizeof(float) / 2;
    return 0;
}

void kv_store_free(struct kv_store *s, const struct engine *e)
{
    e->backend->free(e->backend, s->k);
    *s = (struct kv_store){ 0 };
}

/* ---- attention ---------------------------------------------------------- */

static struct mat dense(float *at, int rows, int cols)
{
    return (struct mat){ at, DTYPE_F32, rows, cols, cols };
}

/* The query rows of one kv head that belong to some rows of a pass of n_tokens, and where their part of the result
 * goes. */
static struct attn_item item_of(const struct forward *f, int n_tokens, int part, int head, struct row_range rows)
{
    const struct model_config *c = &f->engine->config;
    int group = c->n_heads / c->n_kv_heads;
    size_t first = ((size_t)head * (size_t)n_tokens + (size_t)rows.first) * (size_t)group, K = (size_t)c->head_dim;

    return (struct attn_item){
        .q = f->q + first * K,
        .out = f->part[part] + first * K,
        .lse = f->lse[part] + first,
        .n_q = rows.n * group,
        .q_pitch = c->head_dim,
        .out_pitch = c->head_dim,
        .group = group,
        .causal = -1,
    };
}

/* Fills f->items, which has space for them. */
static void list_items(struct forward *f, const struct batch *b, int layer)
{
    const struct model_config *c = &f->engine->config;
    int G = c->n_kv_heads, K = c->head_dim, own_part = b->n_shared > 0;

    f->items.n = 0;
    for (int i = 0; i < b->n_shared; i++) {
        const struct shared_span *s = &b->shared[i];
        for (int g = 0; g < G; g++) {
            struct attn_item *item = &f->items.at[f->items.n++];
            *item = item_of(f, b->n, 0, g, s->rows);
            item->kv = s->variant->rows[layer * G + g];
        }
    }
    for (int i = 0; i < b->n_own; i++) {
        const struct own_span *s = &b->own[i];
        for (int g = 0; g < G; g++) {
            size_t at = ((size_t)(layer * G + g) * b->store.head_rows + (size_t)s->slot) * (size_t)K;
            struct attn_item *item = &f->items.at[f->items.n++];
            *item = item_of(f, b->n, own_part, g, s->rows);
            item->causal = s->n_keys - s->rows.n;
            item->kv = (struct kv_rows){ b->store.k + at, b->store.v + at, s->n_keys };
        }
    }
}

static void attend(struct forward *f, const struct batch *b, int layer)
{
    struct backend *be = f->engine->backend;
    const struct model_config *c = &f->engine->config;

    list_items(f, b, layer);
    be->attend(be, f->items.at, f->items.n, c->head_dim, 1 / sqrtf((float)c->head_dim));
    be->merge(be, &(struct merge_job){ .out = dense(f->attended, b->n, c->n_heads * c->head_dim),
                                       .part = { f->part[0], f->part[1] },
                                       .lse = { f->lse[0], f->lse[1] },
                                       .n_parts = b->n_shared > 0 ? 2 : 1,
                                       .n_kv_heads = c->n_kv_heads,
                                       .head_dim = c->head_dim });
}

/* Copies the queries of this pass that are in the window to their places. */
static void save_queries(struct forward *f, const struct batch *b, int layer)
{
    const struct model_config *c = &f->engine->config;
    const struct query_window *w = b->window;
    size_t token = (size_t)(c->n_heads / c->n_kv_heads) * (size_t)c->head_dim; // floats of one token and kv head
    int begin = b->position[0] > w->first ? b->position[0] : w->first;
    int end = b->position[0] + b->n;

    for (int g = 0; g < c->n_kv_heads && begin < end; g++) {
        const float *from = f->q + ((size_t)g * (size_t)b->n + (size_t)(begin - b->position[0])) * token;
        float *to = w->q[layer] + ((size_t)g * (size_t)w->n + (size_t)(begin - w->first)) * token;
        f->engine->backend->copy(f->engine->backend, to, from, (size_t)(end - begin) * token * sizeof(float));
    }
}

/* ---- the pass ----------------------------------------------------------- */

/* Computes queries, keys and values from x, and puts them where attention reads them. */
static void fill_cache(struct forward *f, const struct batch *b, int layer)
{
    const struct engine *e = f->engine;
    const struct model_config *c = &e->config;
    struct backend *be = e->backend;
    struct mat normed = dense(f->normed, b->n, c->d_model);
    struct mat qkv = dense(f->qkv, b->n, (c->n_heads + 2 * c->n_kv_heads) * c->head_dim);
    size_t at = (size_t)layer * (size_t)c->n_kv_heads * b->store.head_rows * (size_t)c->head_dim;

    be->rmsnorm(be, normed, dense(f->x, b->n, c->d_model), e->layer[layer].norm_attention, c->norm_eps);
    be->gemm(be, qkv, normed, e->layer[layer].qkv, NULL, GEMM_SET);
    be->rope(be, &(struct rope_job){ .qkv = qkv,
                                     .position = f->position,
                                     .slot = f->slot,
                                     .cos = e->cos,
                                     .sin = e->sin,
                                     .q = f->q,
                                     .k = b->store.k + at,
                                     .v = b->store.v + at,
                                     .head_rows = b->store.head_rows,
                                     .n_heads = c->n_heads,
                                     .n_kv_heads = c->n_kv_heads,
                                     .head_dim = c->head_dim });
    if (b->window)
        save_queries(f, b, layer);
}

static void finish_layer(struct forward *f, const struct batch *b, int layer)
{
    const struct engine *e = f->engine;
    const struct model_config *c = &e->config;
    const struct layer *w = &e->layer[layer];
    struct backend *be = e->backend;
    struct mat x = dense(f->x, b->n, c->d_model), normed = dense(f->normed, b->n, c->d_model);
    struct mat gate_up = dense(f->gate_up, b->n, 2 * c->d_ff), mlp = dense(f->mlp, b->n, c->d_ff);

    attend(f, b, layer);
    be->gemm(be, x, dense(f->attended, b->n, c->n_heads * c->head_dim), w->o, NULL, GEMM_ADD);
    be->rmsnorm(be, normed, x, w->norm_mlp, c->norm_eps);
    be->gemm(be, gate_up, normed, w->gate_up, NULL, GEMM_SET);
    be->silu_mul(be, mlp, gate_up);
    be->gemm(be, x, mlp, w->down, NULL, GEMM_ADD);
}

int forward_run(struct forward *f, const struct batch *b, enum forward_end end, struct err *err)
{
    const struct engine *e = f->engine;
    struct backend *be = e->backend;
    const struct model_config *c = &e->config;
    size_t bytes = (size_t)b->n * sizeof(int32_t);

    if (ARRAY_GROW(&f->items, (b->n_shared + b->n_own) * c->n_kv_heads))
        return err_nomem(err);
    be->write(be, f->ids, b->ids, bytes);
    be->write(be, f->position, b->position, bytes);
    be->write(be, f->slot, b->slot, bytes);
    be->embed(be, dense(f->x, b->n, c->d_model), dense(e->embedding, c->n_vocab, c->d_model), f->ids);
    for (int l = 0; l < c->n_layers; l++) {
        fill_cache(f, b, l);
        if (end == FORWARD_OUTPUT || l < c->n_layers - 1)
            finish_layer(f, b, l);
    }
    return be->sync(be, err);
}

/* Logits of rows first .. first + n - 1 of x (rows, D), into f->logits. */
static struct mat head(struct forward *f, float *x, int first, int n)
{
    const struct engine *e = f->engine;
    int D = e->config.d_model;
    struct mat normed = dense(f->normed, n, D), logits = dense(f->logits, n, e->config.n_vocab);

    e->backend->rmsnorm(e->backend, normed, dense(x + (size_t)first * (size_t)D, n, D), e->norm, e->config.norm_eps);
    e->backend->gemm(e->backend, logits, normed, e->head, NULL, GEMM_SET);
    return logits;
}

/* How many of n rows go into the next block of logits. */
static int logit_rows(int n)
{
    return n < LOGIT_ROWS ? n : LOGIT_ROWS;
}

int forward_best(struct forward *f, const int32_t *row, int n, int32_t *best, struct err *err)
{
    const struct engine *e = f->engine;
    struct backend *be = e->backend;
    int D = e->config.d_model;

    be->write(be, f->ids, row, (size_t)n * sizeof(*row));
    be->embed(be, dense(f->picked, n, D), dense(f->x, FORWARD_ROWS, D), f->ids);
    for (int i = 0; i < n; i += LOGIT_ROWS)
        be->argmax(be, f->best + i, head(f, f->picked, i, logit_rows(n - i)));
    be->read(be, best, f->best, (size_t)n * sizeof(*best));
    return be->sync(be, err);
}

int forward_logits(struct forward *f, int n, float *logits, struct err *err)
{
    struct backend *be = f->engine->backend;
    size_t V = (size_t)f->engine->config.n_vocab;

    for (int i = 0; i < n; i += LOGIT_ROWS) {
        struct mat some = head(f, f->x, i, logit_rows(n - i));
        be->read(be, logits + (size_t)i * V, some.at, (size_t)some.rows * V * sizeof(float));
    }
    return be->sync(be, err);
}
