/* evp-import - documents in, contexts out.
 *
 * Everything is read before the first context is written (rows with the same text become one context), so a damaged
 * input leaves no output, not even on standard output. A reader of the stream sees its end line, or knows that it was
 * cut.
 */
#include "base/log.h"
#include "base/opt.h"
#include "base/rows.h"
#include "datasets/import.h"
#include "datasets/select.h"
#include "engine/model.h"
#include "engine/tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct opt_list dataset;
    int limit, seed, min_tokens, max_tokens;
    const char *model, *output;
    struct opt_common common;
} cfg = { .seed = -1 };

static const struct opt opts[] = {
    OPT_HEAD("Choosing"),
    OPT_MANY('d', "dataset", &cfg.dataset, "NAME,...", "take only these datasets; may be repeated"),
    OPT_NUM(0, "limit", &cfg.limit, 1, INT_MAX, "take at most this many contexts of each dataset"),
    OPT_SEED(&cfg.seed),
    OPT_NUM(0, "min-tokens", &cfg.min_tokens, 1, INT_MAX, "take only contexts of at least this many tokens"),
    OPT_NUM(0, "max-tokens", &cfg.max_tokens, 1, INT_MAX, "take only contexts of at most this many tokens"),
    OPT_MODEL(&cfg.model),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-import",
    .summary = "turn documents into contexts",
    .operands = "[INPUT...]",
    .max_operands = -1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "INPUT is an archive (LongBench's data.zip, or zip, tar, 7z, cpio, compressed or not), a .jsonl file of rows "
        "of LongBench or of contexts, a text, or a folder of these; without one, or for '-', standard input is "
        "read. Archives are read in place; one with names or sizes that no honest archive has is refused whole. "
        "Rows with the same text become one context with all their questions. A row that cannot be used is "
        "reported, the others go on, and the status is 1. --limit takes the first contexts, with --seed random ones. "
        "With --model, --min-tokens or --max-tokens the tokens of each context are counted and written down. The "
        "contexts go to standard output unless --output is given.",
    .examples = "  evp-import data.zip --dataset qasper,multi_news --limit 4 >contexts.jsonl\n"
                "  evp-import data.zip --max-tokens 4096 --limit 20 --seed 1 -o contexts.jsonl\n"
                "  evp-import /usr/share/common-licenses >contexts.jsonl\n",
};

/* ---- lengths -------------------------------------------------------------- */

struct counter {
    struct model *model;
    struct tokenizer *tokenizer;
};

static void counter_close(struct counter *c)
{
    tokenizer_free(c->tokenizer);
    model_close(c->model);
}

static int counter_open(struct counter *c, struct err *err)
{
    char *path = model_path(cfg.model, err);

    c->model = path ? model_open(path, err) : NULL;
    c->tokenizer = c->model ? tokenizer_open(c->model, err) : NULL;
    free(path);
    return c->tokenizer ? 0 : err->code;
}

static int count_tokens(void *arg, struct context *c, struct err *err)
{
    const struct counter *counter = arg;
    struct prompt_ids context;

    if (tokenizer_context(counter->tokenizer, c->text, &context, err))
        return err->code;
    c->n_tokens = context.ids.n;
    prompt_ids_release(&context);
    progress_add(1);
    return 0;
}

/* ---- choosing ------------------------------------------------------------- */

static int want_dataset(void *arg, const char *name, size_t n)
{
    struct map *wanted = arg;

    return n == 0 || map_add(wanted, name, n, NULL) >= 0 ? 0 : ERR_NOMEM;
}

static int read_wanted(struct map *wanted, struct err *err)
{
    for (int i = 0; i < cfg.dataset.n; i++)
        if (opt_split(cfg.dataset.at[i], want_dataset, wanted))
            return err_nomem(err);
    if (cfg.dataset.n && !wanted->n)
        return err_set(err, ERR_USAGE, "'--dataset' names no dataset");
    return 0;
}

