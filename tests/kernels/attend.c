/* Attention by spans of all four kinds against the reference; spans and rows that do not know each other. */
#include "tests/kernels/attend_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases -------------------------------------------------------------- */

static const struct attn_case cases[] = {
    { ATTN_TEXT, 1, 1, 64, { { 0, 1, 0, 1 } }, 0 },
    { ATTN_TEXT, 3, 3, 64, { { 0, 24, 0, 24 } }, 0 },
    { ATTN_TEXT, 3, 3, 64, { { 0, 25, 5, 55 } }, 0 },
    { ATTN_TEXT, 1, 8, 16, { { 0, 4, 3, 9 } }, 0 },
    { ATTN_TEXT, 1, 3, 64, { { 0, 200, 0, 200 } }, 0 },
    { ATTN_TEXT, 1, 3, 64, { { 0, 20, 2, 1040 } }, 0 },
    { ATTN_TEXT, 2, 3, 80, { { 0, 5, 10, 2051 } }, 0 },
    { ATTN_TEXT, 1, 1, 128, { { 0, 33, 0, 1030 } }, 0 },
    { ATTN_TEXT, 1, 1, 128, { { 0, 140, 0, 430 } }, 0 },
    { ATTN_TEXT, 2, 2, 32, { { 0, 10, 0, 10 }, { 10, 20, 40, 70 }, { 30, 1, 200, 3 } }, 0 },
    { ATTN_TEXT, 1, 200, 8, { { 0, 2, 0, 9 } }, 0 },
    { ATTN_TEXT, 1, 2, 256, { { 0, 40, 0, 77 } }, 0 },
    { ATTN_TEXT, 2, 1, 200, { { 0, 66, 1, 67 }, { 66, 3, 2, 130 } }, 0 },
    { ATTN_TEXT, 1, 7, 40, { { 0, 23, 1, 90 } }, 0 },
    { ATTN_TEXT, 1, 5, 136, { { 0, 3, 0, 64 } }, 0 },
    { ATTN_TEXT, 1, 1, 100, { { 0, 20, 0, 65 } }, 0 },
    { ATTN_TEXT, 2, 2, 264, { { 0, 9, 0, 40 } }, 0 },
    { ATTN_TEXT, 1, 16, 24, { { 0, 9, 4, 4200 }, { 9, 2, 4, 8193 } }, 0 },
    { ATTN_TEXT, 1, 1, 12, { { 0, 9, 0, 1025 } }, 0 },
    { ATTN_TEXT, 1, 1, 8, { { 0, 1030, 0, 1026 } }, 0 },
    { ATTN_TEXT, 1, 1, 1024, { { 0, 2, 0, 3 } }, 0 },
    { ATTN_TEXT, 1, 2, 64, { { 0, 3, 0, 0 } }, 0 },
    { ATTN_OWN, 1, 1, 64, { { 0, 1, 0, 1 } }, 0 },
    { ATTN_OWN, 2, 3, 64, { { 0, 1, 0, 5 }, { 1, 4, 10, 14 }, { 5, 30, 30, 30 }, { 35, 1, 100, 1100 } }, 0 },
    { ATTN_OWN, 1, 8, 16, { { 0, 5, 0, 9 }, { 5, 64, 20, 90 }, { 69, 1, 9, 1 } }, 0 },
    { ATTN_OWN, 2, 1, 80, { { 0, 33, 0, 40 }, { 33, 2, 50, 1030 } }, 0 },
    { ATTN_OWN, 1, 4, 128, { { 0, 7, 0, 7 }, { 7, 1, 7, 300 } }, 0 },
    { ATTN_OWN, 1, 1, 6, { { 0, 3, 0, 8 } }, 0 },
    { ATTN_OWN, 1, 1, 128, { { 0, 70, 0, 5 }, { 70, 17, 5, 17 } }, 0 },
    { ATTN_OWN, 3, 7, 64, { { 0, 1, 0, 64 }, { 1, 1, 64, 65 }, { 2, 2, 129, 129 }, { 4, 9, 258, 73 } }, 0 },
    { ATTN_SHARED, 1, 1, 64, { { 0, 1, 0, 1 } }, 0 },
    { ATTN_SHARED, 2, 3, 64, { { 0, 17, 0, 1023 } }, 0 },
    { ATTN_SHARED, 2, 3, 64, { { 0, 1, 0, 1024 }, { 1, 5, 1, 1025 }, { 6, 2, 0, 1024 }, { 8, 40, 2, 77 } }, 0 },
    { ATTN_SHARED, 1, 4, 32, { { 0, 20, 0, 2500 } }, 0 },
    { ATTN_SHARED, 3, 1, 80, { { 0, 3, 1, 2 }, { 3, 30, 0, 300 } }, 0 },
    { ATTN_SHARED, 1, 1, 128, { { 0, 193, 0, 33 } }, 0 },
    { ATTN_SHARED, 2, 1, 128, { { 0, 3, 3, 150 }, { 3, 2, 1, 40 } }, 0 },
    { ATTN_SHARED, 2, 3, 128, { { 0, 25, 0, 640 }, { 25, 1, 1, 1100 }, { 26, 4, 2, 129 } }, 0 },
    { ATTN_SHARED, 2, 8, 16, { { 0, 24, 0, 5 }, { 24, 1, 1, 0 } }, 0 },
    { ATTN_SHARED, 1, 2, 16, { { 0, 2, 0, 8192 }, { 2, 9, 1, 8193 } }, 0 },
    { ATTN_SHARED, 3, 1, 256, { { 0, 5, 2, 1100 }, { 5, 65, 0, 20 } }, 0 },
    { ATTN_SHARED, 1, 1, 10, { { 0, 18, 0, 2100 }, { 18, 1, 4, 1 } }, 0 },
    { ATTN_WHOLE, 12, 1, 32, { { 0, 7, 0, 7 }, { 7, 33, 7, 33 }, { 40, 1, 40, 1 } }, 0 },
    { ATTN_WHOLE, 2, 2, 64, { { 0, 9, 3, 1500 }, { 9, 2, 0, 0 } }, 0 },
    { ATTN_WHOLE, 1, 1, 128, { { 0, 40, 0, 129 } }, 0 },
    { ATTN_WHOLE, 1, 3, 192, { { 0, 22, 1, 64 }, { 22, 5, 2, 128 } }, 0 },
    { ATTN_WHOLE, 2, 1, 96, { { 0, 129, 0, 12 }, { 129, 64, 0, 65 } }, 0 },
    { ATTN_TEXT, 2, 3, 64, { { 0, 200, 0, 200 } }, 1 },
    { ATTN_TEXT, 1, 4, 256, { { 0, 70, 3, 1400 } }, 512 },
    { ATTN_TEXT, 2, 2, 32, { { 0, 10, 0, 10 }, { 10, 20, 40, 70 }, { 30, 1, 200, 3000 } }, 17 },
    { ATTN_TEXT, 1, 1, 80, { { 0, 300, 1, 2500 } }, 128 },
    { ATTN_TEXT, 1, 8, 64, { { 0, 50, 0, 2300 }, { 50, 9, 4, 9 } }, 1100 },
    { ATTN_OWN, 2, 3, 64, { { 0, 1, 0, 5 }, { 1, 4, 10, 14 }, { 5, 30, 30, 30 }, { 35, 1, 100, 1100 } }, 20 },
    { ATTN_OWN, 1, 8, 16, { { 0, 5, 0, 9 }, { 5, 64, 20, 90 }, { 69, 1, 9, 1300 } }, 77 },
    { ATTN_OWN, 1, 4, 128, { { 0, 7, 0, 7 }, { 7, 70, 7, 300 } }, 64 },
    { ATTN_SHARED, 2, 3, 64, { { 0, 17, 0, 1023 } }, 12 },
    { ATTN_SHARED, 2, 3, 64, { { 0, 1, 0, 1024 }, { 1, 5, 1, 1025 }, { 6, 2, 0, 1024 }, { 8, 40, 2, 77 } }, 60 },
    { ATTN_SHARED, 1, 4, 32, { { 0, 20, 0, 2500 }, { 20, 3, 1, 2 } }, 1200 },
    { ATTN_SHARED, 1, 1, 256, { { 0, 25, 0, 640 }, { 25, 1, 1, 1100 } }, 512 },
};
enum { N_CASES = sizeof(cases) / sizeof(*cases) };

