/* evp-profile - answers every question over every compressed variant of every context, and writes down the answers,
 * sizes and times.
 *
 * Three phases. plan(): the inputs, the model's header and tokenizer, what FILE holds; all that can be refused without
 * a device is refused here. measure(): a device is open and no process may be started. finish(): the device is closed,
 * FILE is written.
 *
 * Says what it will do and how long that takes before it starts. Keeps each finished context safe (profiler/store.h),
 * so that it can be killed and run again at any moment. Reports a context that cannot be profiled and leaves it out.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "kernels/timed.h"
#include "profiler/groups.h"
#include "profiler/run_all.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char default_configs[] = "keydiff:drop=0.1..0.9/0.4,snapkv:drop=0.1..0.9/0.4,kivi:bits=4,kivi:bits=2";

static struct {
    const char *model, *configs, *backend, *dtype, *output;
    int max_new_tokens, threads;
    struct shard shard;
    bool truncate, overwrite, dry_run;
    uint64_t memory;
    struct opt_common common;
} cfg = { .configs = default_configs, .backend = "auto", .dtype = "f32", .shard = { 1, 1 }, .max_new_tokens = 32 };

static const struct opt opts[] = {
    OPT_HEAD("What is run"),
    OPT_MODEL(&cfg.model),
    OPT_TEXT(
        'c', "configs", &cfg.configs, "LIST",
        "configs to try, separated by commas, ranges as from..to/step; 'none' is always among them; 'drop' is what "
        "kvpress and the papers call compression ratio"),
    OPT_NUM(0, "max-new-tokens", &cfg.max_new_tokens, 1, 4096, "most tokens that an answer may have"),
    OPT_BOOL(0, "truncate", &cfg.truncate,
             "cut contexts that are longer than the model allows, instead of leaving them out"),
    OPT_SHARD(&cfg.shard),
    OPT_HEAD("How it is computed"),
    OPT_BACKEND(&cfg.backend, BACKEND_NAMES),
    OPT_DTYPE(&cfg.dtype, BACKEND_DTYPES),
    OPT_THREADS(&cfg.threads),
    OPT_MEMORY(&cfg.memory),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_BOOL(0, "overwrite", &cfg.overwrite, "start from nothing, whatever FILE holds"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-profile",
    .summary = "measure what compressing a context does to the answers",
    .operands = "CONTEXTS QUESTIONS",
    .min_operands = 2,
    .max_operands = 2,
    .about =
        "Runs each context through the model once, derives every compressed variant of its KV cache, and lets all "
        "variants answer all questions together. Answers, sizes and times go to FILE (HDF5; --output is required). "
        "What FILE holds already is not computed again, what is new is added. Every finished context is kept in "
        "FILE.d/ until the end: after an interruption the same command goes on where it was. A context that cannot be "
        "profiled is reported, the others go on, and the status is 1. CONTEXTS or QUESTIONS may be '-', standard "
        "input.",
    .examples = "  evp-profile contexts.jsonl questions.jsonl -o profile.h5\n"
                "  evp-profile contexts.jsonl questions.jsonl --dry-run -o profile.h5 \\\n"
                "      --configs 'keydiff:drop=0.1..0.9/0.2,kivi:bits=2'\n",
    .opts = opts,
    .common = &cfg.common,
};

/* Everything of one run, from the inputs to the counts that are said at the end. */
struct job {
    struct contexts contexts;
    struct questions questions;
    struct config *config;
    int n_configs;
    struct model *model;         // open from plan() to the end
    struct tokenizer *tokenizer; // of plan() alone
    struct engine *engine;       // of measure() alone
    struct session *session;
    char model_digest[DIGEST_HEX], backend[32]; // backend: its kind; "" before it is open
    char *lineage;
    struct table_made made;
    struct store store;
    struct grid_input input;
    struct grid grid;
    int n_failed; // contexts
};

static void close_engine(struct job *j)
{
    session_free(j->session);
    engine_close(j->engine);
    j->session = NULL;
    j->engine = NULL;
}

