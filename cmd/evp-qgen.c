/* evp-qgen - questions about contexts: drawn from the text itself, from the dataset, or from a model behind HTTP.
 *
 * Makes all questions before it writes the first, in the order of the contexts, so the output does not depend on the
 * order of a service's answers. The service's key goes into no message and no file.
 */
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/parse.h"
#include "cmd/next.h"
#include "cmd/qgen_say.h"
#include "cmd/summary.h"
#include "formats/context.h"
#include "qgen/api.h"
#include "qgen/batch.h"
#include "qgen/checkpoint.h"
#include "qgen/offline.h"
#include "qgen/question_list.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int per_context, seed, concurrency, retries, window, reply_tokens, token_limit;
    bool from_dataset, probes;
    double timeout;
    const char *model, *key_file, *effort, *batch_in, *batch_out, *out;
    struct opt_list api_base;
    struct shard shard;
    struct opt_common common;
} cfg = {
    .per_context = 8, .concurrency = 4, .retries = 5, .window = 32768, .timeout = 120, .out = "-", .shard = { 1, 1 }
};

static const struct opt opts[] = {
    OPT_HEAD("Questions"),
    OPT_PER_CONTEXT(&cfg.per_context),
    OPT_SEED(&cfg.seed),
    OPT_BOOL(0, "from-dataset", &cfg.from_dataset, "take the questions that came with the dataset"),
    OPT_BOOL(0, "probes", &cfg.probes,
             "ask each context for JSON, a list, its first instruction and what it does not say, too"),
    OPT_SHARD(&cfg.shard),
    OPT_HEAD("A model to ask"),
    OPT_MANY(0, "api-base", &cfg.api_base, "URL",
             "address of the service; ends in /v1; may be repeated: the services share the requests"),
    OPT_TEXT('m', "model", &cfg.model, "NAME", "the model to ask, by the service's name for it"),
    OPT_TEXT(0, "key-file", &cfg.key_file, "FILE",
             "file with the key, for every --api-base (default: $OPENAI_API_KEY if set)"),
    OPT_TEXT(0, "reasoning-effort", &cfg.effort, "LEVEL",
             "how much a reasoning model reasons, in the service's words: none, minimal, low, medium, high"),
    OPT_NUM(0, "concurrency", &cfg.concurrency, 1, 1024, "number of simultaneous requests"),
    OPT_PERIOD(0, "timeout", &cfg.timeout, "SECONDS", 0.01, 86400, "time for one request"),
    OPT_NUM(0, "retries", &cfg.retries, 0, 100, "tries after the first"),
    OPT_NUM(0, "window", &cfg.window, 512, INT_MAX,
            "most tokens that the model accepts; longer contexts are asked about section by section"),
    OPT_NUM(
        0, "reply-tokens", &cfg.reply_tokens, 0, 1 << 30,
        "most tokens of a reply, thinking included; 0: the service's limit, with --token-limit 1024 + 60 a question"),
    OPT_NUM(0, "token-limit", &cfg.token_limit, 0, INT_MAX,
            "take at most so many tokens, prompts and replies of all runs for FILE: no request starts that might take "
            "more; 0: no limit"),
    OPT_WRITES(0, "batch-out", &cfg.batch_out, "FILE",
               "write the requests there as a batch for OpenAI or 'vllm run-batch', and stop"),
    OPT_TEXT(0, "batch-in", &cfg.batch_in, "FILE", "take the replies from there, the results of such a batch"),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.out, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-qgen",
    .summary = "ask questions about contexts",
    .operands = "[CONTEXTS]",
    .of_users = true,
    .max_operands = 1,
    .about =
        "Reads contexts (from standard input without CONTEXTS) and writes questions, every second one held out (split "
        "\"test\").\n"
        "\n"
        "Without --from-dataset or --api-base the questions are drawn from the text itself, evenly over its length, "
        "and cannot be answered without their passage. The same seed draws the same questions.\n"
        "\n"
        "With --api-base and -o FILE each answer is kept in FILE.part as it comes: a run goes on where the last one "
        "stopped, and a later run asks only about contexts that FILE does not have yet. The same holds for batches: "
        "--batch-out has only the requests that remain, and --batch-in only adds to FILE.",
    .examples = "  evp-qgen contexts.jsonl --per-context 8 >questions.jsonl\n"
                "  evp-qgen contexts.jsonl --from-dataset -o questions.jsonl\n"
                "  evp-qgen contexts.jsonl -o questions.jsonl \\\n"
                "      --api-base http://localhost:8000/v1 --model Qwen3-8B\n"
                "  evp-qgen contexts.jsonl -o questions.jsonl \\\n"
                "      --model Qwen3-8B --batch-out requests.jsonl\n"
                "  evp-qgen contexts.jsonl -o questions.jsonl \\\n"
                "      --model Qwen3-8B --batch-in results.jsonl\n",
    .opts = opts,
    .common = &cfg.common,
};

