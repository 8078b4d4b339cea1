/* Ops take any address of a number: each operand in turn is one number off the alignment that alloc gives, and the
 * others are not. What is one number before and after a result is compared too. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 10, ROWS = 3, COLS = 40 };

enum kind { F32, OWN, INTEGERS }; // OWN: of the backend's dtype

/* An op's operands on one backend. */
struct bench {
    struct backend *be;
    int off; // which operand is one number off; -1: none
    int n;
    struct operand {
        void *base;
        enum kind kind;
        size_t n; // numbers from base on
    } all[MAX_OPERANDS];
};

/* The next operand: n numbers. */
static void *operand(struct bench *b, enum kind kind, const char *name, size_t n)
{
    size_t off = b->n == b->off ? 1 : 0, size = kind == OWN ? dtype_size(b->be->dtype) : 4;
    char *base = kind == OWN   ? stored(b->be, name, n + 1)
                 : kind == F32 ? (void *)numbers(b->be, name, n + 1)
                               : (void *)integer_space(b->be, n + 1);

    b->all[b->n++] = (struct operand){ base, kind, n + 1 };
    return base + off * size;
}

static float *f32(struct bench *b, const char *name, size_t n)
{
    return operand(b, F32, name, n);
}

static void *own(struct bench *b, const char *name, size_t n)
{
    return operand(b, OWN, name, n);
}

static struct mat own_mat(struct bench *b, const char *name, int rows, int cols)
{
    return stored_mat(b->be, own(b, name, (size_t)(rows * cols)), rows, cols);
}

static struct mat f32_mat(struct bench *b, const char *name, int rows, int cols)
{
    return mat_of(f32(b, name, (size_t)(rows * cols)), rows, cols);
}

/* ---- ops ----------------------------------------------------------------- */

static void run_embed(struct bench *b)
{
    const int32_t ids[ROWS] = { 4, 0, 4 };
    int32_t *device = integers_from(b->be, ids, ROWS);

    b->be->embed(b->be, f32_mat(b, "out", ROWS, COLS), f32_mat(b, "table", 5, COLS), device);
    b->be->embed(b->be, f32_mat(b, "out", ROWS, COLS), own_mat(b, "table", 5, COLS), device);
    must_sync(b->be);
    b->be->free(b->be, device);
}

static void run_rmsnorm(struct bench *b)
{
    struct mat out = own_mat(b, "out", ROWS, COLS), x = f32_mat(b, "x", ROWS, COLS);

    b->be->rmsnorm(b->be, out, x, f32(b, "w", COLS), 1e-5f, GEMM_SET);
}

static void run_silu(struct bench *b)
{
    struct mat out = own_mat(b, "out", ROWS, COLS);

    b->be->gate_mul(b->be, out, own_mat(b, "gate_up", ROWS, 2 * COLS), GATE_SILU);
}

static void run_rope(struct bench *b)
{
    enum { H = 4, G = 2, K = 32, SLOTS = 4 };
    const int32_t at[ROWS] = { 2, 0, 3 };
    int32_t *device = integers_from(b->be, at, ROWS);
    struct rope_job job = { .position = device, .slot = device, .norm_eps = 1e-6f };

    job.n_heads = H, job.n_kv_heads = G, job.head_dim = job.rotary = K;
    job.qkv = own_mat(b, "qkv", ROWS, (H + 2 * G) * K);
    job.cos = f32(b, "cos", SLOTS * K / 2);
    job.sin = f32(b, "sin", SLOTS * K / 2);
    job.q_norm = f32(b, "q norm", K);
    job.k_norm = f32(b, "k norm", K);
    job.q = own(b, "q", ROWS * H * K);
    job.store = (struct kv_store){ own(b, "k", G * SLOTS * K), own(b, "v", G * SLOTS * K), SLOTS };
    b->be->rope(b->be, &job);
    must_sync(b->be);
    b->be->free(b->be, device);
}

