/* compare.c - the list of backends; then arrays with a guard after them; then comparison. */
#include "tests/kernels/compare.h"

#include "codes/half.h"
#include "tests/kernels/fenced.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- backends ----------------------------------------------------------- */

static const struct entry {
    const char *name, *backend, *dtype;
    const char *reference_dtype;
} entries[] = {
    { "cpu f32", "cpu", "f32", "f32" },
    { "cpu bf16", "cpu", "bf16", "bf16" },
    { "cuda f32", "cuda", "f32", "f32" },
    { "cuda bf16", "cuda", "bf16", "bf16" },
    { "fenced f32", "fenced", "f32", "f32" },
    { "fenced bf16", "fenced", "bf16", "bf16" },
    { "reference bf16", "reference", "bf16", "f32" },
};

static enum dtype coarser; // dtype of the pair under test: given numbers have no more bits

struct backend *listed_open(const struct backend_options *o, struct err *why)
{
    const char *plugin = getenv("EVP_CUDA_PLUGIN"), *only = getenv("EVP_TEST_BACKEND");
    bool is_cuda = strcmp(o->name, "cuda") == 0;

    if (only && strcmp(o->name, only) != 0 && strcmp(o->name, "reference") != 0) {
        err_set(why, ERR_DEVICE, "EVP_TEST_BACKEND names '%s' alone", only);
        return NULL;
    }
    if (strcmp(o->name, "fenced") == 0)
        return fenced_open(o->dtype);
    if (is_cuda && !(plugin && *plugin)) {
        err_set(why, ERR_DEVICE, "EVP_CUDA_PLUGIN names no object");
        return NULL;
    }
    struct backend *be = backend_open(o, why);
    cr_assert(be || (why->code == ERR_DEVICE && !is_cuda), "%s %s: %s", o->name, o->dtype, why->msg);
    return be;
}

/* Three threads, so that work is split unevenly. NULL: not on this machine. */
static struct backend *open_entry(const char *name, const char *dtype)
{
    struct err why;

    return listed_open(&(struct backend_options){ .name = name, .dtype = dtype, .n_threads = 3 }, &why);
}

void each_pair(void (*test)(const struct pair *))
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        const struct entry *e = &entries[i];
        if (getenv("EVP_TEST_BACKEND") && strcmp(e->backend, "reference") == 0)
            continue; // it is what the one backend is compared with
        struct pair p = { e->name, open_entry("reference", e->reference_dtype), open_entry(e->backend, e->dtype) };
        coarser = strcmp(e->dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
        if (p.got) {
            test(&p);
            p.got->close(p.got);
        }
        p.want->close(p.want);
    }
}

void on_many_threads(void (*test)(const struct pair *))
{
    enum { MANY = 16 };
    struct err err = { 0 };
    struct pair p = { .name = "cpu f32, many threads",
                      .got = backend_open(&(struct backend_options){ .name = "cpu", .dtype = "f32", .n_threads = MANY },
                                          &err) };

    cr_assert(p.got, "%s", err.msg);
    coarser = DTYPE_F32;
    test(&p);
    p.got->close(p.got);
}

void each_missing(void (*say)(const char *name, const char *why))
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        struct err why;
        struct backend *be = listed_open(
            &(struct backend_options){ .name = entries[i].backend, .dtype = entries[i].dtype, .n_threads = 1 }, &why);
        if (be)
            be->close(be);
        else
            say(entries[i].name, why.msg);
    }
}

/* ---- arrays ------------------------------------------------------------- */

/* What follows arrays that are given and arrays to be written: two values, so that one copied or computed from the
 * other shows. A bf16 has both. */
static const float guard_given = 0x1p100f, guard_made = 7;

static void *must_alloc(struct backend *be, size_t bytes)
{
    struct err err = { 0 };
    void *p = be->alloc(be, bytes, &err);

    cr_assert(p, "%s", err.msg);
    return p;
}

void *bytes_from(struct backend *be, const void *host, size_t bytes)
{
    void *p = must_alloc(be, bytes);

    be->write(be, p, host, bytes);
    return p;
}

/* Takes n numbers and a guard over to the device as `type`. */
static void *to_device(struct backend *be, enum dtype type, const float *host, size_t n, float guard)
{
    size_t bytes = (n + 1) * dtype_size(type);
    char *as = calloc(1, bytes);

    for (size_t i = 0; i <= n; i++) {
        float x = i < n ? host[i] : guard;
        uint16_t half = bf16_from_f32(x);
        if (type == DTYPE_F32)
            memcpy(as + i * sizeof(x), &x, sizeof(x));
        else
            memcpy(as + i * sizeof(half), &half, sizeof(half));
    }
    void *p = bytes_from(be, as, bytes);
    free(as);
    return p;
}

