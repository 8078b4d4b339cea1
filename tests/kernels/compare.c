/* Comparison of backends. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static struct backend *must_open(const char *name)
{
    struct err err = { 0 };
    struct backend *be = backend_open(name, 3, &err);
    cr_assert(be, "%s: %s", name, err.msg);
    return be;
}

struct backends backends_open(void)
{
    return (struct backends){ must_open("reference"), must_open("cpu") };
}

void backends_close(struct backends *b)
{
    b->reference->close(b->reference);
    b->cpu->close(b->cpu);
}

static void *must_alloc(struct backend *be, size_t bytes)
{
    struct err err = { 0 };
    void *p = be->alloc(be, bytes, &err);
    cr_assert(p, "%s", err.msg);
    return p;
}

/* Takes a host array over to the device. */
static void *to_device(struct backend *be, void *host, size_t bytes)
{
    void *p = must_alloc(be, bytes);
    be->write(be, p, host, bytes);
    free(host);
    return p;
}

/* What follows numbers() and space(): two values, so that one copied or computed from the other shows. */
static const float guard_given = 1e30F, guard_made = 7;

static bool is_guard(float x)
{
    return x == guard_given || x == guard_made;
}

float *numbers(struct backend *be, const char *name, size_t n)
{
    struct rng rng = rng_named(n, name);
    float *host = calloc(n + 1, sizeof(*host));
    for (size_t i = 0; i < n; i++) // four uniforms: variance 1/3, made 1
        host[i] = (float)((rng_unit(&rng) + rng_unit(&rng) + rng_unit(&rng) + rng_unit(&rng) - 2) * 1.7320508);
    host[n] = guard_given;
    return to_device(be, host, (n + 1) * sizeof(*host));
}

int32_t *integers(struct backend *be, const char *name, size_t n, int below)
{
    struct rng rng = rng_named(n, name);
    int32_t *host = calloc(n + 1, sizeof(*host));
    for (size_t i = 0; i < n; i++)
        host[i] = (int32_t)rng_below(&rng, (uint64_t)below);
    return to_device(be, host, n * sizeof(*host));
}

float *space(struct backend *be, size_t n)
{
    float *host = calloc(n + 1, sizeof(*host));
    for (size_t i = 0; i < n; i++)
        host[i] = NAN;
    host[n] = guard_made;
    return to_device(be, host, (n + 1) * sizeof(*host));
}

struct mat mat_of(float *at, int rows, int cols)
{
    return (struct mat){ at, DTYPE_F32, rows, cols, cols };
}

static void *to_host(struct backend *be, void *device, size_t bytes, const char *what)
{
    struct err err = { 0 };
    void *host = calloc(bytes + 1, 1);
    be->read(be, host, device, bytes);
    cr_assert_eq(be->sync(be, &err), 0, "%s: %s: %s", what, be->name, err.msg);
    be->free(be, device);
    return host;
}

void same_floats(const struct backends *b, struct results r, struct tolerance within, const char *what)
{
    size_t n = r.n;
    float *want = to_host(b->reference, r.reference, (n + 1) * sizeof(float), what);
    float *got = to_host(b->cpu, r.cpu, (n + 1) * sizeof(float), what);
    for (size_t i = 0; i < n; i++) {
        double w = (double)want[i], g = (double)got[i];
        bool same = w == g || fabs(w - g) <= within.abs + within.eps * fabs(w); // w == g: both infinite, too
        cr_assert(same, "%s: element %zu of %zu is %.9g, reference %.9g", what, i, n, g, w);
    }
    cr_assert(is_guard(want[n]) && want[n] == got[n], "%s: something was written after element %zu", what, n);
    free(want);
    free(got);
}

void same_integers(const struct backends *b, int32_t *reference, int32_t *cpu, size_t n, const char *what)
{
    int32_t *want = to_host(b->reference, reference, n * sizeof(int32_t), what);
    int32_t *got = to_host(b->cpu, cpu, n * sizeof(int32_t), what);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(got[i], want[i], "%s: element %zu is %d, reference %d", what, i, got[i], want[i]);
    free(want);
    free(got);
}

void same_bits(const float *alone, const float *together, size_t n, const char *what)
{
    double eps = __builtin_cpu_supports("avx512f") ? 0 : 1e-5;
    for (size_t i = 0; i < n; i++) {
        double a = (double)alone[i], t = (double)together[i];
        cr_assert(fabs(a - t) <= eps * (1 + fabs(a)), "%s: element %zu is %.9g alone, %.9g in company", what, i, a, t);
    }
}
