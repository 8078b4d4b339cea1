/* A small cache of noise. */
#include "tests/unit/cache.h"

#include "base/rng.h"
#include "codes/half.h"
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

const char *const backends[BACKENDS][2] = { { "fenced", "f32" }, { "fenced", "bf16" }, { "cpu", "f32" },
                                            { "cpu", "bf16" },   { "cuda", "f32" },    { "cuda", "bf16" } };

struct config config_of(const char *text)
{
    struct config c;
    struct err err;

    cr_assert_eq(config_parse(&c, text, &err), 0, "%s", err.msg);
    return c;
}

static float *noise(const char *name, size_t n, enum dtype type)
{
    float *x = malloc(n * sizeof(*x));
    struct rng rng = rng_named(1, name);

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(2 * rng_unit(&rng) - 1);
        if (type == DTYPE_BF16)
            x[i] = bf16_to_f32(bf16_from_f32(x[i]));
    }
    return x;
}

/* ---- numbers on the device ---------------------------------------------- */

static void put(struct cache *c, void *to, const float *from, size_t n)
{
    uint16_t *half = malloc(n * sizeof(*half));

    for (size_t i = 0; i < n; i++)
        half[i] = bf16_from_f32(from[i]);
    if (c->be->dtype == DTYPE_BF16)
        c->be->write(c->be, to, half, n * sizeof(*half));
    else
        c->be->write(c->be, to, from, n * sizeof(*from));
    free(half);
}

static float *get(struct cache *c, const void *from, size_t n)
{
    float *x = malloc(n * sizeof(*x) + 1);
    uint16_t *half = malloc(n * sizeof(*half) + 1);
    struct err err;
    bool bf16 = c->be->dtype == DTYPE_BF16;

    cr_assert_eq(c->be->read(c->be, bf16 ? (void *)half : x, from, n * dtype_size(c->be->dtype), &err), 0);
    for (size_t i = 0; bf16 && i < n; i++)
        x[i] = bf16_to_f32(half[i]);
    free(half);
    return x;
}

double *attention_of(const struct cache *c, int layer, int i, int head)
{
    int T = c->full.n_tokens;
    const float *q = c->q[layer] + ((size_t)i * H + (size_t)head) * K, *k = c->k[layer * G + head / (H / G)];
    double *a = calloc((size_t)T, sizeof(*a)), sum = 0;

    for (int t = 0; t <= i; t++) {
        double dot = 0;
        for (int j = 0; j < K; j++)
            dot += (double)q[j] * (double)k[t * K + j];
        sum += a[t] = exp(dot / sqrt(K));
    }
    for (int t = 0; t <= i; t++)
        a[t] /= sum;
    return a;
}

static void sum_columns(struct cache *c)
{
    int T = c->full.n_tokens;

    memset(c->column_sums, 0, (size_t)(L * G * T) * sizeof(float));
    for (int l = 0; l < L; l++)
        for (int i = 0; i < T * H; i++) {
            double *a = attention_of(c, l, i / H, i % H);
            for (int t = 0; t < T; t++)
                c->column_sums[(l * G + i % H / (H / G)) * T + t] += (float)a[t];
            free(a);
        }
}

void cache_write(struct cache *c)
{
    int T = c->full.n_tokens, window = c->full.window, group = H / G;
    float *q = malloc((size_t)(window * H * K) * sizeof(*q)); // (G, window, H/G, K)

    for (int h = 0; h < L * G; h++) {
        put(c, c->rows[h].k, c->k[h], (size_t)(T * K));
        put(c, c->rows[h].v, c->v[h], (size_t)(T * K));
    }
    for (int l = 0; l < L; l++) {
        for (int i = 0; i < window * H; i++) {
            int token = i / H, head = i % H, row = (head / group * window + token) * group + head % group;
            memcpy(q + (size_t)row * K, c->q[l] + ((size_t)(T - window + token) * H + (size_t)head) * K,
                   K * sizeof(*q));
        }
        put(c, c->window_q[l], q, (size_t)(window * H * K));
    }
    free(q);
}

