/* Attention per key: sums, means and the largest over rows of a text, whole and in chunks. */
#include "tests/kernels/attend_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* Kv heads, query heads of each, head columns, tokens, keys: the tokens are the last ones of the text. */
static const struct window {
    int G, group, K, tokens, n;
} windows[] = {
    { 1, 1, 16, 1, 1 },     { 1, 1, 16, 65, 65 },  { 2, 1, 20, 5, 5 },    { 3, 3, 64, 64, 70 },  { 2, 5, 64, 3, 1500 },
    { 1, 1, 16, 31, 40 },   { 2, 1, 16, 32, 40 },  { 2, 3, 16, 11, 40 },  { 1, 4, 80, 9, 1030 }, { 2, 2, 128, 9, 300 },
    { 1, 3, 64, 130, 130 }, { 2, 2, 256, 40, 90 }, { 1, 7, 40, 19, 129 }, { 2, 1, 192, 66, 70 }, { 1, 2, 8, 200, 257 },
    { 2, 2, 32, 9, 5 },     { 1, 16, 96, 9, 33 },  { 1, 1, 300, 17, 31 }, { 1, 2, 136, 33, 64 },
};
enum { N_WINDOWS = sizeof(windows) / sizeof(*windows) };

/* A text with its attention: the job, with lse. Tokens and keys begin at slot FIRST. */
enum { FIRST = 3, MORE = 4 }; // columns are MORE numbers further apart than there are keys

struct text {
    struct attn_job job;
    struct attn_span span;
    void *q, *k, *v;
};

static void text_open(struct text *t, struct backend *be, struct window w)
{
    int H = w.G * w.group, slots = FIRST + w.n;
    size_t n_q = (size_t)(w.tokens * H), n_kv = (size_t)(LAYERS * w.G * slots * w.K);

    *t = (struct text){ .q = stored(be, "q", n_q * (size_t)w.K),
                        .k = stored(be, "k", n_kv),
                        .v = stored(be, "v", n_kv) };
    t->span = (struct attn_span){ 0, w.tokens, FIRST, w.n };
    t->job = (struct attn_job){ .kind = ATTN_TEXT,
                                .q = t->q,
                                .spans = { .host = &t->span, .n = 1 },
                                .store = { t->k, t->v, (size_t)slots },
                                .n_tokens = w.tokens,
                                .n_heads = H,
                                .n_kv_heads = w.G,
                                .head_dim = w.K,
                                .layer = LAYER,
                                .scale = 1 / sqrtf((float)w.K),
                                .cap = w.n % 2 ? 0.7f : 0,
                                .lse = space(be, n_q) };
    be->attend(be, &t->job);
}

static void text_close(struct text *t, struct backend *be)
{
    be->free(be, t->q);
    be->free(be, t->k);
    be->free(be, t->v);
    be->free(be, t->job.lse);
}

static float *columns_on(struct backend *be, struct window w, enum column_stat stat, enum column_into into)
{
    struct text t;
    size_t pitch = (size_t)(w.n + MORE), n = (size_t)w.G * pitch;
    float *column = numbers(be, "column", n);

    text_open(&t, be, w);
    be->column_stats(be, &(struct column_job){ t.job, stat, into, column, pitch });
    text_close(&t, be);
    return column;
}

static void check_column_stats(const struct pair *p)
{
    const struct tolerances within = { { 1e-6, 2e-5 }, { 1e-6, 1e-4 } };

    for (int i = 0; i < N_WINDOWS; i++) {
        struct window w = windows[i];
        if (!has_heads(p->got, w.K))
            continue;
        for (enum column_stat stat = COLUMN_SUM; stat <= COLUMN_MAX; stat++)
            for (enum column_into into = COLUMN_SET; into <= COLUMN_ADD; into++) {
                if (w.n > 100 && (int)stat != i % 3) // the large ones take their time
                    continue;
                struct results r = { columns_on(p->want, w, stat, into), columns_on(p->got, w, stat, into),
                                     (size_t)(w.G * (w.n + MORE)) };
                same_floats(p, r, within, "column_stats");
            }
    }
}

Test(kernels, column_stats)
{
    each_pair(check_column_stats);
}

