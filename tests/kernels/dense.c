/* Products and row by row ops against the reference, over one table of shapes; rows that do not know each other. */
#include "codes/half.h"
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows, outputs, inputs. Odd sizes, one row, one column, sizes of the default model, beyond a vector's end, and more
 * than a cache holds. */
static const struct shape {
    int rows, out, in;
} shapes[] = {
    { 1, 2, 3 },    { 1, 7, 5 },    { 3, 64, 48 },     { 2, 65, 33 },    { 17, 40, 96 },
    { 50, 96, 64 }, { 64, 60, 60 }, { 1, 576, 576 },   { 9, 192, 1536 }, { 130, 192, 30 },
    { 2, 3, 4104 }, { 3, 5, 2051 }, { 400, 33, 2080 },
};
enum { N_SHAPES = sizeof(shapes) / sizeof(*shapes) };

static const char *text_of(char out[64], const char *op, struct shape s)
{
    snprintf(out, 64, "%s %d x %d x %d", op, s.rows, s.out, s.in);
    return out;
}

static size_t count(int rows, int cols)
{
    return (size_t)rows * (size_t)cols;
}

/* ---- products ----------------------------------------------------------- */

/* One weight from two host matrices, as fused weights are made. */
static struct weight *weight_of(struct backend *be, const char *name, int out, int in)
{
    struct err err = { 0 };
    int first = (out + 1) / 2;
    float *host = host_numbers(name, count(out, in));
    struct mat part[2] = { mat_of(host, first, in), mat_of(host + first * in, out - first, in) };
    struct weight *w = be->weight_new(be, part, out > first ? 2 : 1, &err);

    cr_assert(w, "%s", err.msg);
    free(host);
    return w;
}

/* out: f32 or of the backend's dtype; what is added to is f32. */
static void *gemm_on(struct backend *be, struct shape s, bool with_bias, enum gemm_into into, bool as_f32)
{
    struct weight *w = weight_of(be, "w", s.out, s.in);
    void *x = stored(be, "x", count(s.rows, s.in));
    float *bias = numbers(be, "bias", (size_t)s.out);
    void *out = as_f32 ? (void *)numbers(be, "out", count(s.rows, s.out)) : stored_space(be, count(s.rows, s.out));

    be->gemm(be, as_f32 ? mat_of(out, s.rows, s.out) : stored_mat(be, out, s.rows, s.out),
             stored_mat(be, x, s.rows, s.in), w, with_bias ? bias : NULL, into);
    must_sync(be);
    be->weight_free(be, w);
    be->free(be, x);
    be->free(be, bias);
    return out;
}

static void check_gemm(const struct pair *p)
{
    char what[64];

    for (int i = 0; i < N_SHAPES; i++) {
        struct shape s = shapes[i];
        double abs = 1e-4 + 1e-7 * s.in;
        const struct tolerances sums = { { abs, 1e-5 }, { abs, 1e-5 } }, stores = { { abs, 1e-5 }, { 1e-3, BF16_EPS } };
        size_t n = count(s.rows, s.out);
        for (int bias = 0; bias < 2; bias++) {
            for (enum gemm_into into = GEMM_SET; into <= GEMM_ADD; into++)
                same_floats(
                    p,
                    (struct results){ gemm_on(p->want, s, bias, into, true), gemm_on(p->got, s, bias, into, true), n },
                    sums, text_of(what, "gemm", s));
            same_stored(p,
                        (struct results){ gemm_on(p->want, s, bias, GEMM_SET, false),
                                          gemm_on(p->got, s, bias, GEMM_SET, false), n },
                        stores, text_of(what, "gemm", s));
        }
    }
}

Test(kernels, gemm)
{
    each_pair(check_gemm);
}