/* Of one context. */
struct result {
    struct question_list list;
    char digest[XXH3_HEX]; // of its text; only with --model
    bool failed;           // after a message
    int n_probes;          // the last of the list
};

struct work {
    const struct contexts *contexts;
    const char *path;             // of the contexts
    struct result *result;        // (contexts->n)
    struct checkpoint checkpoint; // open (f not NULL) with --model and -o
    struct asked asked;           // open (at not NULL) with --model
    struct api_totals total[MAX_ENDPOINTS];
    int n_asked, n_kept; // contexts: to ask the service about; answered in an earlier run
    int n_answered, n_refused;
    int n_left; // contexts: not asked about, as that might take too many tokens; without a reply in --batch-in
};

/* ---- offline and from the dataset --------------------------------------- */

static int take_inputs(struct question_list *list, const struct context *c, struct err *err)
{
    for (int i = 0; i < c->inputs.n && list->n < cfg.per_context; i++)
        if (question_list_add_given(list, c->inputs.at[i].question, (size_t)i, err))
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
    int n = r->list.n;
    if (n && cfg.probes && offline_probe(&r->list, strlen(c->text), err))
        return err->code;
    r->n_probes = r->list.n - n;
    if (r->failed)
        log_error("context '%s' %s", c->id,
                  cfg.from_dataset ? "came without questions; run without --from-dataset"
                                   : "gives no questions: its text is too short or repeats itself");
    return 0;
}

static int make_all(struct work *w, struct err *err)
{
    progress_begin("contexts", w->contexts->n);
    for (int i = 0; i < w->contexts->n; i++) {
        if (shard_has(cfg.shard, i) && make_one(&w->result[i], &w->contexts->at[i], err))
            return err->code;
        progress_add(1);
    }
    progress_end();
    return 0;
}

/* ---- from a service ----------------------------------------------------- */

/* *key: in *text, printable characters without blanks, as an HTTP header needs them; NULL without a key. */
static int read_key(struct buf *text, const char **key, struct err *err)
{
    const char *given = getenv("OPENAI_API_KEY");

    if (cfg.key_file && file_read(text, cfg.key_file, 1 << 16, err))
        return err->code;
    if (!cfg.key_file && given)
        buf_adds(text, given);
    while (text->n && isspace((unsigned char)text->at[text->n - 1]))
        text->at[--text->n] = '\0';
    if (buf_failed(text))
        return err_nomem(err);
    for (size_t i = 0; i < text->n; i++)
        if (!isgraph((unsigned char)text->at[i]))
            return err_set(err, ERR_FORMAT, "the key has a blank or a character that cannot be printed");
    if (cfg.key_file && text->n == 0)
        return err_set(err, ERR_FORMAT, "'%s' has no key: it is empty", cfg.key_file);
    *key = text->n ? text->at : NULL;
    return 0;
}

static int on_reply(void *arg, struct asked_slice s, const struct question_list *list, const struct usage *usage,
                    struct err *err)
{
    struct work *w = arg;
    struct checkpoint_part part = { .id = w->contexts->at[s.context].id,
                                    .digest = w->result[s.context].digest,
                                    .section = s.slice,
                                    .n_sections = s.n_slices };
    bool of_use = list->n || usage->prompt || usage->completion;

    return w->checkpoint.f && of_use ? checkpoint_add(&w->checkpoint, &part, list, usage, err) : 0;
}

static int on_answer(void *arg, int i, struct question_list *list, struct err *err)
{
    struct work *w = arg;

    (void)err;
    w->result[i].list = *list;
    *list = (struct question_list){ 0 };
    w->n_answered++;
    progress_add(1);
    return 0;
}

static void on_retry(void *arg, int i, double delay, const struct err *why)
{
    const struct work *w = arg;

    log_debug("context '%s': %s; again in %.1f s", w->contexts->at[i].id, why->msg, delay);
}

static void on_lost(void *arg, const struct err *why)
{
    (void)arg;
    log_warn("an endpoint is left out, and the others get its requests: %s", why->msg);
}