float *host_numbers(const char *name, size_t n)
{
    struct rng rng = rng_named(n, name);
    float *host = calloc(n + 1, sizeof(*host));

    for (size_t i = 0; i < n; i++) { // four uniforms: variance 1/3, made 1
        float x = (float)((rng_unit(&rng) + rng_unit(&rng) + rng_unit(&rng) + rng_unit(&rng) - 2) * 1.7320508);
        host[i] = coarser == DTYPE_BF16 ? bf16_to_f32(bf16_from_f32(x)) : x;
    }
    return host;
}

static void *numbers_as(struct backend *be, enum dtype type, const char *name, size_t n)
{
    float *host = host_numbers(name, n);
    void *p = to_device(be, type, host, n, guard_given);

    free(host);
    return p;
}

float *numbers(struct backend *be, const char *name, size_t n)
{
    return numbers_as(be, DTYPE_F32, name, n);
}

void *stored(struct backend *be, const char *name, size_t n)
{
    return numbers_as(be, be->dtype, name, n);
}

static void *space_as(struct backend *be, enum dtype type, size_t n)
{
    float *host = calloc(n + 1, sizeof(*host));

    for (size_t i = 0; i < n; i++)
        host[i] = NAN;
    void *p = to_device(be, type, host, n, guard_made);
    free(host);
    return p;
}

float *space(struct backend *be, size_t n)
{
    return space_as(be, DTYPE_F32, n);
}

void *stored_space(struct backend *be, size_t n)
{
    return space_as(be, be->dtype, n);
}

float *numbers_from(struct backend *be, const float *host, size_t n)
{
    return to_device(be, DTYPE_F32, host, n, guard_given);
}

void *stored_from(struct backend *be, const float *host, size_t n)
{
    return to_device(be, be->dtype, host, n, guard_given);
}

struct weight *weight_from(struct backend *be, const struct mat *host)
{
    struct mat part = *host;
    struct err err = { 0 };
    size_t n = (size_t)host->rows * (size_t)host->cols;
    const float *from = host->at;
    float *finite = calloc(n, sizeof(*finite));

    for (size_t i = 0; i < n; i++)
        finite[i] = isfinite(from[i]) ? from[i] : 0;
    if (be->checks_weights)
        part.at = finite;
    struct weight *w = be->weight_new(be, &part, 1, &err);
    cr_assert(w, "%s", err.msg);
    for (size_t i = 0; i < n && be->checks_weights; i++)
        if (!isfinite(from[i])) {
            const uint16_t rounded = bf16_from_f32(from[i]);
            const bool bf16 = be->dtype == DTYPE_BF16;
            be->write(be, (char *)w->at + i * dtype_size(be->dtype), bf16 ? (const void *)&rounded : &from[i],
                      dtype_size(be->dtype));
        }
    free(finite);
    return w;
}

int32_t *integers_from(struct backend *be, const int32_t *host, size_t n)
{
    int32_t *guarded = calloc(n + 1, sizeof(*guarded));

    for (size_t i = 0; i < n; i++)
        guarded[i] = host[i];
    memcpy(guarded + n, &guard_made, sizeof(guard_made));
    int32_t *p = bytes_from(be, guarded, (n + 1) * sizeof(*guarded));
    free(guarded);
    return p;
}

int32_t *integers(struct backend *be, const char *name, size_t n, int below)
{
    struct rng rng = rng_named(n, name);
    int32_t *host = calloc(n + 1, sizeof(*host));

    for (size_t i = 0; i < n; i++)
        host[i] = (int32_t)rng_below(&rng, (uint64_t)below);
    int32_t *p = integers_from(be, host, n);
    free(host);
    return p;
}

int32_t *integer_space(struct backend *be, size_t n)
{
    int32_t *host = calloc(n + 1, sizeof(*host));

    for (size_t i = 0; i < n; i++)
        host[i] = INT32_MIN;
    int32_t *p = integers_from(be, host, n);
    free(host);
    return p;
}

void *stored_at(const struct backend *be, void *at, size_t i)
{
    return (char *)at + i * dtype_size(be->dtype);
}

struct mat mat_of(float *at, int rows, int cols)
{
    return (struct mat){ at, DTYPE_F32, rows, cols, cols };
}

struct mat stored_mat(const struct backend *be, void *at, int rows, int cols)
{
    return (struct mat){ at, be->dtype, rows, cols, cols };
}