static void job_release(struct job *j)
{
    close_engine(j);
    grid_release(&j->grid);
    store_close(&j->store);
    tokenizer_free(j->tokenizer);
    model_close(j->model);
    free(j->lineage);
    free(j->config);
    questions_release(&j->questions);
    contexts_release(&j->contexts);
}

/* ---- how it was made --------------------------------------------------------------- */

/* SHA-256 of an input; null when it is a pipe. */
static int put_digest(struct json_out *w, const char *name, const char *path, struct err *err)
{
    char hex[DIGEST_HEX];
    struct stat st;

    if (strcmp(path, "-") == 0 || stat(path, &st) || !S_ISREG(st.st_mode)) {
        json_put_null(w, name);
        return 0;
    }
    if (digest_file(path, hex, err))
        return err->code;
    json_put_text(w, name, hex);
    return 0;
}

/* The member "inputs". */
static int put_inputs(struct buf *out, char *const *input, struct err *err)
{
    struct json_out w = { .buf = out };

    json_begin(&w, NULL, '{');
    int code = put_digest(&w, "contexts", input[0], err);
    if (!code)
        code = put_digest(&w, "questions", input[1], err);
    json_end(&w, '}');
    return code;
}

/* argv[first..] are the inputs. The lineage of a file that is extended goes on in the new one; the same command given
 * again adds nothing. */
static int make_lineage(struct job *j, int argc, char **argv, int first, struct err *err)
{
    struct buf inputs = { 0 }, lineage = { 0 };
    struct json *before = j->store.has_file ? table_lineage(&j->store.have) : NULL;
    const struct json *const from[] = { j->contexts.header, j->questions.header, before };
    int code = put_inputs(&inputs, argv + first, err);

    rows_made_to_text(&(struct rows_made){ .tool = tool.name,
                                           .args = argv + 1,
                                           .n_args = argc - 1,
                                           .inputs = buf_str(&inputs),
                                           .from = from,
                                           .n_from = 3 },
                      &lineage);
    json_free(before);
    buf_release(&inputs);
    j->lineage = buf_take(&lineage);
    return code || j->lineage ? code : err_nomem(err);
}

/* ---- the plan ---------------------------------------------------------------------- */

/* Origin "api" becomes "api:MODEL", by the header of the stream. */
static int name_service(struct questions *questions, struct err *err)
{
    const struct json *api = questions->header ? json_get(questions->header, "api") : NULL;
    const char *model = NULL;

    if (!api || json_may_text(api, "model", &model, err) || !model)
        return 0;
    for (int q = 0; q < questions->n; q++) {
        struct buf named = { 0 };
        if (strcmp(questions->at[q].origin, "api") != 0)
            continue;
        buf_printf(&named, "api:%s", model);
        char *taken = buf_take(&named);
        if (!taken)
            return err_nomem(err);
        free(questions->at[q].origin);
        questions->at[q].origin = taken;
    }
    return 0;
}

static int read_inputs(struct job *j, const char *contexts, const char *questions, struct err *err)
{
    if (!cfg.output)
        return err_set(err, ERR_USAGE, "--output is missing");
    if (strcmp(contexts, "-") == 0 && strcmp(questions, "-") == 0)
        return err_set(err, ERR_USAGE, "contexts and questions cannot both come from standard input");
    if (backend_check_dtype(cfg.dtype, err))
        return err_wrap(err, "--dtype");
    if (config_list(&j->config, &j->n_configs, cfg.configs, err))
        return err_wrap(err, "--configs");
    if (contexts_read(&j->contexts, contexts, err) || questions_read(&j->questions, questions, err) ||
        name_service(&j->questions, err))
        return err->code;
    j->input = (struct grid_input){ .contexts = &j->contexts, .questions = &j->questions, .shard = cfg.shard };
    return grid_begin(&j->grid, &j->input, err);
}