static void on_failure(void *arg, int i, const struct err *why)
{
    struct work *w = arg;

    w->result[i].failed = true;
    w->n_refused++;
    log_error("context '%s': %s", w->contexts->at[i].id, why->msg);
    progress_add(1);
}

/* Sets wanted[i] for the contexts to ask about: in the shard, without a whole answer from an earlier run. */
static void choose(struct work *w, bool *wanted)
{
    for (int i = 0; i < w->contexts->n; i++) {
        const struct context *c = &w->contexts->at[i];
        struct result *r = &w->result[i];
        digest_xxh3_hex(c->text, strlen(c->text), r->digest);
        struct checkpoint_part whole = { .id = c->id, .digest = r->digest, .n_sections = 1 };
        if (!shard_has(cfg.shard, i))
            continue;
        wanted[i] = !w->checkpoint.f || !checkpoint_take(&w->checkpoint, &whole, &r->list);
        w->n_kept += !wanted[i];
        w->n_asked += wanted[i];
    }
}

/* Gives a context the sections that an earlier run was answered. */
static int give_sections(struct work *w, int context, struct err *err)
{
    struct checkpoint_part part = { .id = w->contexts->at[context].id,
                                    .digest = w->result[context].digest,
                                    .n_sections = asked_slices(&w->asked, context) };
    struct question_list list;

    for (; part.n_sections > 1 && part.section < part.n_sections; part.section++)
        if (checkpoint_take(&w->checkpoint, &part, &list) &&
            asked_give(&w->asked, (struct asked_slice){ context, part.section, part.n_sections }, &list, err))
            return err->code;
    return 0;
}

/* What is still to be asked: w->asked. */
static int choose_asked(struct work *w, struct err *err)
{
    bool *wanted = calloc((size_t)w->contexts->n, sizeof(*wanted));

    w->asked = (struct asked){ .contexts = w->contexts,
                               .model = cfg.model,
                               .effort = cfg.effort,
                               .per_context = cfg.per_context,
                               .window = cfg.window,
                               .reply_tokens = cfg.reply_tokens,
                               .max_tokens = cfg.token_limit,
                               .taken = w->checkpoint.taken,
                               .events = { w, on_reply, on_answer, on_failure } };
    if (!wanted)
        return err_nomem(err);
    choose(w, wanted);
    int code = asked_open(&w->asked, wanted, err);
    for (int i = 0; i < w->contexts->n && !code; i++)
        if (wanted[i] && w->checkpoint.f)
            code = give_sections(w, i, err);
    free(wanted);
    w->n_kept += w->n_answered; /* all of their sections were known */
    w->n_asked -= w->n_answered;
    w->n_answered = 0;
    if (w->checkpoint.n_malformed)
        log_warn("%d malformed lines of '%s' were skipped", w->checkpoint.n_malformed, w->checkpoint.path);
    if (w->n_kept)
        log_info("%d of %d contexts have answers from an earlier run", w->n_kept, w->n_kept + w->n_asked);
    return code;
}

/* After the replies: counts the contexts that have neither questions nor failed. */
static int count_left(struct work *w, struct err *err)
{
    w->n_left = w->n_asked - w->n_answered - w->n_refused;
    if (w->n_asked == 0 || w->n_answered + w->n_kept > 0)
        return 0;
    if (w->n_left && !cfg.batch_in)
        return err_set(err, ERR_FAIL, "the limit of %d tokens is reached before any context has its questions",
                       cfg.token_limit);
    return err_set(err, ERR_NET, "the service gave questions about none of %d contexts", w->n_asked);
}

static int ask_service(struct work *w, struct err *err)
{
    struct buf text = { 0 };
    struct api api = { .base = cfg.api_base.at,
                       .n_endpoints = cfg.api_base.n,
                       .concurrency = cfg.concurrency,
                       .retries = cfg.retries,
                       .timeout = cfg.timeout,
                       .seed = (uint64_t)cfg.seed,
                       .events = { .arg = w, .again = on_retry, .lost = on_lost } };
    int code = read_key(&text, &api.key, err);

    if (!code) {
        progress_begin("contexts", w->n_asked);
        code = api_ask(&api, &w->asked, w->total, err);
        progress_end();
        qgen_say_usage(&api, w->total);
    }
    if (text.at)
        explicit_bzero(text.at, text.n);
    buf_release(&text);
    return code ? code : count_left(w, err);
}