static void text_of(char out[128], const struct attn_case *c)
{
    static const char *const kinds[] = { "text", "own", "shared", "whole" };
    snprintf(out, 128, "attend %s: %d tokens in %d spans, %d heads of %d rows, %d keys of %d, window %d",
             kinds[c->kind], n_tokens(c), n_spans(c), c->G, c->group, c->spans[0].n_keys, c->K, c->window);
}

/* ---- against the reference ---------------------------------------------- */

static void same_attention(const struct pair *p, const struct attn_case *c, struct attended want, struct attended got)
{
    /* p, the shares, may be rounded to bf16 before they meet the values */
    static const struct tolerances out = { { 2e-5, 2e-5 }, { 1e-2, BF16_EPS } },
                                   part = { { 2e-5, 2e-5 }, { 1e-2, BF16_EPS / 2 } },
                                   lse = { { 2e-5, 2e-6 }, { 1e-4, 1e-5 } };
    int width = c->G * c->group * c->K;
    size_t T = (size_t)n_tokens(c);
    char what[128];

    text_of(what, c);
    if (got.out)
        same_numbers(p, (struct host_results){ want.out, got.out, T * (size_t)(width + PITCH) }, out, what);
    if (got.part)
        same_numbers(p, (struct host_results){ want.part, got.part, T * (size_t)width }, part, what);
    if (got.lse)
        same_numbers(p, (struct host_results){ want.lse, got.lse, T * (size_t)(c->G * c->group) }, lse, what);
}

