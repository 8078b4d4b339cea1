/* The engine on a tiny random model, over a list of backends: each against the reference, grouped decoding against one
 * sequence at a time and against the whole text run again, and what it refuses. */
#include "engine/transformer/engine_internal.h"

#include "tests/unit/engine_bench.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What each backend's logits may differ from the reference's: in f32 by roundings of sums, in bf16 by those of every
 * activation. Behind the fence the same code runs. */
Test(engine, logits_agree_with_the_reference)
{
    static const struct {
        const char *name, *reference;
        float within;
    } list[] = { { "cpu", "reference", 1e-4f },
                 { "cuda", "reference", 1e-4f },
                 { "fenced", "reference", 0 },
                 { "cpu bf16", "reference bf16", 0.05f },
                 { "cuda bf16", "reference bf16", 0.05f },
                 { "fenced bf16", "reference bf16", 0 } };
    enum { N = 700 }; // more than a pass

    for (size_t l = 0; l < sizeof(list) / sizeof(*list); l++) {
        struct engine_bench *got = bench_open(list[l].name), *want = got ? bench_open(list[l].reference) : NULL;
        struct err err = { 0 };
        if (!got)
            continue;
        float *a = calloc(N * TINY_VOCAB, sizeof(*a)), *b = calloc(N * TINY_VOCAB, sizeof(*b));
        cr_assert_eq(session_logits(want->session, want->ids, N, a, &err), 0, "%s", err.msg);
        cr_assert_eq(session_logits(got->session, got->ids, N, b, &err), 0, "%s", err.msg);
        for (size_t i = 0; i < N * TINY_VOCAB; i++)
            cr_assert(fabsf(a[i] - b[i]) <= list[l].within * (1 + fabsf(a[i])), "%s, position %zu: %g, reference %g",
                      list[l].name, i / TINY_VOCAB, (double)b[i], (double)a[i]);
        free(a);
        free(b);
        bench_close(want);
        bench_close(got);
    }
}

/* ---- decoding ----------------------------------------------------------- */

/* Which sequences a backend may take together: those of one variant, next to each other. */
Test(engine, passes_say_who_begins_alike)
{
    static const int variant[] = { 0, 0, 0, 1, 1, 2 };
    enum { N = sizeof(variant) / sizeof(*variant), SHARED = 70 };
    struct attn_span own[N], shared[N];
    int32_t ids[N], position[N], slot[N], since[N], n_same[N];
    struct pass p = {
        .rows = N,
        .host = { .own = own, .shared = shared, .ids = ids, .position = position, .slot = slot, .since = since },
        .n_same = n_same,
    };

    for (int again = 0; again < 2; again++) {
        pass_clear(&p);
        for (int i = 0; i < N; i++) {
            pass_add(&p, &(struct pass_tokens){ .ids = &(int32_t){ 7 }, .n = 1, .slot = 100 * i + 80 }, 100 * i);
            pass_share(&p, variant[i], 1, SHARED);
        }
        for (int i = 0; i < N; i++)
            cr_assert(n_same[i] == (i > 0 && variant[i] == variant[i - 1] ? SHARED : 0) && since[i] == 80, "%d", i);
    }
}

Test(engine, answers_do_not_depend_on_the_batch)
{
    for (size_t l = 0; l < ALONE_AND_TOGETHER; l++) {
        struct engine_bench *b = bench_open(alone_and_together[l]);
        if (!b)
            continue;
        struct bench_answers *all = bench_run_all(b, 0);
        int tokens = 0, early = 0;
        for (int i = 0; i < VARIANTS * QUESTIONS; i++) {
            tokens += all->answer[i].n;
            early += all->answer[i].n < NEW;
        }
        cr_assert_gt(tokens, 0);
        cr_assert(early > 0, "no sequence leaves early: choose another seed");
        for (int batch = 1; batch <= 5; batch += 4) {
            struct bench_answers *some = bench_run_all(b, batch);
            bench_same_answers(all, some, "fewer at once");
            bench_run_free(some);
        }
        bench_run_free(all);
        bench_close(b);
    }
}

/* Not over a quantised cache: two bits turn the last bit of a key into another code. Behind the fence nothing outside
 * of ops may touch what is on the device. */