static int read_batch(struct work *w, struct err *err)
{
    struct batch_totals t;

    if (batch_read(cfg.batch_in, &w->asked, &t, err))
        return err->code;
    w->total[0] = (struct api_totals){ .requests = t.replies, .usage = t.usage };
    qgen_say_usage(&(struct api){ .n_endpoints = 1 }, w->total);
    if (t.others)
        log_info("replies in '%s' to requests that do not remain: %lld", cfg.batch_in, (long long)t.others);
    if (t.replies == 0 && w->n_asked && w->n_kept == 0)
        return err_set(
            err, ERR_FORMAT,
            "'%s' has no reply to these requests: other texts, or another --model, --per-context or --window",
            cfg.batch_in);
    return count_left(w, err);
}

/* Returns the exit status: 1 when requests are left out. */
static int write_batch(struct work *w, int *status, struct err *err)
{
    int64_t n, n_left;

    if (batch_write(cfg.batch_out, &w->asked, &n, &n_left, err))
        return err->code;
    summary_int("requests", n);
    log_info("%lld requests about %d contexts are in '%s'", (long long)n, w->n_asked, cfg.batch_out);
    if (n_left)
        log_error("%lld of %lld requests are left out: they might take more than the limit of %d tokens",
                  (long long)n_left, (long long)(n + n_left), cfg.token_limit);
    *status = n_left > 0;
    return 0;
}

static int ask_model(struct work *w, int *status, struct err *err)
{
    struct checkpoint_key made = { .model = cfg.model, .per_context = cfg.per_context };
    int code = 0;

    if (strcmp(cfg.out, "-") != 0)
        code = checkpoint_open(&w->checkpoint, cfg.out, &made, err);
    if (!code)
        code = choose_asked(w, err);
    if (!code)
        code = cfg.batch_out ? write_batch(w, status, err) : cfg.batch_in ? read_batch(w, err) : ask_service(w, err);
    if (code && w->checkpoint.f && w->checkpoint.n_replies)
        log_info("the answers so far are kept in '%s'; run the same command again for the others", w->checkpoint.path);
    if ((code || cfg.batch_out) && w->checkpoint.f && !w->checkpoint.n_replies)
        checkpoint_remove(&w->checkpoint);
    return code;
}

/* ---- writing ------------------------------------------------------------ */

static int put_question(struct rows_out *out, const struct context *c, const struct result *r, int i, struct err *err)
{
    static char api[] = "api", offline[] = "offline", dataset[] = "dataset";
    struct question q = { .id = question_new_id(c->id, r->list.at[i].text),
                          .context = c->id,
                          .text = r->list.at[i].text,
                          .origin = cfg.model                                         ? api
                                    : cfg.from_dataset && i < r->list.n - r->n_probes ? dataset
                                                                                      : offline,
                          .split = i % 2 ? SPLIT_TEST : SPLIT_TRAIN };
    if (!q.id)
        return err_nomem(err);
    struct json_out w = rows_begin(out);
    question_to_json(&q, &w);
    if (cfg.model)
        json_put_text(&w, "digest", r->digest);
    int code = rows_put(out, &w, err);
    free(q.id);
    return code;
}

static int put_all(struct rows_out *out, const struct work *w, struct err *err)
{
    for (int i = 0; i < w->contexts->n; i++)
        for (int q = 0; q < w->result[i].list.n; q++)
            if (put_question(out, &w->contexts->at[i], &w->result[i], q, err))
                return err->code;
    return 0;
}

static void put_key(const void *arg, struct json_out *w)
{
    json_begin(w, "api", '{');
    checkpoint_key_to_json(arg, w);
    json_end(w, '}');
}

static int write_all(const struct work *w, char **args, int n_args, struct err *err)
{
    const struct json *from[] = { w->contexts->header };
    struct checkpoint_key made_by = { .model = cfg.model, .per_context = cfg.per_context };
    struct rows_made made = { .kind = "questions",
                              .tool = tool.name,
                              .args = args,
                              .n_args = n_args,
                              .from = from,
                              .n_from = 1,
                              .more = cfg.model ? put_key : NULL,
                              .arg = &made_by };
    struct rows_out out;

    if (rows_create(&out, cfg.out, &made, err))
        return err->code;
    if (put_all(&out, w, err)) {
        rows_abort(&out);
        return err->code;
    }
    return rows_finish(&out, err);
}

/* ---- the tool ----------------------------------------------------------- */

static void say_left(const struct work *w, int n_contexts)
{
    if (cfg.batch_in)
        log_error("%d of %d contexts have no questions yet: '%s' has no replies about them; --batch-out asks again",
                  w->n_left, n_contexts, cfg.batch_in);
    else
        log_error("%d of %d contexts have no questions yet: the limit of %d tokens is reached; %s", w->n_left,
                  n_contexts, cfg.token_limit,
                  w->checkpoint.f ? "the same command with a higher one goes on"
                                  : "with -o FILE a later run would go on");
}

