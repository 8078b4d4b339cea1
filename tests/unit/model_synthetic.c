/* Models of random weights: the same numbers in any process, thread and type, of the size that keeps logits small; the
 * tokenizer of bytes; what a name that is none says. */
#include "base/digest.h"
#include "engine/transformer/engine.h"
#include "codes/half.h"

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct model *open_it(const char *name)
{
    struct err err;
    struct model *m = model_open(name, &err);

    cr_assert_not_null(m, "%s", err.msg);
    return m;
}

/* All numbers of one layer, or of what comes once, as one checksum. */
static uint64_t sum_of(const struct model *m, enum tensor_role role, int layer)
{
    struct tensor_shape shape = model_shape(model_config(m), role);
    size_t n = (size_t)shape.rows * (size_t)shape.cols;
    float *x = malloc(n * sizeof(*x));
    struct err err;

    cr_assert(x && model_read(m, role, layer, x, &err) == 0);
    uint64_t sum = digest_xxh3(x, n * sizeof(*x));
    free(x);
    return sum;
}

/* The name stands for the numbers: results made with it stay comparable. */
Test(model_synthetic, numbers_never_change)
{
    struct model *m = open_it("synthetic:tiny");
    enum { HAS = 12 };
    uint64_t sum[2][HAS];
    cpu_set_t cpus, one;

    cr_assert_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            CPU_SET(cpu, &one);
    for (int threads = 1; threads <= 2; threads++) {
        cr_assert_eq(sched_setaffinity(0, sizeof(cpus), threads == 1 ? &one : &cpus), 0);
        for (int role = 0, n = 0; role < TENSOR_ROLES; role++)
            if (model_has(model_config(m), (enum tensor_role)role))
                sum[threads - 1][n++] = sum_of(m, (enum tensor_role)role, 0);
    }
    cr_assert_arr_eq(sum[0], sum[1], sizeof(sum[0]));
    cr_assert_eq(digest_xxh3(sum[0], sizeof(sum[0])), 0x8953a8f4f64269f5u, "%016llx",
                 (unsigned long long)digest_xxh3(sum[0], sizeof(sum[0])));
    for (int a = 0; a < HAS; a++) /* no tensor is like another */
        for (int b = 0; b < a; b++)
            cr_assert_neq(sum[0][a], sum[0][b], "roles %d and %d", a, b);
    cr_assert_neq(sum[0][TENSOR_Q], sum_of(m, TENSOR_Q, 1));
    model_close(m);
}

Test(model_synthetic, bf16_and_f32_are_the_same_numbers)
{
    struct model *m = open_it("synthetic:tiny");
    enum { ROWS = 256, COLS = 128, PITCH = 136 };
    static float wide[ROWS * COLS];
    static uint16_t narrow[ROWS * PITCH];
    struct mat view;
    struct err err;

    cr_assert(model_read(m, TENSOR_UP, 1, wide, &err) == 0 && model_view(m, TENSOR_UP, 1, &view, &err) == 0);
    cr_assert(!view.at && view.type == DTYPE_BF16 && view.rows == ROWS && view.cols == COLS);
    view.at = narrow;
    view.pitch = PITCH;
    cr_assert_eq(model_read_mat(m, TENSOR_UP, 1, &view, &err), 0);
    double sum = 0, squares = 0;
    for (int i = 0; i < ROWS * COLS; i++) {
        cr_assert_eq(wide[i], bf16_to_f32(narrow[i / COLS * PITCH + i % COLS]));
        cr_assert_leq(fabsf(wide[i]), 1.01f * sqrtf(3.0f / COLS));
        sum += (double)wide[i];
        squares += (double)wide[i] * (double)wide[i];
    }
    cr_assert_lt(fabs(sum / (ROWS * COLS)), 0.002);                 /* 4 deviations of the mean of so many */
    cr_assert_lt(fabs(squares / (ROWS * COLS) * COLS - 1.0), 0.02); /* of the variance: 4 of its own */
    for (int r = 1; r < ROWS; r++)
        cr_assert_neq(memcmp(wide, wide + r * COLS, COLS * sizeof(float)), 0, "row %d", r);
    cr_assert_eq(model_read(m, TENSOR_NORM, 0, wide, &err), 0);
    for (int i = 0; i < COLS; i++)
        cr_assert(wide[i] >= 0.75f && wide[i] <= 1.25f);
    model_close(m);
}