/* All queries zero: every key that is seen gets the same share. Two tokens, the last key seen by the second alone. */
static void check_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float zero[16] = { 0 }, lse_of[] = { logf(2), logf(3) }, before[] = { 0.25f, 0.25f, 0.5f };
    const double want[][3] = { { 1. / 2 + 1. / 3, 1. / 2 + 1. / 3, 1. / 3 },
                               { (1. / 2 + 1. / 3) / 2, (1. / 2 + 1. / 3) / 2, 1. / 6 },
                               { 1. / 2, 1. / 2, 1. / 3 } };
    void *q = stored_from(be, zero, 16), *k = stored(be, "k", 24);
    float *lse = numbers_from(be, lse_of, 2);
    const struct attn_span span = { 0, 2, 0, 3 };
    const struct attn_job job = { .kind = ATTN_TEXT,
                                  .q = q,
                                  .spans = { .host = &span, .n = 1 },
                                  .store = { k, NULL, 3 },
                                  .n_tokens = 2,
                                  .n_heads = 1,
                                  .n_kv_heads = 1,
                                  .head_dim = 8,
                                  .scale = 1,
                                  .lse = lse };

    for (enum column_stat stat = COLUMN_SUM; stat <= COLUMN_MAX; stat++)
        for (enum column_into into = COLUMN_SET; into <= COLUMN_ADD; into++) {
            float *column = numbers_from(be, before, 3);
            be->column_stats(be, &(struct column_job){ job, stat, into, column, 3 });
            float *got = read_numbers(be, column, 3, "column_stats by hand");
            for (int t = 0; t < 3; t++) {
                double old = (double)before[t], sum = want[stat][t] + old;
                double expected = into == COLUMN_SET   ? want[stat][t]
                                  : stat == COLUMN_MAX ? fmax(want[stat][t], old)
                                                       : sum;
                cr_assert_float_eq((double)got[t], expected, 1e-6, "%s: stat %d, into %d, key %d: %g", p->name,
                                   (int)stat, (int)into, t, (double)got[t]);
            }
            free(got);
            be->free(be, column);
        }
    be->free(be, q);
    be->free(be, k);
    be->free(be, lse);
}

Test(kernels, column_stats_by_hand)
{
    each_pair(check_by_hand);
}

/* The rows of a text in chunks, each added to what the ones before it left, are the whole text's. A chunk sees the
 * keys up to its own end; the columns after them are not touched. */
static void check_chunks(const struct pair *p)
{
    const struct tolerances within = { { 1e-6, 1e-5 }, { 1e-6, 1e-5 } };
    const struct window w = { 2, 3, 64, 70, 1060 };
    static const int ends[] = { 1, 5, 33, 34, 70 };
    struct backend *be = p->got;
    struct text t;

    text_open(&t, be, w);
    for (enum column_stat stat = COLUMN_SUM; stat <= COLUMN_MAX; stat += 2) {
        size_t n = (size_t)(w.G * w.n);
        float *nothing = calloc(n, sizeof(*nothing)), *whole = space(be, n), *chunks = numbers_from(be, nothing, n);
        be->column_stats(be, &(struct column_job){ t.job, stat, COLUMN_SET, whole, (size_t)w.n });
        for (int i = 0, from = 0; i < 5; from = ends[i++]) {
            struct attn_span span = { from, ends[i] - from, FIRST, w.n - w.tokens + ends[i] };
            struct attn_job job = t.job;
            job.spans.host = &span;
            be->column_stats(be, &(struct column_job){ job, stat, COLUMN_ADD, chunks, (size_t)w.n });
        }
        float *want = read_numbers(be, whole, n, "column_stats whole"),
              *got = read_numbers(be, chunks, n, "column_stats in chunks");
        same_numbers(p, (struct host_results){ want, got, n }, within, "column_stats in chunks");
        be->free(be, whole);
        be->free(be, chunks);
        free(nothing);
        free(want);
        free(got);
    }
    text_close(&t, be);
}

Test(kernels, column_stats_in_chunks_are_the_whole)
{
    each_pair(check_chunks);
}

/* Every row that sees a key gives one in all, so the sums over all keys are the number of these rows. */
static void check_total(const struct pair *p)
{
    for (int i = 0; i < N_WINDOWS; i++) {
        struct window w = windows[i];
        if (!has_heads(p->got, w.K))
            continue;
        float *column = columns_on(p->got, w, COLUMN_SUM, COLUMN_SET);
        float *got = read_numbers(p->got, column, (size_t)(w.G * (w.n + MORE)), "column_stats");
        for (int g = 0; g < w.G; g++) {
            double sum = 0, rows = (w.tokens < w.n ? w.tokens : w.n) * w.group;
            for (int t = 0; t < w.n; t++)
                sum += (double)got[g * (w.n + MORE) + t];
            cr_assert(fabs(sum - rows) <= 1e-4 * rows, "%s: %g of %g rows", p->name, sum, rows);
        }
        p->got->free(p->got, column);
        free(got);
    }
}

Test(kernels, column_sums_are_the_rows)
{
    each_pair(check_total);
}
