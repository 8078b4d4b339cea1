/* The compression ops of the cpu backend against the reference, and both against examples worked out by hand. */
#include "kernels/half.h"
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

/* ---- 16-bit floats ------------------------------------------------------ */

/* Between two neighbours the midpoint goes to the even one, anything beside it to the nearer. */
Test(half, f16_rounds_to_nearest_even)
{
    for (uint16_t h = 0; h < 0x7bff; h++) {
        float low = f16_to_f32(h), high = f16_to_f32(h + 1), middle = (low + high) / 2; // exact: f32 has the bits
        cr_assert(low < high && f16_from_f32(low) == h && f16_from_f32(-low) == (h | 0x8000), "%#x", h);
        cr_assert_eq(f16_from_f32(middle), h + (h & 1), "%#x", h);
        cr_assert_eq(f16_from_f32(nextafterf(middle, -1)), h, "%#x", h);
        cr_assert_eq(f16_from_f32(nextafterf(middle, INFINITY)), h + 1, "%#x", h);
    }
    cr_assert_eq(f16_to_f32(0x3c00), 1);
    cr_assert_eq(f16_to_f32(0x0001), 0x1p-24f);
    cr_assert_eq(f16_to_f32(0x7bff), 65504);
    cr_assert_eq(f16_from_f32(65519.996f), 0x7bff);
    cr_assert_eq(f16_from_f32(65520), 0x7c00);
    cr_assert_eq(f16_from_f32_finite(-1e30f), 0xfbff);
    cr_assert(isnan(f16_to_f32(f16_from_f32(NAN))) && isinf(f16_to_f32(f16_from_f32(INFINITY))));
}

Test(half, bf16_rounds_to_nearest_even)
{
    cr_assert_eq(bf16_from_f32(1), 0x3f80);
    cr_assert_eq(bf16_from_f32(1 + 0x1p-8f), 0x3f80); // midpoints
    cr_assert_eq(bf16_from_f32(1 + 0x3p-8f), 0x3f82);
    cr_assert_eq(bf16_from_f32(nextafterf(1 + 0x1p-8f, 2)), 0x3f81);
    cr_assert_eq(bf16_from_f32(3.4028235e38f), 0x7f80); // beyond the largest bf16
    cr_assert(isnan(bf16_to_f32(bf16_from_f32(half_float(0x7f800001)))));
    for (uint32_t b = 0; b < 0x7f80; b++)
        cr_assert_eq(bf16_from_f32(bf16_to_f32((uint16_t)b)), b);
}

/* ---- scores ------------------------------------------------------------- */

static const struct {
    int heads, n, K;
} caches[] = { { 1, 1, 16 },    { 3, 5, 64 },    { 2, 70, 20 },  { 2, 1023, 20 },
               { 3, 1024, 64 }, { 2, 1025, 20 }, { 1, 3, 1024 }, { 2, 2500, 128 } };
enum { N_CACHES = sizeof(caches) / sizeof(*caches) };

/* Heads one after another in the blocks where the first one begins. */
static void heads_of(struct kv_rows *heads, int n_heads, struct kv_rows first, int K)
{
    for (int h = 0; h < n_heads; h++) {
        size_t at = (size_t)h * (size_t)(first.n * K);
        heads[h] = (struct kv_rows){ (float *)first.k + at, first.v ? (float *)first.v + at : NULL, first.n };
    }
}

static float *key_scores(struct backend *be, int i, bool cosines)
{
    int H = caches[i].heads, n = caches[i].n, K = caches[i].K;
    float *k = numbers(be, "k", (size_t)(H * n * K)), *score = space(be, (size_t)(H * n));
    struct kv_rows heads[3];

    heads_of(heads, H, (struct kv_rows){ k, NULL, n }, K);
    (cosines ? be->key_cosines : be->key_norms)(be, score, heads, H, K);
    be->free(be, k);
    return score;
}

Test(kernels, key_scores)
{
    struct backends b = backends_open();

    for (int i = 0; i < N_CACHES; i++) {
        size_t n = (size_t)(caches[i].heads * caches[i].n);
        same_floats(&b, (struct results){ key_scores(b.reference, i, false), key_scores(b.cpu, i, false), n },
                    (struct tolerance){ 0, 1e-6 }, "key_norms");
        same_floats(&b, (struct results){ key_scores(b.reference, i, true), key_scores(b.cpu, i, true), n },
                    (struct tolerance){ 2e-6, 0 }, "key_cosines");
    }
    backends_close(&b);
}

