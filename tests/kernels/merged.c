/* Attention merged with the result of another job for the same tokens, over other keys. */
#include "tests/kernels/attend_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Attention that is merged with numbers in place of another result; some of its log-sum-exps stand out. */
static void *merged_on(struct backend *be, const struct attn_case *c, float *of_own[2])
{
    struct attn_operands o = operands_of(be, c);
    int T = n_tokens(c), width = c->G * c->group * c->K;
    size_t rows = (size_t)(T * c->G * c->group), n_out = (size_t)T * (size_t)(width + PITCH);
    float *lse = host_numbers("other lse", rows);

    lse[0] = -INFINITY, lse[rows - 1] = 80, lse[rows / 2] = 1000;
    float *other_lse = numbers_from(be, lse, rows), *other_part = numbers(be, "other", rows * (size_t)c->K);
    void *out = stored(be, "out", n_out);
    struct attn_span *device = bytes_from(be, c->spans, MAX_SPANS * sizeof(*device));
    o.job.spans = (struct attn_spans){ .host = c->spans, .device = device, .n = n_spans(c) };
    o.job.out = (struct mat){ out, be->dtype, T, width, width + PITCH };
    o.job.other_part = other_part;
    o.job.other_lse = other_lse;
    if (of_own) {
        o.job.part = of_own[0] = space(be, rows * (size_t)c->K);
        o.job.lse = of_own[1] = space(be, rows);
    }
    be->attend(be, &o.job);
    be->free(be, other_lse);
    be->free(be, other_part);
    be->free(be, device);
    free(lse);
    operands_free(be, &o);
    return out;
}

static const struct attn_case merged_cases[] = {
    { ATTN_OWN, 2, 3, 64, { { 0, 1, 0, 5 }, { 1, 4, 10, 14 }, { 5, 30, 30, 30 }, { 35, 1, 100, 1100 } }, 0 },
    { ATTN_OWN, 1, 1, 128, { { 0, 70, 0, 5 }, { 70, 17, 5, 17 } }, 0 },
    { ATTN_OWN, 1, 4, 80, { { 0, 7, 0, 7 }, { 7, 1, 7, 300 } }, 0 },
    { ATTN_WHOLE, 1, 3, 64, { { 0, 9, 3, 1500 }, { 9, 2, 0, 0 } }, 0 },
    { ATTN_TEXT, 2, 3, 64, { { 0, 90, 40, 1130 } }, 0 },
};

static void check_merged(const struct pair *p)
{
    static const struct tolerances within = { { 2e-5, 2e-5 }, { 1e-2, BF16_EPS } };

    for (size_t i = 0; i < sizeof(merged_cases) / sizeof(*merged_cases); i++) {
        const struct attn_case *c = &merged_cases[i];
        int T = n_tokens(c), width = c->G * c->group * c->K;
        size_t n_out = (size_t)T * (size_t)(width + PITCH);
        same_stored(p, (struct results){ merged_on(p->want, c, NULL), merged_on(p->got, c, NULL), n_out }, within,
                    "merged attention");
    }
}

Test(kernels, merged)
{
    each_pair(check_merged);
}

/* The other results that a merged job writes are those over its own keys alone. */
static void check_merged_parts(const struct pair *p)
{
    for (size_t i = 0; i < sizeof(merged_cases) / sizeof(*merged_cases); i++) {
        const struct attn_case *c = &merged_cases[i];
        struct attn_operands o = operands_of(p->got, c);
        struct attended own = attend_on(p->got, &o, c->spans, n_spans(c), ALL);
        size_t rows = (size_t)(n_tokens(c) * c->G * c->group);
        float *of_own[2];
        p->got->free(p->got, merged_on(p->got, c, of_own));
        float *part = read_numbers(p->got, of_own[0], rows * (size_t)c->K, "part"),
              *lse = read_numbers(p->got, of_own[1], rows, "lse");
        cr_assert_eq(memcmp(part, own.part, rows * (size_t)c->K * sizeof(*part)), 0, "%s: part", p->name);
        cr_assert_eq(memcmp(lse, own.lse, rows * sizeof(*lse)), 0, "%s: lse", p->name);
        free(part);
        free(lse);
        p->got->free(p->got, of_own[0]);
        p->got->free(p->got, of_own[1]);
        attended_free(own);
        operands_free(p->got, &o);
    }
}

