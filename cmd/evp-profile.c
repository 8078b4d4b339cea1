/* evp-profile - answer every question over every compressed variant of every context, and write down the answers, sizes
 * and times.
 *
 * Says what is ahead before it starts, keeps each finished context safe (profiler/store.h), and can be killed and run
 * again at any moment. A context that fails is reported and left out.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "profiler/run.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    const char *model, *configs, *backend, *dtype, *output;
    int max_new_tokens, threads;
    struct shard shard;
    bool truncate, overwrite, dry_run;
    struct opt_common common;
} cfg = { .configs = "keydiff:drop=0.1..0.9/0.4,snapkv:drop=0.1..0.9/0.4,kivi:bits=4,kivi:bits=2",
          .backend = "auto",
          .dtype = "f32",
          .shard = { 1, 1 },
          .max_new_tokens = 32 };

static const struct opt opts[] = {
    OPT_HEAD("What is run"),
    OPT_MODEL(&cfg.model),
    OPT_TEXT('c', "configs", &cfg.configs, "LIST",
             "configs to try, separated by commas, ranges as from..to/step; 'none' is always among them"),
    OPT_NUM(0, "max-new-tokens", &cfg.max_new_tokens, 1, 4096, "number of tokens of the longest answer"),
    OPT_BOOL(0, "truncate", &cfg.truncate, "cut contexts that are longer than the model allows, instead of refusing"),
    OPT_SHARD(&cfg.shard),
    OPT_HEAD("How it is computed"),
    OPT_BACKEND(&cfg.backend, BACKEND_NAMES),
    OPT_TEXT(0, "dtype", &cfg.dtype, "f32", "type of the numbers in the computation"),
    OPT_THREADS(&cfg.threads),
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
        "FILE.d/ until the end: after an interruption the same command goes on where it was. CONTEXTS or "
        "QUESTIONS may be '-', standard input.",
    .examples = "  evp-profile contexts.jsonl questions.jsonl -o profile.h5\n"
                "  evp-profile contexts.jsonl questions.jsonl --dry-run -o profile.h5 \\\n"
                "      --configs 'keydiff:drop=0.1..0.9/0.2,kivi:bits=2'\n",
    .opts = opts,
    .common = &cfg.common,
};

/* Everything one run holds. */
struct job {
    struct contexts contexts;
    struct questions questions;
    struct config *config;
    int n_configs;
    struct engine *engine;
    struct session *session;
    char model_digest[65];
    char *lineage;
    struct store_made made;
    struct store store;
    struct grid_input input;
    struct grid grid;
};

static void job_release(struct job *j)
{
    grid_release(&j->grid);
    store_close(&j->store);
    session_free(j->session);
    engine_close(j->engine);
    free(j->lineage);
    free(j->config);
    questions_release(&j->questions);
    contexts_release(&j->contexts);
}

/* ---- how it was made --------------------------------------------------------------- */

/* SHA-256 of an input, null when it was a pipe. */
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

/* The lineage of a file that is extended goes on in the new one; run again, the same command adds nothing. */
static int make_lineage(struct job *j, char **args, int n_args, const char *contexts, const char *questions,
                        struct err *err)
{
    struct buf b = { 0 };
    struct json_out w = { .buf = &b };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "tool", tool.name);
    json_begin(&w, "args", '[');
    for (int i = 0; i < n_args; i++)
        json_put_text(&w, NULL, args[i]);
    json_end(&w, ']');
    json_begin(&w, "inputs", '{');
    int code = put_digest(&w, "contexts", contexts, err);
    if (!code)
        code = put_digest(&w, "questions", questions, err);
    json_end(&w, '}');
    json_begin(&w, "from", '[');
    if (j->contexts.header)
        json_put_node(&w, NULL, j->contexts.header);
    if (j->questions.header)
        json_put_node(&w, NULL, j->questions.header);
    if (j->store.has_file && *j->store.have.lineage)
        json_put_raw(&w, NULL, j->store.have.lineage);
    json_end(&w, ']');
    json_end(&w, '}');
    j->lineage = buf_take(&b);
    return code || j->lineage ? code : err_nomem(err);
}

/* ---- what there is to do -------------------------------------------------------------- */

static int read_inputs(struct job *j, const char *contexts, const char *questions, struct err *err)
{
    if (!cfg.output)
        return err_set(err, ERR_USAGE, "--output is missing");
    if (strcmp(contexts, "-") == 0 && strcmp(questions, "-") == 0)
        return err_set(err, ERR_USAGE, "contexts and questions cannot both come from standard input");
    if (config_list(&j->config, &j->n_configs, cfg.configs, err))
        return err_wrap(err, "--configs");
    if (contexts_read(&j->contexts, contexts, err) || questions_read(&j->questions, questions, err))
        return err->code;
    j->input = (struct grid_input){ .contexts = &j->contexts,
                                    .questions = &j->questions,
                                    .config = j->config,
                                    .n_configs = j->n_configs,
                                    .shard = cfg.shard };
    return grid_begin(&j->grid, &j->input, err);
}

static int open_engine(struct job *j, struct err *err)
{
    struct engine_options options = { .backend = cfg.backend, .dtype = DTYPE_F32, .n_threads = cfg.threads };

    if (strcmp(cfg.dtype, "f32") != 0)
        return err_set(err, ERR_DEVICE, "no dtype '%s' in this build; it has f32", cfg.dtype);
    char *model = model_path(cfg.model, err);
    options.model = model;
    j->engine = model ? engine_open(&options, err) : NULL;
    free(model);
    if (!j->engine || model_digest(engine_model(j->engine), j->model_digest, err))
        return err->code;
    struct kv_shape shape = engine_kv_shape(j->engine);
    for (int v = 0; v < j->n_configs; v++)
        if (config_check(&j->config[v], &shape, err))
            return err_wrap(err, "--configs");
    j->session = session_new(j->engine, err);
    return j->session ? 0 : err->code;
}

