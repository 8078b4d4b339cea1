/* weights.c - a model's tensors on the device: layer by layer, each in the file's own numbers if they can be used as
 * they are.
 */
#include "engine/model/model_internal.h"
#include "engine/transformer/engine_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of reading weights. */
struct loader {
    struct engine *engine;
    char *space; // host memory for the largest group of tensors
    char *free;  // the rest of it, not in use
};

static size_t numbers_of(const struct model_config *c, enum tensor_role role)
{
    struct tensor_shape shape = model_shape(c, role);
    return (size_t)shape.rows * (size_t)shape.cols;
}

/* Tensors that are packed as one weight: n roles from `first`, or one role that combines them. */
struct group {
    enum tensor_role first;
    int n;
};

static struct group group_qkv(const struct model_config *c)
{
    return model_has(c, TENSOR_QKV) ? (struct group){ TENSOR_QKV, 1 } : (struct group){ TENSOR_Q, 3 };
}

static struct group group_gate_up(const struct model_config *c)
{
    return model_has(c, TENSOR_GATE_UP) ? (struct group){ TENSOR_GATE_UP, 1 } : (struct group){ TENSOR_GATE, 2 };
}

static size_t numbers_of_group(const struct model_config *c, struct group g)
{
    size_t n = 0;

    for (int i = 0; i < g.n; i++)
        n += numbers_of(c, (enum tensor_role)((int)g.first + i));
    return n;
}

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Host bytes of the largest group of tensors: outside the layers (ends_space), of a layer (layer_space). */
static size_t ends_space(const struct engine *e)
{
    return numbers_of(&e->config, TENSOR_EMBEDDING) * dtype_size(e->backend->dtype);
}

static size_t layer_space(const struct engine *e)
{
    const struct model_config *c = &e->config;
    size_t attention = max(numbers_of_group(c, group_qkv(c)), numbers_of(c, TENSOR_O)),
           mlp = model_has(c, TENSOR_ROUTER) ? max(2 * numbers_of(c, TENSOR_EXPERT_GATE), numbers_of(c, TENSOR_ROUTER))
                                             : numbers_of_group(c, group_gate_up(c)),
           vector = numbers_of(c, TENSOR_ATTENTION_NORM) * sizeof(float); // and biases, which are no longer than qkv
    size_t biases = model_has(c, TENSOR_EXPERT_GATE_BIAS)
                        ? max(4 * numbers_of(c, TENSOR_EXPERT_GATE_BIAS), numbers_of(c, TENSOR_EXPERT_DOWN_BIAS))
                        : 0;

    return max(max(max(attention, mlp), biases) * sizeof(float), vector);
}

int weights_mat(const struct engine *e, enum tensor_role role, int index, struct mat *out, struct err *err)
{
    struct tensor_shape shape = model_shape(&e->config, role);
    void *space = out->at;

    if (model_view(e->model, role, index, out, err) || out->at)
        return out->at ? 0 : err->code;
    if (out->type == DTYPE_F32)
        out->type = e->backend->dtype;
    *out = (struct mat){ space, out->type, shape.rows, shape.cols, shape.cols };
    return model_read_mat(e->model, role, index, out, err);
}

static int host_mat(struct loader *l, enum tensor_role role, int index, struct mat *out, struct err *err)
{
    out->at = l->free;
    if (weights_mat(l->engine, role, index, out, err))
        return err->code;
    if (out->at == l->free)
        l->free += (size_t)out->rows * (size_t)out->cols * dtype_size(out->type);
    return 0;
}

/* A part of a weight. What lies in the file as the backend takes it is left to a backend that checks what it copies. */
static int weight_part(struct loader *l, enum tensor_role role, int index, struct mat *out, struct err *err)
{
    if (l->engine->backend->checks_weights && (model_map(l->engine->model, role, index, out, err) || out->at))
        return out->at ? 0 : err->code;
    return host_mat(l, role, index, out, err);
}

/* Reads the tensors of a group and packs them as one weight. */
static struct weight *load_weight(struct loader *l, struct group g, int index, struct err *err)
{
    struct backend *be = l->engine->backend;
    struct mat mat[3] = { 0 };