/* The mean direction of (3,4), (0,2), (5,0) is ((.6,.8) + (0,1) + (1,0)) / 3 = (1.6, 1.8) / 3. */
Test(kernels, key_scores_by_hand)
{
    struct backends b = backends_open();
    float k[] = { 3, 4, 0, 2, 5, 0 }, score[3];
    const struct kv_rows head = { k, NULL, 3 };
    const double length = sqrt(1.6 * 1.6 + 1.8 * 1.8),
                 want[] = { -(.6 * 1.6 + .8 * 1.8) / length, -1.8 / length, -1.6 / length };

    for (int i = 0; i < 2; i++) {
        struct backend *be = i ? b.cpu : b.reference;
        be->key_norms(be, score, &head, 1, 2);
        cr_assert(score[0] == -5 && score[1] == -2 && score[2] == -5);
        be->key_cosines(be, score, &head, 1, 2);
        for (int t = 0; t < 3; t++)
            cr_assert_float_eq(score[t], want[t], 1e-6, "%s %d: %g", be->name, t, (double)score[t]);
    }
    backends_close(&b);
}

static const struct {
    int items, tokens, group, n, K;
} windows[] = { { 1, 1, 1, 1, 16 },   { 2, 5, 1, 5, 20 },   { 3, 64, 3, 70, 64 }, { 2, 7, 5, 1500, 64 },
                { 1, 31, 1, 40, 16 }, { 2, 32, 1, 40, 16 }, { 2, 11, 3, 40, 16 } };
enum { N_WINDOWS = sizeof(windows) / sizeof(*windows) };

static float *columns(struct backend *be, int i, bool causal)
{
    int G = windows[i].items, n = windows[i].n, K = windows[i].K, n_q = windows[i].tokens * windows[i].group;
    float *q = numbers(be, "q", (size_t)(G * n_q * K)), *k = numbers(be, "k", (size_t)(G * n * K));
    float *score = space(be, (size_t)(G * n));
    struct attn_item item[3];

    for (int g = 0; g < G; g++)
        item[g] = (struct attn_item){ .q = q + (size_t)g * (size_t)(n_q * K),
                                      .n_q = n_q,
                                      .q_pitch = K,
                                      .group = windows[i].group,
                                      .causal = causal ? n - windows[i].tokens : -1,
                                      .kv = { k + (size_t)g * (size_t)(n * K), NULL, n } };
    be->mean_attention(be, score, item, G, K, 1 / sqrtf((float)K));
    be->free(be, q);
    be->free(be, k);
    return score;
}

Test(kernels, mean_attention)
{
    struct backends b = backends_open();

    for (int i = 0; i < N_WINDOWS; i++)
        for (int causal = 0; causal < 2; causal++)
            same_floats(&b,
                        (struct results){ columns(b.reference, i, causal), columns(b.cpu, i, causal),
                                          (size_t)(windows[i].items * windows[i].n) },
                        (struct tolerance){ 1e-8, 1e-5 }, "mean_attention");
    backends_close(&b);
}

/* All queries zero: every key that is seen gets the same share. Two tokens, the last key seen by the second alone. */
Test(kernels, mean_attention_by_hand)
{
    struct backends b = backends_open();
    float q[4] = { 0 }, k[6] = { 1, 2, 3, 4, 5, 6 }, score[3];
    const struct attn_item item = { .q = q, .n_q = 2, .q_pitch = 2, .group = 1, .causal = 1, .kv = { k, NULL, 3 } };
    const double want[] = { (1. / 2 + 1. / 3) / 2, (1. / 2 + 1. / 3) / 2, 1. / 6 };

    for (int i = 0; i < 2; i++) {
        struct backend *be = i ? b.cpu : b.reference;
        be->mean_attention(be, score, &item, 1, 2, 1);
        for (int t = 0; t < 3; t++)
            cr_assert_float_eq(score[t], want[t], 1e-6);
    }
    backends_close(&b);
}

static float *pooled(struct backend *be, int n, int width)
{
    float *score = numbers(be, "s", (size_t)(3 * (n + 2)));

    be->avg_pool(be, score, 3, n, n + 2, width);
    return score;
}