/* All results, and some of them alone; with sinks; with a cap too. */
static void check_case(const struct pair *p, const struct attn_case *c, float scale, int some)
{
    struct attn_operands on_want = operands_of(p->want, c), on_got = operands_of(p->got, c);

    on_want.job.scale = on_got.job.scale = scale;
    struct attended want = attend_on(p->want, &on_want, c->spans, n_spans(c), ALL);
    struct attended all = attend_on(p->got, &on_got, c->spans, n_spans(c), ALL);
    same_attention(p, c, want, all);
    struct attended part = attend_on(p->got, &on_got, c->spans, n_spans(c), some);
    same_attention(p, c, want, part);
    on_want.job.sinks = on_want.sinks, on_got.job.sinks = on_got.sinks;
    for (int capped = 0; capped <= 1; capped++) {
        on_want.job.cap = on_got.job.cap = capped ? 1.5f : 0;
        struct attended want_more = attend_on(p->want, &on_want, c->spans, n_spans(c), ALL),
                        more = attend_on(p->got, &on_got, c->spans, n_spans(c), ALL);
        same_attention(p, c, want_more, more);
        attended_free(want_more);
        attended_free(more);
    }
    attended_free(want);
    attended_free(all);
    attended_free(part);
    operands_free(p->want, &on_want);
    operands_free(p->got, &on_got);
}

static void check_attend(const struct pair *p)
{
    static const int some[] = { OUT, PART | LSE, LSE, OUT | LSE };

    for (int i = 0; i < N_CASES; i++)
        if (has_heads(p->got, cases[i].K))
            check_case(p, &cases[i], 0.3f, some[i % 4]);
}

Test(kernels, attend)
{
    each_pair(check_attend);
}

/* Scores hundreds apart: weights above 1 would be infinite, so every row's maximum must be that of all its keys. */
static void check_far_apart(const struct pair *p)
{
    static const struct attn_case far[] = {
        { ATTN_WHOLE, 2, 2, 16, { { 0, 30, 0, 3 }, { 30, 3, 0, 70 } }, 0 },
        { ATTN_OWN, 2, 2, 24, { { 0, 40, 0, 40 } }, 0 },
        { ATTN_SHARED, 1, 2, 16, { { 0, 20, 0, 1100 } }, 0 },
        { ATTN_OWN, 1, 3, 64, { { 0, 40, 0, 200 } }, 0 },
        { ATTN_SHARED, 1, 3, 64, { { 0, 20, 0, 1100 } }, 0 },
    };

    for (int i = 0; i < 5; i++)
        check_case(p, &far[i], far[i].K < 64 ? 20 : 3, OUT);
}

Test(kernels, attend_scores_far_apart)
{
    each_pair(check_far_apart);
}

