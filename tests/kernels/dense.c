/* The dense ops of the cpu backend against the reference, over one table of shapes. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

/* Rows, outputs, inputs. Odd sizes, one row, one column, sizes of the default model and beyond a vector's end. */
static const struct shape {
    int rows, out, in;
} shapes[] = {
    { 1, 2, 3 },    { 1, 7, 5 },    { 3, 64, 48 },   { 2, 65, 33 },    { 17, 40, 96 },
    { 50, 96, 64 }, { 64, 60, 60 }, { 1, 576, 576 }, { 9, 576, 1536 }, { 130, 192, 30 },
};
enum { N_SHAPES = sizeof(shapes) / sizeof(*shapes) };

static const char *text_of(char out[64], const char *op, struct shape s)
{
    snprintf(out, 64, "%s %d x %d x %d", op, s.rows, s.out, s.in);
    return out;
}

/* Runs one product; the right side in two parts, as fused weights are. */
static float *gemm_on(struct backend *be, struct shape s, bool with_bias, enum gemm_into into)
{
    struct err err = { 0 };
    int first = (s.out + 1) / 2;
    size_t n_weights = (size_t)s.out * (size_t)s.in;
    float *host = numbers(be, "w", n_weights); // both backends compute on the host
    struct mat part[2] = { mat_of(host, first, s.in), mat_of(host + first * s.in, s.out - first, s.in) };
    struct weight *w = be->weight_new(be, part, s.out > first ? 2 : 1, DTYPE_F32, &err);
    cr_assert(w, "%s", err.msg);
    float *x = numbers(be, "x", (size_t)s.rows * (size_t)s.in);
    float *bias = numbers(be, "bias", (size_t)s.out), *out = numbers(be, "out", (size_t)s.rows * (size_t)s.out);
    be->gemm(be, mat_of(out, s.rows, s.out), mat_of(x, s.rows, s.in), w, with_bias ? bias : NULL, into);
    be->weight_free(be, w);
    be->free(be, host);
    be->free(be, x);
    be->free(be, bias);
    return out;
}

Test(kernels, gemm)
{
    struct backends b = backends_open();
    char what[64];

    for (int i = 0; i < N_SHAPES; i++)
        for (int bias = 0; bias < 2; bias++)
            for (enum gemm_into into = GEMM_SET; into <= GEMM_ADD; into++)
                same_floats(&b,
                            (struct results){ gemm_on(b.reference, shapes[i], bias, into),
                                              gemm_on(b.cpu, shapes[i], bias, into),
                                              (size_t)shapes[i].rows * (size_t)shapes[i].out },
                            (struct tolerance){ 1e-4, 1e-5 }, text_of(what, "gemm", shapes[i]));
    backends_close(&b);
}

/* A row's result must not depend on how many rows there are. */
Test(kernels, gemm_rows_do_not_know_each_other)
{
    struct backends b = backends_open();
    struct err err = { 0 };
    enum { ROWS = 50, OUT = 192, IN = 576 };
    float *host = numbers(b.cpu, "w", OUT * IN), *x = numbers(b.cpu, "x", ROWS * IN);
    float *all = space(b.cpu, ROWS * OUT), *one = space(b.cpu, OUT);
    struct mat part = mat_of(host, OUT, IN);
    struct weight *w = b.cpu->weight_new(b.cpu, &part, 1, DTYPE_F32, &err);

    b.cpu->gemm(b.cpu, mat_of(all, ROWS, OUT), mat_of(x, ROWS, IN), w, NULL, GEMM_SET);
    for (int i = 0; i < ROWS; i += 7) {
        b.cpu->gemm(b.cpu, mat_of(one, 1, OUT), mat_of(x + i * IN, 1, IN), w, NULL, GEMM_SET);
        cr_assert_eq(b.cpu->sync(b.cpu, &err), 0);
        same_bits(one, all + i * OUT, OUT, "gemm of one row");
    }
    b.cpu->weight_free(b.cpu, w);
    b.cpu->free(b.cpu, host);
    b.cpu->free(b.cpu, x);
    b.cpu->free(b.cpu, all);
    b.cpu->free(b.cpu, one);
    backends_close(&b);
}

static float *embed_on(struct backend *be, struct shape s)
{
    float *table = numbers(be, "table", (size_t)s.out * (size_t)s.in);
    int32_t *ids = integers(be, "ids", (size_t)s.rows, s.out);
    float *out = space(be, (size_t)s.rows * (size_t)s.in);
    be->embed(be, mat_of(out, s.rows, s.in), mat_of(table, s.out, s.in), ids);
    be->free(be, table);
    be->free(be, ids);
    return out;
}

static float *rmsnorm_on(struct backend *be, struct shape s)
{
    float *x = numbers(be, "x", (size_t)s.rows * (size_t)s.in), *w = numbers(be, "w", (size_t)s.in);
    float *out = space(be, (size_t)s.rows * (size_t)s.in);
    be->rmsnorm(be, mat_of(out, s.rows, s.in), mat_of(x, s.rows, s.in), w, 1e-5f);
    be->free(be, x);
    be->free(be, w);
    return out;
}

