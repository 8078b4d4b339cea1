/* kvzap - kvzip's scores, predicted from keys and values without the repetition.
 *
 * In each layer, with x[t] = the keys of token t in all kv heads before their rotation, then its values in all heads:
 *
 *     score[h][t] = weight[h] . x[t] + bias[h]
 *
 * which was fitted to the logarithm of kvzip's scores on other contexts (kvzap_fit.c). Like kvzip's, scores are
 * compared over all heads of all layers, and the chat template before the text, at least 4 tokens, has the highest
 * score.
 *
 * Differences: the authors predict from hidden states, which a cache does not hold; they weigh the attention by norms,
 * drop by a threshold instead of a share, and always keep the last 128 tokens. Their two-layer perceptron is not here.
 *
 * Source: Jegou and Jeblick, "KVzap: Fast, Adaptive, and Faithful KV Cache Pruning" (arXiv 2601.07891), its linear
 * surrogate; kvpress' KVzapPress.
 */
#include "methods/kvzap.h"

#include "base/parallel.h"
#include "methods/head_work.h"
#include "methods/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DROP };

static struct kvzap used; // by every scoring of this process, as methods of users' objects are

/* ---- the file ------------------------------------------------------------ */

static int read_all(struct kvzap *z, const struct safetensors *st, struct err *err)
{
    const char *is = safetensors_meta(st, "evp"), *version = safetensors_meta(st, "version");
    const char *digest = safetensors_meta(st, "model_digest");
    const struct st_tensor *w = safetensors_find(st, "weight");

    if (!is || strcmp(is, "kvzap") != 0 || !version || strcmp(version, KVZAP_VERSION) != 0)
        return err_set(err, ERR_FORMAT, "its metadata are not those of --fit-kvzap, version " KVZAP_VERSION);
    if (!digest || strlen(digest) >= sizeof(z->model_digest))
        return err_set(err, ERR_FORMAT, "its metadata have no model_digest");
    if (!w || w->type != ST_F32 || w->n_dims != 3 || w->dim[0] < 1 || w->dim[0] > KV_LAYERS_MAX || w->dim[1] < 1 ||
        w->dim[1] > 1 << 12 || w->dim[2] < 2 || w->dim[2] > 1 << 24 || (w->dim[2] - 1) % (2 * w->dim[1]))
        return err_set(err, ERR_FORMAT, "there is no tensor 'weight', F32 [L, G, 2 * G * K + 1]");
    memcpy(z->model_digest, digest, strlen(digest) + 1);
    z->n_layers = (int)w->dim[0];
    z->n_kv_heads = (int)w->dim[1];
    z->head_dim = (int)((w->dim[2] - 1) / (2 * w->dim[1]));
    z->weight = malloc(w->bytes);
    if (!z->weight)
        return err_nomem(err);
    memcpy(z->weight, w->at, w->bytes);
    for (uint64_t i = 0; i < w->bytes / sizeof(*z->weight); i++)
        if (!isfinite(z->weight[i]))
            return err_set(err, ERR_FORMAT, "weight: number %llu is not finite", (unsigned long long)i);
    return 0;
}

int kvzap_parse(struct kvzap *z, const void *bytes, size_t n, struct err *err)
{
    struct safetensors st;

    *z = (struct kvzap){ 0 };
    if (safetensors_parse(&st, bytes, n, err))
        return err->code;
    int code = read_all(z, &st, err);
    safetensors_close(&st);
    if (code)
        kvzap_release(z);
    return code;
}

void kvzap_release(struct kvzap *z)
{
    free(z->weight);
    *z = (struct kvzap){ 0 };
}

