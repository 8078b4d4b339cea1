/* engine.c - a model's weights on a device, immutable once they are there; the table of rotary angles; and the cost of
 * work before it starts.
 */
#include "engine/engine.h"

#include "engine/engine_internal.h"

#include <math.h>
#include <stdlib.h>

const struct model *engine_model(const struct engine *e)
{
    return e->model;
}

const struct tokenizer *engine_tokenizer(const struct engine *e)
{
    return e->tokenizer;
}

struct backend *engine_backend(const struct engine *e)
{
    return e->backend;
}

struct kv_shape engine_kv_shape(const struct engine *e)
{
    const struct model_config *c = &e->config;
    return (struct kv_shape){ c->n_layers, c->n_heads, c->n_kv_heads, c->head_dim, DTYPE_F32 };
}

/* ---- weights ------------------------------------------------------------ */

/* What reading weights needs. */
struct loader {
    struct engine *engine;
    float *space; // host memory for the largest group of tensors
};

static size_t floats_of(const struct model_config *c, enum tensor_role role)
{
    struct tensor_shape shape = model_shape(c, role);
    return (size_t)shape.rows * (size_t)shape.cols;
}

/* Floats of the largest weight: V x D, (H + 2G) * K x D or 2F x D. */
static size_t largest_group(const struct model_config *c)
{
    size_t qkv = floats_of(c, TENSOR_Q) + floats_of(c, TENSOR_K) + floats_of(c, TENSOR_V);
    size_t gate_up = floats_of(c, TENSOR_GATE) + floats_of(c, TENSOR_UP), all = floats_of(c, TENSOR_EMBEDDING);
    all = qkv > all ? qkv : all;
    return gate_up > all ? gate_up : all;
}

/* Reads n tensors of roles that follow each other and packs them as one weight. */
static struct weight *load_weight(struct loader *l, int layer, enum tensor_role first, int n, struct err *err)
{
    struct mat mat[3];
    float *at = l->space;

    for (int i = 0; i < n; i++) {
        enum tensor_role role = (enum tensor_role)((int)first + i);
        struct tensor_shape shape = model_shape(&l->engine->config, role);
        if (model_read(l->engine->model, role, layer, at, err))
            return NULL;
        mat[i] = (struct mat){ at, DTYPE_F32, shape.rows, shape.cols, shape.cols };
        at += floats_of(&l->engine->config, role);
    }
    struct backend *be = l->engine->backend;
    return be->weight_new(be, mat, n, DTYPE_F32, err);
}

/* Reads one tensor to the device as it is. */
static float *load_plain(struct loader *l, int layer, enum tensor_role role, struct err *err)
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

static int load_layer(struct loader *l, int i, struct err *err)
{
    struct layer *to = &l->engine->layer[i];

    to->norm_attention = load_plain(l, i, TENSOR_ATTENTION_NORM, err);
    if (!to->norm_attention)
        return err->code;
    to->norm_mlp = load_plain(l, i, TENSOR_MLP_NORM, err);
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

    e->embedding = load_plain(l, 0, TENSOR_EMBEDDING, err);
    if (!e->embedding)
        return err->code;
    e->norm = load_plain(l, 0, TENSOR_NORM, err);
    if (!e->norm)
        return err->code;
    e->head = load_weight(l, 0, TENSOR_HEAD, 1, err);
    return e->head ? 0 : err->code;
}

static int load_weights(struct engine *e, struct err *err)
{
    const struct model_config *c = &e->config;
    struct loader l = { e, malloc(largest_group(c) * sizeof(float)) };
    int code = 0;

    e->layer = calloc((size_t)c->n_layers, sizeof(*e->layer));
    if (!l.space || !e->layer)
        code = err_nomem(err);
    for (int i = 0; i < c->n_layers && !code; i++)
        code = load_layer(&l, i, err);
    if (!code)
        code = load_ends(&l, err);
    free(l.space);
    return code;
}

/* ---- rotary angles ------------------------------------------------------ */

/* Radians per position of pair i, as the model was trained: plain, stretched (linear), or stretched only where a turn
 * is longer than the context of the original model (llama3). */