/* An infinite number of the second of three tokens must show in those that see it: a run ends with it. */
static void check_infinite(const struct pair *p)
{
    static const struct attn_case of[] = { { ATTN_TEXT, 1, 1, 64, { { 0, 3, 0, 3 } }, 0 },
                                           { ATTN_OWN, 1, 1, 64, { { 0, 3, 0, 3 } }, 0 } };
    struct backend *be = p->got;

    for (int i = 0; i < 2; i++)
        for (int key = 0; key <= 1; key++) {
            struct attn_operands o = operands_of(be, &of[i]);
            int K = of[i].K, rows = key ? LAYERS * 3 : 3, row = key ? LAYER * 3 + 1 : 1;
            void **at = key ? &o.k : &o.q;
            float *host = read_stored(be, *at, (size_t)(rows * K), "operand");
            host[row * K] = INFINITY;
            be->free(be, *at);
            *at = stored_from(be, host, (size_t)(rows * K));
            o.job.q = o.q, o.job.store.k = o.k;
            struct attended a = attend_on(be, &o, of[i].spans, 1, OUT);
            for (int t = 0; t < 3; t++)
                cr_assert_eq(isfinite(a.out[t * (K + PITCH)]) != 0, t == 0 || (t == 2 && !key), "%s: token %d, %s",
                             p->name, t, key ? "key" : "query");
            attended_free(a);
            free(host);
            operands_free(be, &o);
        }
}

Test(kernels, attend_shows_what_is_not_finite)
{
    each_pair(check_infinite);
}

/* ---- what lies behind a head's rows ------------------------------------------ */

/* Marks the rows of keys and values that the case's spans see. */
static void mark_seen(const struct attn_operands *o, const struct attn_case *c, const struct backend *be, bool *seen)
{
    const size_t row = (size_t)c->K * dtype_size(be->dtype);

    for (int s = 0; s < n_spans(c); s++)
        for (int g = 0; g < c->G; g++) {
            size_t head = (size_t)(LAYER * c->G + g), n = (size_t)c->spans[s].n_keys;
            size_t first = head * o->job.store.head_rows + (size_t)c->spans[s].first;
            if (c->kind == ATTN_SHARED) {
                const struct kv_rows *rows = &o->host[(size_t)(c->spans[s].first * LAYERS * c->G) + head];
                first = (size_t)((char *)rows->k - (char *)o->k) / row, n = (size_t)rows->n;
            }
            memset(seen + first, 1, n * sizeof(*seen));
        }
}

/* All numbers of rows that are not seen become x. */
static void *replaced(struct backend *be, void *at, const bool *seen, size_t rows, int K, float x)
{
    float *host = read_stored(be, at, rows * (size_t)K, "keys or values");

    for (size_t i = 0; i < rows * (size_t)K; i++)
        host[i] = seen[i / (size_t)K] ? host[i] : x;
    void *changed = stored_from(be, host, rows * (size_t)K);
    be->free(be, at);
    free(host);
    return changed;
}

/* Attention where rows that are not seen hold x: the last ones of every head of a table, and gaps of a store. */
static struct attended attend_beside(struct backend *be, const struct attn_case *c, float x)
{
    enum { CUT = 3 };
    struct attn_operands o = operands_of(be, c);
    const size_t heads = (size_t)(LAYERS * c->G), entries = o.host ? MAX_SPANS * heads : 0;
    size_t rows = heads * o.job.store.head_rows;
    void *k = o.k, *v = o.v;

    for (size_t i = 0; i < entries; i++) {
        rows += (size_t)o.host[i].n;
        o.host[i].n = o.host[i].n > CUT ? o.host[i].n - CUT : 0;
    }
    bool *seen = calloc(rows, sizeof(*seen));
    mark_seen(&o, c, be, seen);
    o.k = replaced(be, k, seen, rows, c->K, x);
    o.v = replaced(be, v, seen, rows, c->K, x);
    for (size_t i = 0; i < entries; i++) {
        o.host[i].k = (char *)o.k + ((char *)o.host[i].k - (char *)k);
        o.host[i].v = (char *)o.v + ((char *)o.host[i].v - (char *)v);
    }
    if (o.host)
        be->write(be, o.device, o.host, entries * sizeof(*o.host));
    o.job.store.k = o.k, o.job.store.v = o.v;
    struct attended a = attend_on(be, &o, c->spans, n_spans(c), ALL);
    free(seen);
    operands_free(be, &o);
    return a;
}