    l->free = l->space;
    for (int i = 0; i < g.n; i++)
        if (weight_part(l, (enum tensor_role)((int)g.first + i), index, &mat[i], err))
            return NULL;
    struct weight *w = be->weight_new(be, mat, g.n, err);
    for (int i = 0; i < g.n && !w && err->code == ERR_FORMAT; i++) // one number is not finite: which?
        if (model_view(l->engine->model, (enum tensor_role)((int)g.first + i), index, &mat[i], err))
            break;
    return w;
}

/* Reads vectors, one after the other, to the device. *out NULL: the model has none. */
static int load_vector(struct loader *l, struct group g, int layer, float **out, struct err *err)
{
    const struct model_config *c = &l->engine->config;
    struct backend *be = l->engine->backend;
    float *to = (float *)(void *)l->space;

    if (!model_has(c, g.first))
        return 0;
    for (int i = 0; i < g.n; i++) {
        enum tensor_role role = (enum tensor_role)((int)g.first + i);
        if (model_read(l->engine->model, role, layer, to, err))
            return err->code;
        to += numbers_of(c, role);
    }
    size_t bytes = numbers_of_group(c, g) * sizeof(float);
    *out = be->alloc(be, bytes, err);
    if (!*out)
        return err->code;
    be->write(be, *out, l->space, bytes);
    return 0;
}

/* Is the embedding of a tied model read from its output matrix? Not where that would round it. */
static bool embedding_is_head(const struct engine *e)
{
    struct tensor t;
    struct err ignored;

    if (!e->config.tied || !e->backend->plain_weights || model_find(e->model, TENSOR_EMBEDDING, 0, &t, &ignored))
        return false;
    return t.type != WEIGHT_F16 || e->backend->dtype == DTYPE_F32;
}

/* The embedding as rows, in the file's 16-bit type or in the backend's. */
static int load_embedding(struct loader *l, struct err *err)
{
    struct engine *e = l->engine;
    struct backend *be = e->backend;
    struct mat host;

    l->free = l->space;
    if (host_mat(l, TENSOR_EMBEDDING, 0, &host, err))
        return err->code;
    if (host.type == DTYPE_F32 && be->dtype == DTYPE_BF16) { // in the file
        host.at = l->space;
        host.type = DTYPE_BF16;
        if (model_read_mat(e->model, TENSOR_EMBEDDING, 0, &host, err))
            return err->code;
    }
    size_t bytes = (size_t)host.rows * (size_t)host.cols * dtype_size(host.type);
    e->embedding = host;
    e->embedding.at = be->alloc(be, bytes, err);
    if (!e->embedding.at)
        return err->code;
    be->write(be, e->embedding.at, host.at, bytes);
    return 0;
}

/* The biases of gate and up, (E, X) each, as (E, 2X). */
static int load_gate_up_bias(struct loader *l, int i, float **out, struct err *err)
{
    const struct model_config *c = &l->engine->config;
    struct backend *be = l->engine->backend;
    const size_t X = (size_t)c->expert_ff, n = (size_t)c->n_experts * X, bytes = 2 * n * sizeof(float);
    float *apart = (float *)(void *)l->space, *to = apart + 2 * n;

    if (!model_has(c, TENSOR_EXPERT_GATE_BIAS))
        return 0;
    if (model_read(l->engine->model, TENSOR_EXPERT_GATE_BIAS, i, apart, err) ||
        model_read(l->engine->model, TENSOR_EXPERT_UP_BIAS, i, apart + n, err))
        return err->code;
    for (size_t e = 0; e < (size_t)c->n_experts; e++) {
        memcpy(to + 2 * e * X, apart + e * X, X * sizeof(*to));
        memcpy(to + (2 * e + 1) * X, apart + n + e * X, X * sizeof(*to));
    }
    *out = be->alloc(be, bytes, err);
    if (*out)
        be->write(be, *out, to, bytes);
    return *out ? 0 : err->code;
}

