/* The time of a generated token: what a step attends to, by a clock that counts keys; and that a step computes what a
 * step of an answer does. */
#include "engine/transformer/engine_internal.h"

#include "tests/unit/engine_bench.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void (*true_attend)(struct backend *, const struct attn_job *);
static double keys;

static void counting_attend(struct backend *be, const struct attn_job *job)
{
    for (int i = 0; i < job->spans.n; i++) {
        const struct attn_span *s = &job->spans.host[i];
        for (int g = 0; g < job->n_kv_heads; g++) {
            int entry = (s->first * job->table.n_layers + job->layer) * job->n_kv_heads + g;
            keys += job->kind == ATTN_SHARED ? job->table.host[entry].n : s->n_keys; // read once for a span's tokens
        }
    }
    true_attend(be, job);
}

static double keys_so_far(struct backend *be)
{
    (void)be;
    return keys;
}

/* Each copy reads all rows of the variant and its own key, whatever the batch is: a variant with fewer rows takes fewer
 * seconds per token, one with as many rows as many. */
Test(engine_seconds, a_token_costs_the_rows_of_its_variant)
{
    static const int batch[] = { 1, 8, DECODE_BATCH_MAX };
    struct engine_bench *b = bench_open("reference");
    struct bench_answers *r = bench_run(b, (struct how){ VARIANTS, 1, 0, 0, 0, NULL });
    struct backend *be = engine_backend(b->engine);
    struct err err = { 0 };

    true_attend = be->attend;
    be->attend = counting_attend;
    be->clock = keys_so_far;
    for (int i = 0; i < 3 * VARIANTS; i++) {
        const struct variant *v = &r->variant[i / 3];
        double seconds, want = 0;
        for (int h = 0; h < v->shape.n_layers * v->shape.n_kv_heads; h++)
            want += v->rows[h].n + 1;
        cr_assert_eq(session_decode_s(b->session, v, batch[i % 3], &seconds, &err), 0, "%s", err.msg);
        cr_assert_eq(seconds, want, "%s at batch %d: %g keys a token, not %g", v->config->name, batch[i % 3], seconds,
                     want);
    }
    bench_run_free(r);
    bench_close(b);
}

/* As a first answer token is chosen. */
Test(engine_seconds, a_step_is_one_of_an_answer)
{
    static const char *const name[] = { "reference", "cpu", "cpu bf16", "cuda", "cuda bf16" };
    const struct question_ids zero = { &(int32_t){ 0 }, 1 };

    for (size_t l = 0; l < sizeof(name) / sizeof(*name); l++) {
        struct engine_bench *b = bench_open(name[l]);
        struct err err = { 0 };
        if (!b)
            continue;
        struct bench_answers *r = bench_run(b, (struct how){ VARIANTS, 1, 0, 0, 0, NULL });
        for (int v = 0; v < VARIANTS; v++) {
            const struct variant *at = &r->variant[v];
            struct decode job = {
                .variant = &at, .n_variants = 1, .question = &zero, .n_questions = 1, .max_new_tokens = 1
            };
            struct answer answer;
            double seconds;
            cr_assert_eq(session_decode(b->session, &job, &answer, &err), 0, "%s", err.msg);
            cr_assert_eq(session_decode_s(b->session, at, 5, &seconds, &err), 0, "%s", err.msg);
            cr_assert_gt(seconds, 0);
            for (int i = 0; i < 5; i++) {
                const struct best *best = &b->session->forward.best_host[i];
                cr_assert_eq(best->id, answer.n ? answer.ids[0] : answer.stop, "%s, variant %d", name[l], v);
                cr_assert_eq(best->value - best->second, answer.margin, "%s, variant %d, copy %d", name[l], v, i);
            }
            free(answer.ids);
        }
        bench_run_free(r);
        bench_close(b);
    }
}

static void (*true_best)(struct backend *, struct best *, struct mat, const struct weight *);
static int steps;

static void counting_best(struct backend *be, struct best *out, struct mat x, const struct weight *head)
{
    steps++;
    true_best(be, out, x, head);
}

static double now, longer;

static double clock_of_steps(struct backend *be)
{
    (void)be;
    return now += longer;
}

/* One long step is enough, of short ones the fastest counts; the first of a batch size is not measured. */
Test(engine_seconds, few_steps)
{
    static const struct {
        double longer;
        int batch, steps;
    } list[] = { { 1, 3, 2 }, { 1, 3, 1 }, { 0.001, 3, 3 }, { 0.015, 3, 2 }, { 0.001, 4, 4 } };
    struct engine_bench *b = bench_open("reference");
    struct bench_answers *r = bench_run(b, (struct how){ 1, 1, 0, 0, 0, NULL });
    struct backend *be = engine_backend(b->engine);
    struct err err = { 0 };

    true_best = be->best;
    be->best = counting_best;
    be->clock = clock_of_steps;
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        double seconds;
        steps = 0;
        now = 0;
        longer = list[i].longer;
        cr_assert_eq(session_decode_s(b->session, &r->variant[0], list[i].batch, &seconds, &err), 0, "%s", err.msg);
        cr_assert_eq(steps, list[i].steps, "case %zu: %d steps", i, steps);
        cr_assert_float_eq(seconds, longer / list[i].batch, 1e-12, "case %zu: %g", i, seconds);
    }
    bench_run_free(r);
    bench_close(b);
}
