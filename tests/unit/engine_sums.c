/* What prefill saves beyond the cache: sums over queries, and norms of projected values; against what follows from the
 * rotated queries, the values and the model's file. */
#include "engine/transformer/engine.h"

#include "kernels/timed.h"
#include "methods/method.h"

#include "tests/kernels/compare.h"
#include "tests/unit/tiny_model.h"
#include "variants/sizes.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the tiny model; more tokens than a pass of the reference. */
enum { TOKENS = 700, LAYERS = 2, HEADS = 4, KV = 2, GROUP = 2, COLUMNS = 32, HALF = 16, WIDTH = 64 };
enum { ONE = (COLUMNS + 1) * COLUMNS, O_COLUMNS = HEADS * COLUMNS };

static float *floats(const struct kv_full *full, const void *device, size_t n)
{
    float *host = calloc(n, sizeof(*host));
    struct err err;

    cr_assert_eq(full->backend->read(full->backend, host, device, n * sizeof(*host), &err), 0, "%s", err.msg);
    return host;
}

/* ---- moments ------------------------------------------------------------- */

/* q (COLUMNS) as it was before its rotation by the angles of position t. */
static void turn_back(double *out, const float *q, const float *cos, const float *sin, int t)
{
    for (int i = 0; i < HALF; i++) {
        double c = (double)cos[t * HALF + i], s = (double)sin[t * HALF + i];
        out[i] = c * (double)q[i] + s * (double)q[i + HALF];
        out[i + HALF] = c * (double)q[i + HALF] - s * (double)q[i];
    }
    out[COLUMNS] = 1;
}

static void expect_moments(const struct kv_full *full)
{
    float *cos = floats(full, full->cos, TOKENS * HALF), *sin = floats(full, full->sin, TOKENS * HALF);
    float *got = floats(full, full->moments, (size_t)LAYERS * HEADS * ONE);

    for (int l = 0; l < LAYERS; l++) {
        float *q = floats(full, full->window_q[l], (size_t)TOKENS * O_COLUMNS);
        for (int h = 0; h < HEADS; h++) {
            double want[ONE] = { 0 }, plain[COLUMNS + 1];
            for (int t = 4; t < TOKENS; t++) {
                turn_back(plain, q + ((h / GROUP * TOKENS + t) * GROUP + h % GROUP) * COLUMNS, cos, sin, t);
                for (int i = 0; i < ONE; i++)
                    want[i] += plain[i / COLUMNS] * plain[i % COLUMNS];
            }
            for (int i = 0; i < ONE; i++) {
                double is = (double)got[(l * HEADS + h) * ONE + i];
                cr_assert(fabs(is - want[i]) <= 1e-2 + 1e-4 * fabs(want[i]), "layer %d, head %d, %d: %g, not %g", l, h,
                          i, is, want[i]);
            }
        }
        free(q);
    }
    free(got);
    free(cos);
    free(sin);
}

/* ---- norms --------------------------------------------------------------- */

/* |W_o v| of query head h. */
static double norm_of(const float *o, const float *v, int h)
{
    double sum = 0;

    for (int i = 0; i < WIDTH; i++) {
        double out = 0;
        for (int j = 0; j < COLUMNS; j++)
            out += (double)o[i * O_COLUMNS + h * COLUMNS + j] * (double)v[j];
        sum += fabs(out);
    }
    return sum;
}

static void expect_norms(const struct engine *e, const struct kv_full *full)
{
    float *o = calloc(WIDTH * O_COLUMNS, sizeof(*o));
    struct err err;

    for (int head = 0; head < LAYERS * KV; head++) {
        float *v = floats(full, full->rows[head].v, TOKENS * COLUMNS);
        int h = head % KV * GROUP;
        cr_assert_eq(model_read(engine_model(e), TENSOR_O, head / KV, o, &err), 0);
        for (int t = 0; t < TOKENS; t++) {
            double want = (norm_of(o, v + t * COLUMNS, h) + norm_of(o, v + t * COLUMNS, h + 1)) / 2;
            double got = (double)full->value_norms[head * TOKENS + t];
            cr_assert(fabs(got - want) <= 1e-5 * want, "head %d, token %d: %g, not %g", head, t, got, want);
        }
        free(v);
    }
    free(o);
}

/* ---- both ---------------------------------------------------------------- */