static void run_copy_slots(struct bench *b)
{
    enum { HEADS = 3, SLOTS = 9, K = 16 };
    struct kv_store store = { own(b, "k", HEADS * SLOTS * K), own(b, "v", HEADS * SLOTS * K), SLOTS };

    b->be->copy_slots(b->be, &store, &(struct kv_shape){ 1, HEADS, HEADS, K, .dtype = b->be->dtype },
                      &(struct slot_copy){ 1, 2, (const int32_t[]){ 7, 3 }, 2 });
}

static void run_keys(struct bench *b)
{
    enum { HEADS = 2, N = 11, K = 32 };
    float *norms = f32(b, "norms", HEADS * N), *cosines = f32(b, "cosines", HEADS * N);
    const struct kv_rows heads[HEADS] = { { own(b, "first", N * K), NULL, N }, { own(b, "second", N * K), NULL, N } };

    b->be->key_norms(b->be, norms, heads, HEADS, K);
    b->be->key_cosines(b->be, cosines, heads, HEADS, K);
}

static void run_moments(struct bench *b)
{
    enum { HEADS = 2, N = 11, K = 24, FORM = (K + 1) * K };
    float *into = f32(b, "into", HEADS * FORM), *forms = f32(b, "forms", HEADS * N), *sums = f32(b, "sums", ROWS);
    const struct kv_rows head = { own(b, "k", N * K), NULL, N };

    b->be->moments(b->be, &(struct moment_job){ own(b, "q", HEADS * N * K), N, 4, HEADS, 1, K, into });
    b->be->key_forms(b->be, forms, into, &head, 1, HEADS, K);
    b->be->abs_sums(b->be, sums, f32_mat(b, "x", ROWS, COLS));
}

static void run_scores(struct bench *b)
{
    float *scaled = f32(b, "scaled", ROWS * COLS), *factor = f32(b, "factor", COLS);

    b->be->scale_columns(b->be, scaled, ROWS, COLS, factor);
    b->be->mean_heads(b->be, f32(b, "mean", ROWS * COLS), ROWS, COLS, ROWS);
    b->be->avg_pool(b->be, f32(b, "pool", ROWS * COLS), ROWS, COLS, COLS, 5);
}

static void run_select(struct bench *b)
{
    const struct joint_keep keep = { 2 * COLS, 3 };
    float *score = f32(b, "score", ROWS * COLS);

    b->be->top_k(b->be, operand(b, INTEGERS, "kept", ROWS * COLS / 2), score, ROWS, COLS, (int[]){ 20, 33, 7 });
    b->be->joint_counts(b->be, operand(b, INTEGERS, "counts", ROWS), score, ROWS, COLS, ROWS, &keep);
}

static void run_gather(struct bench *b)
{
    enum { N = 5, K = 16 };
    int32_t *kept = integers_from(b->be, (const int32_t[]){ 0, 3, 4 }, 3);
    struct kv_rows src = { own(b, "k", N * K), own(b, "v", N * K), N };
    struct kv_rows dst = { own(b, "to k", 3 * K), own(b, "to v", 3 * K), 3 };

    b->be->gather(b->be, &dst, &src, kept, 1, K);
    must_sync(b->be);
    b->be->free(b->be, kept);
}

static void run_quantise(struct bench *b)
{
    enum { N = 4, K = 64, GROUP = 32, BITS = 4 };
    int32_t *codes = integer_space(b->be, N * K * BITS / 32), *scales = integer_space(b->be, N * K / GROUP);
    struct quant_item item = {
        .lines = QUANT_ROWS,
        .rows = N,
        .cols = K,
        .bits = BITS,
        .group = GROUP,
        .codes = codes,
        .scales = (uint16_t *)scales,
        .zeros = (uint16_t *)scales + N * K / GROUP,
    };

    item.x = own(b, "x", N * K);
    b->be->quantise(b->be, &item, 1);
    item.x = own(b, "back", N * K);
    b->be->dequantise(b->be, &item, 1);
    must_sync(b->be);
    b->be->free(b->be, codes);
    b->be->free(b->be, scales);
}

