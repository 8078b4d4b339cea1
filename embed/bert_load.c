/* bert_load.c - opening and closing of bert.h: config.json and model.safetensors are checked against each other, field
 * by field and tensor by tensor, and the weights go to the device one layer at a time. Word embeddings stay in the
 * file. */
#include "embed/bert.h"

#include "base/file.h"
#include "base/json.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG = 1 << 20, MAX_NAME = 128 }; /* bytes */

/* ---- config.json --------------------------------------------------------- */

/* A field that must be a whole number from 1 to max. */
static int want_count(const struct json *config, const char *name, int max, int *out, struct err *err)
{
    int64_t v;

    if (json_want_int(config, name, &v, err))
        return err->code;
    if (v < 1 || v > max)
        return err_set(err, ERR_FORMAT, "field '%s' is %lld, not 1 to %d", name, (long long)v, max);
    *out = (int)v;
    return 0;
}

/* Checks an optional field: if present, it must have the one value that this encoder computes. */
static int want_word(const struct json *config, const char *name, const char *word, struct err *err)
{
    const char *v = word;

    if (json_may_text(config, name, &v, err))
        return err->code;
    return strcmp(v, word) == 0 ? 0 : err_set(err, ERR_FORMAT, "field '%s' is '%.40s', not '%s'", name, v, word);
}

/* The limits are several times the largest BERT's; every computed product of two fits an int. */
static int read_shape(struct bert_shape *s, const struct json *config, struct err *err)
{
    if (want_word(config, "model_type", "bert", err) || want_word(config, "hidden_act", "gelu", err) ||
        want_word(config, "position_embedding_type", "absolute", err) ||
        want_count(config, "hidden_size", 4096, &s->width, err) ||
        want_count(config, "num_attention_heads", 256, &s->heads, err) ||
        want_count(config, "intermediate_size", 16384, &s->inner, err) ||
        want_count(config, "num_hidden_layers", 256, &s->layers, err) ||
        want_count(config, "vocab_size", 1 << 20, &s->vocab, err) ||
        want_count(config, "max_position_embeddings", 1 << 16, &s->positions, err) ||
        want_count(config, "type_vocab_size", 1 << 10, &s->types, err) ||
        json_want_real(config, "layer_norm_eps", &s->norm_eps, err))
        return err->code;
    if (s->width % s->heads || s->width / s->heads % 2)
        return err_set(err, ERR_FORMAT, "field 'hidden_size' is %d, not an even multiple of %d heads", s->width,
                       s->heads);
    if (!(s->norm_eps > 0 && s->norm_eps < 1))
        return err_set(err, ERR_FORMAT, "field 'layer_norm_eps' is not between 0 and 1");
    return 0;
}

static int read_config(struct bert_shape *s, const char *path, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, MAX_CONFIG, err);

    if (!code) {
        struct json *config = json_parse(buf_str(&text), text.n, err);
        code = config ? read_shape(s, config, err) : err->code;
        json_free(config);
        if (code)
            err_wrap(err, "'%s'", path);
    }
    buf_release(&text);
    return code;
}

/* ---- model.safetensors --------------------------------------------------- */

/* The tensor of that name (some files put "bert." in front), which must be f32 and (rows, cols), or (rows) for cols 0.
 */
static const struct st_tensor *want_tensor(const struct bert *b, const char *name, int rows, int cols, struct err *err)
{
    char prefixed[MAX_NAME + 8];

    const struct st_tensor *t = safetensors_find(&b->file, name);
    if (!t) {
        snprintf(prefixed, sizeof(prefixed), "bert.%s", name);
        t = safetensors_find(&b->file, prefixed);
    }
    if (!t) {
        err_set(err, ERR_FORMAT, "tensor '%s' is missing", name);
        return NULL;
    }
    if (t->type != ST_F32) {
        err_set(err, ERR_FORMAT, "tensor '%s' is %s, not F32", name, st_type_name(t->type));
        return NULL;
    }
    if (t->n_dims != (cols ? 2 : 1) || t->dim[0] != rows || (cols && t->dim[1] != cols)) {
        err_set(err, ERR_FORMAT, "tensor '%s' does not have the shape that config.json gives it, %d x %d", name, rows,
                cols ? cols : 1);
        return NULL;
    }
    return t;
}