static void check_beside(const struct pair *p)
{
    static const struct attn_case of[] = {
        { ATTN_SHARED, 2, 3, 64, { { 0, 17, 0, 1100 }, { 17, 5, 1, 131 }, { 22, 3, 2, 40 } }, 0 },
        { ATTN_SHARED, 1, 2, 128, { { 0, 70, 0, 300 }, { 70, 1, 1, 131 }, { 71, 2, 2, 3 } }, 0 },
        { ATTN_TEXT, 2, 2, 64, { { 0, 80, 3, 150 }, { 80, 3, 160, 20 }, { 83, 1, 260, 0 } }, 0 },
        { ATTN_TEXT, 1, 2, 128, { { 0, 9, 3, 1050 }, { 9, 1, 1300, 0 } }, 0 },
        { ATTN_WHOLE, 2, 1, 64, { { 0, 9, 5, 100 }, { 9, 2, 120, 1 }, { 11, 1, 300, 0 } }, 0 },
        { ATTN_OWN, 2, 2, 128, { { 0, 9, 5, 100 }, { 9, 1, 110, 65 }, { 10, 1, 300, 0 } }, 0 },
    };

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        const struct attn_case *c = &of[i];
        const size_t T = (size_t)n_tokens(c), H = (size_t)(c->G * c->group), width = H * (size_t)c->K;
        struct attended with_zeros = attend_beside(p->got, c, 0), with_nans = attend_beside(p->got, c, NAN);
        cr_assert(!memcmp(with_zeros.out, with_nans.out, T * (width + PITCH) * sizeof(float)) &&
                      !memcmp(with_zeros.part, with_nans.part, T * width * sizeof(float)) &&
                      !memcmp(with_zeros.lse, with_nans.lse, T * H * sizeof(float)),
                  "%s: case %zu: what lies beside a head changes its results", p->name, i);
        attended_free(with_zeros);
        attended_free(with_nans);
    }
}

Test(kernels, attend_beside_what_is_not_a_number)
{
    each_pair(check_beside);
}

/* Heads that no kernel has are refused before the work starts and, without a plan, by the op. */
static void check_refused(const struct pair *p)
{
    static const int wide[] = { 20, 264 };
    const char *heads =
        p->got->dtype == DTYPE_BF16 ? "256 columns, in bf16 a multiple of 8, not of" : "256 columns, not of";

    for (int i = 0; i < 2; i++) {
        const struct attn_case c = { ATTN_OWN, 1, 1, wide[i], { { 0, 1, 0, 1 } }, 0 };
        const struct work_shape shape = { 1, 1, 1, wide[i], 1, 64, 64, 64, 0, 0, 0, 0, 0 };
        struct err err = { 0 };
        if (has_heads(p->got, wide[i]))
            continue;
        p->got->scratch(p->got, &shape);
        cr_assert(p->got->sync(p->got, &err) == ERR_DEVICE && strstr(err.msg, heads), "%s: %s", p->name, err.msg);
        struct attn_operands o = operands_of(p->got, &c);
        o.job.spans = (struct attn_spans){ .host = c.spans, .n = 1 };
        o.job.lse = space(p->got, 1);
        p->got->attend(p->got, &o.job);
        cr_assert(p->got->sync(p->got, &err) == ERR_DEVICE && strstr(err.msg, heads), "%s: %s", p->name, err.msg);
        p->got->free(p->got, o.job.lse);
        operands_free(p->got, &o);
    }
}

Test(kernels, attend_refuses_other_heads)
{
    each_pair(check_refused);
}

/* ---- alone and in company ----------------------------------------------- */