int kvzap_use(const char *path, struct err *err)
{
    struct file_map map;

    if (!path)
        return 0;
    if (file_map(&map, path, err))
        return err->code;
    int code = kvzap_parse(&used, map.at, map.n, err);
    file_unmap(&map);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

int kvzap_check(const char *model_digest, struct err *err)
{
    if (!used.weight || strcmp(used.model_digest, model_digest) == 0)
        return 0;
    return err_set(err, ERR_FORMAT, "the file of --kvzap is of another model");
}

/* ---- rows of keys and values ---------------------------------------------- */

struct rows {
    const struct kv_full *full;
    const struct kvzap_work *work;
    float *cos, *sin; // (T, half the rotated columns)
    float *x;         // (T, 2 * G * K + 1)
};

/* Undoes the rotation of a key. */
static void turn_back(float *to, const float *k, const float *cos, const float *sin, int half)
{
    for (int i = 0; i < half; i++) {
        to[i] = k[i] * cos[i] + k[i + half] * sin[i];
        to[i + half] = k[i + half] * cos[i] - k[i] * sin[i];
    }
}

static int fill_head(const struct evp_head *head, void *arg, struct err *err)
{
    const struct rows *r = arg;
    size_t K = (size_t)head->head_dim, G = (size_t)head->n_kv_heads, half = (size_t)r->full->rotary / 2;
    bool rotates = !r->full->unrotated || !(r->full->unrotated[head->layer / 64] >> head->layer % 64 & 1);

    (void)err;
    for (size_t t = 0; t < (size_t)head->n_tokens; t++) {
        float *x = r->x + t * (2 * G * K + 1), *k = x + (size_t)head->head * K;
        memcpy(k, head->k + t * K, K * sizeof(*x));
        memcpy(k + G * K, head->v + t * K, K * sizeof(*x));
        x[2 * G * K] = 1;
        if (rotates)
            turn_back(k, head->k + t * K, r->cos + t * half, r->sin + t * half, (int)half);
    }
    return 0;
}

static int call_layer(int layer, void *arg, struct err *err)
{
    const struct rows *r = arg;

    return r->work->layer(layer, r->x, r->work->arg, err);
}

int kvzap_each_layer(const struct kv_full *full, const struct kvzap_work *work, struct err *err)
{
    struct backend *be = full->backend;
    size_t T = (size_t)full->n_tokens, angles = T * (size_t)(full->rotary / 2) * sizeof(float);
    size_t row = (size_t)(2 * full->shape.n_kv_heads * full->shape.head_dim + 1) * sizeof(float);
    struct rows r = { full, work, malloc(angles + 1), malloc(angles + 1), malloc(T * row) };
    const struct host_work each = { .head = fill_head, .layer = call_layer, .arg = &r };

    int code = !r.cos || !r.sin || !r.x ? err_nomem(err) : 0;
    if (!code && (be->read(be, r.cos, full->cos, angles, err) || be->read(be, r.sin, full->sin, angles, err) ||
                  host_each_head(full, &each, err)))
        code = err->code;
    free(r.cos);
    free(r.sin);
    free(r.x);
    return code;
}

/* ---- scores -------------------------------------------------------------- */

struct layer_of {
    const struct kv_full *full;
    const float *x, *weight; // (T, n), (G, n)
    float *score;            // (G, T)
    int n;
};

static void predict_head(void *arg, int g)
{
    const struct layer_of *l = arg;
    const float *w = l->weight + (size_t)g * (size_t)l->n;
    int sink = kvzap_sink(l->full), T = l->full->n_tokens;

    for (int t = 0; t < T; t++) {
        const float *x = l->x + (size_t)t * (size_t)l->n;
        float sum = 0;
        for (int i = 0; i < l->n; i++)
            sum += w[i] * x[i];
        l->score[(size_t)g * (size_t)T + (size_t)t] = t < sink ? INFINITY : sum;
    }
}

static int predict_layer(int layer, const float *x, void *arg, struct err *err)
{
    struct layer_of l = *(const struct layer_of *)arg;
    int G = l.full->shape.n_kv_heads;

    (void)err;
    l.x = x;
    l.weight = used.weight + (size_t)(layer * G) * (size_t)l.n;
    l.score += (size_t)(layer * G) * (size_t)l.full->n_tokens;
    parallel_do(parallel_cores(), G, predict_head, &l);
    return 0;
}

/* Is there a file, of this shape? */
static int check_used(const struct kv_shape *s, struct err *err)
{
    if (!used.weight)
        return err_set(err, ERR_USAGE, "kvzap needs --kvzap FILE, which evp-profile --fit-kvzap makes");
    if (used.n_layers != s->n_layers || used.n_kv_heads != s->n_kv_heads || used.head_dim != s->head_dim)
        return err_set(err, ERR_FORMAT, "the file of --kvzap is of a model with other layers or heads");
    return 0;
}

int kvzap_check_config(const struct config *config, const struct kv_shape *shape, struct err *err)
{
    return config->stage[METHOD_DROP].method == &method_kvzap ? check_used(shape, err) : 0;
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;
    size_t bytes = (size_t)(s->n_layers * s->n_kv_heads) * (size_t)full->n_tokens * sizeof(float);

    (void)value;
    if (check_used(s, err))
        return err->code;
    struct layer_of l = { .full = full, .score = malloc(bytes), .n = 2 * s->n_kv_heads * s->head_dim + 1 };
    int code = l.score ? kvzap_each_layer(full, &(struct kvzap_work){ predict_layer, &l }, err) : err_nomem(err);
    if (!code)
        full->backend->write(full->backend, out, l.score, bytes);
    free(l.score);
    return code;
}

static struct config_share share(const double *value, const struct kv_shape *shape, int n_tokens)
{
    int64_t pairs = (int64_t)shape->n_layers * shape->n_kv_heads * n_tokens;

    return (struct config_share){ .layers = shape->n_layers, .pairs = pairs - (int64_t)((double)pairs * value[DROP]) };
}

const struct method method_kvzap = {
    .name = "kvzap",
    .summary = "keeps what keys and values tell that kvzip would keep",
    .source = "Jegou and Jeblick 2026 (arXiv 2601.07891), kvpress KVzapPress",
    .param = { PARAM_DROP },
    .drop = &(const struct method_drop){ .scores = { .all = score }, .share = share },
};
