/* heads.c - a config on a cache of given numbers, on the reference backend, for the scripts beside it: what kept rows
 * become before they are rounded to bf16.
 *
 *     heads CONFIG <IN >OUT
 *
 * IN: int32 L, H, G, K, T, W; then f32 keys and values (L, G, T, K) each, and queries (L, G, W, H/G, K). OUT, of a
 * chain with a merging method, for each kv head: int32 n, int32 positions (n), f32 values (n, K) that it makes. Of
 * arkv: f64 shares (L), f32 scores (L, G, T), then for each kv head int32 n, int32 whole, int32 positions (n), the
 * packed first.
 */
#include "kernels/backend.h"
#include "kernels/pool.h"
#include "methods/head_work.h"
#include "variants/variant.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 256 << 20 };

static int32_t size[6]; // L, H, G, K, T, W
enum { L, H, G, K, T, W };

/* Copies n numbers from standard input to the pool. */
static void *take(struct kv_full *full, size_t n)
{
    struct err err;
    float *x = malloc(n * sizeof(*x)), *at = pool_take(full->pool, n * sizeof(*x), &err);

    if (!x || !at || fread(x, sizeof(*x), n, stdin) != n)
        exit(1);
    full->backend->write(full->backend, at, x, n * sizeof(*x));
    free(x);
    return at;
}

static void read_cache(struct kv_full *full)
{
    size_t row = (size_t)(size[T] * size[K]), heads = (size_t)(size[L] * size[G]);
    size_t queries = (size_t)(size[W] * size[H] * size[K]);
    float *k = take(full, heads * row), *v = take(full, heads * row), *q = take(full, (size_t)size[L] * queries);
    struct kv_rows *rows = calloc(heads, sizeof(*rows));
    void **window_q = calloc((size_t)size[L], sizeof(*window_q));

    for (size_t h = 0; h < heads; h++)
        rows[h] = (struct kv_rows){ k + h * row, v + h * row, size[T] };
    for (size_t l = 0; l < (size_t)size[L]; l++)
        window_q[l] = q + l * queries;
    full->rows = rows;
    full->window_q = window_q;
    full->store = (struct kv_store){ k, v, (size_t)size[T] };
}

struct merging {
    const struct config_stage *stage;
    const struct variant *v;
    const float *score; // (L * G, T)
    float **made;       // [L * G]: (n, K)
};

static const int32_t *kept_of(const struct variant *v, int h)
{
    const int32_t *at = v->kept;

    for (int i = 0; i < h; i++)
        at += v->rows[i].n;
    return at;
}

static int merge_head(const struct evp_head *head, void *arg, struct err *err)
{
    const struct merging *m = arg;
    int h = head->layer * head->n_kv_heads + head->head;
    const struct host_kept kept = { kept_of(m->v, h), m->v->rows[h].n,
                                    m->score ? m->score + (size_t)h * (size_t)head->n_tokens : NULL };
    float *v = m->made[h] = malloc((size_t)(kept.n * size[K]) * sizeof(*v));

    for (int i = 0; i < kept.n; i++)
        memcpy(v + i * size[K], head->v + kept.at[i] * size[K], (size_t)size[K] * sizeof(*v));
    return m->stage->method->merge->merge(head, &kept, m->stage->value, v, err);
}

static int merged(struct kv_full *full, const struct variant *v, struct err *err)
{
    size_t scores = (size_t)(size[L] * size[G] * size[T]) * sizeof(float), heads = (size_t)(size[L] * size[G]);
    struct merging m = { .stage = &v->config->stage[METHOD_MERGE], .v = v };
    const struct host_work work = { .head = merge_head, .arg = &m };
    float *on_device = pool_take(full->pool, scores, err), *score = malloc(scores);

    m.made = calloc(heads, sizeof(*m.made));
    if (m.stage->method->merge->scores.all) {
        if (m.stage->method->merge->scores.all(full, m.stage->value, on_device, err) ||
            full->backend->read(full->backend, score, on_device, scores, err))
            return err->code;
        m.score = score;
    }
    if (host_each_head(full, &work, err))
        return err->code;
    for (size_t h = 0; h < heads; h++) {
        size_t n = (size_t)v->rows[h].n;
        fwrite(&v->rows[h].n, sizeof(int32_t), 1, stdout);
        fwrite(kept_of(v, (int)h), sizeof(int32_t), n, stdout);
        fwrite(m.made[h], sizeof(float), n * (size_t)size[K], stdout);
    }
    return 0;
}

static int shared(struct kv_full *full, const struct variant *v, struct err *err)
{
    size_t bytes = (size_t)(size[L] * size[G] * size[T]) * sizeof(float);
    const struct config_stage *stage = &v->config->stage[METHOD_DROP];
    float *on_device = pool_take(full->pool, bytes, err), *score = malloc(bytes);
    double *share = calloc((size_t)size[L], sizeof(*share));

    if (!on_device || stage->method->drop->scores.shares(full, stage->value, on_device, share, err) ||
        full->backend->read(full->backend, score, on_device, bytes, err))
        return err->code;
    fwrite(share, sizeof(*share), (size_t)size[L], stdout);
    fwrite(score, 1, bytes, stdout);
    for (int h = 0; h < size[L] * size[G]; h++) {
        fwrite(&v->rows[h].n, sizeof(int32_t), 1, stdout);
        fwrite(&v->whole[h / size[G]], sizeof(int32_t), 1, stdout);
        fwrite(kept_of(v, h), sizeof(int32_t), (size_t)v->rows[h].n, stdout);
    }
    return 0;
}

static int run(const char *text, struct err *err)
{
    struct pool pool;
    struct config config;
    struct variant v;
    struct kv_full full = { .pool = &pool };

    if (config_parse(&config, text, err))
        return err->code;
    if (fread(size, sizeof(*size), 6, stdin) != 6)
        return err_set(err, ERR_FORMAT, "no sizes");
    full.backend = backend_open(&(struct backend_options){ .name = "reference", .dtype = "f32" }, err);
    if (!full.backend || pool_open(&pool, full.backend, POOL, err))
        return err->code;
    full.shape = (struct kv_shape){ size[L], size[H], size[G], size[K], .dtype = DTYPE_F32 };
    full.n_tokens = size[T];
    full.window = size[W];
    full.scale = 1 / sqrtf((float)size[K]);
    read_cache(&full);
    struct compressor *c = compressor_new(&full, (const struct config *const[]){ &config }, 1, err);
    if (!c || compressor_variant(c, &config, VARIANT_PAYLOAD, &v, err))
        return err->code;
    return v.whole ? shared(&full, &v, err) : merged(&full, &v, err);
}

int main(int argc, char **argv)
{
    struct err err = { .code = ERR_USAGE, .msg = "see the top of heads.c" };

    if (argc != 2 || run(argv[1], &err) || fflush(stdout)) {
        fprintf(stderr, "heads: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
