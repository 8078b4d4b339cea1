/* Times of a serving GPU in the place of those profiled: worked out by hand. */
#include "profiler/score/serving.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Two contexts of 1,000 and 2,000 tokens, three configs: one that quantises, one that was not run. */
static void make(struct table *t)
{
    struct err err;

    cr_assert_eq(table_alloc(t, 2, 3, 0, &err), 0, "%s", err.msg);
    for (int c = 0; c < 2; c++) {
        t->context_id[c] = c ? "b" : "a";
        t->n_tokens[c] = 1000 * (c + 1);
        t->kv_bytes[c] = 1000000 * (c + 1);
        t->prefill_s[c] = 8;
        t->question_s[c] = 0.5;
        t->prefill_flop[c] = 4e14 * (c + 1);
        for (int v = 0; v < 2; v++) {
            size_t i = table_cell(t, c, v);
            t->cell_bytes[i] = v ? 250000 : 1000000;
            t->keep_frac[i] = 1;
            t->decompress_s[i] = v ? 0.25 : 0;
            t->decode_s[2][i] = 0.1;
        }
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

Test(serving, a_gpu_by_its_data_sheet)
{
    struct table t;
    struct err err;
    struct serving s = { .gpu = serving_find("h100", NULL, &err) };

    make(&t);
    cr_assert_eq(table_alloc_read(&t, &err), 0);
    t.cell_bytes_read[4] = 50000; // of context b, quantised
    cr_assert(s.gpu, "%s", err.msg);
    cr_assert_str_eq(s.gpu->name, "H100");
    for (int again = 0; again < 2; again++) { // the same again changes nothing
        cr_assert_eq(serving_apply(&t, &s, &err), 0, "%s", err.msg);
        cr_assert(near(t.prefill_s[0], 4e14 / 494.5e12) && near(t.prefill_s[1], 8e14 / 494.5e12));
        cr_assert(near(t.question_s[0], 0.5 * t.prefill_s[0] / 8) && near(t.question_s[1], 0.5 * t.prefill_s[1] / 8));
        cr_assert(t.decompress_s[0] == 0 && near(t.decompress_s[1], 1250000 / 2.68e12), "%g", t.decompress_s[1]);
        cr_assert(near(t.decompress_s[4], 2050000 / 2.68e12), "only what is read is unpacked");
        cr_assert(isnan(t.decompress_s[2]), "was not run");
        cr_assert(isnan(t.decode_s[2][0]) && isnan(t.decode_s[2][4]), "of the machine that profiled");
    }
    cr_assert(near(serving_to_device(s.gpu), 51.2e9));
    table_release(&t);
}

Test(serving, a_rate_that_is_known)
{
    struct table t;
    struct err err;

    make(&t);
    t.prefill_flop[0] = (double)NAN; // not needed
    cr_assert_eq(serving_apply(&t, &(struct serving){ .prefill_tokens_per_s = 20000 }, &err), 0, "%s", err.msg);
    cr_assert(near(t.prefill_s[0], 0.05) && near(t.prefill_s[1], 0.1) && near(t.question_s[1], 0.5 * 0.1 / 8));
    cr_assert(t.decompress_s[1] == 0.25 && t.decode_s[2][1] == 0.1, "as profiled");
    const struct serving both = { serving_find("A100", NULL, &err), 10000 };
    cr_assert_eq(serving_apply(&t, &both, &err), 0, "%s", err.msg);
    cr_assert(near(t.prefill_s[0], 0.1) && near(t.decompress_s[1], 1250000 / (0.8 * 2.039e12)));
    t.n_tokens[1] = -1;
    cr_assert_eq(serving_apply(&t, &both, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "the times of context 'b' are unknown"), "%s", err.msg);
    table_release(&t);
}

/* The points of a curve shrink with the whole, whose time the last one is. */
Test(serving, scales_the_curve)
{
    struct table t;
    struct err err;

    make(&t);
    cr_assert_eq(table_alloc_curve(&t, 2, &err), 0, "%s", err.msg);
    for (int i = 0; i < 2; i++) {
        t.curve_context[i] = 0;
        t.curve_n_tokens[i] = i ? 1000 : 500;
        t.curve_s[i] = i ? 8 : 3;
    }
    cr_assert_eq(serving_apply(&t, &(struct serving){ .prefill_tokens_per_s = 1000 }, &err), 0, "%s", err.msg);
    cr_assert(near(t.curve_s[0], 0.375) && t.curve_s[1] == t.prefill_s[0]);
    table_release(&t);
}

Test(serving, says_what_it_does_not_know)
{
    struct table t;
    struct err err;

    cr_assert_null(serving_find("B9000", NULL, &err));
    cr_assert(err.code == ERR_USAGE && strstr(err.msg, SERVING_GPUS), "%s", err.msg);
    make(&t);
    cr_assert_eq(serving_apply(&t, &(struct serving){ 0 }, &err), 0);
    cr_assert(t.prefill_s[0] == 8 && t.question_s[0] == 0.5, "nothing is asked for");
    t.prefill_flop[1] = (double)NAN;
    cr_assert_eq(serving_apply(&t, &(struct serving){ .gpu = serving_find("L4", NULL, &err) }, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "context 'b'") && strstr(err.msg, "--prefill-tokens-per-s"), "%s", err.msg);
    table_release(&t);
    for (const char *name = SERVING_GPUS; name; name = strchr(name, '|')) {
        char one[16] = "";
        name += *name == '|';
        memcpy(one, name, strcspn(name, "|"));
        if (strcmp(one, "FIGURES") == 0)
            continue;
        const struct serving_gpu *gpu = serving_find(one, NULL, &err);
        cr_assert(gpu && gpu->flop_per_s > 0 && gpu->memory_bytes_per_s > 0 && gpu->pcie_bytes_per_s > 0, "%s", one);
    }
}

/* Figures of a GPU without a row. */
Test(serving, takes_figures)
{
    static const char *const bad[] = { "tflops=989",
                                       "tflops=989,memory=80G",
                                       "tflops=0,memory=80G,bandwidth=1T",
                                       "tflops=x,memory=80G,bandwidth=1T",
                                       "tflops=989;memory=80G,bandwidth=1T",
                                       "tflops=-1,memory=80G,bandwidth=1T",
                                       "tflops=989,memory=80Q,bandwidth=1T",
                                       "tflops=1e300,memory=80G,bandwidth=1T",
                                       "watts=700",
                                       "=",
                                       "tflops=nan,memory=1,bandwidth=1" };
    struct serving_gpu given;
    struct err err;
    const struct serving_gpu *gpu = serving_find("bandwidth=3.35T,tflops=989,memory=80g", &given, &err);

    cr_assert(gpu == &given && gpu->flop_per_s == 989e12 && gpu->memory_bytes == 80e9, "%s", err.msg);
    cr_assert(gpu->memory_bytes_per_s == 3.35e12 && gpu->pcie_bytes_per_s == 64e9);
    cr_assert(serving_find("tflops=1,memory=1,bandwidth=1,pcie=32G", &given, &err) && given.pcie_bytes_per_s == 32e9);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_expect_null(serving_find(bad[i], &given, &err), "%s", bad[i]);
        cr_expect_eq(err.code, ERR_USAGE, "%s", bad[i]);
    }
}