static int plan_grid(struct job *j, struct err *err)
{
    const struct model_config *model = model_config(engine_model(j->engine));
    enum store_old old = cfg.overwrite ? STORE_OVERWRITE : STORE_EXTEND;

    j->made = (struct store_made){ .model = model->name,
                                   .model_digest = j->model_digest,
                                   .backend = engine_backend(j->engine)->name,
                                   .dtype = cfg.dtype,
                                   .max_new_tokens = cfg.max_new_tokens };
    if (store_open(&j->store, cfg.output, &j->made, old, err))
        return err->code;
    j->input.max_new_tokens = cfg.max_new_tokens;
    j->input.too_long = cfg.truncate ? TOO_LONG_CUT : TOO_LONG_REFUSE;
    j->input.model_tokens = model->max_tokens;
    j->input.tokenizer = engine_tokenizer(j->engine);
    j->input.store = &j->store;
    return grid_plan(&j->grid, &j->input, err);
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

static int say_plan(struct job *j, struct err *err)
{
    const struct grid *g = &j->grid;
    struct run run = job_run(j);
    struct grid_cost cost;
    char memory[TEXT_SHORT], free_memory[TEXT_SHORT], time[TEXT_SHORT];
    double speed;

    for (int i = 0; i < g->n_work; i++)
        if (g->work[i].n_cut)
            log_warn("context '%s' is cut to its first %d of %d tokens", g->work[i].context->id, g->work[i].ids.n,
                     g->work[i].ids.n + g->work[i].n_cut);
    if (g->n_found)
        log_info("%lld answers are there already", (long long)g->n_found);
    if (g->n_answers == 0) {
        log_info("nothing is left to do");
        return 0;
    }
    log_info("to do: %d contexts of %lld tokens, %lld versions, %lld questions: %lld answers of up to %d tokens",
             g->n_contexts, (long long)g->n_tokens, (long long)g->n_variants, (long long)g->n_questions,
             (long long)g->n_answers, g->max_new_tokens);
    if (grid_cost(g, j->engine, &cost, err) || run_speed(&run, first_open(g), &speed, err))
        return err->code;
    struct backend *be = engine_backend(j->engine);
    log_info("about %s of memory beside the model (%s are free; with less the groups are smaller)",
             text_bytes(memory, (double)cost.bytes), text_bytes(free_memory, (double)be->memory(be).free));
    log_info("about %s, at the %.0f GFLOP/s that %s reaches here", text_seconds(time, cost.flop / speed), speed / 1e9,
             be->name);
    return 0;
}

/* ---- the work ---------------------------------------------------------------------------- */

static void on_tokens(void *arg, int64_t tokens)
{
    (void)arg;
    progress_add(tokens);
}

/* One context: 0 also when it failed and was reported, which *failed counts; an error when nothing can be kept. */
static int do_work(struct job *j, const struct work *w, int *failed, struct err *err)
{
    struct run run = job_run(j);
    struct table result;

    run.progress = on_tokens;
    progress_note("%s", w->context->id);
    if (run_work(&run, w, &result, err)) {
        log_error("context '%s': %s", w->context->id, err->msg);
        ++*failed;
        return 0;
    }
    int code = store_put(&j->store, &result, err);
    table_release(&result);
    return code;
}

static int do_all(struct job *j, int *failed, struct err *err)
{
    int64_t total = 0;
    int code = 0;

    for (int i = 0; i < j->grid.n_work; i++)
        total += run_tokens(&j->grid, &j->grid.work[i]);
    if (total == 0)
        return 0;
    progress_begin("tokens", total);
    for (int i = 0; i < j->grid.n_work && !code; i++)
        if (j->grid.work[i].n_open)
            code = do_work(j, &j->grid.work[i], failed, err);
    progress_end();
    return code;
}

static int execute(struct job *j, int *failed, struct err *err)
{
    double start = clock_now();
    char time[TEXT_SHORT];

    if (store_begin(&j->store, cfg.overwrite ? STORE_OVERWRITE : STORE_EXTEND, err) || do_all(j, failed, err) ||
        store_finish(&j->store, &j->contexts.ids, j->lineage, err))
        return err->code;
    if (*failed)
        log_error("%d of %d contexts failed and are left out", *failed, j->grid.n_contexts);
    else if (j->grid.n_answers)
        log_info("%d contexts in %s", j->grid.n_contexts, text_seconds(time, clock_now() - start));
    return 0;
}

static int run_job(struct job *j, char **args, int n_args, const char *contexts, const char *questions, int *failed,
                   struct err *err)
{
    if (read_inputs(j, contexts, questions, err) || open_engine(j, err) || plan_grid(j, err) ||
        make_lineage(j, args, n_args, contexts, questions, err) || say_plan(j, err))
        return err->code;
    return cfg.dry_run ? 0 : execute(j, failed, err);
}

int main(int argc, char **argv)
{
    struct err err;
    struct job job = { .store.lock = -1 };
    int first, failed = 0, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error to report, not an end
    if (run_job(&job, argv + 1, argc - 1, argv[first], argv[first + 1], &failed, &err))
        status = log_failure(&err);
    else
        status = failed ? 1 : 0;
    job_release(&job);
    return opt_finish(status);
}