Test(engine, answers_do_not_depend_on_the_backend)
{
    static const char *const list[] = { "cpu", "fenced", "cuda" };
    struct engine_bench *reference = bench_open("reference");
    struct bench_answers *want = bench_run(reference, (struct how){ 3, 3, 7, 0, 1, NULL });

    for (size_t l = 0; l < 3; l++) {
        struct engine_bench *b = bench_open(list[l]);
        if (!b)
            continue;
        struct bench_answers *got = bench_run(b, (struct how){ 3, 3, 0, 0, 1, NULL });
        bench_same_answers(want, got, list[l]);
        bench_run_free(got);
        bench_close(b);
    }
    bench_run_free(want);
    bench_close(reference);
}

static int best_of(const float *logits)
{
    int best = 0;
    for (int i = 1; i < TINY_VOCAB; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* Decoding over the uncompressed cache is what running the whole text again gives. */
Test(engine, answers_over_the_full_cache_are_those_of_the_whole_text)
{
    struct engine_bench *b = bench_on_cpu();
    struct bench_answers *r = bench_run_all(b, 0);
    struct err err = { 0 };

    for (int q = 0; q < QUESTIONS; q++) {
        const struct answer *a = &r->answer[q];
        int before = CONTEXT + b->question[q].n, n = before + a->n;
        int32_t *text = calloc((size_t)n, sizeof(*text));
        float *logits = calloc((size_t)n * TINY_VOCAB, sizeof(*logits));
        memcpy(text, b->ids, CONTEXT * sizeof(*text));
        memcpy(text + CONTEXT, b->question[q].ids, (size_t)b->question[q].n * sizeof(*text));
        memcpy(text + before, a->ids, (size_t)a->n * sizeof(*text));
        cr_assert_eq(session_logits(b->session, text, n, logits, &err), 0, "%s", err.msg);
        for (int t = 0; t < a->n; t++)
            cr_assert_eq(best_of(logits + (size_t)(before - 1 + t) * TINY_VOCAB), a->ids[t], "question %d, token %d", q,
                         t);
        if (a->n < NEW)
            cr_assert(tokenizer_stops(engine_tokenizer(b->engine), best_of(logits + (size_t)(n - 1) * TINY_VOCAB)));
        free(text);
        free(logits);
    }
    bench_run_free(r);
    bench_close(b);
}

/* A model whose numbers grow beyond all bounds answers nothing, rather than the same nothing under every config. */
Test(engine, output_that_is_not_finite_is_an_error)
{
    static const char *const list[] = { "reference", "cpu", "cpu bf16", "cuda", "cuda bf16" };

    for (size_t l = 0; l < 5; l++) {
        struct engine_bench *b = bench_open(list[l]);
        struct err err = { 0 };
        struct variant variant;
        const struct variant *at = &variant;
        struct answer answer[2] = { { .n = 7 }, { .n = 7 } };
        struct decode job = {
            .variant = &at, .n_variants = 1, .question = b ? b->question : NULL, .n_questions = 2, .max_new_tokens = 3
        };
        if (!b)
            continue;
        float huge[64];
        for (int i = 0; i < 64; i++)
            huge[i] = 3e38f;
        engine_backend(b->engine)->write(engine_backend(b->engine), b->engine->norm, huge, sizeof(huge));
        cr_assert_eq(session_prefill(b->session, &(struct prefill){ .ids = b->ids, .n = 50 }, NULL, &err), 0);
        struct compressor *c = compressor_new(session_full(b->session), b->list, 1, &err);
        cr_assert_eq(compressor_variant(c, b->list[0], VARIANT_ROWS, &variant, &err), 0);
        cr_assert_eq(session_decode(b->session, &job, answer, &err), ERR_FORMAT, "%s", list[l]);
        cr_assert(strstr(err.msg, "not finite"), "%s", err.msg);
        cr_assert(!answer[0].ids && answer[0].n == 0 && !answer[1].ids, "nothing is left to free");
        job.n_sampled = 1;
        job.temperature = 1;
        job.seed = bench_seeds;
        cr_assert_eq(session_decode(b->session, &job, answer, &err), ERR_FORMAT, "%s", list[l]);
        cr_assert(strstr(err.msg, "not finite"), "%s", err.msg);
        variant_release(&variant);
        compressor_free(c);
        bench_close(b);
    }
}

/* ---- side outputs and refusals ------------------------------------------ */

static float *read_floats(struct backend *be, const void *device, size_t n)
{
    struct err err = { 0 };
    float *host = calloc(n, sizeof(*host));

    cr_assert_eq(be->read(be, host, device, n * sizeof(*host), &err), 0, "%s", err.msg);
    return host;
}

Test(engine, saves_the_queries_of_the_last_tokens)
{
    enum { N = 530, SMALL = 40, FLOATS = 2 * 32 }; // the window begins before the second chunk; a token of a kv head
    struct engine_bench *b = bench_on_cpu();
    struct err err = { 0 };
    struct prefill p = { .ids = b->ids, .n = N, .needs = NEED_WINDOW_Q, .window = N + 1 };
    double seconds = 0;

    cr_assert_eq(session_prefill(b->session, &p, &seconds, &err), 0, "%s", err.msg);
    const struct kv_full *full = session_full(b->session);
    cr_assert(full->window == N && full->n_tokens == N && full->rows[3].n == N && seconds > 0);
    float *whole = read_floats(full->backend, full->window_q[1], 2 * N * FLOATS);
    p.window = SMALL;
    cr_assert_eq(session_prefill(b->session, &p, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(full->window, SMALL);
    float *last = read_floats(full->backend, full->window_q[1], 2 * SMALL * FLOATS);
    for (int g = 0; g < 2; g++)
        cr_assert_arr_eq(last + g * SMALL * FLOATS, whole + (g * N + N - SMALL) * FLOATS,
                         SMALL * FLOATS * sizeof(float));
    free(last);
    p.needs = NEED_NOTHING;
    cr_assert_eq(session_prefill(b->session, &p, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(full->window, 0);
    free(whole);
    bench_close(b);
}

static int prefill_n(struct engine_bench *b, const int32_t *ids, int n, struct err *err)
{
    return session_prefill(b->session, &(struct prefill){ .ids = ids, .n = n }, NULL, err);
}

Test(engine, refuses_contexts_it_cannot_run)
{
    struct engine_bench *b = bench_on_cpu();
    struct err err = { 0 };
    static int32_t many[TINY_MAX_TOKENS + 1];
    const int32_t strange[] = { 1, TINY_VOCAB }, negative[] = { -1 }, last[] = { TINY_VOCAB - 1 };

    cr_assert_eq(prefill_n(b, many, 0, &err), ERR_USAGE);
    cr_assert_eq(prefill_n(b, many, TINY_MAX_TOKENS + 1, &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "2049 tokens, the model allows 2048"), "%s", err.msg);
    cr_assert_eq(prefill_n(b, many, TINY_MAX_TOKENS, &err), 0, "%s", err.msg);
    cr_assert_eq(prefill_n(b, last, 1, &err), 0, "%s", err.msg);
    cr_assert_eq(prefill_n(b, negative, 1, &err), ERR_USAGE);
    cr_assert_eq(prefill_n(b, strange, 2, &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "token 1 is 271"), "%s", err.msg);
    cr_assert_null(session_full(b->session)->rows, "a failed prefill leaves no cache");
    bench_close(b);
}

Test(engine, refuses_questions_it_cannot_run)
{
    struct engine_bench *b = bench_on_cpu();
    struct err err = { 0 };
    struct variant variant = { 0 };
    const struct variant *at = &variant;
    struct answer answer[2];
    struct question_ids question[2] = { { b->ids, 5 }, { b->ids, 0 } };
    struct decode job = {
        .variant = &at, .n_variants = 1, .question = question, .n_questions = 2, .max_new_tokens = 3
    };

    cr_assert_eq(prefill_n(b, b->ids, CONTEXT, &err), 0, "%s", err.msg);
    struct compressor *c = compressor_new(session_full(b->session), b->list, 1, &err);
    cr_assert_eq(compressor_variant(c, b->list[0], VARIANT_ROWS, &variant, &err), 0);
    cr_assert_eq(session_decode(b->session, &job, answer, &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "question 1 is empty"), "%s", err.msg);
    question[1].n = TINY_MAX_TOKENS - CONTEXT;
    cr_assert_eq(session_decode(b->session, &job, answer, &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "the model allows 2048"), "%s", err.msg);
    job.n_questions = 1;
    job.max_new_tokens = 0;
    cr_assert_eq(session_decode(b->session, &job, answer, &err), ERR_USAGE);
    variant_release(&variant);
    compressor_free(c);
    bench_close(b);
}

/* Context, question and answer of exactly the model's length, one token fewer, one more. What is answered at the limit
 * is what the whole text gives, so the last place has its rotary angles, too. */
Test(engine, answers_up_to_the_models_limit)
{
    enum { LAST = 4, ASK = 6, ROWS = TINY_MAX_TOKENS - ASK - LAST + 1 };
    struct engine_bench *b = bench_on_cpu();
    struct err err = { 0 };
    static int32_t text[ROWS + ASK + LAST];
    float *logits = calloc((size_t)TINY_MAX_TOKENS * TINY_VOCAB, sizeof(*logits));

    for (int i = 0; i < ROWS + ASK + 1; i++)
        text[i] = b->ids[i];
    cr_assert_eq(prefill_n(b, text, ROWS, &err), 0, "%s", err.msg);
    struct variant variant;
    const struct variant *at = &variant;
    struct compressor *c = compressor_new(session_full(b->session), b->list, 1, &err);
    cr_assert_eq(compressor_variant(c, b->list[0], VARIANT_ROWS, &variant, &err), 0);
    struct answer answer = { 0 };
    for (int more = 1; more >= -1; more--) {
        struct question_ids question = { text + ROWS, ASK + more };
        struct decode job = {
            .variant = &at, .n_variants = 1, .question = &question, .n_questions = 1, .max_new_tokens = LAST
        };
        free(answer.ids);
        cr_assert_eq(session_decode(b->session, &job, &answer, &err), more > 0 ? ERR_USAGE : 0, "%d", more);
        if (more > 0)
            cr_assert(strstr(err.msg, "up to 2049 tokens, the model allows 2048"), "%s", err.msg);
        if (more == 0) {
            cr_assert_gt(answer.n, 0, "the answer is empty: choose another seed");
            memcpy(text + ROWS + ASK, answer.ids, (size_t)answer.n * sizeof(*text));
        }
    }
    free(answer.ids);
    variant_release(&variant);
    compressor_free(c);
    cr_assert_eq(session_logits(b->session, text, ROWS + ASK + LAST - 1, logits, &err), 0, "%s", err.msg);
    cr_assert_eq(best_of(logits + (size_t)(ROWS + ASK - 1) * TINY_VOCAB), text[ROWS + ASK]);
    free(logits);
    bench_close(b);
}

/* Contexts and questions as long as a pass, one token shorter, one longer, and longer than two passes: the first token
 * of each answer is what the whole text gives. */
Test(engine, passes_end_where_they_should)
{
    static const int length[][2] = { { 1, 511 }, { 1, 512 }, { 1, 513 }, { 2, 1025 }, { 512, 1 }, { 513, 2 } };
    struct engine_bench *b = bench_on_cpu();
    float *logits = calloc((size_t)TINY_MAX_TOKENS * TINY_VOCAB, sizeof(*logits));
    struct err err = { 0 };

    for (size_t i = 0; i < sizeof(length) / sizeof(*length); i++) {
        int n = length[i][0], asked = length[i][1];
        struct question_ids question = { b->ids + n, asked };
        struct variant variant;
        const struct variant *at = &variant;
        struct answer answer;
        struct decode job = {
            .variant = &at, .n_variants = 1, .question = &question, .n_questions = 1, .max_new_tokens = 1
        };
        cr_assert_eq(prefill_n(b, b->ids, n, &err), 0, "%s", err.msg);
        struct compressor *c = compressor_new(session_full(b->session), b->list, 1, &err);
        cr_assert_eq(compressor_variant(c, b->list[0], VARIANT_ROWS, &variant, &err), 0);
        cr_assert_eq(session_decode(b->session, &job, &answer, &err), 0, "%s", err.msg);
        cr_assert_eq(session_logits(b->session, b->ids, n + asked, logits, &err), 0, "%s", err.msg);
        int best = best_of(logits + (size_t)(n + asked - 1) * TINY_VOCAB);
        if (answer.n)
            cr_assert_eq(answer.ids[0], best, "%d and %d tokens", n, asked);
        else
            cr_assert(tokenizer_stops(engine_tokenizer(b->engine), best));
        free(answer.ids);
        variant_release(&variant);
        compressor_free(c);
    }
    free(logits);
    bench_close(b);
}

/* As many sequences as a block of logits and as a pass hold, one fewer, one more: each answers as it does among
 * seven. */
Test(engine, groups_of_sequences_end_where_they_should)
{
    static const int count[] = { 63, 64, 65, 512, 513 };
    enum { MAX = 513 };
    struct engine_bench *b = bench_on_cpu();
    struct err err = { 0 };
    struct question_ids question[MAX];
    static struct answer few[MAX], answer[MAX];
    struct variant variant;
    const struct variant *at = &variant;

    for (int q = 0; q < MAX; q++)
        question[q] = (struct question_ids){ b->ids + q, 1 };
    cr_assert_eq(prefill_n(b, b->ids, 3, &err), 0, "%s", err.msg);
    struct compressor *c = compressor_new(session_full(b->session), b->list, 1, &err);
    cr_assert_eq(compressor_variant(c, b->list[0], VARIANT_ROWS, &variant, &err), 0);
    struct decode job = {
        .variant = &at, .n_variants = 1, .question = question, .n_questions = MAX, .max_new_tokens = 2, .batch = 7
    };
    cr_assert_eq(session_decode(b->session, &job, few, &err), 0, "%s", err.msg);
    job.batch = 0;
    for (size_t i = 0; i < sizeof(count) / sizeof(*count); i++) {
        job.n_questions = count[i];
        job.batch = i % 2 ? 1000 : 0; // more than a pass holds; the engine's choice
        cr_assert_eq(session_decode(b->session, &job, answer, &err), 0, "%s", err.msg);
        for (int q = 0; q < count[i]; q++) {
            cr_assert(answer[q].n == few[q].n, "%d of %d", q, count[i]);
            cr_assert_arr_eq(answer[q].ids, few[q].ids, (size_t)few[q].n * sizeof(int32_t), "%d of %d", q, count[i]);
            free(answer[q].ids);
        }
    }
    for (int q = 0; q < MAX; q++)
        free(few[q].ids);
    variant_release(&variant);
    compressor_free(c);
    bench_close(b);
}

Test(engine, refuses_what_this_build_does_not_have)
{
    struct err err = { 0 };
    char path[64];

    tiny_model_make(path);
    cr_assert_null(
        engine_open(&(struct engine_options){ .model = path, .backend = "reference", .dtype = "f16" }, &err));
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert_null(engine_open(&(struct engine_options){ .model = path, .backend = "tpu" }, &err));
    cr_assert_eq(err.code, ERR_DEVICE);
    tiny_model_remove(path);
    cr_assert_null(engine_open(&(struct engine_options){ .model = path, .backend = "cpu" }, &err));
    cr_assert_eq(err.code, ERR_IO);
}

Test(engine, says_what_work_will_cost)
{
    struct engine_bench *b = bench_on_cpu();
    struct engine_work work = { .n_tokens = 1000,
                                .config = b->list,
                                .n_configs = 2, // keep 1.5 contexts together
                                .n_questions = 4,
                                .question_tokens = 40,
                                .longest_question = 16,
                                .max_new_tokens = 6 };
    struct engine_cost cost = engine_cost(b->engine, &work);
    double layers = 2.0 * 2 * (64 * (128 * 2 + 64 * 2) + 3 * 64 * 96), pair = 4.0 * 2 * 128;

    cr_assert_float_eq(cost.prefill_flop, 1000 * layers + pair * 1000 * 1000 / 2, 1);
    cr_assert_float_eq(cost.decode_flop,
                       8 * (15 * layers + 2.0 * 64 * 271 * 6 + pair * 15 * 15 / 2) + 4 * 15 * pair * 1000 * 1.5, 1);
    work.n_shared = 7; // runs once per variant, not once per question
    cr_assert_float_eq(cost.decode_flop - engine_cost(b->engine, &work).decode_flop,
                       2 * 3 * 7 * layers + 3 * 7 * pair * 1000 * 1.5, 1);
    bench_close(b);
}

/* What questions begin with runs once per variant; the answers are the same. */
Test(engine, answers_do_not_depend_on_what_questions_share)
{
    for (size_t l = 0; l < ALONE_AND_TOGETHER; l++) {
        struct engine_bench *b = bench_open(alone_and_together[l]);

        if (!b)
            continue;
        for (int q = 0; q < QUESTIONS; q++) // every question begins with the first 40 ids of the last
            b->question[q] = (struct question_ids){ b->ids + CONTEXT + (QUESTIONS - 1) * LONG, q == 3 ? LONG : 41 };
        int32_t own[3][41];
        for (int q = 0; q < 3; q++) {
            memcpy(own[q], b->question[q].ids, sizeof(own[q]));
            own[q][40] = q;
            b->question[q].ids = own[q];
        }
        struct bench_answers *apart = bench_run(b, (struct how){ VARIANTS, QUESTIONS, 0, 0, 1, NULL });
        static const struct how shared[] = { { VARIANTS, QUESTIONS, 0, 40, 1, NULL },
                                             { VARIANTS, QUESTIONS, 3, 39, 1, NULL },
                                             { VARIANTS, QUESTIONS, 1, 1, 1, NULL } };
        for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
            struct bench_answers *together = bench_run(b, shared[i]);
            bench_same_answers(apart, together, "shared tokens");
            bench_run_free(together);
        }
        bench_run_free(apart);
        bench_close(b);
    }
}
