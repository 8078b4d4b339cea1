/* profile.c - how fast a whole profile runs: one line of JSON for tests/bench/compare.py.
 *
 *     profile MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS DTYPE
 *
 * All contexts are run as evp-profile does; reading the model is not in the time. Operations are those that are needed:
 * what questions share once per variant, answers as long as they came out. They are compared with the rate of the
 * machine's matrix products in the same run.
 */
#include "base/clock.h"
#include "profiler/groups.h"
#include "profiler/run.h"
#include "tests/bench/gemm_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct contexts contexts;
    struct questions questions;
    struct config *config;
    const struct config **list;
    int n_configs;
    struct engine *engine;
    struct session *session;
    struct store store;
    struct grid grid;
};

static int open_bench(struct bench *b, char **arg, struct err *err)
{
    const struct engine_options options = { .model = arg[1], .backend = "cpu", .dtype = arg[6] };

    if (contexts_read(&b->contexts, arg[2], err) || questions_read(&b->questions, arg[3], err) ||
        config_list(&b->config, &b->n_configs, arg[4], err))
        return err->code;
    b->list = calloc((size_t)b->n_configs, sizeof(struct config *));
    b->engine = b->list ? engine_open(&options, err) : NULL;
    if (!b->engine)
        return err->code;
    for (int v = 0; v < b->n_configs; v++)
        b->list[v] = &b->config[v];
    const struct grid_input in = { .contexts = &b->contexts,
                                   .questions = &b->questions,
                                   .config = b->config,
                                   .n_configs = b->n_configs,
                                   .shard = { 1, 1 },
                                   .max_new_tokens = (int)strtol(arg[5], NULL, 10),
                                   .model_tokens = model_config(engine_model(b->engine))->max_tokens,
                                   .tokenizer = engine_tokenizer(b->engine),
                                   .store = &b->store };
    return grid_begin(&b->grid, &in, err) ? err->code : grid_plan(&b->grid, &in, err);
}

static int start(struct bench *b, struct err *err)
{
    struct engine_work *work = calloc((size_t)b->grid.n_work, sizeof(*work));

    if (!work)
        return err_nomem(err);
    for (int i = 0; i < b->grid.n_work; i++)
        work[i] = work_at_most(&b->grid, &b->grid.work[i], b->list);
    b->session = engine_start(b->engine, work, b->grid.n_work, 0, err);
    free(work);
    return b->session ? 0 : err->code;
}

/* Operations of one context, by the lengths of its answers. A step runs for each token but the first, and for the stop
 * that ends a shorter answer. */
static double flop_of(const struct bench *b, const struct work *w, const struct table *t)
{
    struct engine_work one = work_at_most(&b->grid, w, b->list);
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
    const struct table_made made = { .model = "", .model_digest = "", .backend = "", .dtype = "" };
    int64_t answers = 0, tokens = 0;
    double flop = 0;

    if (open_bench(b, arg, err) || start(b, err))
        return err->code;
    const struct run run = {
        .engine = b->engine, .session = b->session, .grid = &b->grid, .made = &made, .lineage = "{}"
    };
    struct backend *be = engine_backend(b->engine);
    const struct model_config *c = model_config(engine_model(b->engine));
    double before = gemm_rate(be, 2 * c->d_ff, c->d_model), seconds = 0;
    for (int i = 0; i < b->grid.n_work; i++) {
        struct table t;
        double begin = clock_now();
        if (run_work(&run, &b->grid.work[i], &t, err))
            return err->code;
        seconds += clock_now() - begin;
        flop += flop_of(b, &b->grid.work[i], &t);
        for (size_t a = 0; a < table_n_answers(&t); a++, answers++)
            tokens += t.answer_n_tokens[a];
        table_release(&t);
    }
    double after = gemm_rate(be, 2 * c->d_ff, c->d_model), rate = (before + after) / 2;
    printf("{\"backend\":\"%s\",\"dtype\":\"%s\",\"seconds\":%.3f,\"answers\":%lld,\"tokens\":%lld,\"flop\":%.4g,"
           "\"gemm_rate\":%.4g,\"share\":%.3f}\n",
           be->kind, dtype_name(be->dtype), seconds, (long long)answers, (long long)tokens, flop, rate,
           flop / seconds / rate);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = { .store.lock = -1 };
    struct err err;

    if (argc != 7) {
        fprintf(stderr, "usage: profile MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS DTYPE\n");
        return 2;
    }
    int code = run(&b, argv, &err);
    if (code)
        fprintf(stderr, "profile: %s\n", err.msg);
    session_free(b.session);
    engine_close(b.engine);
    grid_release(&b.grid);
    free(b.list);
    free(b.config);
    questions_release(&b.questions);
    contexts_release(&b.contexts);
    return code ? err_exit_status(code) : 0;
}