/* The tensors of a layer in load_layer()'s order: matrices, then vectors. */
enum dimension { NONE, WIDTH, INNER };
static const struct layer_tensor {
    const char *name; // after "encoder.layer.N."
    enum dimension rows, cols;
} layer_tensors[] = {
    { "attention.self.query.weight", WIDTH, WIDTH },
    { "attention.self.key.weight", WIDTH, WIDTH },
    { "attention.self.value.weight", WIDTH, WIDTH },
    { "attention.output.dense.weight", WIDTH, WIDTH },
    { "intermediate.dense.weight", INNER, WIDTH },
    { "output.dense.weight", WIDTH, INNER },
    { "attention.self.query.bias", WIDTH, NONE },
    { "attention.self.key.bias", WIDTH, NONE },
    { "attention.self.value.bias", WIDTH, NONE },
    { "attention.output.dense.bias", WIDTH, NONE },
    { "attention.output.LayerNorm.weight", WIDTH, NONE },
    { "attention.output.LayerNorm.bias", WIDTH, NONE },
    { "output.dense.bias", WIDTH, NONE },
    { "output.LayerNorm.weight", WIDTH, NONE },
    { "output.LayerNorm.bias", WIDTH, NONE },
    { "intermediate.dense.bias", INNER, NONE },
};

/* Copies a tensor of a layer to *at and moves *at past it. */
static int copy_tensor(const struct bert *b, int layer, const struct layer_tensor *tensor, float **at, struct err *err)
{
    int size[] = { [NONE] = 0, [WIDTH] = b->shape.width, [INNER] = b->shape.inner };
    char name[MAX_NAME];

    snprintf(name, sizeof(name), "encoder.layer.%d.%s", layer, tensor->name);
    const struct st_tensor *t = want_tensor(b, name, size[tensor->rows], size[tensor->cols], err);
    if (!t)
        return err->code;
    memcpy(*at, t->at, t->bytes);
    *at += t->bytes / sizeof(float);
    return 0;
}

static size_t layer_vectors(const struct bert_shape *s)
{
    return 9 * (size_t)s->width + (size_t)s->inner;
}

static size_t layer_weights(const struct bert_shape *s)
{
    return 4 * (size_t)s->width * (size_t)s->width + 2 * (size_t)s->width * (size_t)s->inner;
}

/* The four matrices of a layer, from host memory, where they are contiguous. */
static int make_weights(struct bert *b, struct bert_layer *l, float *at, struct err *err)
{
    struct backend *be = b->backend;
    int D = b->shape.width, F = b->shape.inner;
    size_t square = (size_t)D * (size_t)D, tall = (size_t)D * (size_t)F;
    struct mat qkv = { at, DTYPE_F32, 3 * D, D, D }, out = { at + 3 * square, DTYPE_F32, D, D, D };
    struct mat up = { at + 4 * square, DTYPE_F32, F, D, D }, down = { at + 4 * square + tall, DTYPE_F32, D, F, F };

    l->qkv = be->weight_new(be, &qkv, 1, err);
    l->out = l->qkv ? be->weight_new(be, &out, 1, err) : NULL;
    l->up = l->out ? be->weight_new(be, &up, 1, err) : NULL;
    l->down = l->up ? be->weight_new(be, &down, 1, err) : NULL;
    return l->down ? 0 : err->code;
}

/* vectors: device memory for the layer's small vectors; stage: host memory for all numbers of a layer. */
static int load_layer(struct bert *b, int n, float *vectors, float *stage, struct err *err)
{
    struct bert_layer *l = &b->layer[n];
    int D = b->shape.width;
    float *at = stage;

    for (size_t i = 0; i < sizeof(layer_tensors) / sizeof(*layer_tensors); i++)
        if (copy_tensor(b, n, &layer_tensors[i], &at, err))
            return err->code;
    b->backend->write(b->backend, vectors, stage + layer_weights(&b->shape), layer_vectors(&b->shape) * sizeof(float));
    l->qkv_bias = vectors;
    l->out_bias = vectors + 3 * (size_t)D;
    l->mid_norm = vectors + 4 * (size_t)D;
    l->down_bias = vectors + 6 * (size_t)D;
    l->end_norm = vectors + 7 * (size_t)D;
    l->up_bias = vectors + 9 * (size_t)D;
    return make_weights(b, l, stage, err);
}

/* The embeddings before the first layer: tables on the host, the norm on the device. */
static int load_embeddings(struct bert *b, float *stage, struct err *err)
{
    int D = b->shape.width;
    size_t row = (size_t)D * sizeof(float);

    b->word = want_tensor(b, "embeddings.word_embeddings.weight", b->shape.vocab, D, err);
    const struct st_tensor *position =
        b->word ? want_tensor(b, "embeddings.position_embeddings.weight", b->shape.positions, D, err) : NULL;
    const struct st_tensor *type =
        position ? want_tensor(b, "embeddings.token_type_embeddings.weight", b->shape.types, D, err) : NULL;
    const struct st_tensor *w = type ? want_tensor(b, "embeddings.LayerNorm.weight", D, 0, err) : NULL;
    const struct st_tensor *bias = w ? want_tensor(b, "embeddings.LayerNorm.bias", D, 0, err) : NULL;
    if (!bias)
        return err->code;
    b->positions = malloc(row * (1 + (size_t)b->shape.positions));
    if (!b->positions)
        return err_nomem(err);
    memcpy(b->positions, type->at, row);
    memcpy(b->positions + D, position->at, row * (size_t)b->shape.positions);
    memcpy(stage, w->at, row);
    memcpy(stage + D, bias->at, row);
    b->backend->write(b->backend, b->first_norm, stage, 2 * row);
    return 0;
}

