/* Packed variants of a small cache, on every backend that computes methods: what is lost. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Heads go to the backend 64 matrices at a time; all heads are the same here, so all must come back the same. */
Test(variants, kivi_packs_every_head)
{
    enum { N = 96, HEADS = 33 };
    struct config config = config_of("kivi:bits=2");
    struct cache c;
    struct pool pool;
    struct err err;
    size_t matrix = N * K * sizeof(float);
    float got[N * K];

    cache_init(&c, N);
    for (int heads = HEADS - 2; heads <= HEADS; heads++) {
        const struct kv_shape shape = { 1, heads, heads, K, .dtype = DTYPE_F32 };
        struct memory_need need = config_variant_bytes(&config, &shape, N);
        struct kv_rows rows[HEADS];
        for (int h = 0; h < heads; h++)
            rows[h] = c.rows[0];
        const struct kv_full full = { .backend = c.be, .pool = &pool, .shape = shape, .n_tokens = N, .rows = rows };
        struct variant v;
        cr_assert_eq(pool_open(&pool, c.be, need.kept + need.making, &err), 0);
        struct compressor *maker = compressor_new(&full, (const struct config *const[]){ &config }, 1, &err);
        cr_assert_eq(compressor_variant(maker, &config, VARIANT_ROWS, &v, &err), 0, "%s", err.msg);
        for (int h = heads - 1; h >= 0; h--) {
            float first[N * K];
            cr_assert_eq(c.be->read(c.be, first, v.rows[0].k, matrix, &err), 0);
            cr_assert_eq(c.be->read(c.be, got, v.rows[h].k, matrix, &err), 0);
            cr_assert_arr_eq(got, first, matrix, "head %d of %d", h, heads);
            cr_assert_neq(got[5], c.k[0][5]);
            cr_assert_eq(c.be->read(c.be, first, v.rows[0].v, matrix, &err), 0);
            cr_assert_eq(c.be->read(c.be, got, v.rows[h].v, matrix, &err), 0);
            cr_assert_arr_eq(got, first, matrix, "head %d of %d", h, heads);
        }
        variant_release(&v);
        compressor_free(maker);
        pool_close(&pool);
    }
    cache_release(&c);
}

static int64_t part_bytes(const struct variant *v)
{
    int64_t bytes = 0;

    for (int i = 0; i < v->shape.n_layers * v->n_parts; i++)
        bytes += (int64_t)packed_part_bytes(&v->parts[i]);
    return bytes;
}

/* Row i of head h was token t, and is off by half a step at most; bf16 rounds what comes back. */
static void expect_near(const struct cache *c, const struct made *m, int h, int i, int t)
{
    int bits = (int)m->v.config->stage[METHOD_QUANTISE].value[0];
    double half_step = 2.01 / (bits == 2 ? 3 : 15) / 2 + (c->be->dtype == DTYPE_BF16 ? 1. / 256 : 0);

    for (int j = 0; j < K; j++) {
        double dk = fabs((double)m->k[h][i * K + j] - (double)c->k[h][t * K + j]);
        double dv = fabs((double)m->rows_v[h][i * K + j] - (double)c->v[h][t * K + j]);
        cr_assert(dk <= half_step && dv <= half_step, "%s: %g %g", m->v.config->name, dk, dv);
    }
}

Test(variants, kivi_keeps_the_recent_and_rounds_the_rest)
{
    const struct config config[] = { config_of("kivi:bits=4"), config_of("kivi:bits=2") };

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        struct made made[2];
        if (!cache_open(&c, backends[b][0], backends[b][1], 100)) // keys: 96 packed; values: 68 packed
            continue;
        made_all(&c, config, 2, made);
        for (int i = 0; i < 2; i++) {
            const struct made *m = &made[i];
            cr_assert(part_bytes(&m->v) == m->v.bytes && m->v.size_frac < 1 && m->v.keep_frac == 1);
            for (int h = 0; h < L * G; h++) {
                cr_assert_arr_eq(m->k[h] + 96 * K, c.k[h] + 96 * K, 4 * K * sizeof(float));
                cr_assert_arr_eq(m->rows_v[h] + 68 * K, c.v[h] + 68 * K, 32 * K * sizeof(float));
                for (int t = 0; t < 100; t++)
                    expect_near(&c, m, h, t, t);
            }
            cr_assert_neq(m->k[0][5], c.k[0][5]);
            made_release(&made[i]);
        }
        cache_release(&c);
    }
}

/* Each head packs as many of its own rows as its length allows. */
Test(variants, kivi_packs_ragged_heads)
{
    const struct config config[] = { config_of("adakv+h2o:drop=0.3"), config_of("adakv+h2o:drop=0.3+kivi:bits=4") };

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        struct made m[2];
        int64_t bytes = 0;
        if (!cache_open(&c, backends[b][0], backends[b][1], 150))
            continue;
        made_all(&c, config, 2, m);
        const int32_t *kept = m[0].v.kept;
        for (int h = 0; h < L * G; h++) {
            int n = m[1].v.rows[h].n, keys = n - n % 32, values = n > 32 ? n - 32 : 0;
            cr_assert_eq(n, m[0].v.rows[h].n);
            cr_assert_arr_eq(m[1].k[h] + keys * K, m[0].k[h] + keys * K, (size_t)((n - keys) * K) * sizeof(float));
            for (int i = 0; i < n; i++)
                expect_near(&c, &m[1], h, i, *kept++);
            bytes += (keys + values) * (K / 2 + K / 32 * 4) + (2 * n - keys - values) * K * 2 + 4;
        }
        cr_assert(m[1].v.bytes == bytes && part_bytes(&m[1].v) == bytes);
        cr_assert(m[1].v.rows[0].n != m[1].v.rows[1].n || m[1].v.rows[2].n != m[1].v.rows[3].n, "all are equal");
        made_release(&m[0]);
        made_release(&m[1]);
        cache_release(&c);
    }
}

