/* Sums over queries, forms of keys, sums of rows: against the reference and by hand. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* Kv heads, query heads of each, head columns, tokens of a pass, and the first that counts. */
static const struct pass {
    int G, group, K, n, first;
} passes[] = { { 1, 1, 16, 1, 0 },  { 1, 1, 16, 1, 1 },   { 2, 3, 64, 31, 4 },    { 1, 4, 64, 32, 0 },
               { 2, 1, 65, 33, 2 }, { 1, 2, 128, 97, 4 }, { 3, 1, 80, 200, 199 }, { 1, 3, 63, 64, 0 },
               { 2, 2, 20, 65, 0 }, { 1, 1, 7, 300, 4 },  { 1, 2, 256, 20, 3 },   { 1, 1, 130, 70, 5 } };
enum { N_PASSES = sizeof(passes) / sizeof(*passes) };

static size_t form_numbers(int heads, int K)
{
    return (size_t)heads * (size_t)(K + 1) * (size_t)K;
}

static float *moments_on(struct backend *be, struct pass of)
{
    int H = of.G * of.group;
    void *q = stored(be, "q", (size_t)(H * of.n * of.K));
    float *into = numbers(be, "into", form_numbers(H, of.K));

    be->moments(be, &(struct moment_job){ q, of.n, of.first, H, of.G, of.K, into });
    must_sync(be);
    be->free(be, q);
    return into;
}

static void check_moments(const struct pair *p)
{
    const struct tolerances within = { { 1e-5, 1e-5 }, { 1e-5, 1e-5 } };

    for (int i = 0; i < N_PASSES; i++)
        same_floats(p,
                    (struct results){ moments_on(p->want, passes[i]), moments_on(p->got, passes[i]),
                                      form_numbers(passes[i].G * passes[i].group, passes[i].K) },
                    within, "moments");
}

Test(kernels, moments)
{
    each_pair(check_moments);
}

/* Two kv heads with two query heads each, two tokens, two columns; token 0 does not count. The last row is the sums. */
static void check_moments_by_hand(const struct pair *p)
{
    enum { HEADS = 4, K = 2, N = 2, NUMBERS = HEADS * (K + 1) * K };
    const float q[] = { 9, 9, 9, 9, 1, 2, 3, 4, 9, 9, 9, 9, 5, 6, 7, 8 }, none[NUMBERS] = { 100 };
    const float want[NUMBERS] = { 101, 2, 2, 4, 1, 2, 9, 12, 12, 16, 3, 4, 25, 30, 30, 36, 5, 6, 49, 56, 56, 64, 7, 8 };
    struct backend *be = p->got;
    void *device = stored_from(be, q, sizeof(q) / sizeof(*q));
    float *into = numbers_from(be, none, NUMBERS);

    be->moments(be, &(struct moment_job){ device, N, 1, HEADS, 2, K, into });
    float *got = read_numbers(be, into, NUMBERS, "moments by hand");
    for (int i = 0; i < NUMBERS; i++)
        cr_assert(got[i] == want[i], "%s: %d: %g, not %g", p->name, i, (double)got[i], (double)want[i]);
    free(got);
    be->free(be, device);
    be->free(be, into);
}

Test(kernels, moments_by_hand)
{
    each_pair(check_moments_by_hand);
}

/* ---- forms --------------------------------------------------------------- */

static float *forms_on(struct backend *be, struct pass of)
{
    int H = of.G * of.group;
    void *k = stored(be, "k", (size_t)(of.G * of.n * of.K));
    float *form = numbers(be, "form", form_numbers(H, of.K)), *score = space(be, (size_t)(H * of.n));
    struct kv_rows heads[3];

    for (int g = 0; g < of.G; g++)
        heads[g] = (struct kv_rows){ stored_at(be, k, (size_t)(g * of.n * of.K)), NULL, of.n };
    be->key_forms(be, score, form, heads, of.G, of.group, of.K);
    must_sync(be);
    be->free(be, k);
    be->free(be, form);
    return score;
}

static void check_forms(const struct pair *p)
{
    for (int i = 0; i < N_PASSES; i++) { // K * K products of about 1, with both signs
        const double abs = 2e-6 * passes[i].K;
        const struct tolerances within = { { abs, 1e-5 }, { abs, 1e-5 } };
        same_floats(p,
                    (struct results){ forms_on(p->want, passes[i]), forms_on(p->got, passes[i]),
                                      (size_t)(passes[i].G * passes[i].group * passes[i].n) },
                    within, "key_forms");
    }
}

Test(kernels, forms_of_keys)
{
    each_pair(check_forms);
}

/* k = (2, 3): 4 a + 6 b + 6 c + 9 d + 2 e + 3 f; and (0, 1): d + f. */
static void check_forms_by_hand(const struct pair *p)
{
    const float keys[] = { 2, 3, 0, 1 }, forms[] = { 1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 0, 0 };
    const float want[] = { 4 + 12 + 18 + 36 + 10 + 18, 4 + 6, 4, 0 };
    struct backend *be = p->got;
    void *k = stored_from(be, keys, 4);
    float *form = numbers_from(be, forms, 12), *score = space(be, 4);

    be->key_forms(be, score, form, &(struct kv_rows){ k, NULL, 2 }, 1, 2, 2);
    float *got = read_numbers(be, score, 4, "forms by hand");
    for (int i = 0; i < 4; i++)
        cr_assert(got[i] == want[i], "%s: %d: %g, not %g", p->name, i, (double)got[i], (double)want[i]);
    free(got);
    be->free(be, k);
    be->free(be, form);
    be->free(be, score);
}

Test(kernels, forms_of_keys_by_hand)
{
    each_pair(check_forms_by_hand);
}

/* ---- rows ---------------------------------------------------------------- */

static float *sums_on(struct backend *be, int rows, int cols)
{
    float *x = numbers(be, "x", (size_t)(rows * cols)), *sum = space(be, (size_t)rows);

    be->abs_sums(be, sum, mat_of(x, rows, cols));
    must_sync(be);
    be->free(be, x);
    return sum;
}

static void check_sums(const struct pair *p)
{
    static const int cols[] = { 1, 7, 16, 31, 576, 2048, 2051 };

    for (int i = 0; i < 7; i++)
        same_floats(p, (struct results){ sums_on(p->want, 9, cols[i]), sums_on(p->got, 9, cols[i]), 9 },
                    (struct tolerances){ { 0, 2e-6 }, { 0, 2e-6 } }, "abs_sums");
}

Test(kernels, abs_sums)
{
    each_pair(check_sums);
}