/* A weight from a file's bytes: every type, at an odd address, rows further apart than they are long. */
static void check_weight_types(const struct pair *p)
{
    enum { OUT = 5, IN = 12, PITCH = 15 };
    static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16 };
    const struct tolerances within = { { 1e-5, 1e-5 }, { 1e-4, 1e-5 } };
    float *host = host_numbers("file", OUT * PITCH);

    for (int i = 0; i < 3; i++) {
        char file[OUT * PITCH * 4 + 1];
        struct results r = { .n = 3 * OUT };
        for (size_t j = 0; j < OUT * PITCH; j++) {
            uint16_t half = types[i] == DTYPE_F16 ? f16_from_f32(host[j]) : bf16_from_f32(host[j]);
            if (types[i] == DTYPE_F32)
                memcpy(file + 1 + j * 4, &host[j], 4);
            else
                memcpy(file + 1 + j * 2, &half, 2);
        }
        for (int side = 0; side < 2; side++) {
            struct backend *be = side ? p->got : p->want;
            struct err err = { 0 };
            struct mat part = { file + 1, types[i], OUT, IN, PITCH };
            struct weight *w = be->weight_new(be, &part, 1, &err);
            cr_assert(w && w->out == OUT && w->in == IN, "%s", err.msg);
            struct weight_bytes bytes = be->weight_bytes(be, OUT, IN);
            cr_assert_geq(bytes.kept, OUT * IN * dtype_size(be->dtype));
            void *x = stored(be, "x", 3 * IN);
            float *out = space(be, 3 * OUT);
            be->gemm(be, mat_of(out, 3, OUT), stored_mat(be, x, 3, IN), w, NULL, GEMM_SET);
            *(side ? &r.got : &r.want) = out;
            be->free(be, x);
            be->weight_free(be, w);
        }
        same_floats(p, r, within,
                    types[i] == DTYPE_F32   ? "F32 file"
                    : types[i] == DTYPE_F16 ? "F16 file"
                                            : "BF16 file");
    }
    free(host);
}

Test(kernels, weights_are_read_in_the_types_of_files)
{
    each_pair(check_weight_types);
}

/* Every width is multiplied rightly or its weight refused: a library's code for some width may be wrong. */
static void check_widths(const struct pair *p)
{
    enum { WIDEST = 130, OUT = 111 };
    static const int rows[] = { 1, 33, 92 };

    for (int in = 1; in <= WIDEST; in++) {
        struct err err = { 0 };
        float *host = host_numbers("w", count(OUT, in));
        const struct mat part = mat_of(host, OUT, in);
        struct weight *w = p->got->weight_new(p->got, &part, 1, &err);
        free(host);
        if (!w) {
            cr_assert(strstr(err.msg, "cannot multiply rows of") && in != 64, "width %d: %s", in, err.msg);
            continue;
        }
        p->got->weight_free(p->got, w);
        for (int i = 0; i < 3; i++) {
            const struct shape s = { rows[i], OUT, in };
            char what[64];
            same_floats(p,
                        (struct results){ gemm_on(p->want, s, false, GEMM_SET, true),
                                          gemm_on(p->got, s, false, GEMM_SET, true), count(rows[i], OUT) },
                        (struct tolerances){ { 1e-4, 1e-5 }, { 1e-4, 1e-5 } }, text_of(what, "gemm", s));
        }
    }
}

Test(kernels, gemm_of_any_width)
{
    each_pair(check_widths);
}

/* A row's result must not depend on how many rows come with it. `out` has ROWS rows. */
static void same_rows(struct backend *be, const struct weight *w, void *x, void *all, bool as_f32)
{
    enum { ROWS = 600 };
    static const int some[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 50, 64, 100, 192, 300, 399, 512, 599 };
    enum dtype type = as_f32 ? DTYPE_F32 : be->dtype;
    size_t row = (size_t)w->out * dtype_size(type);
    void *part = as_f32 ? (void *)space(be, count(ROWS, w->out)) : stored_space(be, count(ROWS, w->out));
    char what[64];

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        int n = some[i], first = i % 2 ? ROWS - n : n % 7; // from the beginning, and to the very end
        struct mat out = { part, type, n, w->out, w->out };
        snprintf(what, sizeof(what), "gemm of %d rows", n);
        be->gemm(be, out, stored_mat(be, stored_at(be, x, count(first, w->in)), n, w->in), w, NULL, GEMM_SET);
        same_bits(be, part, (char *)all + (size_t)first * row, (size_t)n * row, what);
    }
    be->free(be, part);
}

