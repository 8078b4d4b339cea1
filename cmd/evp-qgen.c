/* evp-qgen - questions about contexts: drawn from the text itself, from the data set, or from a model behind HTTP. */
#include "base/context.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "qgen/list.h"
#include "qgen/offline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int per_context, seed;
    bool from_dataset;
    const char *out, *shard_text;
    struct shard shard;
    struct opt_common common;
} cfg = { .per_context = 8, .out = "-", .shard = { 1, 1 } };

static const struct opt opts[] = {
    OPT_HEAD("Questions"),
    OPT_NUM('n', "per-context", &cfg.per_context, 1, 10000, "so many about each context"),
    OPT_NUM('s', "seed", &cfg.seed, 0, INT_MAX, "draw others with another seed"),
    OPT_BOOL('d', "from-dataset", &cfg.from_dataset, "take the questions that came with the data set"),
    OPT_HEAD("Output"),
    OPT_TEXT('o', "output", &cfg.out, "FILE", "where the questions go"),
    OPT_TEXT(0, "shard", &cfg.shard_text, "I/N", "only the I-th of N equal shares of the contexts"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-qgen",
    .summary = "ask questions about contexts",
    .operands = "[CONTEXTS]",
    .most = 1,
    .about = "Reads contexts (from standard input without CONTEXTS) and writes questions. Without an option they are "
             "drawn from the text itself, evenly over its length, and need the passage to be answered. Every second "
             "question is held out (split \"test\").",
    .examples = "  evp-qgen contexts.jsonl --per-context 8 >questions.jsonl\n"
                "  evp-qgen contexts.jsonl --from-dataset -o questions.jsonl\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- making ------------------------------------------------------------- */

/* What came of one context. */
struct result {
    struct asked_list list;
    bool failed; // said why
};

static int take_inputs(struct asked_list *list, const struct context *c, struct err *err)
{
    for (int i = 0; i < c->n_inputs && list->n < cfg.per_context; i++)
        if (asked_add(list, c->input[i].question, strlen(c->input[i].question), (size_t)i, NULL, err))
            return err->code;
    return 0;
}

static int make_one(struct result *r, const struct context *c, struct err *err)
{
    struct rng rng = rng_named((uint64_t)cfg.seed, c->id);
    int code;

    if (cfg.from_dataset)
        code = take_inputs(&r->list, c, err);
    else
        code = offline_ask(&r->list, c->text, cfg.per_context, &rng, err);
    if (code)
        return code;
    r->failed = r->list.n == 0;
    if (r->failed)
        log_error("context '%s' %s", c->id,
                  cfg.from_dataset ? "came without questions" : "has nothing to ask about: its text is too short");
    else if (r->list.n < cfg.per_context && !cfg.from_dataset)
        log_warn("context '%s' gives %d of %d questions", c->id, r->list.n, cfg.per_context);
    return 0;
}

static int make_all(struct result *r, const struct contexts *c, struct err *err)
{
    progress_begin("contexts", c->n);
    for (int i = 0; i < c->n; i++) {
        if (shard_has(cfg.shard, i) && make_one(&r[i], &c->at[i], err))
            return err->code;
        progress_add(1);
    }
    progress_end();
    return 0;
}

/* ---- writing ------------------------------------------------------------ */

static int put_question(struct rows_out *out, const struct context *c, const struct result *r, int i, struct err *err)
{
    struct buf id = { 0 };

    static char offline[] = "offline", dataset[] = "dataset";

    buf_printf(&id, "%s/q%d", c->id, i);
    struct question q = { .id = id.at,
                          .context = c->id,
                          .text = r->list.at[i].text,
                          .origin = cfg.from_dataset ? dataset : offline,
                          .split = i % 2 ? SPLIT_TEST : SPLIT_TRAIN };
    int code = buf_failed(&id) ? err_nomem(err) : 0;
    if (!code) {
        struct json_out w = rows_begin(out);
        question_to_json(&q, &w);
        code = rows_put(out, &w, err);
    }
    buf_release(&id);
    return code;
}

static int put_all(struct rows_out *out, const struct contexts *c, const struct result *r, struct err *err)
{
    for (int i = 0; i < c->n; i++)
        for (int q = 0; q < r[i].list.n; q++)
            if (put_question(out, &c->at[i], &r[i], q, err))
                return err->code;
    return 0;
}

static int write_all(const struct contexts *c, const struct result *r, char **args, int n_args, struct err *err)
{
    const struct json *from[] = { c->header };
    struct rows_made made = {
        .kind = "questions", .tool = tool.name, .args = args, .n_args = n_args, .from = from, .n_from = 1
    };
    struct rows_out out;

    if (rows_create(&out, cfg.out, &made, err))
        return err->code;
    if (put_all(&out, c, r, err)) {
        rows_abort(&out);
        return err->code;
    }
    return rows_finish(&out, err);
}

/* ---- the tool ----------------------------------------------------------- */

/* The status: 1 when a context had to be left out. */
static int summarise(const struct contexts *c, const struct result *r)
{
    int questions = 0, contexts = 0, failed = 0;

    for (int i = 0; i < c->n; i++) {
        questions += r[i].list.n;
        contexts += r[i].list.n > 0;
        failed += r[i].failed;
    }
    log_info("%d questions about %d contexts", questions, contexts);
    if (failed)
        log_error("%d of %d contexts have no questions", failed, contexts + failed);
    return failed ? 1 : 0;
}

static int run(const char *path, char **args, int n_args)
{
    struct contexts contexts;
    struct err err;

    if (cfg.shard_text && !parse_shard(cfg.shard_text, &cfg.shard)) {
        err_set(&err, ERR_USAGE, "--shard '%s' is not I/N with 1 <= I <= N", cfg.shard_text);
        return log_failure(&err);
    }
    if (contexts_read(&contexts, path, &err))
        return log_failure(&err);
    struct result *r = calloc((size_t)contexts.n, sizeof(*r));
    int code = r ? make_all(r, &contexts, &err) : err_nomem(&err);
    if (!code)
        code = write_all(&contexts, r, args, n_args, &err);
    int status = code ? log_failure(&err) : summarise(&contexts, r);
    for (int i = 0; r && i < contexts.n; i++)
        asked_release(&r[i].list);
    free(r);
    contexts_release(&contexts);
    return status;
}

int main(int argc, char **argv)
{
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    return opt_finish(run(first < argc ? argv[first] : "-", argv + 1, argc - 1));
}
