/* engine.c - how fast the engine prefills and decodes: one line of JSON for tests/bench/compare.
 *
 *     engine MODEL IDS_FILE PROMPT SEQUENCES NEW_TOKENS DTYPE
 *
 * IDS_FILE: token ids as text, so that every engine compared gets the same. PROMPT of them are the shared prompt;
 * SEQUENCES questions of 24 ids each, cut from the same text, are answered over it with NEW_TOKENS each, nothing ending
 * early: prefill, question forward and decode are timed apart. gemm_rate is that of the machine's matrix products in
 * the same run, prefill_share the share of it that prefill reaches.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "engine/transformer/engine.h"
#include "methods/config.h"
#include "tests/bench/gemm_rate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUESTION = 24, IDS = 1 << 20 };

static int read_ids(const char *path, struct tokens *ids, struct err *err)
{
    struct buf text = { 0 };

    if (file_read(&text, path, 16 << 20, err))
        return err->code;
    ids->at = calloc(IDS, sizeof(*ids->at));
    if (!ids->at)
        return err_nomem(err);
    for (char *at = text.at, *end; ids->n < IDS; at = end) {
        long id = strtol(at, &end, 10);
        if (end == at)
            break;
        ids->at[ids->n++] = (int32_t)id;
    }
    buf_release(&text);
    return 0;
}

struct timed {
    double seconds;
    long tokens;
};

/* How long it takes to answer all questions, and how many tokens that gives. */
static int time_decode(struct session *s, const struct decode *job, struct timed *t, struct err *err)
{
    struct answer *answer = calloc((size_t)job->n_questions, sizeof(*answer));
    double start = clock_now();

    if (!answer)
        return err_nomem(err);
    int code = session_decode(s, job, answer, err);
    *t = (struct timed){ .seconds = clock_now() - start };
    for (int q = 0; q < job->n_questions; q++) {
        t->tokens += answer[q].n;
        free(answer[q].ids);
    }
    free(answer);
    return code;
}

static int run(char **argv, struct err *err)
{
    struct tokens ids = { 0 };
    int prompt = (int)strtol(argv[3], NULL, 10), n = (int)strtol(argv[4], NULL, 10);
    int n_new = (int)strtol(argv[5], NULL, 10);
    struct config none;
    const struct config *const list[] = { &none };
    const struct engine_work work = { .n_tokens = prompt,
                                      .config = list,
                                      .n_configs = 1,
                                      .n_questions = n,
                                      .question_tokens = (int64_t)n * QUESTION,
                                      .longest_question = QUESTION,
                                      .max_new_tokens = n_new };
    double prefill_s;
    struct timed one, all;

    if (config_parse(&none, "none", err) || read_ids(argv[2], &ids, err))
        return err->code;
    if (prompt + QUESTION * n > ids.n)
        return err_set(err, ERR_USAGE, "'%s' has too few ids", argv[2]);
    struct engine *e =
        engine_open(&(struct engine_options){ .model = argv[1], .backend = "cpu", .dtype = argv[6] }, err);
    struct session *s = e ? engine_start(e, &work, 1, 0, err) : NULL;
    if (!s)
        return err->code;
    struct backend *be = engine_backend(e);
    const struct model_config *c = model_config(engine_model(e));
    double before = gemm_rate(be->dtype, 2 * c->d_ff, c->d_model);
    if (session_prefill(s, &(struct prefill){ .ids = ids.at, .n = prompt }, &prefill_s, err) || /* warms caches up */
        session_prefill(s, &(struct prefill){ .ids = ids.at, .n = prompt }, &prefill_s, err))
        return err->code;
    double rate = (before + gemm_rate(be->dtype, 2 * c->d_ff, c->d_model)) / 2;
    struct variant variant;
    struct compressor *compressor = compressor_new(session_full(s), list, 1, err);
    if (!compressor || compressor_variant(compressor, &none, VARIANT_ROWS, &variant, err))
        return err->code;
    struct question_ids *question = calloc((size_t)n, sizeof(*question));
    for (int q = 0; q < n; q++)
        question[q] = (struct question_ids){ ids.at + prompt + q * QUESTION, QUESTION };
    const struct variant *variants[] = { &variant };
    struct decode job = { .variant = variants, .n_variants = 1, .question = question, .n_questions = n };
    job.max_new_tokens = 1;
    if (time_decode(s, &job, &one, err))
        return err->code;
    job.max_new_tokens = n_new;
    if (time_decode(s, &job, &all, err))
        return err->code;
    printf("{\"backend\":\"%s\",\"dtype\":\"%s\",\"prefill_s\":%.4f,\"question_s\":%.4f,\"decode_s\":%.4f,"
           "\"decode_tokens\":%ld,\"gemm_rate\":%.4g,\"prefill_share\":%.3f}\n",
           be->kind, dtype_name(be->dtype), prefill_s, one.seconds, all.seconds - one.seconds, all.tokens - one.tokens,
           rate, engine_cost(e, &work).prefill_flop / prefill_s / rate);
    free(question);
    free(ids.at);
    variant_release(&variant);
    compressor_free(compressor);
    session_free(s);
    engine_close(e);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;

    if (argc != 7) {
        fprintf(stderr, "usage: engine MODEL IDS_FILE PROMPT SEQUENCES NEW_TOKENS DTYPE\n");
        return 2;
    }
    if (run(argv, &err)) {
        fprintf(stderr, "engine: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
