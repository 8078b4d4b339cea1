/* The engine: a model's weights on a device, immutable once they are there. */
#include "engine/engine.h"

#include "engine/engine_internal.h"

#include <math.h>
#include <stdarg.h>
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

/* A tensor by its name with the layer's number in it. */
struct named {
    const char *name;
    int rows;
};

struct loader {
    struct engine *engine;
    float *room; // host memory for the largest group of tensors
};

static size_t largest(const struct model_config *c)
{
    size_t D = (size_t)c->d_model, K = (size_t)c->head_dim;
    size_t size[] = { (size_t)c->n_vocab * D, (size_t)(c->n_heads + 2 * c->n_kv_heads) * K * D,
                      2 * (size_t)c->d_ff * D };
    size_t most = 0;
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
        most = size[i] > most ? size[i] : most;
    return most;
}

static const char *tensor_name(char out[96], int layer, const char *name)
{
    if (layer < 0)
        snprintf(out, 96, "%s", name);
    else
        snprintf(out, 96, "model.layers.%d.%s", layer, name);
    return out;
}

/* Reads tensors of `cols` columns and packs them as one weight. layer -1: the names are whole. */
static struct weight *load_weight(struct loader *l, int layer, const struct named *part, int n_parts, int cols,
                                  struct err *err)
{
    struct mat mat[3];
    float *at = l->room;
    char name[96];

    for (int i = 0; i < n_parts; i++) {
        if (model_read(l->engine->model, tensor_name(name, layer, part[i].name), part[i].rows, cols, at, err) < 0)
            return NULL;
        mat[i] = (struct mat){ at, DTYPE_F32, part[i].rows, cols, cols };
        at += (size_t)part[i].rows * (size_t)cols;
    }
    struct backend *be = l->engine->backend;
    return be->weight_new(be, mat, n_parts, DTYPE_F32, err);
}

/* Reads one tensor to the device as it is. */
static float *load_plain(struct loader *l, int layer, const char *tensor, int rows, int cols, struct err *err)
{
    struct backend *be = l->engine->backend;
    size_t bytes = (size_t)rows * (size_t)cols * sizeof(float);
    char name[96];

    if (model_read(l->engine->model, tensor_name(name, layer, tensor), rows, cols, l->room, err) < 0)
        return NULL;
    float *at = be->alloc(be, bytes, err);
    if (at)
        be->write(be, at, l->room, bytes);
    return at;
}

static int load_layer(struct loader *l, int i, struct err *err)
{
    const struct model_config *c = &l->engine->config;
    struct layer *to = &l->engine->layer[i];
    int D = c->d_model, F = c->d_ff, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    const struct named qkv[] = { { "self_attn.q_proj.weight", q },
                                 { "self_attn.k_proj.weight", kv },
                                 { "self_attn.v_proj.weight", kv } };
    const struct named o[] = { { "self_attn.o_proj.weight", D } }, down[] = { { "mlp.down_proj.weight", D } };
    const struct named gate_up[] = { { "mlp.gate_proj.weight", F }, { "mlp.up_proj.weight", F } };

    to->norm_attention = load_plain(l, i, "input_layernorm.weight", 1, D, err);
    if (!to->norm_attention)
        return err->code;
    to->norm_mlp = load_plain(l, i, "post_attention_layernorm.weight", 1, D, err);
    if (!to->norm_mlp)
        return err->code;
    to->qkv = load_weight(l, i, qkv, 3, D, err);
    if (!to->qkv)
        return err->code;
    to->o = load_weight(l, i, o, 1, q, err);
    if (!to->o)
        return err->code;
    to->gate_up = load_weight(l, i, gate_up, 2, D, err);
    if (!to->gate_up)
        return err->code;
    to->down = load_weight(l, i, down, 1, F, err);
    return to->down ? 0 : err->code;
}

static int load_weights(struct engine *e, struct err *err)
{
    const struct model_config *c = &e->config;
    const struct named head = { c->tied ? "model.embed_tokens.weight" : "lm_head.weight", c->n_vocab };
    struct loader l = { e, malloc(largest(c) * sizeof(float)) };
    int rc = 0;

    e->layer = calloc((size_t)c->n_layers, sizeof(*e->layer));
    if (!l.room || !e->layer)
        rc = err_nomem(err);
    for (int i = 0; i < c->n_layers && rc == 0; i++)
        rc = load_layer(&l, i, err);
    if (rc == 0) {
        e->embedding = load_plain(&l, -1, "model.embed_tokens.weight", c->n_vocab, c->d_model, err);
        rc = e->embedding ? 0 : err->code;
    }
    if (rc == 0) {
        e->norm = load_plain(&l, -1, "model.norm.weight", 1, c->d_model, err);
        rc = e->norm ? 0 : err->code;
    }
    if (rc == 0) {
        e->head = load_weight(&l, -1, &head, 1, c->d_model, err);
        rc = e->head ? 0 : err->code;
    }
    free(l.room);
    return rc;
}

/* ---- rotary angles ------------------------------------------------------ */

/* Radians per position of pair i, as the model was trained: plain, stretched (linear), or stretched only where a turn
 * is longer than the context the model began with (llama3). */
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
    double smooth = (turns - c->rope_low) / (c->rope_high - c->rope_low);
    return (float)((1 - smooth) * step / c->rope_factor + smooth * step);
}

static int make_angles(struct engine *e, struct err *err)
{
    struct backend *be = e->backend;
    size_t half = (size_t)e->config.head_dim / 2, n = (size_t)e->config.max_tokens * half;
    float *table[2] = { malloc(n * sizeof(float)), malloc(n * sizeof(float)) };
    int rc = table[0] && table[1] ? 0 : err_nomem(err);

    for (size_t i = 0; i < half && rc == 0; i++) {
        float step = rope_step(&e->config, (int)i);
        for (size_t p = 0; p < (size_t)e->config.max_tokens; p++) {
            double angle = (double)((float)p * step); // rounded to a float, as the models' own code does
            table[0][p * half + i] = (float)cos(angle);
            table[1][p * half + i] = (float)sin(angle);
        }
    }
    if (rc == 0) {
        e->cos = be->alloc(be, n * sizeof(float), err);
        e->sin = e->cos ? be->alloc(be, n * sizeof(float), err) : NULL;
        rc = e->sin ? 0 : err->code;
    }
    if (rc == 0) {
        be->write(be, e->cos, table[0], n * sizeof(float));
        be->write(be, e->sin, table[1], n * sizeof(float));
    }
    free(table[0]);
    free(table[1]);
    return rc;
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
    if (!e->tokenizer || load_weights(e, err) < 0 || make_angles(e, err) < 0)
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
