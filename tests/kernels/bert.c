/* layernorm and gelu: the formulas against numbers from elsewhere, and every backend against the reference. They are
 * called with f32 whatever the backend's dtype. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static void expect_close(const struct pair *p, float *device, const float *want, size_t n)
{
    float *x = read_numbers(p->got, device, n, "by hand");

    for (size_t i = 0; i < n; i++)
        cr_assert(fabsf(x[i] - want[i]) <= 1e-6f + 1e-6f * fabsf(want[i]), "%s [%zu]: %g, not %g", p->name, i,
                  (double)x[i], (double)want[i]);
    free(x);
    p->got->free(p->got, device);
}

/* From Python's math.erf. */
static void check_gelu_by_hand(const struct pair *p)
{
    const float at[] = { -10, -3, -1, -0.1f, 0, 0.1f, 1, 3, 10 };
    const float want[] = { 0, -0.00404969f, -0.158655254f, -0.0460172163f, 0, 0.0539827837f, 0.841344746f, 2.99595031f,
                           10 };
    float *x = numbers_from(p->got, at, 9);

    p->got->gelu(p->got, mat_of(x, 1, 9));
    expect_close(p, x, want, 9);
}

Test(kernels, gelu_is_the_exact_one)
{
    each_pair(check_gelu_by_hand);
}

/* (x - 2.5) / sqrt(1.25), times w, plus b. */
static void check_layernorm_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float at[] = { 1, 2, 3, 4 }, weights[] = { 1, 1, 2, 1 }, biases[] = { 0, 0, 0, 5 };
    const float want[] = { -1.34164079f, -0.447213595f, 0.894427191f, 6.34164079f };
    float *x = numbers_from(be, at, 4), *w = numbers_from(be, weights, 4), *b = numbers_from(be, biases, 4);

    be->layernorm(be, mat_of(x, 1, 4), mat_of(x, 1, 4), w, b, 1e-12f);
    expect_close(p, x, want, 4);
    be->free(be, w);
    be->free(be, b);
}

Test(kernels, layernorm_takes_the_variance_of_the_row)
{
    each_pair(check_layernorm_by_hand);
}

static void check_shapes(const struct pair *p)
{
    static const struct {
        int rows, cols, pitch;
    } shape[] = { { 1, 384, 384 }, { 37, 384, 400 },  { 9, 1536, 1536 }, { 3, 31, 33 },
                  { 2, 1, 1 },     { 2, 4104, 4104 }, { 3, 2051, 2051 } };
    const struct tolerances within = { { 1e-5, 1e-5 }, { 1e-5, 1e-5 } };

    for (size_t s = 0; s < sizeof(shape) / sizeof(*shape); s++) {
        size_t n = (size_t)(shape[s].rows * shape[s].pitch), cols = (size_t)shape[s].cols;
        struct results r = { .n = n };
        for (int side = 0; side < 2; side++) {
            struct backend *be = side ? p->got : p->want;
            float *x = numbers(be, "x", n), *w = numbers(be, "w", cols), *b = numbers(be, "b", cols);
            struct mat m = { x, DTYPE_F32, shape[s].rows, shape[s].cols, shape[s].pitch };
            be->gelu(be, m);
            be->layernorm(be, m, m, w, b, 1e-12f);
            *(side ? &r.got : &r.want) = x;
            be->free(be, w);
            be->free(be, b);
        }
        same_floats(p, r, within, "gelu, layernorm"); // what is between the rows was left alone too
    }
}

Test(kernels, gelu_and_layernorm)
{
    each_pair(check_shapes);
}