/* The rows of the span's tokens have the same bits. */
static void same_rows(struct backend *be, const struct attn_operands *o, struct attended alone, struct attended all,
                      const struct attn_span *span)
{
    int n = span->n_rows;
    const struct attn_job *job = &o->job;
    int group = job->n_heads / job->n_kv_heads, width = job->n_heads * job->head_dim;

    for (int t = span->row; t < span->row + n; t++) {
        size_t out = (size_t)t * (size_t)(width + PITCH);
        cr_assert_eq(memcmp(alone.out + out, all.out + out, (size_t)width * sizeof(float)), 0,
                     "%s %s: out of token %d differs alone (with %d) and in company", be->kind,
                     be->dtype == DTYPE_BF16 ? "bf16" : "f32", t, n);
        for (int g = 0; g < job->n_kv_heads; g++) {
            size_t row = ((size_t)g * (size_t)job->n_tokens + (size_t)t) * (size_t)group,
                   part = row * (size_t)job->head_dim, n_part = (size_t)(group * job->head_dim);
            cr_assert_eq(memcmp(alone.part + part, all.part + part, n_part * sizeof(float)), 0,
                         "%s: part of token %d differs alone (with %d) and in company", be->kind, t, n);
            cr_assert_eq(memcmp(alone.lse + row, all.lse + row, (size_t)group * sizeof(float)), 0,
                         "%s: lse of token %d differs alone (with %d) and in company", be->kind, t, n);
        }
    }
}

/* Tokens that are not in the span have what they had before: what attend_on() wrote. */
static void same_others(struct backend *be, const struct attn_operands *o, struct attended alone, struct attn_span span)
{
    const struct attn_job *job = &o->job;
    int group = job->n_heads / job->n_kv_heads, width = job->n_heads * job->head_dim, T = job->n_tokens;
    size_t n_out = (size_t)T * (size_t)(width + PITCH);
    float *before = host_numbers("out", n_out);

    for (int t = 0; t < T; t++) {
        size_t out = (size_t)t * (size_t)(width + PITCH);
        if (t >= span.row && t < span.row + span.n_rows)
            continue;
        cr_assert_eq(memcmp(alone.out + out, before + out, (size_t)width * sizeof(float)), 0,
                     "%s: out of token %d was written", be->kind, t);
        for (int g = 0; g < job->n_kv_heads; g++) {
            size_t row = (size_t)((g * T + t) * group);
            for (int i = 0; i < group; i++)
                cr_assert(isnan(alone.lse[row + (size_t)i]), "%s: lse of token %d was written", be->kind, t);
            for (int i = 0; i < group * job->head_dim; i++)
                cr_assert(isnan(alone.part[row * (size_t)job->head_dim + (size_t)i]),
                          "%s: part of token %d was written", be->kind, t);
        }
    }
    free(before);
}

static void check_spans_alone(const struct pair *p)
{
    struct backend *be = p->got;

    if (strcmp(be->name, "reference") == 0) // it does one row after another
        return;
    for (int i = 0; i < N_CASES; i++) {
        const struct attn_case *c = &cases[i];
        if (!has_heads(be, c->K))
            continue;
        struct attn_operands o = operands_of(be, c);
        struct attended all = attend_on(be, &o, c->spans, n_spans(c), ALL);
        for (int s = 0; s < n_spans(c); s++) {
            struct attended alone = attend_on(be, &o, &c->spans[s], 1, ALL);
            same_rows(be, &o, alone, all, &c->spans[s]);
            same_others(be, &o, alone, c->spans[s]);
            attended_free(alone);
        }
        attended_free(all);
        operands_free(be, &o);
    }
}

Test(kernels, attend_spans_do_not_know_each_other)
{
    each_pair(check_spans_alone);
}

/* Sequences that begin alike, which may have that computed together: as the reference, and with the same bits as alone.
 * Long and short ones, some tokens that see a part of the beginning, tokens in another order, and other beginnings. */
