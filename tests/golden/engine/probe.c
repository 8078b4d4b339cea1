/* probe.c - the engine, bare, for the scripts beside it. Token ids are lines of numbers on standard input.
 *
 *     probe MODEL BACKEND logits OUT            one line: logits (n, n_vocab) after each id, as f32, into OUT
 *     probe MODEL BACKEND answers NEW BATCH CONFIGS
 *                                               a line of context, then lines of questions: a line of answer ids for
 *                                               each question, config by config; times on standard error
 */
#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "engine/engine.h"
#include "methods/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1024 };

struct input {
    struct buf text;
    int32_t *ids;
    struct question_ids line[LINES]; // into ids
    int n;
};

static int read_input(struct input *in, struct err *err)
{
    if (file_read(&in->text, "-", 64 << 20, err) < 0)
        return err->code;
    in->ids = calloc(in->text.n + 1, sizeof(*in->ids));
    if (!in->ids)
        return err_nomem(err);
    int32_t *to = in->ids;
    char *rest = in->text.at, *line;
    while (in->n < LINES && (line = strsep(&rest, "\n")) && (*line || rest)) {
        struct question_ids *q = &in->line[in->n++];
        q->ids = to;
        for (char *end = line; *line; line = end) {
            *to++ = (int32_t)strtol(line, &end, 10);
            end += strspn(end, " ");
        }
        q->n = (int)(to - q->ids);
    }
    return in->n ? 0 : err_set(err, ERR_FORMAT, "no ids on standard input");
}

static int logits(struct session *s, struct engine *e, const struct input *in, const char *path, struct err *err)
{
    size_t bytes = (size_t)in->line[0].n * (size_t)model_config(engine_model(e))->n_vocab * sizeof(float);
    float *out = malloc(bytes);
    int code = out ? session_logits(s, in->line[0].ids, in->line[0].n, out, err) : err_nomem(err);
    if (code == 0)
        code = file_write(path, out, bytes, err);
    free(out);
    return code;
}

static void print_answers(struct answer *answer, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < answer[i].n; j++)
            printf("%s%d", j ? " " : "", answer[i].ids[j]);
        printf("\n");
        free(answer[i].ids);
    }
}

/* All variants, derived from the prefilled context. */
static int variants_of(struct session *s, const struct config *configs, int n, struct variant *out, struct err *err)
{
    struct compressor *c = compressor_new(session_full(s), err);
    int code = c ? 0 : err->code;
    for (int i = 0; i < n && code == 0; i++)
        code = compressor_variant(c, &configs[i], VARIANT_ROWS, &out[i], err);
    compressor_free(c);
    return code;
}

static int answers(struct session *s, const struct input *in, char **arg, struct err *err)
{
    enum { VARIANTS = 64 };
    struct config *configs;
    struct variant variant[VARIANTS] = { 0 };
    const struct variant *at[VARIANTS];
    double prefill_s, question_s;
    int64_t max_new, batch;
    int n;

    if (!parse_int(arg[0], &max_new) || !parse_int(arg[1], &batch))
        return err_set(err, ERR_USAGE, "NEW and BATCH are numbers");
    if (config_list(&configs, &n, arg[2], err) < 0)
        return err->code;
    struct prefill p = { .ids = in->line[0].ids, .n = in->line[0].n };
    configs_need(configs, n, &p.needs, &p.window);
    if (n > VARIANTS)
        return err_set(err, ERR_USAGE, "more than %d configs", VARIANTS);
    if (session_prefill(s, &p, &prefill_s, err) < 0 || variants_of(s, configs, n, variant, err) < 0)
        return err->code;
    for (int i = 0; i < n; i++)
        at[i] = &variant[i];
    struct answer *answer = calloc((size_t)n * LINES, sizeof(*answer));
    struct decode job = { .variant = at,
                          .n_variants = n,
                          .question = in->line + 1,
                          .n_questions = in->n - 1,
                          .max_new_tokens = (int)max_new,
                          .batch = (int)batch };
    if (!answer)
        return err_nomem(err);
    if (session_decode(s, &job, answer, &question_s, err) < 0)
        return err->code;
    print_answers(answer, n * job.n_questions);
    fprintf(stderr, "prefill %.3f s, question %.4f s each\n", prefill_s, question_s);
    for (int i = 0; i < n; i++)
        variant_release(&variant[i]);
    free(answer);
    free(configs);
    return 0;
}

static int run(int argc, char **argv, struct err *err)
{
    struct input *in = calloc(1, sizeof(*in));
    struct engine *e = engine_open(&(struct engine_options){ .model = argv[1], .backend = argv[2] }, err);
    struct session *s = e ? session_new(e, err) : NULL;
    int code = s && in ? read_input(in, err) : err->code;

    if (code == 0 && argc == 5 && strcmp(argv[3], "logits") == 0)
        code = logits(s, e, in, argv[4], err);
    else if (code == 0 && argc == 7 && strcmp(argv[3], "answers") == 0)
        code = answers(s, in, argv + 4, err);
    else if (code == 0)
        code = err_set(err, ERR_USAGE, "see the top of probe.c");
    session_free(s);
    engine_close(e);
    buf_release(&in->text);
    free(in->ids);
    free(in);
    return code;
}

int main(int argc, char **argv)
{
    struct err err = { .code = ERR_USAGE, .msg = "see the top of probe.c" };

    if (argc < 4 || run(argc, argv, &err) < 0) {
        fprintf(stderr, "probe: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