static void check(const char *backend, const char *model)
{
    static int32_t ids[TOKENS];
    struct config *config;
    struct err err = { 0 };
    struct prefill p = { .ids = ids, .n = TOKENS };
    struct backend *be = listed_open(&(struct backend_options){ .name = backend, .n_threads = 2 }, &err);
    double seconds = 0;
    int n;

    if (!be)
        return;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = i * 7 % TINY_VOCAB;
    cr_assert_eq(config_list(&config, &n, "expected_attention:drop=0.5,criticalkv+snapkv:drop=0.5:window=700", &err),
                 0);
    const struct config *const list[] = { &config[0], &config[1], &config[2] }; // none first

    cr_assert_eq(n, 3);
    const struct engine_work work = { .n_tokens = TOKENS, .config = list, .n_configs = n };
    struct engine *e = engine_open_on(be, model, &err);
    struct session *s = e ? engine_start(e, &work, 1, 0, &err) : NULL;
    cr_assert(s, "%s", err.msg);
    configs_need(list, n, &p.needs, &p.window);
    for (int again = 0; again < 2; again++) { // nothing is left of the context before
        cr_assert_eq(session_prefill(s, &p, &seconds, &err), 0, "%s", err.msg);
        const struct kv_full *full = session_full(s);
        cr_assert(full->moments_s > 0 && full->value_norms_s > 0 && seconds > 0);
        expect_moments(full);
        expect_norms(e, full);
    }
    p.needs = NEED_NOTHING;
    cr_assert_eq(session_prefill(s, &p, NULL, &err), 0, "%s", err.msg);
    cr_assert(!session_full(s)->moments && !session_full(s)->value_norms);
    session_free(s);
    engine_close(e);
    free(config);
}

Test(engine, saves_sums_over_queries_and_norms_of_values)
{
    static const char *const list[] = { "fenced", "cpu", "cuda" };
    char model[64];

    tiny_model_make(model);
    for (int i = 0; i < 3; i++)
        check(list[i], model);
    tiny_model_remove(model);
}

/* ---- what is not computed -------------------------------------------------- */

/* Pairs of queries and keys in sums of columns so far. */
static double summed_pairs(const struct backend *timed)
{
    struct op_time op[TIMED_OPS];
    double flop = 0;

    for (int i = 0, n = timed_list(timed, op); i < n; i++)
        flop += strcmp(op[i].name, "column_stats") == 0 ? op[i].flop : 0;
    return flop / (2 * COLUMNS);
}

/* Pairs that a prefill sums, and the scores of these configs after it. */
static void count_pairs(const char *model, const char *configs, double *in_prefill, double *in_scores)
{
    static int32_t ids[TOKENS];
    const struct config *list[24];
    struct config *config;
    struct err err = { 0 };
    struct prefill p = { .ids = ids, .n = TOKENS };
    struct backend *be =
        timed_open(listed_open(&(struct backend_options){ .name = "cpu", .n_threads = 2 }, &err), &err);
    int n;

    cr_assert_eq(config_list(&config, &n, configs, &err), 0, "%s", err.msg);
    cr_assert(be && n <= 24);
    for (int i = 0; i < n; i++)
        list[i] = &config[i];
    const struct engine_work work = { .n_tokens = TOKENS, .config = list, .n_configs = n };
    struct engine *e = engine_open_on(be, model, &err);
    struct session *s = e ? engine_start(e, &work, 1, 0, &err) : NULL;
    cr_assert(s, "%s", err.msg);
    configs_need(list, n, &p.needs, &p.window);
    cr_assert_eq(session_prefill(s, &p, NULL, &err), 0, "%s", err.msg);
    *in_prefill = summed_pairs(be);
    struct compressor *c = compressor_new(session_full(s), list, n, &err);
    cr_assert(c, "%s", err.msg);
    *in_scores = summed_pairs(be) - *in_prefill;
    compressor_free(c);
    session_free(s);
    engine_close(e);
    free(config);
}

/* Only methods that weigh all rows make the prefill sum them; the others sum their last window, once for all drops. */
Test(engine, sums_no_more_rows_than_the_configs_need)
{
    const double heads = LAYERS * HEADS, all = heads * TOKENS * (TOKENS + 1) / 2;
    double window = heads * (64 * (TOKENS - 64) + 64 * 65 / 2), last = heads * TOKENS, prefill, scores;
    char model[64];

    if (getenv("EVP_TEST_BACKEND"))
        cr_skip_test("it is about the cpu");
    tiny_model_make(model);
    count_pairs(model, CONFIG_USUAL, &prefill, &scores);
    cr_assert(prefill == 0 && scores == window, "%g %g, %g", prefill, scores, window);
    count_pairs(model,
                "knorm:drop=0.5,keydiff:drop=0.5,snapkv:drop=0.1..0.9/0.4,pyramidkv:drop=0.5,tova:drop=0.1..0.9/0.4,"
                "adakv+snapkv:drop=0.5,expected_attention:drop=0.5,lagkv:drop=0.5,cur:drop=0.5,"
                "streamingllm:drop=0.5,arkv:drop=0.5,kivi:bits=2",
                &prefill, &scores);
    cr_assert(prefill == 0 && scores == window + last, "%g %g, %g %g", prefill, scores, window, last);
    count_pairs(model, "h2o:drop=0.5,snapkv:drop=0.5", &prefill, &scores);
    cr_assert(prefill == all && scores == window, "%g %g, %g", prefill, scores, all);
    tiny_model_remove(model);
}