static int load_attention(struct loader *l, int i, struct err *err)
{
    struct layer *to = &l->engine->layer[i];

    if (load_vector(l, (struct group){ TENSOR_ATTENTION_NORM, 1 }, i, &to->norm_attention, err) ||
        load_vector(l, (struct group){ TENSOR_Q_BIAS, 3 }, i, &to->qkv_bias, err) ||
        load_vector(l, (struct group){ TENSOR_Q_NORM, 1 }, i, &to->q_norm, err) ||
        load_vector(l, (struct group){ TENSOR_K_NORM, 1 }, i, &to->k_norm, err) ||
        load_vector(l, (struct group){ TENSOR_SINKS, 1 }, i, &to->sinks, err) ||
        load_vector(l, (struct group){ TENSOR_AFTER_ATTENTION, 1 }, i, &to->after_attention, err) ||
        load_vector(l, (struct group){ TENSOR_O_BIAS, 1 }, i, &to->o_bias, err))
        return err->code;
    to->qkv = load_weight(l, group_qkv(&l->engine->config), i, err);
    if (!to->qkv)
        return err->code;
    to->o = load_weight(l, (struct group){ TENSOR_O, 1 }, i, err);
    return to->o ? 0 : err->code;
}

static int load_experts(struct loader *l, int i, struct err *err)
{
    struct layer *to = &l->engine->layer[i];
    int n = l->engine->config.n_experts;

    if (load_vector(l, (struct group){ TENSOR_ROUTER_BIAS, 1 }, i, &to->router_bias, err) ||
        load_vector(l, (struct group){ TENSOR_EXPERT_DOWN_BIAS, 1 }, i, &to->expert_down_bias, err) ||
        load_gate_up_bias(l, i, &to->expert_gate_up_bias, err))
        return err->code;
    to->router = load_weight(l, (struct group){ TENSOR_ROUTER, 1 }, i, err);
    to->expert_gate_up = calloc((size_t)n, sizeof(*to->expert_gate_up));
    to->expert_down = calloc((size_t)n, sizeof(*to->expert_down));
    if (!to->expert_gate_up || !to->expert_down)
        return err_nomem(err);
    if (!to->router)
        return err->code;
    for (int e = 0; e < n; e++) {
        to->expert_gate_up[e] = load_weight(l, (struct group){ TENSOR_EXPERT_GATE, 2 }, i * n + e, err);
        if (!to->expert_gate_up[e])
            return err->code;
        to->expert_down[e] = load_weight(l, (struct group){ TENSOR_EXPERT_DOWN, 1 }, i * n + e, err);
        if (!to->expert_down[e])
            return err->code;
    }
    return 0;
}

static int load_mlp(struct loader *l, int i, struct err *err)
{
    struct layer *to = &l->engine->layer[i];

    if (load_vector(l, (struct group){ TENSOR_MLP_NORM, 1 }, i, &to->norm_mlp, err) ||
        load_vector(l, (struct group){ TENSOR_AFTER_MLP, 1 }, i, &to->after_mlp, err))
        return err->code;
    if (model_has(&l->engine->config, TENSOR_ROUTER))
        return load_experts(l, i, err);
    if (load_vector(l, (struct group){ TENSOR_GATE_BIAS, 2 }, i, &to->gate_up_bias, err) ||
        load_vector(l, (struct group){ TENSOR_DOWN_BIAS, 1 }, i, &to->down_bias, err))
        return err->code;
    to->gate_up = load_weight(l, group_gate_up(&l->engine->config), i, err);
    if (!to->gate_up)
        return err->code;
    to->down = load_weight(l, (struct group){ TENSOR_DOWN, 1 }, i, err);
    return to->down ? 0 : err->code;
}

