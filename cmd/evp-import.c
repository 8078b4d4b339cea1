/* evp-import - documents in, contexts out.
 *
 * Reads everything before it writes the first context (rows with the same text become one context), so a damaged input
 * leaves no output, not even on standard output. A reader of the stream sees its end line, or knows that it was cut.
 */
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/rows.h"
#include "base/utf8.h"
#include "cmd/import_requests.h"
#include "show/model_say.h"
#include "cmd/next.h"
#include "cmd/request_logs.h"
#include "cmd/summary.h"
#include "datasets/import.h"
#include "datasets/ruler.h"
#include "datasets/select.h"
#include "engine/model/model.h"
#include "engine/tokens/chat.h"
#include "engine/tokens/tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct opt_list dataset;
    int limit, seed, min_tokens, max_tokens, ruler;
    const char *model, *chat, *output;
    bool requests, hash_ids, halves, partial;
    int min_uses, top, per_context;
    double half_life, forget;
    struct opt_common common;
} cfg = { .seed = -1, .min_uses = 2, .per_context = 8 };

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_MANY('d', "dataset", &cfg.dataset, "NAME,...", "take only these datasets; may be repeated"),
    OPT_NUM(0, "limit", &cfg.limit, 1, INT_MAX, "take N contexts of each dataset"),
    OPT_SEED(&cfg.seed),
    OPT_NUM(0, "min-tokens", &cfg.min_tokens, 1, INT_MAX, "skip contexts shorter than N tokens"),
    OPT_NUM(0, "max-tokens", &cfg.max_tokens, 1, INT_MAX, "skip contexts longer than N tokens"),
    OPT_HEAD("Model, to count tokens"),
    OPT_MODEL(&cfg.model),
    OPT_CHAT(&cfg.chat),
    OPT_HEAD("RULER"),
    OPT_NUM(0, "ruler", &cfg.ruler, RULER_TOKENS_MIN, RULER_TOKENS_MAX,
            "make RULER's tasks, with prompts of up to N tokens; the inputs are its essays"),
    OPT_HEAD("Request logs"),
    OPT_BOOL(0, "requests", &cfg.requests, "the inputs are logs of requests to a model; --output names a folder"),
    OPT_PARTIAL(&cfg.partial),
    OPT_NUM(0, "min-uses", &cfg.min_uses, 1, INT_MAX, "take only prefixes of at least N conversations"),
    OPT_NUM(0, "top", &cfg.top, 0, INT_MAX, "take only the N contexts with most bytes times uses; 0: all"),
    OPT_PER_CONTEXT(&cfg.per_context),
    OPT_FORGET(&cfg.forget),
    OPT_PERIOD(0, "half-life", &cfg.half_life, "HOURS", 0, 1e6,
               "time until a use counts half, back from the last request; 0: every use counts 1"),
    OPT_BOOL(0, "halves", &cfg.halves,
             "write access-before.jsonl for the first half of the logs' time, and access.jsonl for the second"),
    OPT_BOOL(0, "hash-ids", &cfg.hash_ids, "make ids without the first words of the texts"),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "PATH"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-import",
    .summary = "turn documents into contexts",
    .operands = "[INPUT...]",
    .of_users = true,
    .max_operands = -1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "INPUT is an archive (LongBench's data.zip, or zip, tar, 7z, cpio, compressed or not), a .jsonl file of "
        "contexts or of a suite's rows (docs/texts.md), a .json list or a .csv table of such rows, a text, or a folder "
        "of these; without INPUT, or for '-', standard input. Contexts go to standard output without --output.\n"
        "\n"
        "Archives and compressed files are read in place; an archive with names or sizes that no honest archive has is "
        "refused whole. Rows with the same text become one context with all their questions. A row that cannot be used "
        "is reported, the others go on, and the status is 1.\n"
        "\n"
        "--limit takes the first contexts, with --seed random ones. With --model, --min-tokens or --max-tokens the "
        "tokens of each context are counted and written into its row.\n"
        "\n"
        "With --ruler rows of RULER's generated tasks are made instead of read, --limit (500) of each task or of those "
        "of --dataset. Without INPUT, tasks that hide needles in essays are not made. docs/texts.md tells how the rows "
        "differ from the published ones.\n"
        "\n"
        "With --requests the inputs are logs of OpenAI bodies from vLLM, SGLang, LiteLLM, nginx or batch files "
        "(docs/requests.md), compressed or not. Beginnings shared by several prompts become contexts, with their "
        "questions and an access log: contexts.jsonl, questions.jsonl and access.jsonl in the folder --output.\n"
        "\n"
        "Of several logs some may be unreadable, or cut: what can be read counts, if it is half of all bytes, and the "
        "status is 1, as it is if more than 1 % of the lines are damaged.\n"
        "\n"
        "With --requests, --dataset names models, and --min-tokens counts the tokens that a server caches, with the "
        "model's chat template; without --min-tokens a context has at least 1 KiB. Of each context the questions asked "
        "last are kept, in whole days; --seed draws others of the same day.",
    .examples = "  evp-import data.zip --dataset qasper,multi_news --limit 4 >contexts.jsonl\n"
                "  evp-import data.zip --max-tokens 4096 --limit 20 --seed 1 -o contexts.jsonl\n"
                "  evp-import /usr/share/common-licenses >contexts.jsonl\n"
                "  evp-import --ruler 4096 essays.txt --dataset vt --limit 20 -o vt.jsonl\n"
                "  evp-import --requests proxy.log --min-tokens 512 --half-life 72 -o mine\n",
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
    model_say(cfg.model);
    char *path = model_path(cfg.model, err);
    c->model = path ? model_open_header(path, err) : NULL;
    c->tokenizer = c->model ? tokenizer_open_chat(c->model, cfg.chat, err) : NULL;
    free(path);
    model_say_date(cfg.model, c->tokenizer);
    return c->tokenizer ? 0 : err->code;
}