/* Refuses a wanted dataset that the input does not have: it may be misspelt. */
static int check_wanted(const struct import *im, struct err *err)
{
    struct buf list = { 0 };

    for (int i = 0; i < im->wanted.n; i++) {
        const struct map_entry *w = &im->wanted.at[i];
        if (map_find(&im->datasets, w->key, w->n) >= 0)
            continue;
        for (int d = 0; d < im->datasets.n; d++)
            buf_printf(&list, "%s%s", list.n ? ", " : "", im->datasets.at[d].key);
        err_set(err, ERR_USAGE, "the input has no dataset '%s'; it has %s", w->key, list.n ? list.at : "none");
        buf_release(&list);
        return err->code;
    }
    return 0;
}

static int choose(struct import *im, struct counter *counter, struct err *err)
{
    bool counted = cfg.model || cfg.min_tokens || cfg.max_tokens;
    struct selection s = {
        .limit = cfg.limit,
        .sampled = cfg.seed >= 0,
        .seed = (uint64_t)cfg.seed,
        .min = cfg.min_tokens,
        .max = cfg.max_tokens ? cfg.max_tokens : INT64_MAX,
        .count = counted ? count_tokens : NULL,
        .arg = counter,
    };

    if (im->contexts.n == 0)
        return err_set(err, ERR_FORMAT, "the input holds no contexts");
    if (counted && counter_open(counter, err))
        return err->code;
    if (counted)
        progress_begin("contexts counted", 0);
    int code = select_contexts(&im->contexts, &s, err);
    if (counted && !code)
        progress_end();
    if (!code && im->contexts.n == 0)
        code = err_set(err, ERR_FORMAT, "no context has the wanted number of tokens");
    return code;
}

/* ---- writing -------------------------------------------------------------- */

static int write_contexts(const struct import *im, char **args, int n_args, struct err *err)
{
    struct rows_made made = {
        .kind = "contexts",
        .tool = tool.name,
        .args = args,
        .n_args = n_args,
        .from = (const struct json *const *)im->headers.at,
        .n_from = im->headers.n,
    };
    struct rows_out out;

    if (rows_create(&out, cfg.output, &made, err))
        return err->code;
    for (int i = 0; i < im->contexts.n; i++) {
        struct json_out w = rows_begin(&out);
        context_to_json(&im->contexts.at[i], &w);
        if (rows_put(&out, &w, err)) {
            rows_abort(&out);
            return err->code;
        }
    }
    return rows_finish(&out, err);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void summarise(const struct import *im)
{
    int64_t chars = 0, questions = 0;
    struct map datasets = { 0 };

    for (int i = 0; i < im->contexts.n; i++) {
        const struct context *c = &im->contexts.at[i];
        chars += c->chars;
        questions += c->inputs.n;
        map_add(&datasets, c->dataset, strlen(c->dataset), NULL);
    }
    log_info("imported %d context%s (%" PRId64 " question%s) from %d dataset%s, %" PRId64 " characters", im->contexts.n,
             plural(im->contexts.n), questions, plural(questions), datasets.n, plural(datasets.n), chars);
    if (im->n_left_out)
        log_warn("%" PRId64 " row%s left out", im->n_left_out, plural(im->n_left_out));
    map_release(&datasets);
}

/* ---- the tool ------------------------------------------------------------- */

static void note(void *arg, enum import_note what, const char *sentence)
{
    (void)arg;
    if (what == IMPORT_WARNING)
        log_warn("%s", sentence);
    else
        log_error("%s", sentence);
}

static int import_all(struct import *im, char **path, int n, struct err *err)
{
    if (n == 0)
        return import_path(im, "-", err);
    for (int i = 0; i < n; i++)
        if (import_path(im, path[i], err))
            return err->code;
    return 0;
}

static int run(char **args, int n_args, char **path, int n, struct err *err)
{
    struct import im = { .note = note };
    struct counter counter = { 0 };
    int status = 0;

    if (read_wanted(&im.wanted, err) || import_all(&im, path, n, err) || check_wanted(&im, err) ||
        choose(&im, &counter, err) || write_contexts(&im, args, n_args, err))
        status = log_failure(err);
    else {
        summarise(&im);
        status = im.n_left_out ? 1 : 0;
    }
    counter_close(&counter);
    import_release(&im);
    return status;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    return opt_finish(run(argv + 1, argc - 1, argv + first, argc - first, &err));
}
