/* arkv's variants on every backend, and its payloads. What it keeps whole, in 8 bits and not at all is compared with a
 * model of the authors' code in golden/methods/.
 */
#include "base/file.h"
#include "codes/half.h"
#include "variants/packed_payload.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

enum { T = 90 };

/* x (K) as e4m3 with a scale of its own. */
static void rounded(const float *x, double *out)
{
    float most = 0;

    for (int i = 0; i < K; i++)
        most = fmaxf(most, fabsf(x[i]));
    double scale = (double)f16_to_f32(f16_from_f32(most / 448));
    for (int i = 0; i < K; i++) {
        double y = fabs((double)x[i]) / scale, step = exp2(fmax(floor(log2(y)), -6) - 3);
        out[i] = copysign(fmin(rint(y / step) * step, 448) * scale, (double)x[i]);
    }
}

/* The packed rows come first, as they come back; the whole ones are the cache's; both ascend, and the window is
 * whole. */
static void expect_head(const struct cache *c, const struct made *m, int h, const int32_t *kept)
{
    int n = m->v.rows[h].n, packed = n - m->v.whole[h / G];
    double slack = c->be->dtype == DTYPE_BF16 ? 1. / 256 : 1e-6;

    for (int i = 0; i < n; i++) {
        const float *k = c->k[h] + kept[i] * K, *v = c->v[h] + kept[i] * K;
        double want[2][K];
        cr_assert(i == 0 || i == packed || kept[i] > kept[i - 1]);
        if (i >= packed) {
            cr_assert_arr_eq(m->k[h] + i * K, k, K * sizeof(*k));
            cr_assert_arr_eq(m->rows_v[h] + i * K, v, K * sizeof(*v));
            continue;
        }
        rounded(k, want[0]);
        rounded(v, want[1]);
        for (int j = 0; j < K; j++) {
            cr_assert_float_eq(m->k[h][i * K + j], want[0][j], slack * fabs(want[0][j]) + 1e-9);
            cr_assert_float_eq(m->rows_v[h][i * K + j], want[1][j], slack * fabs(want[1][j]) + 1e-9);
        }
    }
}

static void expect_variant(const struct cache *c, const struct made *m, const struct made *reference)
{
    const int32_t *kept = m->v.kept;
    int64_t bytes = 0;
    int whole = 0;

    for (int h = 0; h < L * G; h++) {
        int n = m->v.rows[h].n, n_whole = m->v.whole[h / G];
        cr_assert_eq(n_whole, reference->v.whole[h / G]);
        cr_assert_arr_eq(kept, reference->v.kept + (kept - m->v.kept), (size_t)n * sizeof(*kept));
        expect_head(c, m, h, kept);
        cr_assert_eq(kept[n - 1], T - 1);
        cr_assert_eq(kept[n - 8], T - 8); // the window
        kept += n;
        bytes += n_whole * 4 * K + (n - n_whole) * (2 * K + 4);
        whole += n_whole;
    }
    cr_assert(m->v.bytes == bytes && config_bytes_known(m->v.config, &m->v.shape, T) == -1);
    cr_assert_float_eq(m->v.packed_frac, 1 - (double)whole / (L * G * m->v.rows[0].n), 1e-12);
    cr_assert(m->v.packed_frac > 0 && m->v.packed_frac < 1, "%g", m->v.packed_frac);
    cr_assert_float_eq(m->v.keep_frac, (double)m->v.rows[0].n / T, 1e-12);
}

/* Layers whose attention differs: queries of the second are larger. */
static bool open_cache(struct cache *c, const char *backend, const char *dtype)
{
    if (!cache_open(c, backend, dtype, T))
        return false;
    for (int i = 0; i < T * H * K; i++)
        c->q[1][i] *= 4;
    cache_write(c);
    return true;
}

Test(arkv, is_the_same_on_every_backend)
{
    static const char *const name[] = { "arkv:drop=0.4:window=8", "arkv:drop=0.4:stats=paper:window=8",
                                        "arkv:drop=0.000001:window=8" };
    for (int i = 0; i < 3; i++) {
        struct config config = config_of(name[i]);
        struct cache first;
        cr_assert(open_cache(&first, "reference", "f32"));
        struct made reference = made_of(&first, &config);
        for (int b = 0; b < BACKENDS; b++) {
            struct cache c;
            if (!open_cache(&c, backends[b][0], backends[b][1]))
                continue;
            for (int l = 0; l < L && backends[b][1][0] == 'b'; l++) // its own queries are rounded: take those
                memcpy(first.q[l], c.q[l], T * H * K * sizeof(float));
            cache_write(&first);
            made_release(&reference);
            reference = made_of(&first, &config);
            struct made m = made_of(&c, &config);
            expect_variant(&c, &m, &reference);
            made_release(&m);
            cache_release(&c);
        }
        made_release(&reference);
        cache_release(&first);
    }
}

