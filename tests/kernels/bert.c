/* layernorm and gelu: the formulas against numbers from elsewhere, and every implementation against the reference. */
#include "base/rng.h"
#include "kernels/backend.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static struct backend *open_backend(const char *name)
{
    struct err err;
    struct backend *be = backend_open(name, 2, &err);

    cr_assert(be, "%s", err.msg);
    return be;
}

static void fill(float *x, int n, double scale, uint64_t seed)
{
    struct rng rng = rng_new(seed);

    for (int i = 0; i < n; i++)
        x[i] = (float)(scale * (2 * rng_unit(&rng) - 1));
}

static void expect_close(const float *x, const float *want, int n, double eps)
{
    for (int i = 0; i < n; i++)
        cr_assert(fabs((double)x[i] - (double)want[i]) <= eps + eps * fabs((double)want[i]), "[%d]: %g, not %g", i,
                  (double)x[i], (double)want[i]);
}

/* From Python's math.erf. */
Test(bert_kernels, gelu_is_the_exact_one)
{
    static const char *const backend[] = { "reference", "cpu" };
    const float at[] = { -10, -3, -1, -0.1f, 0, 0.1f, 1, 3, 10 };
    const float want[] = { 0, -0.00404969f, -0.158655254f, -0.0460172163f, 0, 0.0539827837f, 0.841344746f, 2.99595031f,
                           10 };

    for (int b = 0; b < 2; b++) {
        struct backend *be = open_backend(backend[b]);
        float x[9];
        for (int i = 0; i < 9; i++)
            x[i] = at[i];
        be->gelu(be, (struct mat){ x, DTYPE_F32, 1, 9, 9 });
        expect_close(x, want, 9, 1e-6);
        be->close(be);
    }
}

/* (x - 2.5) / sqrt(1.25), times w, plus b. */
Test(bert_kernels, layernorm_takes_the_variance_of_the_row)
{
    static const char *const backend[] = { "reference", "cpu" };
    const float w[] = { 1, 1, 2, 1 }, b[] = { 0, 0, 0, 5 };
    const float want[] = { -1.34164079f, -0.447213595f, 0.894427191f, 6.34164079f };

    for (int i = 0; i < 2; i++) {
        struct backend *be = open_backend(backend[i]);
        float x[] = { 1, 2, 3, 4 };
        struct mat m = { x, DTYPE_F32, 1, 4, 4 };
        be->layernorm(be, m, m, w, b, 1e-12f);
        expect_close(x, want, 4, 1e-6);
        be->close(be);
    }
}

Test(bert_kernels, cpu_agrees_with_the_reference)
{
    static const struct {
        int rows, cols, pitch;
    } shape[] = { { 1, 384, 384 }, { 37, 384, 400 }, { 9, 1536, 1536 }, { 3, 31, 33 }, { 2, 1, 1 } };
    struct backend *be[] = { open_backend("reference"), open_backend("cpu") };

    for (size_t s = 0; s < sizeof(shape) / sizeof(*shape); s++) {
        int n = shape[s].rows * shape[s].pitch, cols = shape[s].cols;
        float *x[2], *w = malloc((size_t)cols * sizeof(float)), *b = malloc((size_t)cols * sizeof(float));
        fill(w, cols, 2, 1);
        fill(b, cols, 2, 2);
        for (int i = 0; i < 2; i++) {
            x[i] = malloc((size_t)n * sizeof(float));
            fill(x[i], n, 6, 3);
            struct mat m = { x[i], DTYPE_F32, shape[s].rows, cols, shape[s].pitch };
            be[i]->gelu(be[i], m);
            be[i]->layernorm(be[i], m, m, w, b, 1e-12f);
        }
        expect_close(x[1], x[0], n, 1e-5); // what is between the rows was left alone too
        for (int i = 0; i < 2; i++)
            free(x[i]);
        free(w);
        free(b);
    }
    be[0]->close(be[0]);
    be[1]->close(be[1]);
}