static void check_rows_alone(const struct pair *p)
{
    enum { ROWS = 600 };
    static const struct {
        int out, in;
    } weights[] = { { 192, 576 }, { 96, 1536 }, { 49, 61 }, { 35, 2080 } };
    struct backend *be = p->got;

    if (strcmp(be->name, "reference") == 0) // nothing in it knows more than one row
        return;
    for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++) {
        struct weight *w = weight_of(be, "w", weights[i].out, weights[i].in);
        void *x = stored(be, "x", count(ROWS, w->in)), *all = stored_space(be, count(ROWS, w->out));
        float *all_f32 = space(be, count(ROWS, w->out));
        be->gemm(be, stored_mat(be, all, ROWS, w->out), stored_mat(be, x, ROWS, w->in), w, NULL, GEMM_SET);
        be->gemm(be, mat_of(all_f32, ROWS, w->out), stored_mat(be, x, ROWS, w->in), w, NULL, GEMM_SET);
        same_rows(be, w, x, all, false);
        same_rows(be, w, x, all_f32, true);
        be->weight_free(be, w);
        be->free(be, x);
        be->free(be, all);
        be->free(be, all_f32);
    }
}

Test(kernels, gemm_rows_do_not_know_each_other)
{
    each_pair(check_rows_alone);
}

/* Equal rows give equal results, whatever their places; with a bias, added to what is there. */
static void check_equal_rows(const struct pair *p)
{
    enum { ROWS = 100 };
    static const struct shape of[] = { { 1, 1, 576 }, { 1, 65, 61 }, { 1, 576, 1536 }, { 1, 1000, 64 } };
    struct backend *be = p->got;

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct weight *w = weight_of(be, "w", of[i].out, of[i].in);
        float *row = host_numbers("x", (size_t)w->in), *old = host_numbers("out", (size_t)w->out);
        float *x = space(be, count(ROWS, w->in)), *out = space(be, count(ROWS, w->out));
        float *bias = numbers(be, "bias", (size_t)w->out);
        size_t bytes = (size_t)w->out * sizeof(*out);
        be->repeat(be, x, (size_t)w->in * sizeof(*x), ROWS, row, (size_t)w->in * sizeof(*x));
        be->repeat(be, out, bytes, ROWS, old, bytes);
        be->gemm(be, mat_of(out, ROWS, w->out), mat_of(x, ROWS, w->in), w, bias, GEMM_ADD);
        for (int r = 1; r < ROWS; r++)
            same_bits(be, out, out + count(r, w->out), bytes, "gemm of equal rows");
        be->weight_free(be, w);
        be->free(be, x);
        be->free(be, out);
        be->free(be, bias);
        free(row);
        free(old);
    }
}

Test(kernels, gemm_rows_do_not_know_each_other_on_many_threads)
{
    on_many_threads(check_rows_alone);
    on_many_threads(check_equal_rows);
}

/* ---- row by row --------------------------------------------------------- */

static float *embed_on(struct backend *be, struct shape s, enum dtype type)
{
    float *host = host_numbers("table", count(s.out, s.in));
    uint16_t *half = calloc(count(s.out, s.in), sizeof(*half));

    for (size_t i = 0; i < count(s.out, s.in); i++)
        half[i] = type == DTYPE_F16 ? f16_from_f32(host[i]) : bf16_from_f32(host[i]);
    void *table = bytes_from(be, type == DTYPE_F32 ? (const void *)host : half, count(s.out, s.in) * dtype_size(type));
    int32_t *ids = integers(be, "ids", (size_t)s.rows, s.out);
    float *out = space(be, count(s.rows, s.in));
    be->embed(be, mat_of(out, s.rows, s.in), (struct mat){ table, type, s.out, s.in, s.in }, ids);
    be->free(be, table);
    be->free(be, ids);
    free(host);
    free(half);
    return out;
}

