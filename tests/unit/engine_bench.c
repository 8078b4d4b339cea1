/* Makes it, runs it and compares what it answers. */
#include "tests/unit/engine_bench.h"

#include "base/rng.h"
#include "tests/kernels/compare.h"
#include "tests/unit/tiny_model.h"
#include "variants/sizes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const int question_length[QUESTIONS] = { 1, 9, 24, LONG }; // a token; usual ones; more than a pass
static const char configs[] = "none,keydiff:drop=0.5,snapkv:drop=0.9,kivi:bits=2";
const char *const alone_and_together[ALONE_AND_TOGETHER] = { "cpu", "cpu bf16", "cuda", "cuda bf16" };
const uint64_t bench_seeds[QUESTIONS] = { 3, 1, 4, 159 };
const double bench_temperature = 0.9;

static struct backend *open_backend(const char *name)
{
    const char *space = strchr(name, ' '), *dtype = space ? space + 1 : "f32";
    char plain[16];
    struct err err;

    snprintf(plain, sizeof(plain), "%.*s", space ? (int)(space - name) : (int)strlen(name), name);
    struct backend *be = listed_open(&(struct backend_options){ .name = plain, .dtype = dtype, .n_threads = 2 }, &err);
    if (!be)
        fprintf(stderr, "engine: '%s' is not tested: %s\n", name, err.msg);
    return be;
}

struct engine_bench *bench_open(const char *backend)
{
    struct backend *be = open_backend(backend);
    if (!be)
        return NULL;
    struct engine_bench *b = calloc(1, sizeof(*b));
    struct err err = { 0 };
    struct rng rng = rng_new(7);

    tiny_model_make(b->path);
    cr_assert_eq(config_list(&b->config, &b->n_configs, configs, &err), 0, "%s", err.msg);
    for (int i = 0; i < b->n_configs; i++)
        b->list[i] = &b->config[i];
    b->engine = engine_open_on(be, b->path, &err);
    cr_assert(b->engine, "%s", err.msg);
    const struct engine_work work[] = {
        { .n_tokens = TINY_MAX_TOKENS, .config = b->list, .n_configs = 1, .n_questions = 1, .max_new_tokens = 1 },
        { .n_tokens = CONTEXT,
          .config = b->list,
          .n_configs = b->n_configs,
          .n_questions = QUESTIONS,
          .question_tokens = QUESTIONS * LONG,
          .longest_question = LONG,
          .max_new_tokens = NEW },
        { .n_tokens = 1,
          .config = b->list,
          .n_configs = 1,
          .n_questions = 1,
          .question_tokens = TINY_MAX_TOKENS,
          .longest_question = TINY_MAX_TOKENS,
          .max_new_tokens = 1 },
    };
    b->session = engine_start(b->engine, work, 3, 0, &err);
    cr_assert(b->session, "%s", err.msg);
    for (size_t i = 0; i < sizeof(b->ids) / sizeof(*b->ids); i++)
        b->ids[i] = (int32_t)rng_below(&rng, TINY_VOCAB);
    for (int q = 0; q < QUESTIONS; q++)
        b->question[q] = (struct question_ids){ b->ids + CONTEXT + q * LONG, question_length[q] };
    return b;
}

struct engine_bench *bench_on_cpu(void)
{
    struct engine_bench *b = bench_open("cpu");

    if (!b)
        cr_skip_test("it is about the cpu");
    return b;
}

void bench_close(struct engine_bench *b)
{
    session_free(b->session);
    engine_close(b->engine);
    tiny_model_remove(b->path);
    free(b->config);
    free(b);
}

static void note_progress(void *arg, int tokens_done)
{
    struct bench_answers *r = arg;
    cr_assert_geq(tokens_done, r->progress);
    r->progress = tokens_done;
}

struct bench_answers *bench_run(struct engine_bench *b, struct how how)
{
    struct bench_answers *r = calloc(1, sizeof(*r));
    struct prefill p = { .ids = b->ids, .n = CONTEXT };
    const struct variant *at[VARIANTS];
    struct err err = { 0 };

    r->n_variants = how.n_variants;
    r->n_questions = how.n_questions;
    configs_need(b->list, b->n_configs, &p.needs, &p.window);
    cr_assert_eq(session_prefill(b->session, &p, NULL, &err), 0, "%s", err.msg);
    struct compressor *c = compressor_new(session_full(b->session), b->list, b->n_configs, &err);
    cr_assert(c, "%s", err.msg);
    for (int v = 0; v < how.n_variants; v++) {
        cr_assert_eq(compressor_variant(c, b->list[v], VARIANT_ROWS, &r->variant[v], &err), 0, "%s", err.msg);
        at[v] = &r->variant[v];
    }
    compressor_free(c);
    for (int h = 0; h < 4 && how.n_variants > 1; h++)
        r->variant[1].rows[h].n -= h < 3 ? 97 * h : r->variant[1].rows[h].n;
    struct decode job = { .variant = at,
                          .n_variants = how.n_variants,
                          .question = b->question,
                          .n_questions = how.n_questions,
                          .n_shared = how.n_shared,
                          .max_new_tokens = NEW,
                          .batch = how.batch,
                          .n_sampled = how.n_sampled,
                          .temperature = bench_temperature,
                          .seed = bench_seeds,
                          .given = how.given,
                          .progress = note_progress,
                          .arg = r };
    cr_assert_eq(session_decode(b->session, &job, r->answer, &err), 0, "%s", err.msg);
    int tokens = how.n_questions * NEW;
    for (int q = 0; q < how.n_questions; q++)
        tokens += b->question[q].n;
    cr_assert_eq(r->progress, how.n_variants * tokens);
    return r;
}

struct bench_answers *bench_run_all(struct engine_bench *b, int batch)
{
    return bench_run(b, (struct how){ VARIANTS, QUESTIONS, batch, 0, 0, NULL });
}

void bench_run_free(struct bench_answers *r)
{
    for (int i = 0; i < VARIANTS * QUESTIONS; i++)
        free(r->answer[i].ids);
    for (int v = 0; v < VARIANTS; v++)
        variant_release(&r->variant[v]);
    free(r);
}

void bench_same_answers(const struct bench_answers *a, const struct bench_answers *b, const char *what)
{
    for (int i = 0; i < a->n_variants * a->n_questions; i++) {
        cr_assert_eq(a->answer[i].n, b->answer[i].n, "%s: answer %d has %d tokens, not %d", what, i, b->answer[i].n,
                     a->answer[i].n);
        for (int t = 0; t < a->answer[i].n; t++)
            cr_assert_eq(a->answer[i].ids[t], b->answer[i].ids[t], "%s: answer %d, token %d", what, i, t);
    }
}