/* The model must be able to have every config. Those of the default list that it cannot have are left out. */
static int check_configs(struct job *j, struct err *err)
{
    const struct model_config *m = model_config(j->model);
    const struct kv_shape shape = { m->n_layers, m->n_heads, m->n_kv_heads, m->head_dim, DTYPE_F32 };
    int n = 0;

    for (int v = 0; v < j->n_configs; v++) {
        if (!config_check(&j->config[v], &shape, err))
            j->config[n++] = j->config[v];
        else if (cfg.configs == default_configs)
            log_warn("%s; the default --configs does without", err->msg);
        else
            return err_wrap(err, "--configs");
    }
    j->n_configs = n;
    return 0;
}

/* The header and the tokenizer, not the weights. */
static int open_model(struct job *j, struct err *err)
{
    char *path = model_path(cfg.model, err);
    j->model = path ? model_open(path, err) : NULL;
    free(path);
    if (!j->model || check_configs(j, err) || model_digest(j->model, j->model_digest, err))
        return err->code;
    j->tokenizer = tokenizer_open(j->model, err);
    return j->tokenizer ? 0 : err->code;
}

static int open_store(struct job *j, struct err *err)
{
    j->made = (struct table_made){ .model = model_config(j->model)->name,
                                   .model_digest = j->model_digest,
                                   .max_new_tokens = cfg.max_new_tokens };
    if (store_open(&j->store, cfg.output, cfg.dry_run ? STORE_LOOK : STORE_WRITE, err))
        return err->code;
    return store_read(&j->store, &j->made, cfg.overwrite ? STORE_OVERWRITE : STORE_EXTEND, err);
}

static int plan_grid(struct job *j, struct err *err)
{
    j->input.config = j->config;
    j->input.n_configs = j->n_configs;
    j->input.max_new_tokens = cfg.max_new_tokens;
    j->input.too_long = cfg.truncate ? TOO_LONG_CUT : TOO_LONG_REFUSE;
    j->input.model_tokens = model_config(j->model)->max_tokens;
    j->input.model_window = model_config(j->model)->window;
    j->input.tokenizer = j->tokenizer;
    j->input.store = &j->store;
    return grid_plan(&j->grid, &j->input, err);
}

static void say_refused(const struct grid *g)
{
    int n = g->n_refused + g->n_refused_questions;

    for (int i = 0; i < g->why.n; i++)
        log_error("%s", g->why.at[i]);
    if (n > g->why.n)
        log_error("%d more contexts or questions cannot be profiled", n - g->why.n);
}

static void say_plan(const struct grid *g)
{
    say_refused(g);
    for (int i = 0; i < g->n_work; i++)
        if (g->work[i].is_cut)
            log_warn("context '%s' is cut to its first %d of %d tokens", g->work[i].context->id, g->work[i].ids.n,
                     g->work[i].ids.n + g->work[i].n_cut);
    if (g->n_found)
        log_info("'%s' has %lld answers already", cfg.output, (long long)g->n_found);
    if (g->n_answers == 0 && g->n_work > 0)
        log_info("nothing is left to do");
    if (g->n_answers > 0)
        log_info("to do: %d contexts of %lld tokens, %lld variants, %lld questions: %lld answers of up to %d tokens",
                 g->n_contexts, (long long)g->n_tokens, (long long)g->n_variants, (long long)g->n_questions,
                 (long long)g->n_answers, g->max_new_tokens);
}

/* Everything that needs no device and no weights. */
static int plan(struct job *j, int argc, char **argv, int first, struct err *err)
{
    if (read_inputs(j, argv[first], argv[first + 1], err) || open_model(j, err) || open_store(j, err) ||
        plan_grid(j, err) || make_lineage(j, argc, argv, first, err))
        return err->code;
    tokenizer_free(j->tokenizer);
    j->tokenizer = NULL;
    say_plan(&j->grid);
    return 0;
}

/* ---- the device ---------------------------------------------------------------------- */

/* The dtype asked for; with auto that of the answers FILE has already, which new ones must go with. */
static const char *dtype_wanted(const struct job *j)
{
    const struct table *have = &j->store.have;

    return strcmp(cfg.dtype, "auto") == 0 && have->n_contexts > 0 && have->dtype ? have->dtype : cfg.dtype;
}