static void run_bert(struct bench *b)
{
    struct mat out = f32_mat(b, "out", ROWS, COLS), x = f32_mat(b, "x", ROWS, COLS);
    float *w = f32(b, "w", COLS), *bias = f32(b, "b", COLS);

    b->be->layernorm(b->be, out, x, w, bias, 1e-12f);
    b->be->gelu(b->be, f32_mat(b, "gelu", ROWS, COLS));
}

/* Three equal experts. */
static void run_moe(struct bench *b)
{
    enum { N = 3, WIDTH = 24 };
    struct err err = { 0 };
    struct weight *router, *gate_up[N], *down[N];
    const struct weight *up[N], *back[N];
    float *host = host_numbers("weights", 2 * COLS * WIDTH);
    struct mat r = mat_of(host, N, COLS), g = mat_of(host, 2 * WIDTH, COLS), d = mat_of(host, COLS, WIDTH);

    for (int i = 0; i < 2 * COLS * WIDTH; i++)
        host[i] *= 0.25f; // exact, and hidden numbers of about 1
    router = b->be->weight_new(b->be, &r, 1, &err);
    for (int e = 0; e < N; e++) {
        up[e] = gate_up[e] = b->be->weight_new(b->be, &g, 1, &err);
        back[e] = down[e] = b->be->weight_new(b->be, &d, 1, &err);
    }
    void *normed = stored(b->be, "normed", ROWS * COLS);
    b->be->moe(
        b->be, f32_mat(b, "x", ROWS, COLS), stored_mat(b->be, normed, ROWS, COLS),
        &(struct experts){
            .router = router, .gate_up = up, .down = back, .n = N, .n_used = 2, .width = WIDTH, .renormalise = true });
    must_sync(b->be);
    b->be->weight_free(b->be, router);
    for (int e = 0; e < N; e++) {
        b->be->weight_free(b->be, gate_up[e]);
        b->be->weight_free(b->be, down[e]);
    }
    b->be->free(b->be, normed);
    free(host);
}

static const struct {
    const char *name;
    void (*run)(struct bench *);
} ops[] = {
    { "embed", run_embed },
    { "rmsnorm", run_rmsnorm },
    { "gate_mul", run_silu },
    { "rope", run_rope },
    { "copy_slots", run_copy_slots },
    { "key_norms and key_cosines", run_keys },
    { "moments, key_forms and abs_sums", run_moments },
    { "rows of scores", run_scores },
    { "top_k and joint_counts", run_select },
    { "gather", run_gather },
    { "quantise and dequantise", run_quantise },
    { "bert", run_bert },
    { "moe", run_moe },
};

/* ---- both backends ------------------------------------------------------- */

static void compare_operands(const struct pair *p, struct bench *want, struct bench *got, const char *what)
{
    const struct tolerances within = { { 1e-4, 1e-5 }, { 0.2, BF16_EPS } };

    for (int i = 0; i < want->n; i++) {
        struct results r = { want->all[i].base, got->all[i].base, want->all[i].n };
        if (want->all[i].kind == INTEGERS)
            same_integers(p, r, what);
        else if (want->all[i].kind == F32)
            same_floats(p, r, within, what);
        else
            same_stored(p, r, within, what);
    }
}

static void check_addresses(const struct pair *p)
{
    char what[80];

    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        for (int off = -1, n = 0; off == -1 || off < n; off++) {
            struct bench want = { .be = p->want, .off = off }, got = { .be = p->got, .off = off };
            snprintf(what, sizeof(what), "%s, operand %d is one number off", ops[i].name, off);
            ops[i].run(&want);
            ops[i].run(&got);
            n = want.n;
            compare_operands(p, &want, &got, what);
        }
}

Test(kernels, operands_may_be_at_any_number)
{
    each_pair(check_addresses);
}