/* With the model whose tokens evp-import counted. */
static void say_next(const struct work *w)
{
    const struct json *made = w->contexts->header;
    const char *model = next_option(made, "evp-import", "model", 'm'),
               *chat = next_option(made, "evp-import", "chat-template", 0);

    next_say("evp-profile", w->path, cfg.out, *model ? "--model" : "", model, *chat ? "--chat-template" : "", chat,
             "-o", "profile.h5", NULL);
}

/* Returns the exit status: 1 when a context has no questions. */
static int summarise(const struct work *w)
{
    int questions = 0, contexts = 0, failed = 0;

    for (int i = 0; i < w->contexts->n; i++) {
        int n = w->result[i].list.n;
        questions += n;
        contexts += n > 0;
        failed += w->result[i].failed;
        int drawn = n - w->result[i].n_probes;
        if (n > 0 && drawn < cfg.per_context && !cfg.from_dataset)
            log_warn("context '%s' gives %d of %d questions", w->contexts->at[i].id, drawn, cfg.per_context);
    }
    summary_int("questions", questions);
    summary_int("contexts", contexts);
    summary_int("contexts_failed", failed);
    summary_int("contexts_kept", w->n_kept);
    if (cfg.token_limit || cfg.batch_in)
        summary_int("contexts_left", w->n_left);
    log_info("%d questions about %d contexts", questions, contexts);
    if (cfg.out && questions)
        say_next(w);
    if (failed)
        log_error("%d of %d contexts have no questions", failed, contexts + failed + w->n_left);
    if (w->n_left)
        say_left(w, contexts + failed + w->n_left);
    return failed || w->n_left ? 1 : 0;
}

static int check_options(struct err *err)
{
    int ways = (cfg.api_base.n > 0) + (cfg.batch_in != NULL) + (cfg.batch_out != NULL);

    if (ways > 1)
        return err_set(err, ERR_USAGE, "--api-base, --batch-in and --batch-out exclude each other");
    if (!ways != !cfg.model)
        return err_set(err, ERR_USAGE, "--model must be given together with --api-base, --batch-in or --batch-out");
    if (cfg.model && cfg.probes)
        return err_set(err, ERR_USAGE, "--probes and --model exclude each other: --model asks its own questions");
    if (cfg.model && cfg.from_dataset)
        return err_set(err, ERR_USAGE, "--from-dataset and --model exclude each other");
    if (cfg.token_limit && (!cfg.model || cfg.batch_in))
        return err_set(err, ERR_USAGE, "--token-limit goes with --api-base or --batch-out");
    if (cfg.api_base.n > MAX_ENDPOINTS)
        return err_set(err, ERR_USAGE, "--api-base is given more than %d times", MAX_ENDPOINTS);
    if (cfg.token_limit && cfg.reply_tokens == 0)
        cfg.reply_tokens = 1024 + 60 * cfg.per_context;
    for (int i = 0; i < cfg.api_base.n; i++)
        if (api_base_check(cfg.api_base.at[i], err))
            return err->code;
    return 0;
}

/* *status: the exit status if nothing failed. */
static int run_on(struct work *w, char **args, int n_args, int *status, struct err *err)
{
    int code = cfg.model ? ask_model(w, status, err) : make_all(w, err);

    if (!code && cfg.batch_out)
        return 0;
    if (!code)
        code = write_all(w, args, n_args, err);
    if (code)
        return code;
    *status = summarise(w);
    if (w->checkpoint.f && *status == 0)
        checkpoint_remove(&w->checkpoint);
    return 0;
}

static int run(int argc, char **argv, int first, int *status, struct err *err)
{
    struct contexts contexts = { 0 };
    struct work work = { .contexts = &contexts, .path = first < argc ? argv[first] : "-" };
    int code = check_options(err);

    if (!code)
        code = contexts_read(&contexts, work.path, err);
    if (!code) {
        work.result = calloc((size_t)contexts.n, sizeof(*work.result));
        code = work.result ? run_on(&work, argv + 1, argc - 1, status, err) : err_nomem(err);
    }
    for (int i = 0; work.result && i < contexts.n; i++)
        question_list_release(&work.result[i].list);
    free(work.result);
    asked_close(&work.asked);
    checkpoint_close(&work.checkpoint);
    contexts_release(&contexts);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(argc, argv, first, &status, &err);
    return summary_end(code, status, &err);
}
