/* probe.c - the engine, bare, for the scripts beside it. Token ids are lines of numbers on standard input.
 *
 *     probe MODEL BACKEND[,DTYPE] logits OUT [ROWS [LAST]]
 *                                               one line: logits (n, n_vocab) after each id, or after the LAST, as f32,
 *                                               into OUT; in passes of ROWS tokens (0: the backend's number). Prints
 * the bytes that were planned, and those of the logits probe MODEL BACKEND[,DTYPE] answers NEW BATCH CONFIGS a line of
 * context, then lines of questions: a line of answer ids for each question, config by config; times on standard error
 */
#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "engine/transformer/engine.h"
#include "methods/config.h"
#include "variants/sizes.h"

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

/* arg: OUT and up to two more, then NULL. */
static int logits(struct engine *e, const struct input *in, char **arg, struct err *err)
{
    const size_t row = (size_t)model_config(engine_model(e))->n_vocab * sizeof(float);
    const int n = in->line[0].n;
    const struct engine_work work = { .n_tokens = n };
    struct engine_plan plan = { 0 };
    int64_t rows = 0, last = n;

    if ((arg[1] && !parse_int(arg[1], &rows)) || (arg[1] && arg[2] && !parse_int(arg[2], &last)) || last > n)
        return err_set(err, ERR_USAGE, "ROWS and LAST are numbers");
    if (rows > 0)
        engine_backend(e)->pass_rows = (int)rows;
    if (engine_plan(e, &work, 1, &plan, err))
        return err->code;
    printf("%llu %zu\n", (unsigned long long)plan.total, (size_t)n * row);
    struct session *s = engine_start(e, &work, 1, 0, err);
    char *out = malloc((size_t)n * row);
    int code = !out ? err_nomem(err) : s ? session_logits(s, in->line[0].ids, n, (float *)(void *)out, err) : err->code;
    if (code == 0)
        code = file_write(arg[0], out + (size_t)(n - last) * row, (size_t)last * row, err);
    free(out);
    session_free(s);
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
static int variants_of(struct session *s, const struct config *const *config, int n, struct variant *out,
                       struct err *err)
{
    struct compressor *c = compressor_new(session_full(s), config, n, err);
    int code = c ? 0 : err->code;
    for (int i = 0; i < n && code == 0; i++)
        code = compressor_variant(c, config[i], VARIANT_ROWS, &out[i], err);
    compressor_free(c);
    return code;
}

static struct engine_work work_of(const struct input *in, const struct config *const *list, int n, int max_new)
{
    struct engine_work w = { .n_tokens = in->line[0].n, .config = list, .n_configs = n, .max_new_tokens = max_new };

    for (w.n_questions = 0; w.n_questions < in->n - 1; w.n_questions++) {
        int tokens = in->line[1 + w.n_questions].n;
        w.question_tokens += tokens;
        w.longest_question = tokens > w.longest_question ? tokens : w.longest_question;
    }
    return w;
}

static int answers(struct engine *e, const struct input *in, char **arg, struct err *err)
{
    enum { VARIANTS = 64 };
    struct config *configs;
    const struct config *list[VARIANTS];
    struct variant variant[VARIANTS] = { 0 };
    const struct variant *at[VARIANTS];
    double prefill_s;
    int64_t max_new, batch;
    int n;

    if (!parse_int(arg[0], &max_new) || !parse_int(arg[1], &batch))
        return err_set(err, ERR_USAGE, "NEW and BATCH are numbers");
    if (config_list(&configs, &n, arg[2], err) < 0)
        return err->code;
    if (n > VARIANTS)
        return err_set(err, ERR_USAGE, "more than %d configs", VARIANTS);
    for (int i = 0; i < n; i++) {
        list[i] = &configs[i];
        at[i] = &variant[i];
    }
    const struct engine_work work = work_of(in, list, n, (int)max_new);
    struct session *s = engine_start(e, &work, 1, 0, err);
    struct prefill p = { .ids = in->line[0].ids, .n = in->line[0].n };
    configs_need(list, n, &p.needs, &p.window);
    if (!s || session_prefill(s, &p, &prefill_s, err) || session_repeat(s, &p, err) ||
        variants_of(s, list, n, variant, err))
        return err->code;
    struct answer *answer = calloc((size_t)n * LINES, sizeof(*answer));
    struct decode job = { .variant = at,
                          .n_variants = n,
                          .question = in->line + 1,
                          .n_questions = in->n - 1,
                          .max_new_tokens = (int)max_new,
                          .batch = (int)batch };
    if (!answer)
        return err_nomem(err);
    if (session_decode(s, &job, answer, err))
        return err->code;
    print_answers(answer, n * job.n_questions);
    fprintf(stderr, "prefill %.3f s\n", prefill_s);
    for (int i = 0; i < n; i++)
        variant_release(&variant[i]);
    free(answer);
    free(configs);
    session_free(s);
    return 0;
}

static int run(int argc, char **argv, struct err *err)
{
    struct input *in = calloc(1, sizeof(*in));
    char *dtype = strchr(argv[2], ',');
    if (dtype)
        *dtype++ = '\0';
    struct engine *e =
        engine_open(&(struct engine_options){ .model = argv[1], .backend = argv[2], .dtype = dtype }, err);
    int code = e && in ? read_input(in, err) : err->code;

    if (code == 0 && argc >= 5 && argc <= 7 && strcmp(argv[3], "logits") == 0)
        code = logits(e, in, argv + 4, err);
    else if (code == 0 && argc == 7 && strcmp(argv[3], "answers") == 0)
        code = answers(e, in, argv + 4, err);
    else if (code == 0)
        code = err_set(err, ERR_USAGE, "see the top of probe.c");
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