static void *rmsnorm_on(struct backend *be, struct shape s)
{
    float *x = numbers(be, "x", count(s.rows, s.in)), *w = numbers(be, "norm", (size_t)s.in);
    void *out = stored_space(be, count(s.rows, s.in));

    be->rmsnorm(be, stored_mat(be, out, s.rows, s.in), mat_of(x, s.rows, s.in), w, 1e-5f, GEMM_SET);
    be->free(be, x);
    be->free(be, w);
    return out;
}

static void *add_norm_on(struct backend *be, struct shape s)
{
    float *x = numbers(be, "x", count(s.rows, s.in)), *w = numbers(be, "w", (size_t)s.in),
          *out = numbers(be, "out", count(s.rows, s.in));

    be->rmsnorm(be, mat_of(out, s.rows, s.in), mat_of(x, s.rows, s.in), w, 1e-5f, GEMM_ADD);
    be->free(be, x);
    be->free(be, w);
    return out;
}

static void *gate_on(struct backend *be, struct shape s, enum gate gate)
{
    float *host = host_numbers("gate_up", 2 * count(s.rows, s.in));

    host[0] = 200, host[s.in] = 3; // e^-x vanishes; below, for x = -200, it overflows
    if (s.in > 1)
        host[1] = -200;
    void *x = stored_from(be, host, 2 * count(s.rows, s.in)), *out = stored_space(be, count(s.rows, s.in));
    be->gate_mul(be, stored_mat(be, out, s.rows, s.in), stored_mat(be, x, s.rows, 2 * s.in), gate);
    be->free(be, x);
    free(host);
    return out;
}

static void check_row_ops(const struct pair *p)
{
    const struct tolerances within = { { 1e-6, 2e-6 }, { 1e-6, BF16_EPS } };
    const struct tolerances summed = { { 4e-6, 2e-6 }, { 4e-6, BF16_EPS } }; // the sum may be near 0, its terms are not
    char what[64];

    for (int i = 0; i < N_SHAPES; i++) {
        struct shape s = shapes[i];
        size_t n = count(s.rows, s.in);
        for (enum dtype type = DTYPE_F32; type <= DTYPE_BF16; type++)
            same_floats(p, (struct results){ embed_on(p->want, s, type), embed_on(p->got, s, type), n }, EXACT,
                        text_of(what, "embed", s));
        same_stored(p, (struct results){ rmsnorm_on(p->want, s), rmsnorm_on(p->got, s), n }, within,
                    text_of(what, "rmsnorm", s));
        for (enum gate gate = GATE_SILU; gate <= GATE_CLAMPED; gate++)
            same_stored(p, (struct results){ gate_on(p->want, s, gate), gate_on(p->got, s, gate), n }, within,
                        text_of(what, "gate_mul", s));
        same_floats(p, (struct results){ add_norm_on(p->want, s), add_norm_on(p->got, s), n }, summed,
                    text_of(what, "rmsnorm, added", s));
    }
}

Test(kernels, rows)
{
    each_pair(check_row_ops);
}

/* Rows further apart than they are long: what is between them stays. Each matrix in turn, COLS of PITCH columns. */
enum { PITCHED_ROWS = 5, PITCHED_COLS = 40, PITCH = 56 };

static struct mat pitched(struct mat m, bool apart)
{
    m.pitch = apart ? PITCH : m.cols;
    return m;
}