/* The largest magnitude of a token in all heads of a layer. */
static double largest(float *const *x, int layer, int t)
{
    double most = 0;

    for (int i = 0; i < G * K; i++)
        most = fmax(most, fabs((double)x[layer * G + i / K][t * K + i % K]));
    return most;
}

/* Row i of head h was token t, and is off by half a level of the token at most: M is 15 in both layers of the cache. */
static void expect_level(const struct cache *c, const struct made *m, int h, int i, int t)
{
    double part = 0.5001 / 15 + (c->be->dtype == DTYPE_BF16 ? 1. / 256 : 0);
    double k = part * largest(c->k, h / G, t), v = part * largest(c->v, h / G, t);

    for (int j = 0; j < K; j++) {
        double dk = fabs((double)m->k[h][i * K + j] - (double)c->k[h][t * K + j]);
        double dv = fabs((double)m->rows_v[h][i * K + j] - (double)c->v[h][t * K + j]);
        cr_assert(dk <= k && dv <= v, "%s: %g %g", m->v.config->name, dk, dv);
    }
}

/* Rows do not depend on what the symbols are counted over. */
Test(variants, cachegen_rounds_to_levels_of_a_token)
{
    enum { T = 300, N = 4 };
    const struct config config[N] = { config_of("cachegen"), config_of("cachegen:cdf=chunk"),
                                      config_of("streamingllm:drop=0.5+cachegen"),
                                      config_of("adakv+h2o:drop=0.3+cachegen:cdf=chunk") };

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        struct made m[N];
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        made_all(&c, config, N, m);
        for (int i = 0; i < N; i++) {
            cr_assert(part_bytes(&m[i].v) == m[i].v.bytes && m[i].v.size_frac < 0.7, "%g", m[i].v.size_frac);
            cr_assert_eq(config_bytes_known(&config[i], &m[i].v.shape, T), -1);
            const int32_t *kept = m[i].v.kept;
            for (int h = 0; h < L * G; h++) {
                cr_assert_eq(memcmp(m[0].k[h], m[1].k[h], T * K * sizeof(float)), 0);
                cr_assert_neq(m[i].k[h][5], c.k[h][5]);
                for (int r = 0; r < m[i].v.rows[h].n && i < 3; r++)
                    expect_level(&c, &m[i], h, r, kept ? *kept++ : r);
            }
        }
        cr_assert(m[3].v.rows[0].n != m[3].v.rows[1].n || m[3].v.rows[2].n != m[3].v.rows[3].n, "all are equal");
        for (int i = 0; i < N; i++)
            made_release(&m[i]);
        cache_release(&c);
    }
}

Test(variants, kivi_leaves_short_contexts_alone)
{
    struct cache c;
    struct config config = config_of("kivi:bits=2");

    cache_init(&c, 31);
    struct made m = made_of(&c, &config);
    cr_assert(m.v.size_frac == 1 && part_bytes(&m.v) == m.v.bytes);
    cr_assert_arr_eq(m.k[0], c.k[0], 31 * K * sizeof(float));
    made_release(&m);
    cache_release(&c);
}

/* The relative RMS error of all rows: of m, against those it was made of. */
static double error_of(const struct made *m, const struct made *full)
{
    double off = 0, all = 0;

    for (int h = 0; h < L * G; h++) {
        const float *got[] = { m->k[h], m->rows_v[h] }, *want[] = { full->k[h], full->rows_v[h] };
        cr_assert_eq(m->v.rows[h].n, full->v.rows[h].n);
        for (int i = 0; i < 2 * m->v.rows[h].n * K; i++) {
            double x = (double)want[i % 2][i / 2], d = (double)got[i % 2][i / 2] - x;
            off += d * d;
            all += x * x;
        }
    }
    return sqrt(off / all);
}

/* Row formats pack every row of every head, also of different lengths. Errors of about uniform numbers: half a step of
 * 3 bits of fraction, on average over an octave, is 2.6 %. */
Test(variants, row_formats_pack_all_rows)
{
    static const struct {
        const char *config;
        double error; // at most; and more than a third of it
    } at[] = {
        { "fp8", 0.03 },
        { "fp8:scale=token", 0.03 },
        { "fp8:scale=one", 0.03 },
        { "int8:group=32", 0.005 },
        { "int4:group=32", 0.066 },
        { "nvfp4", 0.11 },
        { "turboquant:bits=4", 0.1 },
        { "turboquant:bits=3", 0.19 },
        { "turboquant:bits=4:rotation=qr:norm=f32", 0.1 },
        { "turboquant:bits=4:values=uniform", 0.09 },
    };

    for (int b = 0; b < BACKENDS; b++) {
        for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
            char text[CONFIG_NAME];
            snprintf(text, sizeof(text), "adakv+h2o:drop=0.3+%s", at[i].config);
            const struct config config[] = { config_of("none"), config_of(at[i].config),
                                             config_of("adakv+h2o:drop=0.3"), config_of(text) };
            struct cache c;
            struct made m[4];
            if (!cache_open(&c, backends[b][0], backends[b][1], 150))
                break;
            made_all(&c, config, 4, m);
            for (int j = 0; j < 4; j += 2) {
                double error = error_of(&m[j + 1], &m[j]);
                cr_assert(error <= at[i].error && error > at[i].error / 3, "%s: %g", config[j + 1].name, error);
                cr_assert_eq(part_bytes(&m[j + 1].v), m[j + 1].v.bytes);
            }
            for (int j = 0; j < 4; j++)
                made_release(&m[j]);
            cache_release(&c);
        }
    }
}