static void *read_bytes(struct backend *be, const void *device, size_t bytes, const char *what)
{
    struct err err = { 0 };
    void *host = calloc(bytes + 1, 1);

    cr_assert_eq(be->read(be, host, device, bytes, &err), 0, "%s: %s: %s", what, be->name, err.msg);
    return host;
}

static float *read_as(struct backend *be, enum dtype type, const void *device, size_t n, const char *what)
{
    char *host = read_bytes(be, device, (n + 1) * dtype_size(type), what);
    float *out = calloc(n + 1, sizeof(*out));

    for (size_t i = 0; i <= n; i++) {
        uint16_t half;
        memcpy(&half, host + i * dtype_size(type), sizeof(half));
        if (type == DTYPE_F32)
            memcpy(&out[i], host + i * sizeof(*out), sizeof(*out));
        else
            out[i] = bf16_to_f32(half);
    }
    cr_assert(out[n] == guard_given || out[n] == guard_made, "%s: %s: something was written after element %zu", what,
              be->name, n);
    free(host);
    return out;
}

float *read_numbers(struct backend *be, const float *device, size_t n, const char *what)
{
    return read_as(be, DTYPE_F32, device, n, what);
}

float *read_stored(struct backend *be, void *device, size_t n, const char *what)
{
    return read_as(be, be->dtype, device, n, what);
}

int32_t *read_integers(struct backend *be, const int32_t *device, size_t n, const char *what)
{
    int32_t *host = read_bytes(be, device, (n + 1) * sizeof(*host), what);

    cr_assert_eq(memcmp(host + n, &guard_made, sizeof(*host)), 0, "%s: %s: something was written after element %zu",
                 what, be->name, n);
    return host;
}

/* ---- comparison --------------------------------------------------------- */

void same_numbers(const struct pair *p, struct host_results r, struct tolerances within, const char *what)
{
    struct tolerance t = coarser == DTYPE_BF16 ? within.bf16 : within.f32;

    for (size_t i = 0; i < r.n; i++) {
        double w = (double)r.want[i], g = (double)r.got[i];
        bool same = w == g || fabs(w - g) <= t.abs + t.eps * fabs(w); // w == g: both infinite, too
        cr_assert(same, "%s: %s: element %zu of %zu is %.9g, reference %.9g", p->name, what, i, r.n, g, w);
    }
}

static void compare(const struct pair *p, struct results r, const enum dtype type[2], struct tolerances within,
                    const char *what)
{
    float *want = read_as(p->want, type[0], r.want, r.n, what), *got = read_as(p->got, type[1], r.got, r.n, what);

    same_numbers(p, (struct host_results){ want, got, r.n }, within, what);
    cr_assert_eq(want[r.n], got[r.n], "%s: %s: something was written after element %zu", p->name, what, r.n);
    free(want);
    free(got);
    p->want->free(p->want, r.want);
    p->got->free(p->got, r.got);
}

void same_floats(const struct pair *p, struct results r, struct tolerances within, const char *what)
{
    compare(p, r, (enum dtype[]){ DTYPE_F32, DTYPE_F32 }, within, what);
}

void same_stored(const struct pair *p, struct results r, struct tolerances within, const char *what)
{
    compare(p, r, (enum dtype[]){ p->want->dtype, p->got->dtype }, within, what);
}

void same_integers(const struct pair *p, struct results r, const char *what)
{
    int32_t *want = read_integers(p->want, r.want, r.n, what), *got = read_integers(p->got, r.got, r.n, what);

    for (size_t i = 0; i < r.n; i++)
        cr_assert_eq(got[i], want[i], "%s: %s: element %zu of %zu is %d, reference %d", p->name, what, i, r.n, got[i],
                     want[i]);
    free(want);
    free(got);
    p->want->free(p->want, r.want);
    p->got->free(p->got, r.got);
}

void same_bits(struct backend *be, const void *alone, const void *together, size_t bytes, const char *what)
{
    unsigned char *a = read_bytes(be, alone, bytes, what), *t = read_bytes(be, together, bytes, what);

    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(a[i], t[i], "%s %s: %s: byte %zu of %zu differs alone and in company", be->kind,
                     be->dtype == DTYPE_BF16 ? "bf16" : "f32", what, i, bytes);
    free(a);
    free(t);
}

void must_sync(struct backend *be)
{
    struct err err = { 0 };

    cr_assert_eq(be->sync(be, &err), 0, "%s: %s", be->name, err.msg);
}