static void run_pitched(struct backend *be, int which, void *out[3])
{
    enum { N = PITCHED_ROWS * 2 * PITCH };
    float *x = numbers(be, "x", N), *w = numbers(be, "w", PITCHED_COLS), *embedded = numbers(be, "out", N);
    void *normed = stored(be, "out", N), *product = stored(be, "out", N), *gate_up = stored(be, "gate_up", 2 * N);
    int32_t *ids = integers(be, "ids", PITCHED_ROWS, PITCHED_ROWS);
    struct mat from = pitched(mat_of(x, PITCHED_ROWS, PITCHED_COLS), which == 0);
    struct mat pair = pitched(stored_mat(be, gate_up, PITCHED_ROWS, 2 * PITCHED_COLS), false);

    pair.pitch += which == 0 ? PITCH : 0;
    be->embed(be, pitched(mat_of(embedded, PITCHED_ROWS, PITCHED_COLS), which == 1), from, ids);
    be->rmsnorm(be, pitched(stored_mat(be, normed, PITCHED_ROWS, PITCHED_COLS), which == 1), from, w, 1e-5f, GEMM_SET);
    be->gate_mul(be, pitched(stored_mat(be, product, PITCHED_ROWS, PITCHED_COLS), which == 1), pair, GATE_SILU);
    must_sync(be);
    void *inputs[] = { x, w, gate_up, ids };
    for (int i = 0; i < 4; i++)
        be->free(be, inputs[i]);
    out[0] = embedded, out[1] = normed, out[2] = product;
}

static void check_pitches(const struct pair *p)
{
    enum { N = PITCHED_ROWS * 2 * PITCH };
    const struct tolerances within = { { 1e-6, 2e-6 }, { 1e-6, BF16_EPS } };

    for (int which = 0; which < 2; which++) {
        void *want[3], *got[3];
        run_pitched(p->want, which, want);
        run_pitched(p->got, which, got);
        same_floats(p, (struct results){ want[0], got[0], N }, EXACT, "embed, rows apart");
        same_stored(p, (struct results){ want[1], got[1], N }, within, "rmsnorm, rows apart");
        same_stored(p, (struct results){ want[2], got[2], N }, within, "gate_mul, rows apart");
    }
}

Test(kernels, rows_may_be_apart)
{
    each_pair(check_pitches);
}

/* ---- queries and keys --------------------------------------------------- */

/* Query heads, kv heads, head columns, tokens. */
static const struct heads {
    int H, G, K, T;
} heads[] = { { 1, 1, 2, 1 },  { 9, 3, 64, 5 },   { 4, 4, 32, 20 },  { 8, 2, 6, 3 },   { 6, 1, 128, 9 },
              { 4, 2, 80, 7 }, { 2, 1, 1024, 2 }, { 3, 1, 528, 25 }, { 1, 1, 16, 29 }, { 2, 1, 40, 3 } };
enum { POSITIONS = 50, SLOTS = 30, LAYERS = 3 };

struct roped {
    void *q, *k, *v;
};

enum norms { NO_NORMS, Q_NORM, K_NORM, BOTH_NORMS };

/* rotary: columns of a head that are rotated; 0: none */
static struct roped rope_on(struct backend *be, struct heads s, int rotary, enum norms norms)
{
    size_t n_q = count(s.T, s.H * s.K), n_kv = count(LAYERS * s.G, SLOTS * s.K), n_angles = count(POSITIONS, s.K / 2);
    struct roped r = { stored_space(be, n_q), stored(be, "k", n_kv), stored(be, "v", n_kv) };
    void *qkv = stored(be, "qkv", count(s.T, (s.H + 2 * s.G) * s.K));
    float *cos = numbers(be, "cos", n_angles), *sin = numbers(be, "sin", n_angles);
    float *q_norm = numbers(be, "q norm", (size_t)s.K), *k_norm = numbers(be, "k norm", (size_t)s.K);
    int32_t *position = integers(be, "position", (size_t)s.T, POSITIONS), slots[SLOTS];