/* The last norm, which divides logits where the model does, and the factors of the embedding. */
static int load_factors(struct loader *l, struct err *err)
{
    struct engine *e = l->engine;
    const size_t D = (size_t)e->config.d_model, bytes = D * sizeof(float);
    const double *m = e->config.multiplier;
    float *v = (float *)(void *)l->space;

    if (load_vector(l, (struct group){ TENSOR_NORM, 1 }, 0, &e->norm, err))
        return err->code;
    if (m[MULTIPLY_EMBEDDING] == 0)
        return 0;
    for (size_t i = 0; i < D; i++)
        v[i] = (float)((double)v[i] / m[DIVIDE_LOGITS]);
    e->backend->write(e->backend, e->norm, v, bytes);
    double scale = m[MULTIPLY_EMBEDDING] / m[MULTIPLY_RESIDUAL];
    int exponent;
    if (e->config.round_embedding && e->backend->dtype == DTYPE_BF16) { // to its 8 bits
        scale = frexp(scale, &exponent);
        scale = ldexp(rint(scale * 256), exponent - 8);
    }
    for (size_t i = 0; i < D; i++)
        v[i] = (float)scale;
    e->scale = e->backend->alloc(e->backend, bytes, err);
    if (e->scale)
        e->backend->write(e->backend, e->scale, v, bytes);
    return e->scale ? 0 : err->code;
}

/* The tensors outside the layers. */
static int load_ends(struct loader *l, struct err *err)
{
    struct engine *e = l->engine;

    if (!embedding_is_head(e) && load_embedding(l, err))
        return err->code;
    model_forget(e->model);
    if (load_factors(l, err))
        return err->code;
    e->head = load_weight(l, (struct group){ TENSOR_HEAD, 1 }, 0, err);
    if (e->head && !e->embedding.at)
        e->embedding = (struct mat){ e->head->at, e->backend->dtype, e->head->out, e->head->in, e->head->in };
    return e->head ? 0 : err->code;
}

static int load_layers(struct loader *l, struct err *err)
{
    for (int i = 0; i < l->engine->config.n_layers; i++) {
        if (load_attention(l, i, err) || load_mlp(l, i, err))
            return err->code;
        model_forget(l->engine->model);
    }
    return 0;
}

/* One share of the weights, with host memory of its own. */
static int load_share(struct engine *e, size_t space, int (*load)(struct loader *, struct err *), struct err *err)
{
    struct loader l = { .engine = e, .space = malloc(space) };
    int code = l.space ? load(&l, err) : err_nomem(err);

    free(l.space);
    model_forget(e->model);
    return code;
}

int weights_load(struct engine *e, struct err *err)
{
    e->layer = calloc((size_t)e->config.n_layers, sizeof(*e->layer));
    if (!e->layer)
        return err_nomem(err);
    if (load_share(e, ends_space(e), load_ends, err) || load_share(e, layer_space(e), load_layers, err))
        return err->code;
    return e->backend->sync(e->backend, err);
}

static void free_layer(struct backend *be, struct layer *l, int n_experts)
{
    float *vectors[] = { l->norm_attention,
                         l->after_attention,
                         l->norm_mlp,
                         l->after_mlp,
                         l->q_norm,
                         l->k_norm,
                         l->qkv_bias,
                         l->o_bias,
                         l->gate_up_bias,
                         l->down_bias,
                         l->sinks,
                         l->router_bias,
                         l->expert_gate_up_bias,
                         l->expert_down_bias };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
        be->free(be, vectors[i]);
    be->weight_free(be, l->qkv);
    be->weight_free(be, l->o);
    be->weight_free(be, l->gate_up);
    be->weight_free(be, l->down);
    be->weight_free(be, l->router);
    for (int e = 0; e < n_experts && l->expert_gate_up && l->expert_down; e++) {
        be->weight_free(be, l->expert_gate_up[e]);
        be->weight_free(be, l->expert_down[e]);
    }
    free(l->expert_gate_up);
    free(l->expert_down);
}

void weights_free(struct engine *e)
{
    struct backend *be = e->backend;

    for (int i = 0; i < e->config.n_layers && e->layer; i++)
        free_layer(be, &e->layer[i], e->config.n_experts);
    if (!e->head || e->embedding.at != e->head->at)
        be->free(be, e->embedding.at);
    be->weight_free(be, e->head);
    be->free(be, e->norm);
    be->free(be, e->scale);
    free(e->layer);
    e->layer = NULL;
}

