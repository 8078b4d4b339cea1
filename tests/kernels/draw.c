/* Tokens drawn by their probability, and the probability of given ones: against softmax in double, at the borders of
 * tokens and of blocks, and with the same bits on every backend where the logits are exact. */
#include "kernels/softmax.h"

#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double last = 1 - 0x1p-53; // the largest number below 1

/* Against libm: 1 in 1,009 of all floats from 0 to -87. */
Test(kernels, draw_exponential_is_that_of_libm)
{
    uint32_t first = 0x80000000, end = 0xc2ae0000; // -0 and -87
    double worst = 0;

    for (uint32_t bits = first; bits <= end; bits += 1009) {
        float x;
        int exponent;
        memcpy(&x, &bits, sizeof(x));
        double want = exp((double)x);
        frexp(want, &exponent);
        worst = fmax(worst, fabs((double)softmax_exp(x) - want) / ldexp(1, exponent - 24));
    }
    cr_assert(worst > 0.5 && worst < 1.02, "%g ulp", worst);
    cr_assert(softmax_exp(0) == 1 && softmax_exp(-87) > 0);
    cr_assert(softmax_exp(-87.00001f) == 0 && softmax_exp(-3e38f) == 0 && softmax_exp(-INFINITY) == 0);
    cr_assert(softmax_inverse(1e-300) == FLT_MAX && softmax_inverse(1e300) == FLT_MIN && softmax_inverse(4) == 0.25f);
}

/* ---- one list of logits ------------------------------------------------- */

/* Draws n tokens of the same V logits, or judges given ones; logits are exact in every dtype. Free it. */
static struct drawn_token *drawn_from(struct backend *be, const float *logits, int V, int n, const struct draw_job *job)
{
    struct err err = { 0 };
    float *ones = malloc((size_t)n * sizeof(*ones)), *copy = malloc((size_t)V * sizeof(*copy));
    struct drawn_token *drawn = calloc((size_t)n + 1, sizeof(*drawn)), guard = { 12345, 1, 2 };
    size_t bytes = ((size_t)n + 1) * sizeof(*drawn);

    memcpy(copy, logits, (size_t)V * sizeof(*copy));
    struct mat part = mat_of(copy, V, 1);
    struct weight *head = weight_from(be, &part);
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    drawn[n] = guard;
    void *x = stored_from(be, ones, (size_t)n), *out = bytes_from(be, drawn, bytes);
    be->draw(be, out, stored_mat(be, x, n, 1), head, job);
    cr_assert_eq(be->read(be, drawn, out, bytes, &err), 0, "%s", err.msg);
    cr_assert_eq(drawn[n].id, guard.id, "%s: something was written after row %d", be->name, n);
    be->weight_free(be, head);
    be->free(be, x);
    be->free(be, out);
    free(ones);
    free(copy);
    return drawn;
}

static int32_t draw_one(const struct pair *p, const float *logits, int V, double temperature, double unit)
{
    struct drawn_token *d =
        drawn_from(p->got, logits, V, 1, &(struct draw_job){ .unit = &unit, .temperature = temperature });
    int32_t id = d->id;

    free(d);
    return id;
}

enum { FEW = 12 };
static const float few[FEW] = { 1.5f, -2, 0, 3, 2.75f, -9, 0.5f, 2, 1, -1, 3, -30 };

/* What softmax gives each token. */
static void softmax(double *p, const float *logits, int V, double temperature)
{
    double sum = 0;

    for (int i = 0; i < V; i++)
        sum += p[i] = exp((double)logits[i] / temperature);
    for (int i = 0; i < V; i++)
        p[i] /= sum;
}

/* Pearson's statistic of n draws; tokens that are expected less than five times count together. */
static double chi_square(const int count[FEW], const double p[FEW], int n, int *bins)
{
    double sum = 0, rare = 0, rare_seen = 0;

    *bins = 0;
    for (int i = 0; i < FEW; i++) {
        double expected = n * p[i];
        if (expected < 5) {
            rare += expected;
            rare_seen += count[i];
            continue;
        }
        sum += (count[i] - expected) * (count[i] - expected) / expected;
        (*bins)++;
    }
    if (rare >= 5) {
        sum += (rare_seen - rare) * (rare_seen - rare) / rare;
        (*bins)++;
    }
    return sum;
}

