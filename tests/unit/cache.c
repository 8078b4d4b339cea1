/* A small cache of noise. */
#include "tests/unit/cache.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>

struct config config_of(const char *text)
{
    struct config c;
    struct err err;

    cr_assert_eq(config_parse(&c, text, &err), 0, "%s", err.msg);
    return c;
}

static float *noise(const char *name, size_t n)
{
    float *x = malloc(n * sizeof(*x));
    struct rng rng = rng_named(1, name);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * rng_unit(&rng) - 1);
    return x;
}

void cache_init(struct cache *c, int n_tokens)
{
    struct err err;
    int window = n_tokens < W ? n_tokens : W;

    *c = (struct cache){ .be = backend_open("reference", 1, &err) };
    cr_assert(c->be, "%s", err.msg);
    for (int i = 0; i < L * G; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        c->rows[i] =
            (struct kv_rows){ noise(name, (size_t)(n_tokens * K)), noise(name + 1, (size_t)(n_tokens * K)), n_tokens };
    }
    for (int l = 0; l < L; l++)
        c->window_q[l] = noise(l ? "q1" : "q0", (size_t)(window * H * K));
    c->full = (struct kv_full){ .backend = c->be,
                                .shape = { L, H, G, K, DTYPE_F32 },
                                .n_tokens = n_tokens,
                                .rows = c->rows,
                                .window = window,
                                .window_q = c->window_q };
    c->c = compressor_new(&c->full, &err);
    cr_assert(c->c, "%s", err.msg);
}

void cache_release(struct cache *c)
{
    compressor_free(c->c);
    for (int i = 0; i < L * G; i++) {
        free(c->rows[i].k);
        free(c->rows[i].v);
    }
    for (int l = 0; l < L; l++)
        free(c->window_q[l]);
    c->be->close(c->be);
}

struct variant variant_of(struct cache *c, const struct config *config)
{
    struct variant v;
    struct err err;

    cr_assert_eq(compressor_variant(c->c, config, VARIANT_PAYLOAD, &v, &err), 0, "%s", err.msg);
    return v;
}

const float *row(const void *matrix, int i)
{
    return (const float *)matrix + (size_t)i * K;
}
