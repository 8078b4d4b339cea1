/* Rows that an engine has computed become the bytes that evp-pack writes of them, and what cannot is refused. */
#include "codes/half.h"
#include "loader/libevicpress/evicpress.h"
#include "tests/unit/cache.h"
#include "variants/packed_payload.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { T = 300 };

static const char model[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const struct payload_model made_by = { .name = "tiny",
                                              .dtype = "bfloat16",
                                              .rope = { .theta = 1e4, .dims = 8, .scaling = "default" } };
static const char *const configs[] = { "none",
                                       "kivi:bits=2",
                                       "kivi:bits=4",
                                       "kivi:bits=4:residual=96",
                                       "int8:group=32",
                                       "int4:group=16",
                                       "fp8",
                                       "fp8:scale=token",
                                       "fp8:scale=one",
                                       "nvfp4",
                                       "turboquant:bits=4",
                                       "turboquant:bits=3:values=uniform",
                                       "turboquant:bits=3:rotation=qr:norm=f32",
                                       "cachegen",
                                       "cachegen:cdf=chunk" };
enum { CONFIGS = sizeof(configs) / sizeof(*configs) };

static int32_t ids[T];

/* An engine's pages: keys and values of a layer as (T, G, K). */
static void *rows_of(const struct cache *c, int n, int i, int type)
{
    float *const *from = i % 2 ? c->v : c->k;
    char *to = malloc((size_t)(n * G * K) * 4);

    for (int t = 0; t < n; t++)
        for (int g = 0; g < G; g++)
            for (int k = 0; k < K; k++) {
                float x = from[i / 2 * G + g][t * K + k];
                int at = (t * G + g) * K + k;
                uint16_t half = type == EVICPRESS_F16 ? f16_from_f32(x) : bf16_from_f32(x);
                memcpy(to + at * (type == EVICPRESS_F32 ? 4 : 2), type == EVICPRESS_F32 ? (void *)&x : (void *)&half,
                       type == EVICPRESS_F32 ? 4 : 2);
            }
    return to;
}

static struct evp_encode encode_of(const struct config *config, int n, const char *cache)
{
    return (struct evp_encode){ .config = config->name,
                                .model_digest = model,
                                .model_name = made_by.name,
                                .cache = cache,
                                .tokens = ids,
                                .n_tokens = n,
                                .n_layers = L,
                                .n_heads = G,
                                .head_dim = K,
                                .head_stride = K,
                                .row_stride = G * K };
}

/* What evp-pack writes. */
static char *packed(struct cache *c, const struct config *config, size_t *size)
{
    struct made m = made_of(c, config);
    char digest[DIGEST_HEX];
    const struct payload_key key = { model, digest, ids, "libevicpress " EVICPRESS_VERSION, &made_by, NULL };
    char path[] = "/tmp/evp-encode-XXXXXX";
    struct buf bytes = { 0 };
    struct err err;

    close(mkstemp(path));
    cr_assert_eq(digest_tokens(ids, c->full.n_tokens, digest, &err), 0);
    cr_assert_eq(packed_payload_write(path, &m.v, &key, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(file_read(&bytes, path, 1 << 24, &err), 0, "%s", err.msg);
    unlink(path);
    made_release(&m);
    *size = bytes.n;
    return buf_take(&bytes);
}

static void expect_same(struct cache *c, const char *text, int type)
{
    const struct config config = config_of(text);
    struct buf cache = { 0 };
    const void *rows[2 * L];
    struct evp_error error;
    size_t want, size;
    void *payload;
    char *bytes = packed(c, &config, &want);

    payload_cache_put(&cache, &c->full.shape, &made_by);
    struct evp_encode e = encode_of(&config, c->full.n_tokens, buf_str(&cache));
    e.type = type;
    e.rows = rows;
    for (int i = 0; i < 2 * L; i++)
        rows[i] = rows_of(c, c->full.n_tokens, i, type);
    cr_assert_eq(evp_encode_rows(&e, &payload, &size, &error), EVICPRESS_OK, "%s: %s", text, error.text);
    cr_assert_eq(size, want, "%s: %zu bytes, not %zu", text, size, want);
    cr_assert_eq(memcmp(payload, bytes, size), 0, "%s of %d tokens", text, c->full.n_tokens);
    for (int i = 0; i < 2 * L; i++)
        free((void *)(uintptr_t)rows[i]);
    buf_release(&cache);
    free(payload);
    free(bytes);
}

static void make_ids(void)
{
    for (int i = 0; i < T; i++)
        ids[i] = 7 * i;
}

TestSuite(evp_encode, .init = make_ids);

/* On every backend, also with fewer tokens than a residual, and than a chunk; with as many as heads. */
Test(evp_encode, writes_what_evp_pack_writes, .timeout = 600)
{
    static const int tokens[] = { T, 256, 31, G, 1 };
    struct cache c;

    for (int b = 0; b < BACKENDS; b++)
        for (size_t n = 0; n < sizeof(tokens) / sizeof(*tokens); n++)
            for (int i = 0; i < CONFIGS; i++) {
                if (strcmp(backends[b][0], "cuda") == 0 || !cache_open(&c, backends[b][0], backends[b][1], tokens[n]))
                    continue;
                expect_same(&c, configs[i], EVICPRESS_F32);
                cache_release(&c);
            }
}

/* Numbers that are too small for f16, which bf16 has, become 0. */
static void drop_small(struct cache *c)
{
    for (int h = 0; h < L * G; h++)
        for (int i = 0; i < T * K; i++) {
            c->k[h][i] = fabsf(c->k[h][i]) < 0x1p-14f ? 0 : c->k[h][i];
            c->v[h][i] = fabsf(c->v[h][i]) < 0x1p-14f ? 0 : c->v[h][i];
        }
    cache_write(c);
}

Test(evp_encode, takes_every_type)
{
    struct cache c;

    for (int i = 0; i < 2 * CONFIGS; i++) {
        cache_init(&c, T);
        drop_small(&c);
        expect_same(&c, configs[i / 2], i % 2 ? EVICPRESS_F16 : EVICPRESS_BF16);
        cache_release(&c);
    }
}

static void expect_refused(const struct evp_encode *e, const char *sentence)
{
    struct evp_error error;
    void *payload;
    size_t size;

    cr_assert_eq(evp_encode_rows(e, &payload, &size, &error), EVICPRESS_ARGUMENT, "%s", sentence);
    cr_assert(strstr(error.text, sentence), "'%s', not '%s'", error.text, sentence);
    cr_assert(!payload && size == 0);
    cr_assert_eq(evp_encode_rows(e, &payload, &size, NULL), EVICPRESS_ARGUMENT);
}

Test(evp_encode, refuses_what_is_not_in_the_rows)
{
    static const char *const more[] = { "snapkv:drop=0.5", "snapkv:drop=0.5+kivi:bits=4", "arkv:drop=0.5", "fp", "" };
    static const char *const unfit[] = { "kivi:bits=3",     "kivi:bits=4:group=0", "kivi:bits=4:group=64", "kivi",
                                         "int4:group=4096", "turboquant:bits=9",   "int8:group=x" };
    static const float x[L * 2 * G * K * 4];
    const void *rows[2 * L] = { x, x, x, x }, *missing[2 * L] = { x, x, x };
    const struct config none = config_of("none");
    struct evp_encode good = encode_of(&none, 4, NULL), e = good;

    good.rows = rows;
    good.type = EVICPRESS_F32;
    for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
        e = good;
        e.config = more[i];
        expect_refused(&e, "needs more than the rows");
    }
    for (size_t i = 0; i < sizeof(unfit) / sizeof(*unfit); i++) {
        e = good;
        e.config = unfit[i];
        expect_refused(&e, "does not fit rows of 32 numbers");
    }
    e = good, e.model_digest = "abc", expect_refused(&e, "64 hex digits");
    e = good, e.tokens = NULL, expect_refused(&e, "is NULL");
    e = good, e.rows = missing, expect_refused(&e, "rows[3] is NULL");
    e = good, e.n_tokens = 0, expect_refused(&e, "out of range");
    e = good, e.n_heads = 5000, expect_refused(&e, "out of range");
    e = good, e.head_dim = 1 << 20, expect_refused(&e, "out of range");
    e = good, e.type = EVICPRESS_E4M3, expect_refused(&e, "out of range");
    e = good, e.reserved[7] = 1, expect_refused(&e, "reserved");
}