static void check_chi_square(const struct pair *p)
{
    enum { N = 2000 };
    static const double temperatures[] = { 0.3, 0.7, 1, 3 };

    for (size_t t = 0; t < sizeof(temperatures) / sizeof(*temperatures); t++) {
        struct rng rng = rng_new(11 + t);
        int count[FEW] = { 0 }, bins;
        double share[FEW], unit[N];
        for (int i = 0; i < N; i++)
            unit[i] = rng_unit(&rng);
        struct drawn_token *d =
            drawn_from(p->got, few, FEW, N, &(struct draw_job){ .unit = unit, .temperature = temperatures[t] });
        for (int i = 0; i < N; i++)
            count[d[i].id]++;
        softmax(share, few, FEW, temperatures[t]);
        double chi = chi_square(count, share, N, &bins);
        // at most 11 degrees of freedom: 31.3 is exceeded by chance once in 1,000 times
        cr_assert_lt(chi, 31.3, "%s: temperature %g: %g over %d bins", p->name, temperatures[t], chi, bins);
        cr_assert_geq(bins, 3);
        free(d);
    }
}

Test(kernels, draw_as_softmax_says)
{
    each_pair(check_chi_square);
}

static void check_parts(const struct pair *p)
{
    double share[FEW], below = 0;

    softmax(share, few, FEW, 0.7);
    for (int i = 0; i < FEW; i++) {
        if (share[i] > 1e-5) {
            cr_assert_eq(draw_one(p, few, FEW, 0.7, below + 1e-3 * share[i]), i, "%s", p->name);
            cr_assert_eq(draw_one(p, few, FEW, 0.7, below + 0.999 * share[i]), i, "%s", p->name);
        }
        below += share[i];
    }
    cr_assert_eq(draw_one(p, few, FEW, 0.7, 0), 0);
    cr_assert_eq(draw_one(p, few, FEW, 100, last), FEW - 1);
    cr_assert_eq(draw_one(p, few, FEW, 1e-6, 0.499), 3, "the first of two largest");
    cr_assert_eq(draw_one(p, few, FEW, 1e-6, 0.501), 10, "the second of them");
    cr_assert_eq(draw_one(p, few, FEW, 1e-6, last), 10);
    cr_assert_eq(draw_one(p, few, FEW, 1e-6, 0), 3, "tokens before have no weight");
}

Test(kernels, draw_gives_each_token_its_part)
{
    each_pair(check_parts);
}

/* V equal logits: token k has the part [k / V, (k + 1) / V), and V is a power of two. The same with every logit but one
 * far below: that one has all, wherever in a block it is. */
static void check_borders(const struct pair *p)
{
    static const int tokens[] = { 0, 1, 510, 511, 512, 513, 1023, 1024, 1536, 4095 };
    enum { V = 4096, N = sizeof(tokens) / sizeof(*tokens) };
    float *logits = calloc(V, sizeof(*logits));
    double unit[2 * N];

    for (int i = 0; i < N; i++) {
        unit[2 * i] = (double)tokens[i] / V;
        unit[2 * i + 1] = tokens[i] == V - 1 ? last : nextafter((double)(tokens[i] + 1) / V, 0);
    }
    struct drawn_token *d =
        drawn_from(p->got, logits, V, 2 * N, &(struct draw_job){ .unit = unit, .temperature = 0.3 });
    for (int i = 0; i < 2 * N; i++)
        cr_assert(d[i].id == tokens[i / 2] && d[i].sum == V && d[i].below == 0, "%s: %a: token %d, not %d; sum %g",
                  p->name, unit[i], d[i].id, tokens[i / 2], d[i].sum);
    free(d);
    for (int i = 0; i < V; i++)
        logits[i] = -128;
    for (int i = 0; i < N; i++) {
        logits[tokens[i]] = 1;
        d = drawn_from(p->got, logits, V, N, &(struct draw_job){ .unit = unit, .temperature = 1 });
        for (int j = 0; j < N; j++)
            cr_assert(d[j].id == tokens[i] && d[j].sum == 1, "%s: token %d, not %d", p->name, d[j].id, tokens[i]);
        free(d);
        logits[tokens[i]] = -128;
    }
    free(logits);
}