static float *silu_on(struct backend *be, struct shape s)
{
    float *x = numbers(be, "gate_up", (size_t)s.rows * (size_t)s.in * 2);
    float *out = space(be, (size_t)s.rows * (size_t)s.in);
    x[0] = 200, x[s.in] = 3; // e^-x vanishes; below, for x = -200, it overflows
    if (s.in > 1)
        x[1] = -200;
    be->silu_mul(be, mat_of(out, s.rows, s.in), mat_of(x, s.rows, 2 * s.in));
    be->free(be, x);
    return out;
}

static int32_t *argmax_on(struct backend *be, struct shape s)
{
    float *x = numbers(be, "x", (size_t)s.rows * (size_t)s.in);
    int32_t *id = integers(be, "id", (size_t)s.rows, 1000);
    for (int t = 0; t < s.rows; t++) // two equal ones above all others
        x[t * s.in + s.in / 3] = x[t * s.in + s.in - 1] = 100;
    be->argmax(be, id, mat_of(x, s.rows, s.in));
    be->free(be, x);
    return id;
}

Test(kernels, rows)
{
    struct backends b = backends_open();
    char what[64];

    for (int i = 0; i < N_SHAPES; i++) {
        struct shape s = shapes[i];
        size_t n = (size_t)s.rows * (size_t)s.in;
        same_floats(&b, (struct results){ embed_on(b.reference, s), embed_on(b.cpu, s), n }, (struct tolerance){ 0, 0 },
                    text_of(what, "embed", s));
        same_floats(&b, (struct results){ rmsnorm_on(b.reference, s), rmsnorm_on(b.cpu, s), n },
                    (struct tolerance){ 1e-6, 2e-6 }, text_of(what, "rmsnorm", s));
        same_floats(&b, (struct results){ silu_on(b.reference, s), silu_on(b.cpu, s), n },
                    (struct tolerance){ 1e-6, 2e-6 }, text_of(what, "silu_mul", s));
        same_integers(&b, argmax_on(b.reference, s), argmax_on(b.cpu, s), (size_t)s.rows, text_of(what, "argmax", s));
    }
    backends_close(&b);
}

/* Query heads, kv heads, head columns, tokens. */
static const struct heads {
    int H, G, K, T;
} heads[] = { { 1, 1, 2, 1 }, { 9, 3, 64, 5 }, { 4, 4, 32, 20 }, { 8, 2, 6, 3 }, { 6, 1, 128, 9 } };

struct roped {
    float *q, *k, *v;
};

static struct roped rope_on(struct backend *be, struct heads s)
{
    enum { POSITIONS = 50, ROWS = 30 };
    size_t n_q = (size_t)(s.H * s.T * s.K), n_kv = (size_t)(s.G * ROWS * s.K), n_angles = (size_t)(POSITIONS * s.K / 2);
    struct roped r = { space(be, n_q), numbers(be, "k", n_kv), numbers(be, "v", n_kv) };
    float *qkv = numbers(be, "qkv", (size_t)(s.T * (s.H + 2 * s.G) * s.K));
    float *cos = numbers(be, "cos", n_angles), *sin = numbers(be, "sin", n_angles);
    int32_t *position = integers(be, "position", (size_t)s.T, POSITIONS),
            *slot = integers(be, "slot", (size_t)s.T, ROWS);
    for (int t = 0; t < s.T; t++) // no slot twice
        slot[t] = (slot[0] + t) % ROWS;
    be->rope(be, &(struct rope_job){ .qkv = mat_of(qkv, s.T, (s.H + 2 * s.G) * s.K),
                                     .position = position,
                                     .slot = slot,
                                     .cos = cos,
                                     .sin = sin,
                                     .q = r.q,
                                     .k = r.k,
                                     .v = r.v,
                                     .head_rows = ROWS,
                                     .n_heads = s.H,
                                     .n_kv_heads = s.G,
                                     .head_dim = s.K });
    be->free(be, qkv);
    be->free(be, cos);
    be->free(be, sin);
    be->free(be, position);
    be->free(be, slot);
    return r;
}

Test(kernels, rope)
{
    struct backends b = backends_open();

    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        struct heads s = heads[i];
        struct roped want = rope_on(b.reference, s), got = rope_on(b.cpu, s);
        same_floats(&b, (struct results){ want.q, got.q, (size_t)(s.H * s.T * s.K) }, (struct tolerance){ 1e-6, 1e-6 },
                    "rope q");
        same_floats(&b, (struct results){ want.k, got.k, (size_t)(s.G * 30 * s.K) }, (struct tolerance){ 1e-6, 1e-6 },
                    "rope k");
        same_floats(&b, (struct results){ want.v, got.v, (size_t)(s.G * 30 * s.K) }, (struct tolerance){ 0, 0 },
                    "rope v");
    }
    backends_close(&b);
}