/* A copy on the device, from the pool. */
static float *on_device(struct cache *c, const float *from, size_t n)
{
    struct err err;
    float *at = pool_take(&c->pool, n * sizeof(*at), &err);

    cr_assert(at);
    c->be->write(c->be, at, from, n * sizeof(*at));
    return at;
}

static void add_moments(struct cache *c)
{
    const size_t one = (K + 1) * K;

    c->moments = calloc(L * H * one, sizeof(float));
    for (int l = 0; l < L; l++)
        for (int row = MOMENT_FIRST * H; row < c->full.n_tokens * H; row++) {
            const float *q = c->q[l] + (size_t)row * K;
            float *to = c->moments + (size_t)(l * H + row % H) * one;
            for (int i = 0; i <= K; i++)
                for (int j = 0; j < K; j++)
                    to[i * K + j] += (i < K ? q[i] : 1) * q[j];
        }
    c->full.moments = on_device(c, c->moments, L * H * one);
}

static void add_angles(struct cache *c)
{
    size_t n = (size_t)(c->full.n_tokens + FUTURE) * (ROTARY / 2);

    c->cos = malloc(n * sizeof(float));
    c->sin = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        float angle = (float)(i / (ROTARY / 2)) * powf(100, -(float)(i % (ROTARY / 2)) / (ROTARY / 2));
        c->cos[i] = cosf(angle);
        c->sin[i] = sinf(angle);
    }
    c->full.cos = on_device(c, c->cos, n);
    c->full.sin = on_device(c, c->sin, n);
    c->full.rotary = ROTARY;
}

static void add_norms(struct cache *c)
{
    size_t n = (size_t)(L * G * c->full.n_tokens);

    c->value_norms = noise("norms", n, DTYPE_F32);
    for (size_t i = 0; i < n; i++)
        c->value_norms[i] = fabsf(c->value_norms[i]);
    c->full.value_norms = c->value_norms;
}

/* ---- the cache ---------------------------------------------------------- */

static void lay_out(struct cache *c, int n_tokens, int window)
{
    struct err err;
    size_t rows = (size_t)n_tokens * K * dtype_size(c->be->dtype), all = L * G * rows;
    char *keys = pool_take(&c->pool, all, &err), *values = pool_take(&c->pool, all, &err);

    cr_assert(keys && values);
    for (size_t h = 0; h < L * G; h++)
        c->rows[h] = (struct kv_rows){ keys + h * rows, values + h * rows, n_tokens };
    for (int l = 0; l < L; l++)
        c->window_q[l] = pool_take(&c->pool, (size_t)(window * H * K) * dtype_size(c->be->dtype), &err);
    float *sums = pool_take(&c->pool, (size_t)(L * G * n_tokens) * sizeof(*sums), &err),
          *repeat = pool_take(&c->pool, (size_t)(L * G * n_tokens) * sizeof(*repeat), &err);
    c->full = (struct kv_full){ .backend = c->be,
                                .pool = &c->pool,
                                .shape = { L, H, G, K, c->be->dtype },
                                .n_tokens = n_tokens,
                                .store = { keys, values, (size_t)n_tokens },
                                .rows = c->rows,
                                .window = window,
                                .window_q = c->window_q,
                                .column_sums = sums,
                                .repeat_max = repeat,
                                .n_head = HEAD,
                                .scale = 1 / sqrtf((float)K) };
}