    for (int t = 0; t < s.T; t++) // no slot twice, and not in order
        slots[t] = (11 + 7 * t) % SLOTS;
    int32_t *slot = integers_from(be, slots, (size_t)s.T);
    be->rope(be, &(struct rope_job){ .qkv = stored_mat(be, qkv, s.T, (s.H + 2 * s.G) * s.K),
                                     .position = position,
                                     .slot = slot,
                                     .cos = rotary ? cos : NULL,
                                     .sin = rotary ? sin : NULL,
                                     .rotary = rotary,
                                     .q_norm = norms & Q_NORM ? q_norm : NULL,
                                     .k_norm = norms & K_NORM ? k_norm : NULL,
                                     .norm_eps = 1e-6f,
                                     .q = r.q,
                                     .store = { r.k, r.v, SLOTS },
                                     .layer = LAYERS - 2,
                                     .n_heads = s.H,
                                     .n_kv_heads = s.G,
                                     .head_dim = s.K });
    void *inputs[] = { qkv, cos, sin, q_norm, k_norm, position, slot };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++)
        be->free(be, inputs[i]);
    return r;
}

static void check_rope(const struct pair *p)
{
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        struct heads s = heads[i];
        size_t n_q = count(s.T, s.H * s.K), n_kv = count(LAYERS * s.G, SLOTS * s.K);
        const int columns[] = { 0, s.K, s.K / 4 * 2, s.K > 2 ? 2 : 0, s.K * 3 / 10 * 2 };
        for (int r = 0; r < 5; r++)
            for (enum norms norms = NO_NORMS; norms <= BOTH_NORMS; norms++) {
                int rotary = columns[r];
                /* without either, numbers are moved alone; with them, sums of two products round */
                struct tolerances within = { { 1e-6, 2e-6 }, { 1e-5, BF16_EPS } };
                if (!rotary && norms == NO_NORMS)
                    within = EXACT;
                struct roped want = rope_on(p->want, s, rotary, norms), got = rope_on(p->got, s, rotary, norms);
                same_stored(p, (struct results){ want.q, got.q, n_q }, within, "rope q");
                same_stored(p, (struct results){ want.k, got.k, n_kv }, within, "rope k");
                same_stored(p, (struct results){ want.v, got.v, n_kv }, EXACT, "rope v");
            }
    }
}

Test(kernels, rope)
{
    each_pair(check_rope);
}

/* One head of two columns: (3, 4) has the mean square 12.5; the angle is a right one. */
static void check_rope_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float qkv[] = { 3, 4, 4, 3, 5, 6 }, one[] = { 1, 1 }, two[] = { 2, 1 }, cos[] = { 1, 0 }, sin[] = { 0, 1 };
    const int32_t position[] = { 1 }, slot[] = { 0 };
    const double root = sqrt(12.5), want[] = { -4 / root, 3 / root, -3 / root, 8 / root, 5, 6 };
    void *in = stored_from(be, qkv, 6), *q = stored_space(be, 2), *k = stored_space(be, 2), *v = stored_space(be, 2);
    float *d_one = numbers_from(be, one, 2), *d_two = numbers_from(be, two, 2), *d_cos = numbers_from(be, cos, 2),
          *d_sin = numbers_from(be, sin, 2);
    int32_t *d_position = integers_from(be, position, 1), *d_slot = integers_from(be, slot, 1);

    be->rope(be, &(struct rope_job){ .qkv = stored_mat(be, in, 1, 6),
                                     .position = d_position,
                                     .slot = d_slot,
                                     .cos = d_cos,
                                     .sin = d_sin,
                                     .rotary = 2,
                                     .q_norm = d_one,
                                     .k_norm = d_two,
                                     .q = q,
                                     .store = { k, v, 1 },
                                     .n_heads = 1,
                                     .n_kv_heads = 1,
                                     .head_dim = 2 });
    void *made[] = { q, k, v };
    for (int i = 0; i < 3; i++) {
        float *x = read_stored(be, made[i], 2, "rope by hand");
        for (int c = 0; c < 2; c++)
            cr_assert_float_eq((double)x[c], want[2 * i + c], be->dtype == DTYPE_F32 ? 1e-6 : 1e-2, "%s: %d %d: %g",
                               p->name, i, c, (double)x[c]);
        free(x);
    }
    void *all[] = { in, q, k, v, d_one, d_two, d_cos, d_sin, d_position, d_slot };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        be->free(be, all[i]);
}

Test(kernels, rope_by_hand)
{
    each_pair(check_rope_by_hand);
}