/* No more tokens than the window, or no more kept: the most recent, all whole. */
Test(arkv, keeps_the_most_recent_of_a_short_context)
{
    static const int want[][2] = { { 1, 1 }, { 16, 8 }, { 20, 10 }, { 32, 16 } };
    struct config config = config_of("arkv:drop=0.5:window=16");

    for (int i = 0; i < 4; i++) {
        struct cache c;
        cache_init(&c, want[i][0]);
        struct made m = made_of(&c, &config);
        cr_assert(m.v.whole[0] == want[i][1] && m.v.rows[0].n == want[i][1] && m.v.packed_frac == 0);
        for (int j = 0; m.v.kept && j < L * G * want[i][1]; j++)
            cr_assert_eq(m.v.kept[j], want[i][0] - want[i][1] + j % want[i][1]);
        made_release(&m);
        cache_release(&c);
    }
}

Test(arkv, scores_once_for_all_drops)
{
    const struct config config[] = { config_of("arkv:drop=0.2:window=8"), config_of("arkv:drop=0.6:window=8") };
    struct made m[2];
    struct cache c;

    cr_assert(open_cache(&c, "reference", "f32"));
    size_t one = configs_score_bytes((const struct config *const[]){ &config[0] }, 1, &c.full.shape, T).kept;
    cr_assert_eq(
        configs_score_bytes((const struct config *const[]){ &config[0], &config[1] }, 2, &c.full.shape, T).kept, one);
    made_all(&c, config, 2, m);
    cr_assert(m[0].v.whole[0] >= m[1].v.whole[0]);
    made_release(&m[0]);
    made_release(&m[1]);
    cache_release(&c);
}

/* ---- payloads ------------------------------------------------------------------------ */

static int32_t ids[T];

static void write_payload(const char *path, const struct variant *v)
{
    static const char digest[] = "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd";
    char tokens[DIGEST_HEX];
    struct err err;

    cr_assert_eq(digest_tokens(ids, T, tokens, &err), 0);
    const struct payload_key key = { .model_digest = digest, .token_digest = tokens, .ids = ids };
    cr_assert_eq(packed_payload_write(path, v, &key, NULL, &err), 0, "%s", err.msg);
}

static const char *at(const struct packed_payload *p, int layer, const char *part)
{
    char name[64];

    snprintf(name, sizeof(name), "layers.%d.%s", layer, part);
    const struct st_tensor *t = safetensors_find(&p->file.st, name);
    return t ? t->at : NULL;
}

static void expect_rows(const struct packed_payload *p, const struct made *m, const char *side)
{
    char name[2][16];

    snprintf(name[0], sizeof(name[0]), "%s_codes", side);
    snprintf(name[1], sizeof(name[1]), "%s_scales", side);
    for (int h = 0; h < L * G; h++) {
        int n = m->v.rows[h].n, whole = m->v.whole[h / G], packed = n - whole, g = h % G;
        const float *rows = *side == 'k' ? m->k[h] : m->rows_v[h];
        cr_assert_eq(packed_payload_whole(p, h / G), whole);
        for (int i = 0; i < packed * K; i++) {
            uint16_t scale;
            memcpy(&scale, at(p, h / G, name[1]) + 2 * (g * packed + i / K), 2);
            uint8_t code = (uint8_t)at(p, h / G, name[0])[g * packed * K + i];
            cr_assert_eq(e4m3_to_f32(code) * f16_to_f32(scale), rows[i]);
        }
        for (int i = 0; i < whole * K; i++) {
            uint16_t b;
            memcpy(&b, at(p, h / G, side) + 2 * (g * whole * K + i), 2);
            cr_assert_eq(bf16_to_f32(b), rows[packed * K + i]);
        }
    }
}

Test(arkv, payloads_hold_whole_and_packed_rows)
{
    struct config config = config_of("arkv:drop=0.4:window=8");
    char path[] = "/tmp/evp-arkv-XXXXXX";
    struct packed_payload p;
    struct cache c;
    struct err err;

    close(mkstemp(path));
    cr_assert(open_cache(&c, "reference", "f32"));
    struct made m = made_of(&c, &config);
    write_payload(path, &m.v);
    cr_assert_eq(packed_payload_open(&p, path, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
    cr_assert(p.bytes == m.v.bytes && !at(&p, 0, "positions"));
    expect_rows(&p, &m, "k");
    expect_rows(&p, &m, "v");
    packed_payload_close(&p);
    made_release(&m);
    cache_release(&c);
    unlink(path);
}

/* As many rows are whole as the window, or more, and no more than are kept. */
Test(arkv, payloads_with_other_rows_are_refused)
{
    static const char *const says =
        "does not have the 54 to 54 rows of each head that arkv:drop=0.4:window=60 keeps whole";
    struct config config = config_of("arkv:drop=0.4:window=10");
    char path[] = "/tmp/evp-arkv-XXXXXX";
    struct packed_payload p;
    struct cache c;
    struct buf bytes = { 0 };
    struct err err;

    close(mkstemp(path));
    cr_assert(open_cache(&c, "reference", "f32"));
    struct made m = made_of(&c, &config);
    write_payload(path, &m.v);
    cr_assert_geq(file_read(&bytes, path, 1 << 24, &err), 0);
    memcpy(memmem(bytes.at, bytes.n, "window=10", 9), "window=60", 9);
    cr_assert_eq(packed_payload_parse(&p, bytes.at, bytes.n, PAYLOAD_HEADER, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, says), "%s", err.msg);
    buf_release(&bytes);
    made_release(&m);
    cache_release(&c);
    unlink(path);
}
