/* kvzap - kvzip's scores, predicted from keys and values without the repetition.
 *
 * In each layer, with x[t] = the keys of token t in all kv heads before their rotation, then its values in all heads:
 *
 *     score[h][t] = weight[h] . x[t] + constant[h]
 *
 * which was fitted to the logarithm of kvzip's scores of other contexts (kvzap_fit.c). As of kvzip, scores of all heads
 * of all layers are compared, and the chat template before the text, at least 4 tokens, is kept.
 *
 * Differences: the authors predict KVzip+'s scores from hidden states, which a cache does not hold, drop by a threshold
 * instead of a share, and always keep the last 128 tokens. Their two-layer perceptron is not here.
 *
 * Source: Jegou and Jeblick, "KVzap: Fast, Adaptive, and Faithful KV Cache Pruning" (arXiv 2601.07891), its linear
 * surrogate; kvpress' KVzapPress.
 */
#include "methods/kvzap.h"

#include "base/parallel.h"
#include "methods/head_work.h"
#include "methods/registry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct kvzap used; // by every scoring of this process, as methods of users' objects are

/* ---- the file ------------------------------------------------------------ */

static int read_all(struct kvzap *z, const struct safetensors *st, struct err *err)
{
    const char *is = safetensors_meta(st, "evp"), *version = safetensors_meta(st, "version");
    const char *digest = safetensors_meta(st, "model_digest");
    const struct st_tensor *w = safetensors_find(st, "weight");

    if (!is || strcmp(is, "kvzap") != 0 || !version || strcmp(version, KVZAP_VERSION) != 0 || !digest ||
        strlen(digest) >= sizeof(z->model_digest))
        return err_set(err, ERR_FORMAT, "its metadata are not those of --fit-kvzap, version " KVZAP_VERSION);
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

    if (file_map(&map, path, err))
        return err->code;
    kvzap_release(&used);
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
    int layer;
};

static int fill_head(const struct evp_head *head, void *arg, struct err *err)
{
    const struct rows *r = arg;
    size_t K = (size_t)head->head_dim, G = (size_t)head->n_kv_heads, half = (size_t)r->full->rotary / 2;
    bool rotates = layer_rotates(r->full, head->layer);

    (void)err;
    for (size_t t = 0; t < (size_t)head->n_tokens; t++) {
        const float *k = head->k + t * K, *cos = r->cos + t * half, *sin = r->sin + t * half;
        float *x = r->x + t * (2 * G * K + 1), *to = x + (size_t)head->head * K;
        memcpy(to, k, K * sizeof(*k));
        for (size_t i = 0; rotates && i < half; i++) {
            to[i] = k[i] * cos[i] + k[i + half] * sin[i];
            to[i + half] = k[i + half] * cos[i] - k[i] * sin[i];
        }
        memcpy(to + G * K, head->v + t * K, K * sizeof(*k));
        x[2 * G * K] = 1;
    }
    return 0;
}

static void call(void *arg, int i)
{
    const struct rows *r = arg;

    r->work->call(r->work->arg, r->layer, r->x, i);
}

static int call_layer(int layer, void *arg, struct err *err)
{
    struct rows *r = arg;

    (void)err;
    r->layer = layer;
    parallel_do(parallel_cores(), r->work->n, call, r);
    return 0;
}

int kvzap_each_layer(const struct kv_full *full, const struct kvzap_work *work, struct err *err)
{
    struct backend *be = full->backend;
    size_t T = (size_t)full->n_tokens, angles = T * (size_t)(full->rotary / 2) * sizeof(float);
    size_t row = (size_t)(2 * full->shape.n_kv_heads * full->shape.head_dim + 1) * sizeof(float);
    struct rows r = { full, work, malloc(angles + 1), malloc(angles + 1), malloc(T * row), 0 };
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

struct scores {
    const struct kv_full *full;
    float *at; // (L * G, T)
};

static void predict(void *arg, int layer, const float *x, int g)
{
    const struct scores *s = arg;
    int n = 2 * used.n_kv_heads * used.head_dim + 1, T = s->full->n_tokens, first = kvzip_first(s->full);
    const float *w = used.weight + (size_t)(layer * used.n_kv_heads + g) * (size_t)n;
    float *score = s->at + (size_t)(layer * used.n_kv_heads + g) * (size_t)T;

    for (int t = 0; t < T; t++, x += n) {
        float sum = 0;
        for (int i = 0; i < n; i++)
            sum += w[i] * x[i];
        score[t] = t < first ? INFINITY : sum;
    }
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
    size_t bytes = (size_t)(full->shape.n_layers * full->shape.n_kv_heads) * (size_t)full->n_tokens * sizeof(float);

    (void)value;
    if (check_used(&full->shape, err))
        return err->code;
    struct scores s = { full, malloc(bytes) };
    const struct kvzap_work work = { predict, &s, used.n_kv_heads };
    int code = s.at ? kvzap_each_layer(full, &work, err) : err_nomem(err);
    if (!code)
        full->backend->write(full->backend, out, s.at, bytes);
    free(s.at);
    return code;
}

static struct config_share share(const double *value, const struct kv_shape *shape, int n_tokens)
{
    return kvzip_share(shape, shape->n_layers, value[0], n_tokens);
}

const struct method method_kvzap = {
    .name = "kvzap",
    .summary = "keeps what keys and values tell that kvzip would keep",
    .source = "Jegou and Jeblick 2026 (arXiv 2601.07891), kvpress KVzapPress",
    .param = { PARAM_DROP },
    .drop = &(const struct method_drop){ .scores = { .all = score }, .share = share },
};