Test(kernels, avg_pool)
{
    struct backends b = backends_open();
    static const int n[] = { 1, 2, 6, 50, 4200 }, width[] = { 1, 5, 7, 31, 4095 };

    for (int i = 0; i < 5; i++)
        for (int w = 0; w < 5; w++)
            same_floats(&b,
                        (struct results){ pooled(b.reference, n[i], width[w]), pooled(b.cpu, n[i], width[w]),
                                          (size_t)(3 * (n[i] + 2)) },
                        (struct tolerance){ 1e-6, 1e-6 }, "avg_pool");
    for (int i = 0; i < 2; i++) {
        struct backend *be = i ? b.cpu : b.reference;
        float score[] = { 3, 6, 9, 12, 99 };
        be->avg_pool(be, score, 1, 4, 5, 3);
        cr_assert(score[0] == 3 && score[1] == 6 && score[2] == 9 && score[3] == 7 && score[4] == 99, "%s", be->name);
    }
    backends_close(&b);
}

/* ---- selection ---------------------------------------------------------- */

enum { TOP_HEADS = 3 };

/* Scores of few different values, so that many are equal; a nan and a -0 among them. */
static int32_t *best(struct backend *be, int n, int k, int values)
{
    int32_t *whole = integers(be, "score", (size_t)(TOP_HEADS * n), values);
    float *host = calloc((size_t)(TOP_HEADS * n), sizeof(*host)), *score = space(be, (size_t)(TOP_HEADS * n));
    int32_t *kept = integers(be, "kept", (size_t)(TOP_HEADS * k), 2);

    be->read(be, host, whole, (size_t)(TOP_HEADS * n) * sizeof(*whole));
    for (int i = 0; i < TOP_HEADS * n; i++) {
        int32_t v;
        memcpy(&v, &host[i], sizeof(v));
        host[i] = v % 7 == 3 ? -0.0f : (float)(v - values / 2) / 8;
    }
    host[n / 2] = NAN;
    be->write(be, score, host, (size_t)(TOP_HEADS * n) * sizeof(*host));
    be->top_k(be, kept, score, TOP_HEADS, n, k);
    free(host);
    be->free(be, whole);
    be->free(be, score);
    return kept;
}

Test(kernels, top_k)
{
    struct backends b = backends_open();
    static const int n[] = { 1, 2, 9, 100, 700 }, values[] = { 1, 3, 100000 };

    for (int i = 0; i < 5; i++)
        for (int v = 0; v < 3; v++)
            for (int k = 1; k <= n[i]; k += 1 + n[i] / 9)
                same_integers(&b, best(b.reference, n[i], k, values[v]), best(b.cpu, n[i], k, values[v]),
                              (size_t)(TOP_HEADS * k), "top_k");
    backends_close(&b);
}

Test(kernels, top_k_prefers_the_lower_of_equals)
{
    struct backends b = backends_open();
    const float score[] = { 1, 5, 5, -2, 5, 0, -0.0f, 7 };
    int32_t kept[6];

    for (int i = 0; i < 2; i++) {
        struct backend *be = i ? b.cpu : b.reference;
        be->top_k(be, kept, score, 1, 8, 3);
        cr_assert(kept[0] == 1 && kept[1] == 2 && kept[2] == 7, "%s", be->name);
        be->top_k(be, kept, score, 1, 8, 6);
        cr_assert(kept[0] == 0 && kept[3] == 4 && kept[4] == 5 && kept[5] == 7, "%s", be->name);
    }
    backends_close(&b);
}

Test(kernels, gather)
{
    struct backends b = backends_open();
    float k[12], v[12], to_k[8], to_v[8];
    const int32_t kept[] = { 0, 2, 1, 2 };

    for (int i = 0; i < 12; i++) {
        k[i] = (float)i;
        v[i] = (float)-i;
    }
    for (int i = 0; i < 2; i++) {
        struct backend *be = i ? b.cpu : b.reference;
        struct kv_rows src[2], dst[2];
        heads_of(src, 2, (struct kv_rows){ k, v, 3 }, 2);
        heads_of(dst, 2, (struct kv_rows){ to_k, to_v, 2 }, 2);
        be->gather(be, dst, src, kept, 2, 2);
        static const float want[] = { 0, 1, 4, 5, 8, 9, 10, 11 };
        for (int j = 0; j < 8; j++)
            cr_assert(to_k[j] == want[j] && to_v[j] == -want[j], "%s %d", be->name, j);
    }
    backends_close(&b);
}