static const struct alike_case {
    struct attn_case c;
    int32_t n_same[MAX_SPANS];
} alike_cases[] = {
    { { ATTN_OWN,
        3,
        3,
        64,
        { { 0, 1, 0, 80 }, { 1, 3, 0, 70 }, { 4, 2, 0, 65 }, { 6, 2, 0, 64 }, { 8, 1, 0, 150 } },
        0 },
      { 0, 66, 64, 64, 64 } },
    { { ATTN_OWN, 2, 4, 128, { { 0, 40, 7, 110 }, { 40, 30, 7, 100 }, { 70, 1, 7, 200 }, { 71, 1, 8, 90 } }, 0 },
      { 0, 70, 99, 0 } },
    { { ATTN_OWN,
        1,
        1,
        16,
        { { 1, 1, 0, 100 }, { 0, 1, 0, 90 }, { 2, 2, 0, 80 }, { 4, 1, 0, 110 }, { 5, 1, 0, 70 } },
        0 },
      { 0, 70, 80, 64, 63 } },
    { { ATTN_OWN, 1, 1, 80, { { 0, 1, 3, 300 }, { 1, 1, 3, 2000 }, { 2, 9, 3, 9 } }, 0 }, { 0, 64, 9 } },
    { { ATTN_OWN,
        1,
        2,
        32,
        { { 0, 1, 0, 65 }, { 1, 1, 0, 64 }, { 2, 1, 0, 65 }, { 3, 1, 1, 99 }, { 4, 1, 1, 90 } },
        0 },
      { 0, 64, 64, 0, 70 } },
    { { ATTN_OWN, 1, 2, 32, { { 0, 1, 0, 80 }, { 1, 2, 0, 90 }, { 3, 1, 0, 65 }, { 4, 1, 0, 91 } }, 90 },
      { 0, 64, 64, 64 } },
};

static void check_alike(const struct pair *p)
{
    struct backend *be = p->got;

    for (size_t i = 0; i < sizeof(alike_cases) / sizeof(*alike_cases); i++) {
        const struct attn_case *c = &alike_cases[i].c;
        struct attn_operands on_want = operands_of(p->want, c), o = operands_of(be, c), alike = o;
        alike.job.spans.n_same = alike_cases[i].n_same;
        struct attended want = attend_on(p->want, &on_want, c->spans, n_spans(c), ALL);
        struct attended all = attend_on(be, &alike, c->spans, n_spans(c), ALL);
        same_attention(p, c, want, all);
        for (int s = 0; s < n_spans(c) && strcmp(be->name, "reference") != 0; s++) {
            struct attended alone = attend_on(be, &o, &c->spans[s], 1, ALL);
            same_rows(be, &o, alone, all, &c->spans[s]);
            attended_free(alone);
        }
        attended_free(want);
        attended_free(all);
        operands_free(p->want, &on_want);
        operands_free(be, &o);
    }
}

Test(kernels, attend_spans_that_begin_alike)
{
    each_pair(check_alike);
}

/* Jobs with the same number have the same spans, but heads with other numbers of keys in another layer. */
static void check_numbers(const struct pair *p)
{
    static const struct attn_case c = {
        ATTN_SHARED, 2, 2, 16, { { 0, 5, 0, 2500 }, { 5, 9, 1, 1030 }, { 14, 2, 2, 7 } }, 0
    };
    static const struct {
        int layer, n;
        uint64_t number;
    } jobs[] = { { 0, 3, 7 }, { 1, 3, 7 }, { 1, 3, 7 }, { 1, 2, 8 }, { 0, 2, 8 } };
    struct attn_operands o = operands_of(p->got, &c);
    struct attended all[2][5];

    for (int numbered = 0; numbered < 2; numbered++)
        for (int i = 0; i < 5; i++) {
            o.job.layer = jobs[i].layer;
            o.job.spans.number = numbered ? jobs[i].number : 0;
            all[numbered][i] = attend_on(p->got, &o, c.spans, jobs[i].n, ALL);
        }
    for (int i = 0; i < 5; i++) {
        for (int s = 0; s < jobs[i].n; s++)
            same_rows(p->got, &o, all[1][i], all[0][i], &c.spans[s]);
        attended_free(all[0][i]);
        attended_free(all[1][i]);
    }
    operands_free(p->got, &o);
}

Test(kernels, attend_spans_have_a_number)
{
    each_pair(check_numbers);
}

/* Little memory for the states of pieces, as scratch() plans it for a few rows, changes no bit: tiles of a long span,
 * and spans, take turns. */