Test(kernels, draw_at_the_borders)
{
    each_pair(check_borders);
}

/* The probability of given tokens, from logits over more than one block; at last of capped ones. */
static void check_given(const struct pair *p)
{
    enum { V = 1300 };
    static const int32_t given[] = { 0, 1, 511, 512, 777, 1023, 1024, 1299 };
    enum { N = sizeof(given) / sizeof(*given) };
    static const double temperatures[] = { 0.3, 1, 7 };
    float *logits = host_numbers("logits", V);
    float *capped = host_numbers("logits", V);
    double *share = calloc(V, sizeof(*share));

    for (int i = 0; i < V; i++)
        capped[i] = logits[i] = rintf(16 * logits[i]) / 8;
    for (int t = 0; t < 3; t++) {
        const struct draw_job job = { .given = given, .temperature = temperatures[t], .cap = t == 2 ? 1.25f : 0 };
        for (int i = 0; i < V && t == 2; i++)
            capped[i] = (float)(1.25 * tanh((double)logits[i] / 1.25));
        softmax(share, capped, V, temperatures[t]);
        struct drawn_token *d = drawn_from(p->got, logits, V, N, &job);
        for (int i = 0; i < N; i++) {
            double got = -(double)d[i].below / temperatures[t] - log(d[i].sum), want = log(share[given[i]]);
            cr_assert_eq(d[i].id, given[i]);
            cr_assert_float_eq(got, want, 1e-6, "%s: token %d: %.9g, not %.9g", p->name, given[i], got, want);
        }
        free(d);
    }
    free(share);
    free(logits);
    free(capped);
}

Test(kernels, draw_judges_given_tokens)
{
    each_pair(check_given);
}

/* A logit that is not finite, in the first, the last or some token. */
static void check_not_finite(const struct pair *p)
{
    static const float wrong[] = { NAN, INFINITY, -INFINITY };
    enum { V = 600 };
    float *logits = calloc(V, sizeof(*logits));
    const double unit[] = { 0, 0.5, last };
    const int32_t given[] = { 0, 300, 599 };

    for (int i = 0; i < 9; i++) {
        int at = given[i / 3];
        logits[at] = wrong[i % 3];
        const struct draw_job jobs[] = { { .unit = unit, .temperature = 1 }, { .given = given, .temperature = 1 } };
        for (int j = 0; j < 2; j++) {
            struct drawn_token *d = drawn_from(p->got, logits, V, 3, &jobs[j]);
            for (int t = 0; t < 3; t++)
                cr_assert(d[t].id == -1 && isnan(d[t].sum), "%s: %g at %d: token %d", p->name, (double)logits[at], at,
                          d[t].id);
            free(d);
        }
        logits[at] = 0;
    }
    free(logits);
}

Test(kernels, draw_reports_logits_that_are_not_finite)
{
    each_pair(check_not_finite);
}

/* ---- rows of many shapes ------------------------------------------------ */

/* Rows of x, rows of the output matrix, columns of both. */
static const struct head {
    int rows, vocab, width;
} heads[] = { { 1, 1, 8 },    { 1, 2, 3 },      { 3, 49, 64 },   { 5, 1000, 30 }, { 65, 257, 48 },
              { 4, 512, 16 }, { 600, 131, 20 }, { 2, 4097, 64 }, { 7, 8191, 24 }, { 3, 9000, 8 } };
enum { N_HEADS = sizeof(heads) / sizeof(*heads) };

/* Of rows `first` on, n of them; free it. */
static struct drawn_token *draw_on(struct backend *be, struct head h, float *x, float *head, const struct draw_job *job)
{
    struct err err = { 0 };
    struct drawn_token *drawn = calloc((size_t)h.rows, sizeof(*drawn));
    struct mat part = mat_of(head, h.vocab, h.width);
    struct weight *w = be->weight_new(be, &part, 1, &err);
    cr_assert(w, "%s", err.msg);
    void *stored_x = stored_from(be, x, (size_t)(h.rows * h.width)),
         *out = be->alloc(be, (size_t)h.rows * sizeof(*drawn), &err);

