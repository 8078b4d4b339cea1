/* Sampled answers: the same in every batch and on every backend, drawn from the model's own logits. That they are the
 * same whatever questions share is tested with the others. */
#include "base/rng.h"
#include "tests/unit/engine_bench.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Those of three variants among four, more than are drawn at once, in batches of any size; and the others are what they
 * are without. */
Test(engine_sampled, do_not_depend_on_the_batch)
{
    for (size_t l = 0; l < ALONE_AND_TOGETHER; l++) {
        struct engine_bench *b = bench_open(alone_and_together[l]);
        if (!b)
            continue;
        struct bench_answers *all = bench_run(b, (struct how){ VARIANTS, QUESTIONS, 0, 0, 3, NULL }),
                             *greedy = bench_run_all(b, 0);
        for (int batch = 1; batch <= 5; batch += 4) {
            struct bench_answers *some = bench_run(b, (struct how){ VARIANTS, QUESTIONS, batch, 0, 3, NULL });
            bench_same_answers(all, some, "fewer at once");
            bench_run_free(some);
        }
        int other = 0;
        for (int i = 0; i < VARIANTS * QUESTIONS; i++) {
            bool same = all->answer[i].n == greedy->answer[i].n &&
                        memcmp(all->answer[i].ids, greedy->answer[i].ids,
                               (size_t)all->answer[i].n * sizeof(*all->answer[i].ids)) == 0;
            cr_assert(same || i >= QUESTIONS, "answer %d was not to be sampled", i);
            other += !same;
        }
        cr_assert_gt(other, 0, "nothing was drawn");
        bench_run_free(greedy);
        bench_run_free(all);
        bench_close(b);
    }
}

/* Is `id` the token that `unit` draws? Rounding the context's cache moves the borders of the tokens a little. */
static bool drawn(const float *logits, double unit, int32_t id)
{
    const double near = 0.005;
    double sum = 0, before = 0;

    for (int i = 0; i < TINY_VOCAB; i++)
        sum += exp((double)logits[i] / bench_temperature);
    for (int i = 0; i < id; i++)
        before += exp((double)logits[i] / bench_temperature);
    return before / sum <= unit + near && unit - near < (before + exp((double)logits[id] / bench_temperature)) / sum;
}

/* Each token is the one that its question's generator draws from the logits of the whole text. */
Test(engine_sampled, are_drawn_from_the_logits)
{
    struct engine_bench *b = bench_on_cpu();
    struct bench_answers *r = bench_run(b, (struct how){ 1, QUESTIONS, 0, 0, 1, NULL });
    struct err err = { 0 };
    int tokens = 0;

    for (int q = 0; q < QUESTIONS; q++) {
        const struct answer *a = &r->answer[q];
        int before = CONTEXT + b->question[q].n, n = before + a->n;
        struct rng rng = rng_new(bench_seeds[q]);
        int32_t *text = calloc((size_t)n, sizeof(*text));
        float *logits = calloc((size_t)n * TINY_VOCAB, sizeof(*logits));
        memcpy(text, b->ids, CONTEXT * sizeof(*text));
        memcpy(text + CONTEXT, b->question[q].ids, (size_t)b->question[q].n * sizeof(*text));
        memcpy(text + before, a->ids, (size_t)a->n * sizeof(*text));
        cr_assert_eq(session_logits(b->session, text, n, logits, &err), 0, "%s", err.msg);
        for (int t = 0; t < a->n; t++)
            cr_assert(drawn(logits + (size_t)(before - 1 + t) * TINY_VOCAB, rng_unit(&rng), a->ids[t]),
                      "question %d, token %d", q, t);
        tokens += a->n;
        free(text);
        free(logits);
    }
    cr_assert_gt(tokens, QUESTIONS);
    bench_run_free(r);
    bench_close(b);
}