static float rope_step(const struct model_config *c, int i)
{
    double step = 1 / pow(c->rope_theta, 2.0 * i / c->head_dim);

    if (c->rope_scaling == ROPE_PLAIN)
        return (float)step;
    if (c->rope_scaling == ROPE_LINEAR)
        return (float)(step / c->rope_factor);
    double turns = c->rope_original * step / (2 * acos(-1)); // within the original context
    if (turns > c->rope_high)
        return (float)step;
    if (turns < c->rope_low)
        return (float)(step / c->rope_factor);
    double blend = (turns - c->rope_low) / (c->rope_high - c->rope_low);
    return (float)((1 - blend) * step / c->rope_factor + blend * step);
}

static int make_angles(struct engine *e, struct err *err)
{
    struct backend *be = e->backend;
    size_t half = (size_t)e->config.head_dim / 2, n = (size_t)e->config.max_tokens * half;
    float *table[2] = { malloc(n * sizeof(float)), malloc(n * sizeof(float)) };
    int code = table[0] && table[1] ? 0 : err_nomem(err);

    for (size_t i = 0; i < half && !code; i++) {
        float step = rope_step(&e->config, (int)i);
        for (size_t p = 0; p < (size_t)e->config.max_tokens; p++) {
            double angle = (double)((float)p * step); // rounded to a float, as the models' own code does
            table[0][p * half + i] = (float)cos(angle);
            table[1][p * half + i] = (float)sin(angle);
        }
    }
    if (!code) {
        e->cos = be->alloc(be, n * sizeof(float), err);
        e->sin = e->cos ? be->alloc(be, n * sizeof(float), err) : NULL;
        code = e->sin ? 0 : err->code;
    }
    if (!code) {
        be->write(be, e->cos, table[0], n * sizeof(float));
        be->write(be, e->sin, table[1], n * sizeof(float));
    }
    free(table[0]);
    free(table[1]);
    return code;
}

/* ---- open and close ----------------------------------------------------- */

static int open_all(struct engine *e, const struct engine_options *options, struct err *err)
{
    if (options->dtype != DTYPE_F32)
        return err_set(err, ERR_DEVICE, "this build computes in f32 only");
    e->backend = backend_open(options->backend, options->n_threads, err);
    if (!e->backend)
        return err->code;
    e->model = model_open(options->model, err);
    if (!e->model)
        return err->code;
    e->config = *model_config(e->model);
    e->tokenizer = tokenizer_open(e->model, err);
    if (!e->tokenizer || load_weights(e, err) || make_angles(e, err))
        return err_wrap(err, "'%s'", options->model);
    return e->backend->sync(e->backend, err);
}

struct engine *engine_open(const struct engine_options *options, struct err *err)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (!e) {
        err_nomem(err);
        return NULL;
    }
    if (open_all(e, options, err) == 0)
        return e;
    engine_close(e);
    return NULL;
}

static void weights_free(struct engine *e)
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
    be->free(be, e->embedding);
    be->free(be, e->norm);
    be->free(be, e->cos);
    be->free(be, e->sin);
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    if (e->backend) {
        weights_free(e);
        e->backend->close(e->backend);
    }
    free(e->layer);
    tokenizer_free(e->tokenizer);
    model_close(e->model);
    free(e);
}

/* ---- cost --------------------------------------------------------------- */

struct engine_cost engine_cost(const struct engine *e, const struct engine_work *w)
{
    const struct model_config *c = &e->config;
    double D = c->d_model, heads = (double)c->n_heads * c->head_dim, kv = (double)c->n_kv_heads * c->head_dim;
    double layers = 2.0 * c->n_layers * (D * (2 * heads + 2 * kv) + 3 * D * c->d_ff); // per token
    double pair = 4.0 * c->n_layers * heads;                                          // a query and a key
    double n = w->n_tokens, sequences = (double)w->n_variants * w->n_questions;
    double own = w->question_tokens + w->max_new_tokens - 1.0;
    size_t slots = (size_t)(w->question_tokens + w->max_new_tokens);
    int batch = sequences < FORWARD_ROWS ? (int)sequences : FORWARD_ROWS;

    return (struct engine_cost){
        .bytes = (uint64_t)((double)kv_store_bytes(c, (size_t)w->n_tokens) * (1 + w->keep_frac_sum)) +
                 kv_store_bytes(c, slots * (size_t)batch) + forward_bytes(c),
        .prefill_flop = n * layers + pair * n * n / 2,
        .decode_flop = sequences * (own * layers + 2.0 * D * c->n_vocab * w->max_new_tokens + pair * own * own / 2) +
                       w->n_questions * own * pair * n * w->keep_frac_sum,
    };
}