static int load_weights(struct bert *b, struct err *err)
{
    struct backend *be = b->backend;
    size_t per_layer = layer_vectors(&b->shape), norm = 2 * (size_t)b->shape.width;
    float *stage = malloc((layer_weights(&b->shape) + per_layer) * sizeof(float));

    b->layer = calloc((size_t)b->shape.layers, sizeof(*b->layer));
    if (!stage || !b->layer) {
        free(stage);
        return err_nomem(err);
    }
    b->vectors = be->alloc(be, (norm + per_layer * (size_t)b->shape.layers) * sizeof(float), err);
    b->first_norm = b->vectors;
    int code = b->vectors ? load_embeddings(b, stage, err) : err->code;
    for (int l = 0; l < b->shape.layers && !code; l++)
        code = load_layer(b, l, b->vectors + norm + per_layer * (size_t)l, stage, err);
    free(stage);
    return code ? code : be->sync(be, err);
}

/* ---- scratch ------------------------------------------------------------- */

/* Row t of a batch has slot t. */
static int fill_slots(struct bert *b, struct err *err)
{
    struct backend *be = b->backend;
    int32_t count[BERT_ROWS];

    for (int32_t i = 0; i < BERT_ROWS; i++)
        count[i] = i;
    be->write(be, b->scratch.slot, count, sizeof(count));
    return be->sync(be, err);
}

static int make_scratch(struct bert *b, struct err *err)
{
    struct bert_scratch *s = &b->scratch;
    size_t D = (size_t)b->shape.width, at = 0;
    float **part[] = { &s->x, &s->qkv, &s->q, &s->k, &s->v, &s->attended, &s->inner };
    const size_t width[] = { D, 3 * D, D, D, D, D, (size_t)b->shape.inner };
    size_t offset[sizeof(part) / sizeof(*part)], n_parts = sizeof(part) / sizeof(*part);

    for (size_t i = 0; i < n_parts; i++) {
        offset[i] = at;
        at += width[i] * BERT_ROWS * sizeof(float); // BERT_ROWS floats are whole cache lines
    }
    b->scratch_at = b->backend->alloc(b->backend, at + BERT_ROWS * (sizeof(*s->spans) + sizeof(*s->slot)), err);
    if (!b->scratch_at)
        return err->code;
    char *base = b->scratch_at;
    for (size_t i = 0; i < n_parts; i++)
        *part[i] = (float *)(void *)(base + offset[i]);
    s->spans = (struct attn_span *)(void *)(base + at);
    s->slot = (int32_t *)(void *)(base + at + BERT_ROWS * sizeof(*s->spans));
    return fill_slots(b, err);
}

/* ---- opening and closing -------------------------------------------------- */

static int open_parts(struct bert *b, const char *dir, int max_positions, struct err *err)
{
    char *config = file_join(dir, "config.json"), *weights = file_join(dir, "model.safetensors");
    int code = config && weights ? read_config(&b->shape, config, err) : err_nomem(err);

    if (!code)
        code = safetensors_open(&b->file, weights, err);
    if (!code && load_weights(b, err))
        code = err_wrap(err, "'%s'", weights);
    if (!code && b->shape.positions > max_positions)
        b->shape.positions = max_positions;
    if (!code)
        code = make_scratch(b, err);
    free(config);
    free(weights);
    return code;
}

int bert_open(struct bert *b, const char *dir, int max_positions, struct backend *backend, struct err *err)
{
    *b = (struct bert){ .backend = backend };
    int code = open_parts(b, dir, max_positions, err);
    if (code)
        bert_close(b);
    return code;
}

void bert_close(struct bert *b)
{
    struct backend *be = b->backend;

    for (int i = 0; b->layer && i < b->shape.layers; i++) {
        struct weight *w[] = { b->layer[i].qkv, b->layer[i].out, b->layer[i].up, b->layer[i].down };
        for (int k = 0; k < 4; k++)
            if (w[k])
                be->weight_free(be, w[k]);
    }
    if (be) {
        be->free(be, b->vectors);
        be->free(be, b->scratch_at);
    }
    free(b->layer);
    free(b->positions);
    safetensors_close(&b->file);
    *b = (struct bert){ 0 };
}