static int count_tokens(void *arg, struct context *c, struct err *err)
{
    const struct counter *counter = arg;
    struct prompt_ids context;

    if (tokenizer_context_row(counter->tokenizer, c, &context, err))
        return err->code;
    c->n_tokens = context.ids.n;
    prompt_ids_release(&context);
    return 0;
}

static int count_next(void *arg, struct context *c, struct err *err)
{
    progress_add(1);
    return count_tokens(arg, c, err);
}

static int64_t count_text(void *arg, const char *text, struct err *err)
{
    struct tokens ids = { 0 };
    int code = tokenizer_encode(((struct counter *)arg)->tokenizer, text_view_of(text), SPECIAL_AS_TEXT, &ids, err);

    int64_t n = code ? code : ids.n;
    tokens_release(&ids);
    return n;
}

/* ---- choosing ------------------------------------------------------------- */

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
        err_set(err, ERR_USAGE, list.n ? "the input has no dataset '%s'; it has %s" : "the input has no dataset '%s'%s",
                w->key, list.n ? list.at : ": its rows do not name any");
        buf_release(&list);
        return err->code;
    }
    return 0;
}

static int choose(struct import *im, struct counter *counter, struct err *err)
{
    bool counted = cfg.model || cfg.ruler || cfg.min_tokens || cfg.max_tokens;
    struct selection s = {
        .limit = cfg.limit,
        .sampled = cfg.seed >= 0,
        .seed = (uint64_t)cfg.seed,
        .min = cfg.min_tokens,
        .max = cfg.max_tokens ? cfg.max_tokens : INT64_MAX,
        .count = counted ? count_next : NULL,
        .arg = counter,
    };

    if (im->contexts.n == 0)
        return err_set(err, ERR_FORMAT, "the input holds no contexts");
    if (counted && !counter->tokenizer && counter_open(counter, err))
        return err->code;
    if (counted)
        progress_begin("contexts counted", 0);
    int code = select_contexts(&im->contexts, &s, err);
    if (counted && !code)
        progress_end();
    if (!code && im->contexts.n == 0)
        code = err_set(err, ERR_FORMAT, "no context has a length within --min-tokens and --max-tokens");
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
    struct buf unread = { 0 };

    for (int i = 0; i < im->contexts.n; i++) {
        const struct context *c = &im->contexts.at[i];
        chars += c->chars;
        questions += c->inputs.n;
        map_add(&datasets, c->dataset, strlen(c->dataset), NULL);
    }
    summary_int("contexts", im->contexts.n);
    summary_int("questions", questions);
    summary_int("datasets", datasets.n);
    summary_int("characters", chars);
    summary_int("rows_left_out", im->n_left_out);
    log_info("imported %d context%s (%" PRId64 " question%s) from %d dataset%s, %" PRId64 " characters", im->contexts.n,
             plural(im->contexts.n), questions, plural(questions), datasets.n, plural(datasets.n), chars);
    for (int i = 0; i < im->unread.n; i++)
        buf_printf(&unread, "%s'%s'", i ? ", " : "", im->unread.at[i].key);
    if (unread.n)
        log_info("not read of the rows: %s", buf_str(&unread));
    buf_release(&unread);
    if (im->n_left_out)
        log_warn("%" PRId64 " row%s left out", im->n_left_out, plural(im->n_left_out));
    if (cfg.output)
        next_say("evp-qgen", cfg.output, "-o", "questions.jsonl", NULL);
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

/* The inputs are essays. */
static int make_rows(struct import *im, char **path, int n, struct counter *counter, struct err *err)
{
    struct buf essay = { 0 };
    int code = counter_open(counter, err);

    for (int i = 0; i < n && !code; i++) {
        code = file_read(&essay, path[i], CONTEXT_MAX_TEXT, err);
        if (!code && (strlen(buf_str(&essay)) < essay.n || !utf8_valid(essay.at, essay.n)))
            code = err_set(err, ERR_FORMAT, "'%s' is not a text in UTF-8", path[i]);
    }
    struct ruler r = { .tokens = cfg.ruler,
                       .rows = cfg.limit ? cfg.limit : RULER_ROWS,
                       .seed = cfg.seed > 0 ? (uint64_t)cfg.seed : 0,
                       .essay = buf_str(&essay),
                       .count = count_text,
                       .arg = counter };
    if (!code)
        code = ruler_make(im, &r, err);
    buf_release(&essay);
    return code;
}

enum { MIN_BYTES = 1024 }; // of a shared prefix of prompts, if tokens are not counted

static int check_requests(struct err *err)
{
    if (!cfg.output || strcmp(cfg.output, "-") == 0)
        return err_set(err, ERR_USAGE, "--requests writes three files and needs --output, the name of their folder");
    if (cfg.limit || cfg.ruler)
        return err_set(err, ERR_USAGE, "--%s excludes --requests%s", cfg.ruler ? "ruler" : "limit",
                       cfg.ruler ? "" : "; use --top");
    return 0;
}

/* *partial: lines were left out. */
static int run_requests(int argc, char **argv, int first, bool *partial, struct err *err)
{
    struct counter counter = { 0 };
    struct map wanted = { 0 };
    bool counted = cfg.model || cfg.min_tokens || cfg.max_tokens;
    struct import_requests im = {
        /* a prefix of n bytes has at most about n tokens: the text's, and a few of the chat template */
        .rq = { .choice = { .min_uses = (uint32_t)cfg.min_uses,
                            .min_bytes = counted ? (size_t)cfg.min_tokens : MIN_BYTES,
                            .top = cfg.top },
                .per_context = cfg.per_context,
                .seed = cfg.seed > 0 ? (uint64_t)cfg.seed : 0,
                .forget = cfg.forget * 86400,
                .half_life = cfg.half_life * 3600,
                .halves = cfg.halves,
                .ids = cfg.hash_ids ? REQUESTS_IDS_HASHED : REQUESTS_IDS_READABLE,
                .wanted = &wanted,
                .partial = cfg.partial },
        .folder = cfg.output,
        .made = { .tool = tool.name, .args = argv + 1, .n_args = argc - 1 },
        .min_tokens = cfg.min_tokens,
        .max_tokens = cfg.max_tokens ? cfg.max_tokens : INT64_MAX,
        .count = counted ? count_tokens : NULL,
        .arg = &counter,
        .model = cfg.model,
    };
    int code = check_requests(err);

    im.rq.line.date = cfg.chat ? chat_date(cfg.chat) : NULL;
    if (!code)
        code = request_logs_wanted(&wanted, &cfg.dataset, err);
    if (!code && counted)
        code = counter_open(&counter, err);
    if (!code)
        code = import_requests(&im, argv + first, argc - first, err);
    *partial = code == 1;
    counter_close(&counter);
    map_release(&wanted);
    return code < 0 ? code : 0;
}

/* *partial: rows were left out. */
static int run(int argc, char **argv, int first, bool *partial, struct err *err)
{
    struct import im = { .note = note, .output = cfg.output };
    struct counter counter = { 0 };
    int code = 0;

    if (request_logs_wanted(&im.wanted, &cfg.dataset, err) ||
        (cfg.ruler ? make_rows(&im, argv + first, argc - first, &counter, err)
                   : import_all(&im, argv + first, argc - first, err)) ||
        check_wanted(&im, err) || choose(&im, &counter, err) || write_contexts(&im, argv + 1, argc - 1, err))
        code = err->code;
    else {
        summarise(&im);
        *partial = im.n_left_out > 0;
    }
    counter_close(&counter);
    import_release(&im);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    bool partial = false;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = (cfg.requests ? run_requests : run)(argc, argv, first, &partial, &err);
    return summary_end(code, partial ? 1 : 0, &err);
}
