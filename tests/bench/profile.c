/* profile.c - how fast a whole profile runs: one line of JSON for tests/bench/compare.py.
 *
 *     profile MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS DTYPE
 *
 * All contexts are run as evp-profile does; reading the model is not in the time. Each runs twice and the second run
 * counts, as in a night of many contexts: the first also pays for memory that nobody has touched yet, which on a
 * virtual machine costs whatever its host takes to find it (first_seconds). Operations are those that are needed: what
 * questions share once per variant, answers as long as they came out. They are compared with the rate of the machine's
 * matrix products in the same run.
 */
#include "base/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/gemm_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations of one context, by the lengths of its answers. A step runs for each token but the first, and for the stop
 * that ends a shorter answer. */
static double flop_of(const struct bench *b, const struct work *w, const struct table *t)
{
    struct engine_work one = work_at_most(&b->grid, w, b->list, b->n_configs);
    double flop = engine_cost(b->engine, &one).prefill_flop;

    for (int v = 0; v < b->n_configs; v++) {
        struct engine_work some = one;
        some.config = b->list + v;
        some.n_configs = 1;
        some.max_new_tokens = 1;
        flop += engine_cost(b->engine, &some).decode_flop; // questions and first tokens
        for (int q = 0; q < w->n_questions; q++) {
            struct engine_work answer = some;
            int n = t->answer_n_tokens[table_answer(t, q, v)], steps = n < b->grid.max_new_tokens ? n : n - 1;
            answer.n_questions = 1;
            answer.n_shared = 0;
            answer.question_tokens = answer.longest_question = w->question_ids[q].n;
            double first = engine_cost(b->engine, &answer).decode_flop;
            answer.max_new_tokens = 1 + steps;
            flop += engine_cost(b->engine, &answer).decode_flop - first;
        }
    }
    return flop;
}

static int run(struct bench *b, char **arg, struct err *err)
{
    const struct bench_options options = { .contexts = arg[2],
                                           .questions = arg[3],
                                           .configs = arg[4],
                                           .max_new_tokens = (int)strtol(arg[5], NULL, 10),
                                           .engine = { .model = arg[1], .backend = "cpu", .dtype = arg[6] } };
    int64_t answers = 0, tokens = 0;
    double flop = 0, first = 0;

    if (bench_open(b, &options, err) || bench_start(b, err))
        return err->code;
    const struct run run = bench_run(b);
    struct backend *be = engine_backend(b->engine);
    const struct model_config *c = model_config(engine_model(b->engine));
    double before = gemm_rate(be->dtype, 2 * c->d_ff, c->d_model), seconds = 0;
    for (int i = 0; i < b->grid.n_work; i++) {
        struct table t;
        double begin = clock_now(), again;
        if (run_work(&run, &b->grid.work[i], &t, err))
            return err->code;
        table_release(&t);
        again = clock_now();
        if (run_work(&run, &b->grid.work[i], &t, err))
            return err->code;
        first += again - begin;
        seconds += clock_now() - again;
        flop += flop_of(b, &b->grid.work[i], &t);
        for (size_t a = 0; a < table_n_answers(&t); a++, answers++)
            tokens += t.answer_n_tokens[a];
        table_release(&t);
    }
    double after = gemm_rate(be->dtype, 2 * c->d_ff, c->d_model), rate = (before + after) / 2;
    printf("{\"backend\":\"%s\",\"dtype\":\"%s\",\"first_seconds\":%.3f,\"seconds\":%.3f,\"answers\":%lld,\"tokens\":%"
           "lld,\"flop\":%.4g,"
           "\"gemm_rate\":%.4g,\"share\":%.3f}\n",
           be->kind, dtype_name(be->dtype), first, seconds, (long long)answers, (long long)tokens, flop, rate,
           flop / seconds / rate);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b;
    struct err err;

    if (argc != 7) {
        fprintf(stderr, "usage: profile MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS DTYPE\n");
        return 2;
    }
    int code = run(&b, argv, &err);
    if (code)
        fprintf(stderr, "profile: %s\n", err.msg);
    bench_close(&b);
    return code ? err_exit_status(code) : 0;
}