Test(model_synthetic, shape_of_llama)
{
    struct model *m = open_it("synthetic:llama-3.1-8b");
    const struct model_config *c = model_config(m);
    struct err err;
    uint64_t bytes = 0;
    char hex[DIGEST_HEX], want[DIGEST_HEX];

    for (int i = 0; i < model_n_tensors(m); i++)
        bytes += model_tensor(m, i)->bytes;
    cr_assert_eq(bytes, 2 * 8030261248u); /* parameters, as Meta counts them */
    cr_assert(c->max_tokens == 131072 && c->rope_scaling == ROPE_LLAMA3 && !c->tied);
    cr_assert_str_eq(c->name, "synthetic:llama-3.1-8b");
    cr_assert_eq(model_digest(m, hex, &err), 0);
    cr_assert_eq(digest_sha256("synthetic:llama-3.1-8b", 22, want, &err), 0);
    cr_assert_str_eq(hex, want);
    model_close(m);
}

Test(model_synthetic, shape_of_a_mixture_of_experts)
{
    struct model *m = open_it("synthetic:qwen3-30b-a3b");
    const struct model_config *c = model_config(m);
    uint64_t bytes = 0;

    for (int i = 0; i < model_n_tensors(m); i++)
        bytes += model_tensor(m, i)->bytes;
    cr_assert_eq(bytes, 2 * 30532122624u); /* parameters, as its makers count them */
    cr_assert(c->n_experts == 128 && c->n_experts_used == 8 && c->renormalise);
    model_close(m);
}

Test(model_synthetic, unknown_names)
{
    static const char *const bad[] = { "synthetic:", "synthetic:tin", "synthetic:tiny2", "synthetic:TINY" };
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_null(model_open(bad[i], &err));
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(strstr(err.msg, bad[i]) && strstr(err.msg, "synthetic:llama-3.1-8b"), "%s", err.msg);
    }
    cr_assert(!model_is_synthetic("folder/synthetic:tiny") && !model_is_synthetic("synthetic"));
}

Test(model_synthetic, a_token_for_every_byte)
{
    static const char text[] = "a \xc3\xa9\n\x01 don't  <300>";
    struct model *m = open_it("synthetic:tiny");
    struct err err;
    struct tokenizer *t = tokenizer_open(m, &err);
    struct tokens ids = { 0 };
    struct buf back = { 0 };

    cr_assert_not_null(t, "%s", err.msg);
    cr_assert_eq(tokenizer_encode(t, text_view_of(text), SPECIAL_PARSED, &ids, &err), 0);
    cr_assert_eq(ids.n, (int)strlen(text));
    for (int i = 0; i < ids.n; i++)
        cr_assert_eq(ids.at[i], (unsigned char)text[i]);
    cr_assert_eq(tokenizer_decode(t, ids.at, ids.n, &back, &err), 0);
    cr_assert_str_eq(buf_str(&back), text);
    back.n = 0;
    cr_assert_eq(tokenizer_decode(t, (const int32_t[]){ 300, 'x', 511 }, 3, &back, &err), 0);
    cr_assert_str_eq(buf_str(&back), "<300>x<511>");
    for (int id = 0; id < 512; id++)
        cr_assert_not(tokenizer_stops(t, id));
    buf_release(&back);
    tokens_release(&ids);
    tokenizer_free(t);
    model_close(m);
}

/* A product keeps the size of what it multiplies, so logits have a variance of about 1. */
Test(model_synthetic, logits_are_small)
{
    enum { N = 64, VOCAB = 512 };
    static float logits[N * VOCAB];
    const struct engine_options options = { .model = "synthetic:tiny", .backend = "cpu", .n_threads = 2 };
    const struct engine_work work = { .n_tokens = N };
    struct err err;
    struct engine *e = engine_open(&options, &err);
    struct session *s = e ? engine_start(e, &work, 1, 0, &err) : NULL;
    int32_t ids[N];
    double squares = 0;

    cr_assert_not_null(s, "%s", err.msg);
    for (int i = 0; i < N; i++)
        ids[i] = i * 7 % 256;
    cr_assert_eq(session_logits(s, ids, N, logits, &err), 0, "%s", err.msg);
    for (int i = 0; i < N * VOCAB; i++) {
        cr_assert(isfinite(logits[i]));
        squares += (double)logits[i] * (double)logits[i];
    }
    cr_assert(squares / (N * VOCAB) > 0.5 && squares / (N * VOCAB) < 2, "%g", squares / (N * VOCAB));
    session_free(s);
    engine_close(e);
}