static int open_engine(struct job *j, struct err *err)
{
    struct engine_options options = {
        .backend = cfg.backend, .dtype = dtype_wanted(j), .n_threads = cfg.threads, .timed = cfg.common.verbose > 0
    };
    char *path = model_path(cfg.model, err);

    options.model = path;
    j->engine = path ? engine_open(&options, err) : NULL;
    free(path);
    if (!j->engine)
        return err->code;
    const struct backend *be = engine_backend(j->engine);
    if (be->note)
        log_info("%s", be->note);
    snprintf(j->backend, sizeof(j->backend), "%s", be->kind);
    j->made.backend = j->backend;
    j->made.dtype = dtype_name(be->dtype);
    return store_set_made(&j->store, &j->made, err);
}

/* Takes entry `at` out of the lists of n contexts, whose memory is to be planned, and out of what is done. */
static void leave_out(struct job *j, struct work **of, struct engine_work *work, int at, int n)
{
    of[at]->n_open = 0;
    j->n_failed++;
    memmove(of + at, of + at + 1, (size_t)(n - at - 1) * sizeof(struct work *));
    memmove(work + at, work + at + 1, (size_t)(n - at - 1) * sizeof(*work));
}

/* Memory for all contexts that have something open; those that cannot fit are left out. */
static int plan_memory(struct job *j, struct engine_plan *plan, struct err *err)
{
    const struct config **config = calloc((size_t)j->n_configs, sizeof(struct config *));
    struct engine_work *work = calloc((size_t)j->grid.n_work, sizeof(*work));
    struct work **of = calloc((size_t)j->grid.n_work, sizeof(struct work *));
    int code = config && work && of ? 0 : err_nomem(err), n = 0;

    for (int v = 0; v < j->n_configs && !code; v++)
        config[v] = &j->config[v];
    for (int i = 0; i < j->grid.n_work && !code; i++) {
        if (j->grid.work[i].n_open == 0)
            continue;
        of[n] = &j->grid.work[i];
        work[n] = work_at_most(&j->grid, of[n], config);
        n++;
    }
    for (bool planned = false; !planned && !code;) {
        *plan = (struct engine_plan){ .limit = cfg.memory };
        if (n == 0) {
            code = err_set(err, ERR_NOMEM, "no context fits in memory");
        } else if (!engine_plan(j->engine, work, n, plan, err)) {
            planned = true;
        } else {
            log_error("context '%s': %s", of[plan->refused]->context->id, err->msg);
            leave_out(j, of, work, plan->refused, n--);
        }
    }
    free(of);
    free(work);
    free(config);
    return code;
}

static void say_memory(const struct engine_plan *plan)
{
    char size[TEXT_SHORT], limit[TEXT_SHORT];

    log_info("%s of memory, of %s that may be taken: up to %d variants and %d questions together",
             text_bytes(size, (double)plan->total), text_bytes(limit, (double)plan->limit), plan->variants,
             plan->sequences);
    for (int i = 0; i < PLAN_AREAS; i++)
        if (plan->bytes[i])
            log_debug("%s: %s", plan_area_name[i], text_bytes(size, (double)plan->bytes[i]));
}

/* Reads the weights, when everything is known to fit. */
static int load_engine(struct job *j, struct err *err)
{
    struct engine_plan plan;

    if (plan_memory(j, &plan, err))
        return err->code;
    say_memory(&plan);
    if (engine_load(j->engine, &plan, err))
        return err->code;
    j->session = session_new(j->engine, err);
    return j->session ? 0 : err->code;
}

static struct run job_run(struct job *j)
{
    return (struct run){
        .engine = j->engine, .session = j->session, .grid = &j->grid, .made = &j->made, .lineage = j->lineage
    };
}

/* The first context with something to do. */
static const struct work *first_open(const struct grid *g)
{
    int i = 0;

    while (g->work[i].n_open == 0)
        i++;
    return &g->work[i];
}

