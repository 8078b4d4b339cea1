/* kvzap: its file, the scores that it predicts, and the fit, which finds planted coefficients. */
#include "base/rng.h"
#include "methods/kvzap.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { T = 500, N = 2 * G * K + 1 };
static const char DIGEST[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* ---- what is planted ---- */

static void plant(float weight[L * G][N])
{
    struct rng rng = rng_named(1, "weights");

    for (int i = 0; i < L * G * N; i++)
        weight[i / N][i % N] = (float)(rng_unit(&rng) - 0.5) / 4;
    for (int h = 0; h < L * G; h++)
        weight[h][N - 1] = (float)(-4 - h);
}

/* weight . (keys before their rotation, values, 1) of a token; the second layer does not rotate. */
static double planted(const struct cache *c, const float *w, int layer, int t)
{
    double sum = (double)w[N - 1];

    for (int g = 0; g < G; g++)
        for (int j = 0; j < K; j++) {
            const float *k = c->k[layer * G + g] + t * K;
            int half = ROTARY / 2, pair = j < half ? j + half : j - half;
            double x = (double)k[j], angle = t * pow(100, -(double)(j % half) / half);
            if (layer == 0 && j < ROTARY)
                x = x * cos(angle) + (j < half ? 1 : -1) * (double)k[pair] * sin(angle);
            sum += (double)w[g * K + j] * x + (double)w[(G + g) * K + j] * (double)c->v[layer * G + g][t * K + j];
        }
    return sum;
}

static const uint64_t second_is_not_rotated = 2;

static void write_file(const char *path, const struct st_header *header, const float *weight, size_t n)
{
    struct file_out out;
    struct err err;

    cr_assert(!file_create(&out, path, &err) && !safetensors_write_header(&out, header, &err), "%s", err.msg);
    fwrite(weight, sizeof(*weight), n, out.f);
    cr_assert_eq(file_commit(&out, &err), 0, "%s", err.msg);
}

static const char path[] = "kvzap_test.safetensors";

/* ---- tests ---- */

Test(kvzap, keeps_what_its_file_says)
{
    static float weight[L * G][N];
    static double score[L * G * T];
    const struct st_meta meta[] = { { "evp", "kvzap" }, { "version", "1" }, { "model_digest", DIGEST } };
    const struct st_tensor tensor = { .name = "weight", .type = ST_F32, .n_dims = 3, .dim = { L, G, N } };
    struct cache c;
    struct err err;

    plant(weight);
    write_file(path, &(struct st_header){ &tensor, 1, meta, 3 }, weight[0], sizeof(weight) / sizeof(float));
    cr_assert_eq(kvzap_use(path, &err), 0, "%s", err.msg);
    unlink(path);
    cr_assert_eq(kvzap_check(DIGEST, &err), 0);
    cr_assert_eq(kvzap_check("other", &err), ERR_FORMAT);
    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        c.full.unrotated = &second_is_not_rotated;
        for (int i = 0; i < L * G * T; i++)
            score[i] = i % T < HEAD ? 1e9 : planted(&c, weight[i / T], i / T / G, i % T);
        expect_best(&c, "kvzap:drop=0.4", score, L * G, 0);
        expect_best(&c, "kvzap:drop=0.9", score, L * G, 0);
        c.full.n_head = 0; // no template
        for (int h = 0; h < L * G; h++)
            for (int t = 4; t < HEAD; t++)
                score[h * T + t] = planted(&c, weight[h], h / G, t);
        expect_best(&c, "kvzap:drop=0.5", score, L * G, 0);
        c.full.shape.n_layers = 1;
        const struct config config = config_of("kvzap:drop=0.5"), *list = &config;
        cr_assert_null(compressor_new(&c.full, &list, 1, &err));
        cr_assert_str_eq(err.msg, "kvzap: the file of --kvzap is of a model with other layers or heads");
        cache_release(&c);
    }
}

