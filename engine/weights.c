/* weights.c - a model's tensors on the device: layer by layer, each handed over in the file's own numbers where the
 * file can be read as it is.
 */
#include "engine/engine_internal.h"
#include "kernels/half.h"

#include <stdlib.h>
#include <string.h>

/* What reading weights needs. */
struct loader {
    struct engine *engine;
    float *space; // host memory for the largest group of tensors
    float *free;  // the part of it that is not in use
};

static size_t floats_of(const struct model_config *c, enum tensor_role role)
{
    struct tensor_shape shape = model_shape(c, role);
    return (size_t)shape.rows * (size_t)shape.cols;
}

/* Numbers of the largest weight: V x D, (H + 2G) * K x D or 2F x D. */
static size_t largest_group(const struct model_config *c)
{
    size_t qkv = floats_of(c, TENSOR_Q) + floats_of(c, TENSOR_K) + floats_of(c, TENSOR_V);
    size_t gate_up = floats_of(c, TENSOR_GATE) + floats_of(c, TENSOR_UP), all = floats_of(c, TENSOR_EMBEDDING);
    all = qkv > all ? qkv : all;
    return gate_up > all ? gate_up : all;
}

/* A tensor on the host: in the file, or copied to the free space, which moves on. */
static int host_mat(struct loader *l, int layer, enum tensor_role role, struct mat *out, struct err *err)
{
    struct tensor_shape shape = model_shape(&l->engine->config, role);

    if (model_view(l->engine->model, role, layer, out, err) || out->at)
        return out->at ? 0 : err->code;
    *out = (struct mat){ l->free, out->type, shape.rows, shape.cols, shape.cols };
    l->free += floats_of(&l->engine->config, role);
    return model_read_mat(l->engine->model, role, layer, out, err);
}

/* Reads n tensors of roles that follow each other and packs them as one weight. */
static struct weight *load_weight(struct loader *l, int layer, enum tensor_role first, int n, struct err *err)
{
    struct backend *be = l->engine->backend;
    struct mat mat[3];

    l->free = l->space;
    for (int i = 0; i < n; i++)
        if (host_mat(l, layer, (enum tensor_role)((int)first + i), &mat[i], err))
            return NULL;
    return be->weight_new(be, mat, n, err);
}

/* Reads one vector to the device. */
static float *load_vector(struct loader *l, int layer, enum tensor_role role, struct err *err)
{
    struct backend *be = l->engine->backend;
    size_t bytes = floats_of(&l->engine->config, role) * sizeof(float);

    if (model_read(l->engine->model, role, layer, l->space, err))
        return NULL;
    float *at = be->alloc(be, bytes, err);
    if (at)
        be->write(be, at, l->space, bytes);
    return at;
}

/* f32 numbers rounded to bf16, in place. */
static void round_mat(struct mat *m)
{
    char *at = m->at;

    for (size_t i = 0; i < (size_t)m->rows * (size_t)m->cols; i++) {
        float x;
        memcpy(&x, at + i * sizeof(x), sizeof(x)); // read before its place is written
        uint16_t rounded = bf16_from_f32(x);
        memcpy(at + i * sizeof(rounded), &rounded, sizeof(rounded));
    }
    m->type = DTYPE_BF16;
}

/* The embedding as rows: a second copy of what may be the output matrix too. In the file's 16-bit type, or in the
 * backend's. */
static int load_embedding(struct loader *l, struct err *err)
{
    struct engine *e = l->engine;
    struct backend *be = e->backend;
    struct mat host;

    l->free = l->space;
    if (host_mat(l, 0, TENSOR_EMBEDDING, &host, err))
        return err->code;
    if (host.type == DTYPE_F32 && be->dtype == DTYPE_BF16) {
        if (l->free == l->space) // in the file, which is not ours to write
            memcpy(l->space, host.at, (size_t)host.rows * (size_t)host.cols * sizeof(float));
        host.at = l->space;
        round_mat(&host);
    }
    size_t bytes = (size_t)host.rows * (size_t)host.cols * dtype_size(host.type);
    e->embedding = host;
    e->embedding.at = be->alloc(be, bytes, err);
    if (!e->embedding.at)
        return err->code;
    be->write(be, e->embedding.at, host.at, bytes);
    return 0;
}

