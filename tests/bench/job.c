/* job.c - a whole profile on any backend, context by context: one object of JSON, for scripts/gpu-first and
 * tests/bench/roofline.py.
 *
 *     job MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS BACKEND DTYPE plain|ops [TEMPERATURE]
 *
 * TEMPERATURE: the reference answers a second time, sampled, as evp-profile has it by default; 0 without it.
 * plain: how long prefill and the whole context take; reading the model is not in it. ops: every op by phase, with its
 * calls, seconds, operations and bytes. Then the clock is read around each op, so ops do not overlap and the whole
 * takes longer; clock_s is what two readings with nothing between them take.
 */
#include "base/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct bench bench;
    bool timed;
    struct ops begin, prefilled, end; // of one context
    int64_t tokens, prefill;          // done of it; those of its prefill
};

static struct ops now(const struct job *j)
{
    return ops_now(j->timed ? engine_backend(j->bench.engine) : NULL);
}

/* Called after every pass of the prefill, and later. */
static void on_tokens(void *arg, int64_t tokens)
{
    struct job *j = arg;
    bool before = j->tokens < j->prefill;

    j->tokens += tokens;
    if (before && j->tokens >= j->prefill)
        j->prefilled = now(j);
}

/* After the prefill an op belongs to making variants or to answering questions. */
static const char *later_phase(const char *op)
{
    static const char *const variants[] = { "attend text", "avg_pool",      "column_stats", "copy",
                                            "dequantise",  "gather",        "joint_counts", "key_cosines",
                                            "key_forms",   "key_norms",     "mean_heads",   "quantise",
                                            "repeat",      "scale_columns", "top_k" };

    for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++)
        if (strcmp(op, variants[i]) == 0)
            return "variants";
    return "answers";
}

static const char *prefill_phase(const char *op)
{
    (void)op;
    return "prefill";
}

static int run_context(struct job *j, const struct work *work, struct json_out *w, struct err *err)
{
    struct run run = bench_run(&j->bench);
    struct table t;
    int64_t tokens = 0;
    int longest = 0;

    j->tokens = 0;
    j->prefill = work->ids.n;
    run.progress = on_tokens;
    run.arg = j;
    j->begin = now(j);
    double begin = clock_now();
    if (run_work(&run, work, &t, err))
        return err->code;
    double seconds = clock_now() - begin;
    j->end = now(j);
    for (size_t a = 0; a < table_n_answers(&t); a++)
        tokens += t.answer_n_tokens[a];
    for (int q = 0; q < work->n_questions; q++)
        longest = work->question_ids[q].n > longest ? work->question_ids[q].n : longest;
    json_begin(w, NULL, '{');
    json_put_int(w, "n_tokens", work->ids.n);
    json_put_int(w, "n_variants", j->bench.n_configs);
    json_put_int(w, "n_questions", work->n_questions);
    json_put_int(w, "question_tokens", longest);
    json_put_int(w, "shared_tokens", work->n_shared);
    json_put_real(w, "prefill_s", t.prefill_s[0]);
    json_put_real(w, "question_s", t.question_s[0]);
    json_put_real(w, "seconds", seconds);
    json_put_int(w, "answers", (int64_t)table_n_answers(&t));
    json_put_int(w, "answer_tokens", tokens);
    json_begin(w, "ops", '[');
    ops_put(w, &j->begin, &j->prefilled, prefill_phase);
    ops_put(w, &j->prefilled, &j->end, later_phase);
    json_end(w, ']');
    json_end(w, '}');
    table_release(&t);
    return 0;
}

static int run(struct job *j, char **arg, struct buf *out, struct err *err)
{
    struct json_out w = { .buf = out };
    const struct bench_options options = {
        .contexts = arg[2],
        .questions = arg[3],
        .configs = arg[4],
        .max_new_tokens = (int)strtol(arg[5], NULL, 10),
        .temperature = arg[9] ? strtod(arg[9], NULL) : 0,
        .engine = { .model = arg[1], .backend = arg[6], .dtype = arg[7], .timed = j->timed }
    };
    double begin = clock_now();

    if (bench_open(&j->bench, &options, err) || bench_start(&j->bench, err))
        return err->code;
    struct backend *be = engine_backend(j->bench.engine);
    json_begin(&w, NULL, '{');
    json_put_text(&w, "model", model_config(engine_model(j->bench.engine))->name);
    json_put_text(&w, "backend", be->kind);
    json_put_text(&w, "dtype", dtype_name(be->dtype));
    json_put_int(&w, "pass_rows", be->pass_rows);
    json_put_text(&w, "configs", arg[4]);
    json_put_int(&w, "new_tokens", options.max_new_tokens);
    json_put_real(&w, "temperature", options.temperature);
    json_put_real(&w, "start_s", clock_now() - begin);
    json_put_real(&w, "clock_s", ops_clock_s(be));
    json_begin(&w, "contexts", '[');
    for (int i = 0; i < j->bench.grid.n_work; i++)
        if (run_context(j, &j->bench.grid.work[i], &w, err))
            return err->code;
    json_end(&w, ']');
    json_end(&w, '}');
    return buf_failed(out) ? err_nomem(err) : 0;
}

int main(int argc, char **argv)
{
    struct job j = { .timed = argc >= 9 && strcmp(argv[8], "ops") == 0 };
    struct buf out = { 0 };
    struct err err;

    if (argc < 9 || argc > 10 || (!j.timed && strcmp(argv[8], "plain") != 0)) {
        fprintf(stderr,
                "usage: job MODEL CONTEXTS QUESTIONS CONFIGS NEW_TOKENS BACKEND DTYPE plain|ops [TEMPERATURE]\n");
        return 2;
    }
    int code = run(&j, argv, &out, &err);
    if (code)
        fprintf(stderr, "job: %s\n", err.msg);
    else
        puts(buf_str(&out));
    bench_close(&j.bench);
    buf_release(&out);
    return code ? err_exit_status(code) : 0;
}