static int say_cost(struct job *j, struct err *err)
{
    struct run run = job_run(j);
    char time[TEXT_SHORT];
    double flop, speed;

    if (grid_flop(&j->grid, j->engine, &flop, err) || run_speed(&run, first_open(&j->grid), &speed, err))
        return err->code;
    log_info("about %s, at the %.0f GFLOP/s that backend %s reaches here in %s", text_seconds(time, flop / speed),
             speed / 1e9, j->made.backend, j->made.dtype);
    return 0;
}

/* Where the time went, op by op. */
static void say_ops(const struct job *j)
{
    struct op_time op[TIMED_OPS];
    int n = timed_list(engine_backend(j->engine), op);

    log_info("%-14s %10s %10s %10s %10s", "op", "calls", "seconds", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        double seconds = op[i].seconds > 1e-9 ? op[i].seconds : 1e-9;
        log_info("%-14s %10lld %10.3f %10.1f %10.1f", op[i].name, (long long)op[i].calls, op[i].seconds,
                 op[i].flop / seconds / 1e9, op[i].bytes / seconds / 1e9);
    }
}

/* ---- the work ---------------------------------------------------------------------------- */

static void on_tokens(void *arg, int64_t tokens)
{
    (void)arg;
    progress_add(tokens);
}

static void on_context(void *arg, const struct work *w)
{
    (void)arg;
    progress_note("%s", w->context->id);
}

static void on_failure(void *arg, const struct work *w, const struct err *why)
{
    struct job *j = arg;

    log_error("context '%s': %s", w->context->id, why->msg);
    j->n_failed++;
}

static int do_all(struct job *j, struct err *err)
{
    const struct run_watch watch = { on_context, on_failure, j };
    struct run run = job_run(j);
    int64_t total = 0;

    run.progress = on_tokens;
    for (int i = 0; i < j->grid.n_work; i++)
        total += run_tokens(&j->grid, &j->grid.work[i]);
    progress_begin("tokens", total);
    int code = run_all(&run, &j->store, &watch, err);
    progress_end();
    return code;
}

/* From opening the device to closing it. */
static int measure(struct job *j, struct err *err)
{
    if (j->grid.n_answers == 0)
        return 0;
    int code = open_engine(j, err);
    if (!code)
        code = load_engine(j, err);
    if (!code)
        code = say_cost(j, err);
    if (!code && !cfg.dry_run)
        code = store_begin(&j->store, err);
    if (!code && !cfg.dry_run)
        code = do_all(j, err);
    if (j->session && cfg.common.verbose > 0)
        say_ops(j);
    close_engine(j);
    if (code && j->store.fresh)
        log_info("finished contexts are kept in '%s'; the same command goes on with the others", j->store.dir);
    return code;
}

static int finish(struct job *j, double start, struct err *err)
{
    const struct grid *g = &j->grid;
    int n_lost = g->n_refused + j->n_failed;
    char time[TEXT_SHORT];

    if (!cfg.dry_run && store_finish(&j->store, &j->contexts.ids, j->lineage, err))
        return err->code;
    if (n_lost)
        log_error("%d of %d contexts failed and are left out", n_lost, g->n_work + g->n_refused);
    if (g->n_refused_questions)
        log_error("%d question%s left out", g->n_refused_questions, g->n_refused_questions == 1 ? " is" : "s are");
    if (!n_lost && g->n_answers && !cfg.dry_run)
        log_info("%d contexts in %s", g->n_contexts, text_seconds(time, clock_now() - start));
    return 0;
}

static int run_job(struct job *j, int argc, char **argv, int first, struct err *err)
{
    if (plan(j, argc, argv, first, err))
        return err->code;
    double start = clock_now();
    return measure(j, err) ? err->code : finish(j, start, err);
}

/* Rows that had to be left out. */
static bool is_partial(const struct job *j)
{
    return j->n_failed || j->grid.n_refused || j->grid.n_refused_questions;
}

int main(int argc, char **argv)
{
    struct err err;
    struct job job = { .store.lock = -1 };
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error to report, not the end of the process
    status = run_job(&job, argc, argv, first, &err) ? log_failure(&err) : is_partial(&job) ? 1 : 0;
    job_release(&job);
    return opt_finish(status);
}