static void check_little_memory(const struct pair *p)
{
    static const struct attn_case c = {
        ATTN_WHOLE,
        1,
        1,
        16,
        { { 0, 1, 0, 7200 }, { 1, 100, 0, 2100 }, { 101, 520, 5, 3 }, { 621, 130, 1, 2050 }, { 751, 200, 3, 2900 } },
        0,
    };
    static const struct work_shape few = { 1, 1, 1, 16, ATTN_SPLIT + 1, 64, 64, 64, 0, 0, 0, 0, 0 };
    struct backend *be = p->got;

    if (strcmp(be->name, "reference") == 0) // it takes no memory
        return;
    struct attn_operands o = operands_of(be, &c);
    struct attended plenty = attend_on(be, &o, c.spans, n_spans(&c), ALL);
    be->scratch(be, &few);
    struct attended little = attend_on(be, &o, c.spans, n_spans(&c), ALL);
    for (int s = 0; s < n_spans(&c); s++)
        same_rows(be, &o, little, plenty, &c.spans[s]);
    attended_free(plenty);
    attended_free(little);
    operands_free(be, &o);
}

Test(kernels, attend_in_little_memory)
{
    each_pair(check_little_memory);
}

/* A sequence's own tokens all at once, in fours, and one by one: each sees the keys up to its own. */
static void check_own_rows(const struct pair *p)
{
    static const struct attn_case sequences[] = {
        { ATTN_OWN, 2, 3, 64, { { 0, 37, 3, 40 } }, 0 },   { ATTN_OWN, 1, 3, 64, { { 0, 37, 0, 1100 } }, 0 },
        { ATTN_OWN, 1, 1, 80, { { 0, 150, 0, 150 } }, 0 }, { ATTN_OWN, 1, 8, 128, { { 0, 21, 0, 1040 } }, 0 },
        { ATTN_OWN, 1, 4, 16, { { 0, 9, 2, 9 } }, 0 },     { ATTN_OWN, 1, 3, 64, { { 0, 37, 0, 1100 } }, 30 },
        { ATTN_OWN, 1, 2, 32, { { 0, 90, 0, 130 } }, 50 },
    };
    struct backend *be = p->got;

    if (strcmp(be->name, "reference") == 0) // it does one row after another
        return;
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
        const struct attn_case *c = &sequences[i];
        struct attn_span whole = c->spans[0];
        struct attn_operands o = operands_of(be, c);
        struct attended all = attend_on(be, &o, &whole, 1, ALL);
        for (int step = 1; step <= 4; step += 3)
            for (int row = 0; row < whole.n_rows; row += step) {
                int n = row + step < whole.n_rows ? step : whole.n_rows - row;
                struct attn_span some = { row, n, whole.first, whole.n_keys - whole.n_rows + row + n };
                struct attended alone = attend_on(be, &o, &some, 1, ALL);
                same_rows(be, &o, alone, all, &some);
                attended_free(alone);
            }
        attended_free(all);
        operands_free(be, &o);
    }
}

Test(kernels, attend_own_rows_do_not_know_each_other)
{
    each_pair(check_own_rows);
}

static void check_shared_case(struct backend *be, const struct attn_case *c)
{
    static const int some[] = { 1, 3, 5, 7, 8 };
    struct attn_span whole = c->spans[0];
    struct attn_operands o = operands_of(be, c);
    struct attended all = attend_on(be, &o, &whole, 1, ALL);

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        int row = i % 2 ? 11 * (int)i : whole.n_rows - some[i]; // somewhere, and at the end
        struct attn_span part = { row, some[i], whole.first, whole.n_keys };
        struct attended alone = attend_on(be, &o, &part, 1, ALL);
        same_rows(be, &o, alone, all, &part);
        attended_free(alone);
    }
    attended_free(all);
    operands_free(be, &o);
}

/* Some rows of those that share a cache, and all of them: 150 query rows, of one head and of three. */
static void check_shared_rows(const struct pair *p)
{
    static const int n_keys[] = { 1, 77, 1023, 1024, 1025, 2500 }, head_dim[] = { 32, 64, 80, 128 };

    if (strcmp(p->got->name, "reference") == 0)
        return;
    for (int k = 0; k < 6; k++)
        for (int d = 0; d < 4; d++)
            for (int group = 1; group <= 3; group += 2)
                for (int window = 0; window <= 900; window += 900)
                    check_shared_case(
                        p->got, &(struct attn_case){
                                    ATTN_SHARED, 1, group, head_dim[d], { { 0, 150 / group, 0, n_keys[k] } }, window });
}

Test(kernels, attend_shared_rows_do_not_know_each_other)
{
    each_pair(check_shared_rows);
}
