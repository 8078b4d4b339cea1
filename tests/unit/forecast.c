/* How long a profile takes elsewhere: operations or bytes over what a data sheet says, worked out by hand. */
#include "profiler/run/forecast.h"

#include "profiler/run/groups.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct engine *open_shape(const char *name)
{
    struct err err;
    struct engine *e = engine_open(
        &(struct engine_options){ .model = name, .backend = "reference", .dtype = "f32", .n_threads = 1 }, &err);

    cr_assert(e, "%s", err.msg);
    return e;
}

/* Works of n tokens with q questions of 10 tokens under two configs, none and another, all open. */
static struct grid make_under(const char *other, int n_work, int n, int q)
{
    static char id[] = "c";
    static struct context context = { .id = id };
    struct grid g = { .n_configs = 2, .max_new_tokens = 16, .n_work = n_work };
    struct config *config;
    struct err err;

    cr_assert_eq(config_list(&config, &g.n_configs, other, &err), 0, "%s", err.msg);
    g.config = config;
    g.work = calloc((size_t)n_work, sizeof(*g.work));
    for (int i = 0; i < n_work; i++) {
        struct work *w = &g.work[i];
        *w = (struct work){ .context = &context, .ids.n = n, .n_questions = q, .n_open = 2 * q };
        w->question_ids = calloc((size_t)q, sizeof(*w->question_ids));
        w->open = calloc((size_t)q * 2, sizeof(*w->open));
        for (int k = 0; k < q; k++)
            w->question_ids[k].n = 10;
        memset(w->open, true, (size_t)q * 2 * sizeof(*w->open));
    }
    return g;
}

static struct grid make(int n_work, int n, int q)
{
    return make_under("kivi:bits=2", n_work, n, q);
}

static void release(struct grid *g)
{
    free((void *)(uintptr_t)g->config);
    grid_release(g);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

Test(forecast, the_same_work_by_its_grid_or_by_its_size)
{
    struct err err;
    struct engine *e = open_shape("synthetic:llama-3.1-8b");
    struct forecast f = { .engine = e, .gpu = serving_find("H100", NULL, &err) };
    struct grid g = make(3, 32768, 8);
    double open, sized, half;

    f.grid = &g;
    cr_assert_eq(forecast_open(&f, &open, &err), 0, "%s", err.msg);
    cr_assert_eq(forecast_sized(&f, (struct forecast_size){ 3, 32768 }, &sized, &err), 0, "%s", err.msg);
    cr_assert(near(open, sized), "%g %g", open, sized);
    // 32,768 tokens of 8 billion weights, and half of their square: 739 tera-operations at 494.5 a second; then 16
    // steps that read 15 GB of weights and two caches of 4.3 GB (KIVI's keeps every pair), at 2.68 TB a second.
    const struct engine_work w = { .n_tokens = 32768 };
    double prefill = engine_cost(e, &w).prefill_flop / (0.5 * 989e12), weights = 2 * 8030e6, cache = 32768 * 131072.0;
    cr_assert(fabs(prefill - 739e12 / 494.5e12) < 0.02, "%g", prefill);
    double answers = open / 3 - prefill, bytes = 16 * (weights + 2 * cache) / (0.8 * 3.35e12);
    cr_assert(fabs(answers - bytes) < 0.01 * bytes, "%g %g", answers, bytes);
    g.work[2].n_open = 0; // is done
    cr_assert_eq(forecast_open(&f, &half, &err), 0);
    cr_assert(near(half, open / 3 * 2));
    release(&g);
    engine_close(e);
}

/* Many questions: operations decide. Attention to the context counts 1 / 0.6 times. */
Test(forecast, attention_to_the_context_takes_longer_than_products)
{
    struct err err;
    struct engine *e = open_shape("synthetic:llama-3.1-8b");
    struct forecast f = { .engine = e, .gpu = serving_find("H200", NULL, &err) };
    struct grid g = make(1, 32768, 400);
    double open;

    f.grid = &g;
    cr_assert_eq(forecast_open(&f, &open, &err), 0, "%s", err.msg);
    // 25 tokens of 400 questions, two caches of 32,768 tokens: 4 operations for each of 32 layers of 4,096 columns
    double shared = 25.0 * 400 * 2 * 32768 * 4 * 32 * 4096;
    struct engine_work w = { .n_tokens = 32768, .n_questions = 400, .question_tokens = 4000, .max_new_tokens = 16 };
    w.config = (const struct config *const[]){ &g.config[0], &g.config[1] };
    w.n_configs = 2;
    struct engine_cost cost = engine_cost(e, &w);
    cr_assert(near(cost.shared_flop, shared), "%g %g", cost.shared_flop, shared);
    double want = (cost.prefill_flop + cost.decode_flop + shared / 0.6 - shared) / (0.5 * 989e12);
    cr_assert(near(open, want), "%g %g", open, want);
    release(&g);
    engine_close(e);
}

/* A side pass counts once for a context. */
Test(forecast, repeating_a_context_takes_its_operations)
{
    struct err err;
    struct engine *e = open_shape("synthetic:llama-3.1-8b");
    struct forecast f = { .engine = e, .gpu = serving_find("H100", NULL, &err) };
    struct grid plain = make_under("snapkv:drop=0.5", 1, 32768, 8), grid = make_under("kvzip:drop=0.5", 1, 32768, 8);
    struct engine_cost cost;
    double without, with;

    f.grid = &plain;
    cr_assert_eq(forecast_open(&f, &without, &err), 0, "%s", err.msg);
    cr_assert_eq(grid_cost(&plain, e, &cost, &err), 0);
    cr_assert_eq(cost.side_flop, 0);
    f.grid = &grid;
    cr_assert_eq(forecast_open(&f, &with, &err), 0, "%s", err.msg);
    cr_assert_eq(grid_cost(&grid, e, &cost, &err), 0);
    // 32,768 tokens of 8 billion weights, 0.457e15 operations as in a prefill; and each token and head attends to the
    // cache, half a chunk and, for the scores, as much as one and a half: 0.633e15
    cr_assert(fabs(cost.side_flop - 1.09e15) < 0.005e15, "%g", cost.side_flop);
    cr_assert(near(with - without, cost.side_flop / (0.5 * 989e12)), "%g", with - without);
    release(&plain);
    release(&grid);
    engine_close(e);
}

Test(forecast, what_does_not_fit_is_said)
{
    struct err err;
    struct engine *e = open_shape("synthetic:qwen3-30b-a3b");
    struct forecast f = { .engine = e, .gpu = serving_find("L40S", NULL, &err) };
    struct grid g = make(1, 1024, 1);
    double seconds;

    f.grid = &g;
    cr_assert_eq(forecast_open(&f, &seconds, &err), ERR_FAIL);
    cr_assert(strstr(err.msg, "context 'c': 61 GB of weights") && strstr(err.msg, "the 48 GB of memory of L40S"), "%s",
              err.msg);
    f.gpu = serving_find("H100", NULL, &err);
    cr_assert_eq(forecast_open(&f, &seconds, &err), 0, "%s", err.msg);
    release(&g);
    engine_close(e);
}