static int load_layer(struct loader *l, int i, struct err *err)
{
    struct layer *to = &l->engine->layer[i];

    to->norm_attention = load_vector(l, i, TENSOR_ATTENTION_NORM, err);
    if (!to->norm_attention)
        return err->code;
    to->norm_mlp = load_vector(l, i, TENSOR_MLP_NORM, err);
    if (!to->norm_mlp)
        return err->code;
    to->qkv = load_weight(l, i, TENSOR_Q, 3, err);
    if (!to->qkv)
        return err->code;
    to->o = load_weight(l, i, TENSOR_O, 1, err);
    if (!to->o)
        return err->code;
    to->gate_up = load_weight(l, i, TENSOR_GATE, 2, err);
    if (!to->gate_up)
        return err->code;
    to->down = load_weight(l, i, TENSOR_DOWN, 1, err);
    return to->down ? 0 : err->code;
}

/* The tensors outside the layers. */
static int load_ends(struct loader *l, struct err *err)
{
    struct engine *e = l->engine;

    if (load_embedding(l, err))
        return err->code;
    e->norm = load_vector(l, 0, TENSOR_NORM, err);
    if (!e->norm)
        return err->code;
    e->head = load_weight(l, 0, TENSOR_HEAD, 1, err);
    return e->head ? 0 : err->code;
}

int weights_load(struct engine *e, struct err *err)
{
    const struct model_config *c = &e->config;
    struct loader l = { .engine = e, .space = malloc(largest_group(c) * sizeof(float)) };
    int code = 0;

    e->layer = calloc((size_t)c->n_layers, sizeof(*e->layer));
    if (!l.space || !e->layer)
        code = err_nomem(err);
    for (int i = 0; i < c->n_layers && !code; i++)
        code = load_layer(&l, i, err);
    if (!code)
        code = load_ends(&l, err);
    free(l.space);
    return code ? code : e->backend->sync(e->backend, err);
}

void weights_free(struct engine *e)
{
    struct backend *be = e->backend;

    for (int i = 0; i < e->config.n_layers && e->layer; i++) {
        be->free(be, e->layer[i].norm_attention);
        be->free(be, e->layer[i].norm_mlp);
        be->weight_free(be, e->layer[i].qkv);
        be->weight_free(be, e->layer[i].o);
        be->weight_free(be, e->layer[i].gate_up);
        be->weight_free(be, e->layer[i].down);
    }
    be->weight_free(be, e->head);
    be->free(be, e->embedding.at);
    be->free(be, e->norm);
    free(e->layer);
    e->layer = NULL;
}

struct weight_bytes weights_bytes(const struct engine *e)
{
    const struct model_config *c = &e->config;
    struct backend *be = e->backend;
    int kv = c->n_kv_heads * c->head_dim, heads = c->n_heads * c->head_dim;
    const struct {
        int out, in, times;
    } shape[] = { { heads + 2 * kv, c->d_model, c->n_layers },
                  { c->d_model, heads, c->n_layers },
                  { 2 * c->d_ff, c->d_model, c->n_layers },
                  { c->d_model, c->d_ff, c->n_layers },
                  { c->n_vocab, c->d_model, 1 } };
    struct weight_bytes all = { .kept = pool_size(floats_of(c, TENSOR_EMBEDDING) * dtype_size(be->dtype)) };

    for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
        struct weight_bytes one = be->weight_bytes(be, shape[i].out, shape[i].in);
        all.kept += one.kept * (size_t)shape[i].times;
        all.making = one.making > all.making ? one.making : all.making;
    }
    all.kept += (2 * (size_t)c->n_layers + 1) * pool_size((size_t)c->d_model * sizeof(float));
    all.making += largest_group(c) * sizeof(float);
    return all;
}