Test(kvzap, fit_finds_what_was_planted)
{
    static float weight[L * G][N], score[L * G * T];
    struct cache c;
    struct kvzap found;
    struct file_map map;
    struct err err;

    plant(weight);
    cache_init(&c, T);
    c.full.unrotated = &second_is_not_rotated;
    for (int i = 0; i < L * G * T; i++) // the tokens that are always kept do not count
        score[i] = i % T < HEAD ? 2 : (float)exp(planted(&c, weight[i / T], i / T / G, i % T));
    c.be->write(c.be, (void *)(uintptr_t)c.full.repeat_max, score, sizeof(score));
    struct kvzap_fit *fit = kvzap_fit_new(&c.full.shape, &err);
    cr_assert(fit, "%s", err.msg);
    cr_assert_eq(kvzap_fit_write(fit, path, DIGEST, &err), ERR_FAIL);
    cr_assert_eq(kvzap_fit_add(fit, &c.full, &err), 0, "%s", err.msg);
    cr_assert_eq(kvzap_fit_write(fit, path, DIGEST, &err), 0, "%s", err.msg);
    kvzap_fit_free(fit);
    cr_assert(!file_map(&map, path, &err) && !kvzap_parse(&found, map.at, map.n, &err), "%s", err.msg);
    cr_assert(found.n_layers == L && found.n_kv_heads == G && found.head_dim == K);
    cr_assert_str_eq(found.model_digest, DIGEST);
    for (int i = 0; i < L * G * N; i++)
        cr_assert_float_eq(found.weight[i], weight[i / N][i % N], 2e-3, "%d", i);
    kvzap_release(&found);
    file_unmap(&map);
    unlink(path);
    cache_release(&c);
}

Test(kvzap, refuses_other_files)
{
    static const float weight[2 * 9] = { 0 }, wrong[2 * 9] = { [17] = NAN };
    static const struct {
        const char *evp, *version, *digest, *name;
        enum st_type type;
        int64_t dim[3];
        const float *weight;
        const char *says;
    } at[] = {
        { "kvzap", "1", "d", "weight", ST_F32, { 1, 2, 9 }, weight, "" },
        { "table", "1", "d", "weight", ST_F32, { 1, 2, 9 }, weight, "its metadata are not those of --fit-kvzap" },
        { "kvzap", "2", "d", "weight", ST_F32, { 1, 2, 9 }, weight, "version 1" },
        { "kvzap", "1", NULL, "weight", ST_F32, { 1, 2, 9 }, weight, "its metadata are not those" },
        { "kvzap", "1", "d", "bias", ST_F32, { 1, 2, 9 }, weight, "no tensor 'weight', F32 [L, G, 2 * G * K + 1]" },
        { "kvzap", "1", "d", "weight", ST_I32, { 1, 2, 9 }, weight, "no tensor 'weight', F32" },
        { "kvzap", "1", "d", "weight", ST_F32, { 2, 1, 8 }, weight, "no tensor 'weight', F32" },
        { "kvzap", "1", "d", "weight", ST_F32, { 0, 2, 9 }, weight, "no tensor 'weight', F32" },
        { "kvzap", "1", "d", "weight", ST_F32, { 1, 2, 9 }, wrong, "weight: number 17 is not finite" },
    };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct st_meta meta[] = { { "evp", at[i].evp },
                                        { "version", at[i].version },
                                        { "model_digest", at[i].digest } };
        const struct st_tensor tensor = {
            .name = at[i].name, .type = at[i].type, .n_dims = 3, .dim = { at[i].dim[0], at[i].dim[1], at[i].dim[2] }
        };
        struct err err = { 0 };
        size_t n = (size_t)(at[i].dim[0] * at[i].dim[1] * at[i].dim[2]);
        write_file(path, &(struct st_header){ &tensor, 1, meta, at[i].digest ? 3 : 2 }, at[i].weight, n);
        cr_assert_eq(kvzap_use(path, &err), *at[i].says ? ERR_FORMAT : 0, "%zu", i);
        cr_assert(strstr(err.msg, at[i].says), "%zu: %s", i, err.msg);
    }
    unlink(path);
}