Test(kernels, merged_writes_its_own_parts)
{
    each_pair(check_merged_parts);
}

/* Two tokens, one head of eight columns, a query of 0: the first token has one key of value 8, and the other keys'
 * result 4 with the weight of three keys; the second has no key in either. */
static void check_merged_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float zero[16] = { 0 }, value[8] = { 8, 8, 8, 8, 8, 8, 8, 8 }, part[16] = { 4, 4, 4, 4, 4, 4, 4, 4 },
                lse[2] = { logf(3), -INFINITY };
    const struct attn_span spans[] = { { 0, 1, 0, 1 }, { 1, 1, 0, 0 } };
    void *q = stored_from(be, zero, 16), *k = stored_from(be, zero, 8), *v = stored_from(be, value, 8),
         *out = stored_space(be, 16), *device = bytes_from(be, spans, sizeof(spans));
    float *other_part = numbers_from(be, part, 16), *other_lse = numbers_from(be, lse, 2);

    be->attend(be, &(struct attn_job){ .kind = ATTN_OWN,
                                       .q = q,
                                       .spans = { .host = spans, .device = device, .n = 2 },
                                       .store = { k, v, 1 },
                                       .n_tokens = 2,
                                       .n_heads = 1,
                                       .n_kv_heads = 1,
                                       .head_dim = 8,
                                       .scale = 1,
                                       .out = stored_mat(be, out, 2, 8),
                                       .other_part = other_part,
                                       .other_lse = other_lse });
    float *got = read_stored(be, out, 16, "merged by hand");
    for (int i = 0; i < 16; i++)
        cr_assert_float_eq((double)got[i], i < 8 ? 5 : 0, be->dtype == DTYPE_F32 ? 1e-5 : 0.04, "%s: column %d",
                           p->name, i);
    free(got);
    void *all[] = { q, k, v, out, device, other_part, other_lse };
    for (int i = 0; i < 7; i++)
        be->free(be, all[i]);
}

Test(kernels, merged_by_hand)
{
    each_pair(check_merged_by_hand);
}

/* Attention over all keys, and over the same keys in two parts. */
static void check_merged_halves(const struct pair *p)
{
    enum { T = 11, G = 3, GROUP = 3, K = 64, ROWS = T * G * GROUP };
    struct backend *be = p->got;
    const struct attn_case c = { ATTN_WHOLE, G, GROUP, K, { { 0, T, 0, 1300 } }, 0 };
    const struct attn_span first = { 0, T, 0, 1100 }, second = { 0, T, 1100, 200 };
    struct attn_operands o = operands_of(be, &c);
    struct attended whole = attend_on(be, &o, c.spans, 1, OUT);
    float *part = space(be, ROWS * K), *lse = space(be, ROWS);
    void *out = stored_space(be, ROWS * K);
    struct attn_job job = o.job;

    job.spans = (struct attn_spans){ .host = &first, .n = 1 };
    job.part = part;
    job.lse = lse;
    be->attend(be, &job);
    job = o.job;
    job.spans = (struct attn_spans){ .host = &second, .n = 1 };
    job.out = stored_mat(be, out, T, G * GROUP * K);
    job.other_part = part;
    job.other_lse = lse;
    be->attend(be, &job);
    float *merged = read_stored(be, out, ROWS * K, "merged halves");
    for (int t = 0; t < T; t++)
        same_numbers(
            p,
            (struct host_results){ whole.out + t * (G * GROUP * K + PITCH), merged + t * G * GROUP * K, G * GROUP * K },
            (struct tolerances){ { 2e-5, 2e-5 }, { 1e-2, BF16_EPS } }, "merged halves");
    be->free(be, part);
    be->free(be, lse);
    be->free(be, out);
    free(merged);
    attended_free(whole);
    operands_free(be, &o);
}

Test(kernels, merged_halves_are_the_whole)
{
    each_pair(check_merged_halves);
}