bool cache_open(struct cache *c, const char *backend, const char *dtype, int n_tokens)
{
    enum { POOL = 8 << 20 };
    struct err err;
    const struct backend_options options = { .name = backend, .dtype = dtype, .n_threads = 2 };
    size_t n = (size_t)n_tokens;

    *c = (struct cache){ .be = listed_open(&options, &err) };
    if (!c->be)
        return false;
    cr_assert_eq(pool_open(&c->pool, c->be, POOL, &err), 0, "%s", err.msg);
    lay_out(c, n_tokens, n_tokens < W ? n_tokens : W);
    for (int i = 0; i < L * G; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        c->k[i] = noise(name, n * K, DTYPE_BF16);
        c->v[i] = noise(name + 1, n * K, DTYPE_BF16);
    }
    for (int l = 0; l < L; l++)
        c->q[l] = noise(l ? "q1" : "q0", n * H * K, c->be->dtype);
    c->column_sums = malloc(L * G * n * sizeof(float));
    c->repeat_max = noise("repeat", L * G * n, DTYPE_F32);
    for (size_t i = 0; i < L * G * n; i++)
        c->repeat_max[i] = fabsf(c->repeat_max[i]);
    cache_write(c);
    sum_columns(c);
    c->be->write(c->be, (void *)(uintptr_t)c->full.column_sums, c->column_sums, L * G * n * sizeof(float));
    c->be->write(c->be, (void *)(uintptr_t)c->full.repeat_max, c->repeat_max, L * G * n * sizeof(float));
    add_moments(c);
    add_angles(c);
    add_norms(c);
    return true;
}

void cache_init(struct cache *c, int n_tokens)
{
    cr_assert(cache_open(c, "reference", "f32", n_tokens));
}

void cache_release(struct cache *c)
{
    for (int i = 0; i < L * G; i++) {
        free(c->k[i]);
        free(c->v[i]);
    }
    for (int l = 0; l < L; l++)
        free(c->q[l]);
    float *all[] = { c->column_sums, c->repeat_max, c->moments, c->cos, c->sin, c->value_norms };
    for (int i = 0; i < 6; i++)
        free(all[i]);
    pool_close(&c->pool);
    c->be->close(c->be);
}

/* ---- variants ----------------------------------------------------------- */

void made_all(struct cache *c, const struct config *configs, int n, struct made *out)
{
    const struct config *list[64];
    struct err err;

    cr_assert(n <= 64);
    for (int i = 0; i < n; i++)
        list[i] = &configs[i];
    struct compressor *maker = compressor_new(&c->full, list, n, &err);
    cr_assert(maker, "%s", err.msg);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(compressor_variant(maker, list[i], VARIANT_PAYLOAD, &out[i].v, &err), 0, "%s", err.msg);
        for (int h = 0; h < L * G; h++) {
            out[i].k[h] = get(c, out[i].v.rows[h].k, (size_t)out[i].v.rows[h].n * K);
            out[i].rows_v[h] = get(c, out[i].v.rows[h].v, (size_t)out[i].v.rows[h].n * K);
        }
    }
    compressor_free(maker);
}

struct made made_of(struct cache *c, const struct config *config)
{
    struct made m;

    made_all(c, config, 1, &m);
    return m;
}

void made_release(struct made *m)
{
    for (int h = 0; h < L * G; h++) {
        free(m->k[h]);
        free(m->rows_v[h]);
    }
    variant_release(&m->v);
}

void expect_best(const struct cache *c, const char *text, const double *score, int group, int floor)
{
    struct config config = config_of(text);
    struct made m = made_of((struct cache *)(uintptr_t)c, &config);
    const int32_t *kept = m.v.kept;
    int T = c->full.n_tokens, *rank = calloc((size_t)(L * G * T), sizeof(*rank)); // in its head

    for (int i = 0; i < L * G * T; i++)
        for (int j = i / T * T; j < (i / T + 1) * T; j++)
            rank[i] += score[j] > score[i] || (!(score[j] < score[i]) && j < i);
    for (int h = 0; h < L * G; h++) {
        int first = h / group * group, count = 0;
        int n = (int)config_share(&config, &m.v.shape, T, h / G).pairs / (group == 1 ? G : 1);
        for (int t = 0; t < T; t++) {
            int i = h * T + t, before = 0;
            for (int j = first * T; j < (first + group) * T; j++)
                before += rank[i] < floor   ? rank[j] < floor && j < i
                          : rank[j] < floor ? 1
                                            : score[j] > score[i] || (!(score[j] < score[i]) && j < i);
            bool want = before < n, is = count < m.v.rows[h].n && kept[count] == t;
            count += is;
            cr_assert_eq(is, want, "%s: head %d token %d", text, h, t);
        }
        kept += m.v.rows[h].n;
    }
    free(rank);
    made_release(&m);
}