/* ---- quantising --------------------------------------------------------- */

struct quantised {
    float *x;
    int32_t *codes, *scales, *zeros; // the last two as pairs of f16
};

struct quant_case {
    int rows, cols, bits, group;
};

static struct quantised quantised(struct backend *be, enum quant_lines lines, struct quant_case c)
{
    size_t n = (size_t)(c.rows * c.cols), groups = n / (size_t)c.group;
    struct quantised q = { numbers(be, "x", n), integers(be, "codes", n * (size_t)c.bits / 32, 100),
                           integers(be, "scales", (groups + 1) / 2, 2), integers(be, "zeros", (groups + 1) / 2, 2) };
    const float same[] = { 0.3f, 0.3f, 0.3f }, wild[] = { 1e30f, -1e30f, 1e-9f };

    be->write(be, q.x, c.rows > 64 ? wild : same, sizeof(same));
    const struct quant_item item = { .lines = lines,
                                     .rows = c.rows,
                                     .cols = c.cols,
                                     .bits = c.bits,
                                     .group = c.group,
                                     .x = q.x,
                                     .codes = q.codes,
                                     .scales = (uint16_t *)q.scales,
                                     .zeros = (uint16_t *)q.zeros };
    be->quantise(be, &item, 1);
    be->dequantise(be, &item, 1);
    return q;
}

Test(kernels, quantise)
{
    struct backends b = backends_open();
    static const struct quant_case at[] = {
        { 32, 64, 2, 32 }, { 128, 32, 4, 32 }, { 64, 96, 4, 32 }, { 128, 128, 2, 64 }, { 256, 128, 4, 128 }
    };

    for (int i = 0; i < 5; i++) {
        for (enum quant_lines lines = QUANT_COLUMNS; lines <= QUANT_ROWS; lines++) {
            if (lines == QUANT_ROWS && at[i].cols % at[i].group)
                continue;
            struct quantised q[2];
            for (int j = 0; j < 2; j++)
                q[j] = quantised(j ? b.cpu : b.reference, lines, at[i]);
            size_t n = (size_t)(at[i].rows * at[i].cols), groups = n / (size_t)at[i].group;
            same_floats(&b, (struct results){ q[0].x, q[1].x, n }, (struct tolerance){ 0, 0 }, "dequantised");
            same_integers(&b, q[0].codes, q[1].codes, n * (size_t)at[i].bits / 32, "codes");
            same_integers(&b, q[0].scales, q[1].scales, groups / 2, "scales");
            same_integers(&b, q[0].zeros, q[1].zeros, groups / 2, "zeros");
        }
    }
    backends_close(&b);
}

/* Column c of 32 rows holds c + 0 .. c + 31: zero is c, scale 31 / 3, and code i is i * 3 / 31 rounded. */
Test(kernels, quantise_by_hand)
{
    struct backends b = backends_open();

    for (int j = 0; j < 2; j++) {
        struct backend *be = j ? b.cpu : b.reference;
        float x[64];
        int32_t codes[4];
        uint16_t scales[2], zeros[2];
        for (int i = 0; i < 64; i++)
            x[i] = (float)(i / 2 + i % 2); // two columns
        const struct quant_item item = { QUANT_COLUMNS, 32, 2, 2, 32, x, codes, scales, zeros };
        be->quantise(be, &item, 1);
        be->dequantise(be, &item, 1);
        float scale = f16_to_f32(f16_from_f32(31.0f / 3));
        for (int c = 0; c < 2; c++) {
            cr_assert(f16_to_f32(zeros[c]) == (float)c && f16_to_f32(scales[c]) == scale, "%s", be->name);
            for (int i = 0; i < 32; i++) {
                uint32_t code = (uint32_t)codes[2 * c + i / 16] >> 2 * (i % 16) & 3;
                cr_assert_eq(code, (uint32_t)rintf((float)i / scale), "%s: column %d row %d", be->name, c, i);
                cr_assert_eq(x[2 * i + c], (float)code * scale + (float)c);
            }
        }
    }
    backends_close(&b);
}