    be->draw(be, out, stored_mat(be, stored_x, h.rows, h.width), w, job);
    cr_assert_eq(be->read(be, drawn, out, (size_t)h.rows * sizeof(*drawn), &err), 0, "%s", err.msg);
    be->weight_free(be, w);
    be->free(be, stored_x);
    be->free(be, out);
    return drawn;
}

struct operands {
    float *x, *head;
    double *unit;
};

/* Small whole numbers, whose products and sums are exact in every dtype and order; `bad`: one row has a nan. */
static struct operands operands_of(struct head h, bool bad)
{
    size_t n_x = (size_t)(h.rows * h.width), n_head = (size_t)(h.vocab * h.width);
    struct operands o = { host_numbers("x", n_x), host_numbers("head", n_head),
                          malloc((size_t)h.rows * sizeof(double)) };
    struct rng rng = rng_new((uint64_t)h.vocab);

    for (size_t i = 0; i < n_x; i++)
        o.x[i] = rintf(o.x[i]);
    for (size_t i = 0; i < n_head; i++)
        o.head[i] = rintf(o.head[i]);
    for (int t = 0; t < h.rows; t++)
        o.unit[t] = t % 7 == 0 ? 0 : t % 7 == 1 ? last : rng_unit(&rng);
    if (bad)
        o.x[h.rows / 2 * h.width] = NAN;
    return o;
}

static void operands_free(struct operands o)
{
    free(o.x);
    free(o.head);
    free(o.unit);
}

static void same_drawn(const char *name, const struct drawn_token *got, const struct drawn_token *want, int n)
{
    for (int t = 0; t < n; t++)
        cr_assert(got[t].id == want[t].id && (got[t].id < 0 || memcmp(&got[t], &want[t], sizeof(*got)) == 0),
                  "%s: row %d of %d: token %d, %g below, sum %a, not %d, %g, %a", name, t, n, got[t].id,
                  (double)got[t].below, got[t].sum, want[t].id, (double)want[t].below, want[t].sum);
}

static void check_same(const struct pair *p)
{
    static const double temperatures[] = { 1e-6, 0.3, 1, 100 };

    for (int i = 0; i < N_HEADS; i++)
        for (int t = 0; t < 4; t++) {
            struct operands o = operands_of(heads[i], t == 1);
            const struct draw_job job = { .unit = o.unit, .temperature = temperatures[t] };
            struct drawn_token *want = draw_on(p->want, heads[i], o.x, o.head, &job),
                               *got = draw_on(p->got, heads[i], o.x, o.head, &job);
            same_drawn(p->name, got, want, heads[i].rows);
            free(want);
            free(got);
            operands_free(o);
        }
}

Test(kernels, draw_the_same_tokens_as_the_reference)
{
    each_pair(check_same);
}

/* The rows of a pass, and some of them alone. */
static void check_rows_alone(const struct pair *p)
{
    struct head h = { 600, 997, 64 };

    if (strcmp(p->got->name, "reference") == 0) // nothing in it knows more than one row
        return;
    struct operands o = operands_of(h, false);
    float *x = host_numbers("other x", (size_t)(h.rows * h.width));
    struct drawn_token *all = draw_on(p->got, h, x, o.head, &(struct draw_job){ .unit = o.unit, .temperature = 0.3 });
    static const int some[] = { 1, 2, 5, 64, 65, 128, 300, 513 };
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        int first = i % 2 ? 600 - some[i] : (int)i;
        struct drawn_token *d = draw_on(p->got, (struct head){ some[i], h.vocab, h.width }, x + first * h.width, o.head,
                                        &(struct draw_job){ .unit = o.unit + first, .temperature = 0.3 });
        same_drawn(p->name, d, all + first, some[i]);
        free(d);
    }
    free(all);
    free(x);
    operands_free(o);
}

Test(kernels, draw_rows_do_not_know_each_other)
{
    each_pair(check_rows_alone);
}

Test(kernels, draw_rows_do_not_know_each_other_on_many_threads)
{
    on_many_threads(check_rows_alone);
}