/* ---- sizes --------------------------------------------------------------- */

static size_t vector_bytes(const struct model_config *c, struct group g)
{
    return model_has(c, g.first) ? pool_size(numbers_of_group(c, g) * sizeof(float)) : 0;
}

static size_t layer_vectors(const struct model_config *c)
{
    static const struct group vectors[] = {
        { TENSOR_ATTENTION_NORM, 1 },   { TENSOR_MLP_NORM, 1 },        { TENSOR_Q_NORM, 1 },
        { TENSOR_K_NORM, 1 },           { TENSOR_Q_BIAS, 3 },          { TENSOR_O_BIAS, 1 },
        { TENSOR_GATE_BIAS, 2 },        { TENSOR_DOWN_BIAS, 1 },       { TENSOR_AFTER_ATTENTION, 1 },
        { TENSOR_AFTER_MLP, 1 },        { TENSOR_SINKS, 1 },           { TENSOR_ROUTER_BIAS, 1 },
        { TENSOR_EXPERT_GATE_BIAS, 2 }, { TENSOR_EXPERT_DOWN_BIAS, 1 }
    };
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
        bytes += vector_bytes(c, vectors[i]);
    return bytes;
}

/* Adds n weights of one shape. */
static void add_weights(struct weight_bytes *all, struct backend *be, struct tensor_shape shape, int n)
{
    struct weight_bytes one = n ? be->weight_bytes(be, shape.rows, shape.cols) : (struct weight_bytes){ 0 };

    all->kept += one.kept * (size_t)n;
    all->making = max(all->making, one.making);
}

static struct weight_bytes layers_bytes(const struct engine *e)
{
    const struct model_config *c = &e->config;
    int qkv = (c->n_heads + 2 * c->n_kv_heads) * c->head_dim, heads = c->n_heads * c->head_dim, L = c->n_layers;
    int experts = L * c->n_experts, dense = experts ? 0 : L;
    struct weight_bytes all = { .kept = (size_t)L * layer_vectors(c) };

    add_weights(&all, e->backend, (struct tensor_shape){ qkv, c->d_model }, L);
    add_weights(&all, e->backend, (struct tensor_shape){ c->d_model, heads }, L);
    add_weights(&all, e->backend, (struct tensor_shape){ 2 * c->d_ff, c->d_model }, dense);
    add_weights(&all, e->backend, (struct tensor_shape){ c->d_model, c->d_ff }, dense);
    add_weights(&all, e->backend, (struct tensor_shape){ c->n_experts, c->d_model }, experts ? L : 0);
    add_weights(&all, e->backend, (struct tensor_shape){ 2 * c->expert_ff, c->d_model }, experts);
    add_weights(&all, e->backend, (struct tensor_shape){ c->d_model, c->expert_ff }, experts);
    all.making += layer_space(e);
    return all;
}

static struct weight_bytes ends_bytes(const struct engine *e)
{
    const struct model_config *c = &e->config;
    size_t rows = numbers_of(c, TENSOR_EMBEDDING) * dtype_size(e->backend->dtype);
    const size_t vectors = c->multiplier[MULTIPLY_EMBEDDING] > 0 ? 2 : 1;
    struct weight_bytes all = { .kept = vectors * pool_size((size_t)c->d_model * sizeof(float)) +
                                        (embedding_is_head(e) ? 0 : pool_size(rows)) };

    add_weights(&all, e->backend, (struct tensor_shape){ c->n_vocab, c->d_model }, 1);
    all.making += ends_space(e);
    return all;
}

/* The tensors outside the layers are read before the layers. */
struct weight_bytes weights_bytes(const struct engine *e)
{
    struct weight_bytes layers = layers_bytes(e), ends = ends_bytes(e);

    return (struct weight_bytes){ .kept = layers.kept + ends.kept,
                                  .making = ends.making > layers.kept + layers.making ? ends.making - layers.kept
                                                                                      : layers.making };
}
