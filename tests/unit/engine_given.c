/* Given answers: their likelihood is that of the model's own logits, in any batch and on every backend. */
#include "tests/unit/engine_bench.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Mean log probability of an answer's ids and its stop, from the logits of the whole text. */
static double likelihood_of(struct engine_bench *b, int q, const struct answer *a)
{
    int before = CONTEXT + b->question[q].n, n = before + a->n, n_targets = a->n + (a->stop >= 0);
    int32_t *text = calloc((size_t)n + 1, sizeof(*text));
    float *logits = calloc((size_t)n * TINY_VOCAB, sizeof(*logits));
    struct err err = { 0 };
    double mean = 0;

    memcpy(text, b->ids, CONTEXT * sizeof(*text));
    memcpy(text + CONTEXT, b->question[q].ids, (size_t)b->question[q].n * sizeof(*text));
    memcpy(text + before, a->ids, (size_t)a->n * sizeof(*text));
    cr_assert_eq(session_logits(b->session, text, n, logits, &err), 0, "%s", err.msg);
    text[n] = a->stop;
    for (int t = 0; t < n_targets; t++) {
        const float *row = logits + (size_t)(before - 1 + t) * TINY_VOCAB;
        double sum = 0;
        for (int v = 0; v < TINY_VOCAB; v++)
            sum += exp((double)row[v]);
        mean += ((double)row[text[before + t]] - log(sum)) / n_targets;
    }
    free(text);
    free(logits);
    return mean;
}

/* Greedy answers; the second one stops at once, the third after two ids, the fourth is random. */
static void make_answers(struct engine_bench *b, struct answer given[QUESTIONS])
{
    struct bench_answers *r = bench_run(b, (struct how){ 1, QUESTIONS, 0, 0, 0, NULL });

    for (int q = 0; q < QUESTIONS; q++) {
        given[q] =
            (struct answer){ .ids = calloc(NEW, sizeof(int32_t)), .n = r->answer[q].n, .stop = r->answer[q].stop };
        memcpy(given[q].ids, r->answer[q].ids, (size_t)given[q].n * sizeof(int32_t));
    }
    bench_run_free(r);
    given[1].n = 0;
    given[2].n = 2;
    given[1].stop = given[2].stop = 5;
    given[3].n = NEW;
    given[3].stop = -1;
    for (int i = 0; i < NEW; i++)
        given[3].ids[i] = b->ids[i];
}

static void free_answers(struct answer given[QUESTIONS])
{
    for (int q = 0; q < QUESTIONS; q++)
        free(given[q].ids);
}

/* The context's cache is rounded to bf16, its logits are not. */
Test(engine_given, likelihoods_are_those_of_the_logits)
{
    struct engine_bench *b = bench_on_cpu();
    struct answer given[QUESTIONS];

    make_answers(b, given);
    struct bench_answers *r = bench_run(b, (struct how){ 1, QUESTIONS, 0, 0, 0, given });
    for (int q = 0; q < QUESTIONS; q++) {
        double want = likelihood_of(b, q, &given[q]);
        cr_assert(want < -0.01 && fabs(r->answer[q].log_likelihood - want) < 0.01, "question %d: %g is %g", q,
                  r->answer[q].log_likelihood, want);
    }
    bench_run_free(r);
    free_answers(given);
    bench_close(b);
}

Test(engine_given, do_not_depend_on_the_batch)
{
    for (size_t l = 0; l < ALONE_AND_TOGETHER; l++) {
        struct engine_bench *b = bench_open(alone_and_together[l]);
        struct answer given[QUESTIONS];
        if (!b)
            continue;
        make_answers(b, given);
        struct bench_answers *all = bench_run(b, (struct how){ VARIANTS, QUESTIONS, 0, 0, 0, given });
        for (int batch = 1; batch <= 5; batch += 4) {
            struct bench_answers *some = bench_run(b, (struct how){ VARIANTS, QUESTIONS, batch, 0, 0, given });
            for (int i = 0; i < VARIANTS * QUESTIONS; i++)
                cr_assert(all->answer[i].log_likelihood == some->answer[i].log_likelihood,
                          "%s, answer %d: %.17g, %.17g", alone_and_together[l], i, all->answer[i].log_likelihood,
                          some->answer[i].log_likelihood);
            bench_run_free(some);
        }
        cr_assert(all->answer[0].log_likelihood != all->answer[QUESTIONS].log_likelihood, "variants are alike");
        bench_run_free(all);
        free_answers(given);
        bench_close(b);
    }
}
