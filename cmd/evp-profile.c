/* evp-profile - answers every question over every compressed variant of every context; writes answers, sizes and times.
 *
 * Three phases. plan(): the inputs, the model's header and tokenizer, the contents of FILE; refuses all that can be
 * refused without a device. measure(): a device is open; no process may be started. finish(): the device is closed;
 * writes FILE. With --devices each device is open in a process of its own (profiler/crew/profile_crew.h).
 * Reports the work and its expected time before it starts. Keeps each finished context (profiler/run/shards.h), and
 * leaves out what cannot be profiled. */
#include "base/clock.h"
#include "base/log.h"
#include "cmd/options.h"
#include "cmd/backend_say.h"
#include "cmd/interrupt.h"
#include "show/model_say.h"
#include "cmd/next.h"
#include "cmd/profile_configs.h"
#include "profiler/crew/profile_crew.h"
#include "cmd/profile_on.h"
#include "cmd/profile_say.h"
#include "cmd/summary.h"
#include "cmd/waiting.h"
#include "methods/kvzap.h"
#include "methods/method_plugin.h"
#include "profiler/run/draw.h"
#include "profiler/run/groups.h"
#include "profiler/run/run_all.h"
#include "profiler/run/unvisited.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char default_configs[] = CONFIG_USUAL;

enum { MEASURE_ANSWERS, MEASURE_LIKELIHOOD };
enum { DECODE_AUTO, DECODE_ON, DECODE_OFF };

static struct {
    const char *model, *chat, *configs, *plugin, *kvzap, *fit, *cells, *chosen, *sample, *backend, *devices, *dtype,
        *output, *on;
    int max_new_tokens, threads, seed;
    int only, measure, decode_times; // enum grid_split; MEASURE_ANSWERS, ...; DECODE_AUTO, ...
    struct shard shard;
    bool truncate, overwrite, dry_run, list_configs;
    double temperature; // below 0: the default of temperature()
    double forget;      // days
    uint64_t memory;
    struct opt_common common;
} cfg = { .configs = default_configs,
          .backend = "auto",
          .dtype = "auto",
          .shard = { 1, 1 },
          .seed = 1,
          .max_new_tokens = 32,
          .temperature = -1 };

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_CONFIGS(&cfg.configs),
    OPT_BOOL(0, "list-configs", &cfg.list_configs, "print the configs of default, papers and all, a line for each"),
    OPT_PLUGIN(&cfg.plugin),
    OPT_KVZAP(&cfg.kvzap),
    OPT_TEXT(0, "fit-kvzap", &cfg.fit, "FILE", "write the file that kvzap needs, fitted to kvzip's scores of this run"),
    OPT_TEXT(0, "cells", &cfg.cells, "LIST", "compute the answers of this list of evp-drift, instead of --configs"),
    OPT_TEXT(0, "chosen", &cfg.chosen, "MANIFEST",
             "answer the test questions over the variant that this plan chose for each context, instead of --configs"),
    OPT_TEXT(0, "sample", &cfg.sample, "N",
             "run only N random contexts, a share of all like 12%, or as many as can be begun in a time like 3h; the "
             "others become rows without measurements, are planned by predicted qualities, and need no questions"),
    OPT_SEED(&cfg.seed),
    OPT_PICK(0, "only", &cfg.only, "both|train|test", "answer the questions of one split"),
    OPT_TRUNCATE(&cfg.truncate),
    OPT_SHARD(&cfg.shard),
    OPT_HEAD("Answers"),
    OPT_MAX_NEW_TOKENS(&cfg.max_new_tokens),
    OPT_PICK(0, "measure", &cfg.measure, "answers|likelihood",
             "what variants are measured by: their own answers, or how likely they make the uncompressed cache's"),
    OPT_REAL(0, "temperature", &cfg.temperature, 0, 100,
             "sample a second answer of the uncompressed cache to each question at this temperature, to measure how "
             "alike two good answers are; 0: no second answer (default: 0.3, with --cells and --chosen 0)"),
    OPT_PICK(
        0, "decode-times", &cfg.decode_times, "auto|on|off",
        "time a token of an answer over each variant, at batch 1, 8 and 32; costs a twentieth of a usual profile's "
        "time; auto: on, with --cells and --chosen off"),
    OPT_HEAD("Model and device"),
    OPT_MODEL(&cfg.model),
    OPT_CHAT(&cfg.chat),
    OPT_BACKEND(&cfg.backend, BACKEND_NAMES),
    OPT_TEXT(0, "devices", &cfg.devices, "0,1,..|all",
             "profile on these GPUs, numbered as CUDA_VISIBLE_DEVICES orders them, with a process for each"),
    OPT_DTYPE(&cfg.dtype, BACKEND_DTYPES),
    OPT_THREADS(&cfg.threads),
    OPT_MEMORY(&cfg.memory),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_FORGET(&cfg.forget),
    OPT_BOOL(0, "overwrite", &cfg.overwrite, "replace FILE instead of adding to it"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_TEXT(0, "on", &cfg.on, "GPU[,NxTOKENS]",
             "with --dry-run: expected time on this GPU, from its data sheet, for the work and for N contexts of "
             "TOKENS tokens (default: 1000x32k); " SERVING_GPUS),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-profile",
    .summary = "measure what compressing a context does to the answers",
    .operands = "CONTEXTS QUESTIONS",
    .of_users = true,
    .min_operands = 2,
    .max_operands = 2,
    .alone = &cfg.list_configs,
    .about =
        "Runs each context through the model once, derives every compressed variant of its KV cache, and lets all "
        "variants answer all questions together. Answers, sizes and times go to FILE (HDF5; --output is required, but "
        "for --dry-run). CONTEXTS or QUESTIONS may be '-', standard input.\n"
        "\n"
        "Answers that FILE holds are not computed again; new ones are added. Every finished context is kept in FILE.d/ "
        "until the end: after an interruption the same command goes on where it was.\n"
        "\n"
        "Newer times of the questions (asked_at, from request logs) are brought into FILE. With --forget contexts that "
        "CONTEXTS lacks, and whose newest question was asked more than DAYS before the newest of all, leave FILE; "
        "contexts without any time stay.\n"
        "\n"
        "A context that cannot be profiled is reported, the others go on, and the status is 1. Contexts of a log that "
        "names another model than the default need --model; without it the status is 2.",
    .examples = "  evp-profile contexts.jsonl questions.jsonl -m Qwen/Qwen3-8B -o profile.h5\n"
                "  evp-profile contexts.jsonl questions.jsonl -m Qwen/Qwen3-8B --sample 300 \\\n      -o profile.h5\n"
                "  evp-profile contexts.jsonl questions.jsonl -m Qwen/Qwen3-8B --dry-run \\\n"
                "      --configs 'keydiff:drop=0.1..0.9/0.2,kivi:bits=2' --on H100,1000x32k\n",
    .opts = opts,
    .common = &cfg.common,
};

/* One run, from the inputs to the counts of the last messages. */
struct job {
    struct contexts contexts;
    struct questions questions;
    struct cells cells;
    struct context_sample sample;
    struct profile_configs configs;
    struct model *model;          // open from plan() to the end
    struct tokenizer *tokenizer;  // open in plan()
    struct profile_device device; // open in measure(); with --devices only kind, dtype, plan, cost and speed
    struct crew *crew;            // with --devices, open in measure()
    struct worker_job for_worker;
    struct model_digesting *digest; // begun in plan()
    char chat_digest[DIGEST_HEX];
    char *lineage;
    struct table_made made;
    struct shards shards;
    struct grid_input input;
    struct grid grid;
    struct kvzap_fit *fit; // NULL: none is asked for
    struct pace pace;
    struct timing timing;
    struct clock_wait wait; // at the last context's beginning
    int n_failed;           // contexts
    int n_devices, n_devices_failed;
};

static void job_release(struct job *j)
{
    grid_release(&j->grid);
    shards_close(&j->shards);
    tokenizer_free(j->tokenizer);
    model_digest_free(j->digest);
    model_close(j->model);
    free(j->lineage);
    kvzap_fit_free(j->fit);
    profile_configs_release(&j->configs);
    sample_release(&j->sample);
    cells_release(&j->cells);
    questions_release(&j->questions);
    contexts_release(&j->contexts);
}

/* ---- how it was made --------------------------------------------------------------- */

/* argv[first..] are the inputs. The lineage of an extended file continues in the new one; repeating the same command
 * adds nothing. */
static int make_lineage(struct job *j, int argc, char **argv, int first, struct err *err)
{
    struct json *before = j->shards.has_file ? table_lineage(&j->shards.have) : NULL;
    const struct json *const from[] = { j->contexts.header, j->questions.header, j->cells.header, before };
    struct rows_made made = { .tool = tool.name, .args = argv + 1, .n_args = argc - 1, .from = from, .n_from = 4 };

    j->lineage = profile_lineage(&made, argv + first, err);
    json_free(before);
    return j->lineage ? 0 : err->code;
}

/* ---- the plan ---------------------------------------------------------------------- */

/* The file that lists what to answer; NULL: there is none. */
static const char *list_of_cells(void)
{
    return cfg.cells ? cfg.cells : cfg.chosen;
}

/* Takes the configs from the list. */
static int read_cells(struct job *j, struct err *err)
{
    if (cfg.configs != default_configs || cfg.sample || (cfg.cells && cfg.chosen))
        return err_set(err, ERR_USAGE, "--%s excludes --configs, --sample and --%s: the list names its configs",
                       cfg.cells ? "cells" : "chosen", cfg.cells ? "chosen" : "cells");
    if ((cfg.cells ? cells_read : cells_chosen)(&j->cells, list_of_cells(), &j->contexts, &j->questions, err))
        return err->code;
    profile_say_lacks(&j->cells);
    j->input.cells = &j->cells;
    return profile_configs_of_cells(&j->configs, &j->cells, list_of_cells(), err);
}

static int check_devices(struct err *err)
{
    if (!cfg.devices)
        return 0;
    if (cfg.dry_run)
        return err_set(err, ERR_USAGE, "--devices and --dry-run exclude each other: a dry run measures one device");
    if (strcmp(cfg.backend, "auto") != 0 && strcmp(cfg.backend, "cuda") != 0)
        return err_set(err, ERR_USAGE, "--devices are GPUs: it needs --backend cuda, not %s", cfg.backend);
    cfg.backend = "cuda";
    return 0;
}

static int read_inputs(struct job *j, const char *contexts, const char *questions, struct err *err)
{
    if (!cfg.dry_run && (!cfg.output || cfg.on))
        return err_set(err, ERR_USAGE, cfg.on ? "--on needs --dry-run" : "--output is missing");
    if (strcmp(contexts, "-") == 0 && strcmp(questions, "-") == 0)
        return err_set(err, ERR_USAGE, "contexts and questions cannot both come from standard input");
    if (backend_check(cfg.backend, cfg.dtype, err) || check_devices(err))
        return err->code;
    if (!list_of_cells() && profile_configs_of_list(&j->configs, cfg.configs, err))
        return err->code;
    if (contexts_read(&j->contexts, contexts, err) || questions_read(&j->questions, questions, err) ||
        questions_name_service(&j->questions, err))
        return err->code;
    j->input = (struct grid_input){
        .contexts = &j->contexts, .questions = &j->questions, .shard = cfg.shard, .split = (enum grid_split)cfg.only
    };
    if (list_of_cells() && read_cells(j, err))
        return err->code;
    if (cfg.sample) {
        const struct draw draw = { &j->contexts, &j->questions, cfg.sample, cfg.seed };
        if (sample_draw(&j->sample, &draw, err))
            return err_wrap(err, "--sample");
        j->input.sample = &j->sample;
    }
    return grid_begin(&j->grid, &j->input, err);
}

/* Opens the header and the tokenizer, not the weights; with --on they need not be there. */
static int open_model(struct job *j, struct err *err)
{
    char *path = model_path(cfg.model, err);
    j->model = !path ? NULL : cfg.on ? model_open_config(path, err) : model_open(path, err);
    free(path);
    if (!j->model || profile_configs_check(&j->configs, model_config(j->model), err))
        return err->code;
    j->digest = model_digest_begin(j->model, err);
    if (!j->digest ||
        (cfg.kvzap && (model_digest_wait(j->digest, err) || kvzap_check(model_digest_hex(j->digest), err))) ||
        (cfg.fit && profile_fit_new(&j->fit, &j->configs, j->model, cfg.devices, err)))
        return err->code;
    j->tokenizer = tokenizer_open_chat(j->model, cfg.chat, err);
    model_say_date(cfg.model, j->tokenizer);
    return j->tokenizer ? tokenizer_chat_digest(j->tokenizer, j->chat_digest, err) : err->code;
}

/* The default is low enough for a small model to answer sensibly: at 0.7, which many servers use, SmolLM2-135M's second
 * answers are hardly closer to the first than unrelated ones. A list of cells has its budget, so it adds no answers. */
static double temperature(void)
{
    const double usual = list_of_cells() || cfg.measure == MEASURE_LIKELIHOOD ? 0 : 0.3;

    return cfg.temperature < 0 ? usual : cfg.temperature;
}

static int open_shards(struct job *j, struct err *err)
{
    if (cfg.measure == MEASURE_LIKELIHOOD && temperature() > 0)
        return err_set(err, ERR_USAGE,
                       "--measure=likelihood and --temperature exclude each other: variants do not answer");
    j->made = (struct table_made){ .model = model_config(j->model)->name,
                                   .model_digest = model_digest_hex(j->digest),
                                   .chat_digest = j->chat_digest,
                                   .max_new_tokens = cfg.max_new_tokens,
                                   .temperature = temperature(),
                                   .measure = cfg.measure == MEASURE_LIKELIHOOD ? TABLE_LIKELIHOOD : "" };
    bool anew = cfg.overwrite || !cfg.output; // a dry run may be without FILE
    if (shards_open(&j->shards, cfg.output ? cfg.output : "", cfg.dry_run ? SHARDS_LOOK : SHARDS_WRITE, err) ||
        (!anew && !shards_are_new(&j->shards) && model_digest_wait(j->digest, err)))
        return err->code;
    return shards_read(&j->shards, &j->made, anew ? SHARDS_OVERWRITE : SHARDS_EXTEND, err);
}

static int plan_grid(struct job *j, struct err *err)
{
    j->input.config = j->configs.at;
    j->input.n_configs = j->configs.n;
    j->input.max_new_tokens = cfg.max_new_tokens;
    j->input.temperature = temperature();
    j->input.judges = cfg.measure == MEASURE_LIKELIHOOD;
    j->input.times_decoding = cfg.decode_times == DECODE_AUTO ? !list_of_cells() : cfg.decode_times == DECODE_ON;
    j->input.too_long = cfg.truncate ? TOO_LONG_CUT : TOO_LONG_REFUSE;
    j->input.model_tokens = model_config(j->model)->max_tokens;
    j->input.model_short = model_short(model_config(j->model));
    j->input.model_original = model_limit(model_config(j->model), 1);
    j->input.tokenizer = j->tokenizer;
    j->input.shards = &j->shards;
    return grid_plan(&j->grid, &j->input, err);
}

/* Everything that needs no device and no weights. */
static int plan(struct job *j, int argc, char **argv, int first, struct err *err)
{
    if (read_inputs(j, argv[first], argv[first + 1], err) || model_say_for(cfg.model, &j->contexts, argv[first], err) ||
        open_model(j, err) || open_shards(j, err) || plan_grid(j, err) || make_lineage(j, argc, argv, first, err))
        return err->code;
    tokenizer_free(j->tokenizer);
    j->tokenizer = NULL;
    profile_say_plan(&j->grid, cfg.output);
    return 0;
}

/* ---- what happens to contexts ------------------------------------------------------- */

static void on_tokens(void *arg, int64_t tokens)
{
    struct job *j = arg;

    progress_left(pace_left(&j->pace));
    progress_add(tokens);
}

static void on_context(void *arg, const struct work *w)
{
    struct job *j = arg;

    progress_note("%s%s", clock_is_busy(j->wait) ? "busy, " : "", w->context->id);
    j->wait = clock_wait();
}

static void on_failure(void *arg, const struct work *w, const struct err *why)
{
    struct job *j = arg;

    log_error("context '%s': %s", w->context->id, why->msg);
    j->n_failed++;
}

static void on_left(void *arg, const struct work *w)
{
    struct job *j = arg;

    grid_leave(&j->grid, w);
}

static struct run_watch watch_of(struct job *j)
{
    return (struct run_watch){ on_context, on_failure, on_left, j, 0 };
}

/* ---- the device ---------------------------------------------------------------------- */

/* With auto the dtype of FILE's answers, which new answers must share; NULL: there are none, or a dtype is given. */
static const char *dtype_of_file(const struct job *j)
{
    const struct table *have = &j->shards.have;

    return strcmp(cfg.dtype, "auto") == 0 && have->n_contexts > 0 ? have->dtype : NULL;
}

static struct profile_want want(const struct job *j)
{
    return (struct profile_want){ .model = cfg.model,
                                  .backend = cfg.backend,
                                  .dtype = dtype_of_file(j) ? dtype_of_file(j) : cfg.dtype,
                                  .n_threads = cfg.threads,
                                  .timed = cfg.common.verbose > 0,
                                  .memory = cfg.memory };
}

static struct run job_run(struct job *j)
{
    return (struct run){ .engine = j->device.engine,
                         .session = j->device.session,
                         .grid = &j->grid,
                         .made = &j->made,
                         .digest = j->digest,
                         .lineage = j->lineage,
                         .fit = j->fit,
                         .arg = j,
                         .pace = &j->pace,
                         .timing = &j->timing };
}

static void begin_pace(struct job *j)
{
    j->pace.of[PACE_PREFILL].total = j->device.cost.prefill_flop + j->device.cost.side_flop;
    j->pace.of[PACE_ANSWERS].total = j->device.cost.decode_flop;
    for (int i = 0; i < j->grid.n_work; i++)
        j->pace.of[PACE_DERIVING].total += run_derived(&j->grid, &j->grid.work[i]);
    pace_begin(&j->pace, j->device.speed);
    profile_say_cost(&j->device, pace_left(&j->pace), j->n_devices);
}

static int open_device(struct job *j, struct err *err)
{
    const struct profile_want all = want(j);

    j->n_devices = 1;
    if (profile_device_open(&j->device, &all, err))
        return err->code;
    backend_say(engine_backend(j->device.engine), cfg.threads);
    profile_say_resumed(&j->device, j->model, dtype_of_file(j), cfg.output);
    return profile_device_made(&j->device, &j->made, &j->shards, err);
}

/* Plans memory, then reads the weights. */
static int load_device(struct job *j, struct err *err)
{
    const struct profile_want all = want(j);
    const struct run_watch watch = watch_of(j);

    if (profile_device_plan(&j->device, &all, &j->grid, &watch, err))
        return err->code;
    profile_say_memory(&j->device.plan);
    if (profile_device_load(&j->device, err))
        return err->code;
    if (strncmp(j->device.kind, "cuda", 4) != 0 &&
        model_digest_wait(j->digest, err)) // its thread would slow others down
        return err->code;
    const struct run run = job_run(j);
    return profile_device_speed(&j->device, &run, err);
}

static int open_crew(struct job *j, struct err *err)
{
    if (model_digest_wait(j->digest, err)) // workers cannot
        return err->code;
    j->for_worker = (struct worker_job){ want(j), &j->grid, &j->shards, &j->made, j->lineage, profile_say_failed };
    j->crew = crew_start(&j->for_worker, cfg.devices, &j->device, err);
    if (!j->crew)
        return err->code;
    j->n_devices = crew_size(j->crew, &j->n_devices_failed);
    if (*j->device.note)
        log_info("%s", j->device.note);
    profile_say_resumed(&j->device, j->model, dtype_of_file(j), cfg.output);
    return profile_device_made(&j->device, &j->made, &j->shards, err);
}

static int load_crew(struct job *j, struct err *err)
{
    const struct run_watch watch = watch_of(j);

    if (crew_load(j->crew, &watch, &j->device, err))
        return err->code;
    profile_say_memory(&j->device.plan);
    return 0;
}

/* From opening the device, or the devices, to the first context. */
static int get_ready(struct job *j, struct err *err)
{
    int code = cfg.devices ? open_crew(j, err) : open_device(j, err);

    if (!code)
        code = j->crew ? load_crew(j, err) : load_device(j, err);
    if (!code)
        begin_pace(j);
    return code;
}

/* ---- the work ---------------------------------------------------------------------------- */

static int do_all(struct job *j, struct err *err)
{
    struct run_watch watch = watch_of(j);
    struct run run = job_run(j);
    int64_t total = 0;

    interrupt_goes_on();
    run.progress = on_tokens;
    j->timing.start = clock_now();
    if (j->sample.seconds > 0)
        watch.until = j->timing.start + j->sample.seconds;
    for (int i = 0; i < j->grid.n_work; i++)
        total += run_tokens(&j->grid, &j->grid.work[i]);
    progress_begin("tokens", total);
    int code = j->crew ? crew_run(j->crew, &run, &watch, err) : run_all(&run, &j->shards, &watch, err);
    progress_end();
    return !code && j->fit ? kvzap_fit_write(j->fit, cfg.fit, model_digest_hex(j->digest), err) : code;
}

static int measure(struct job *j, struct err *err)
{
    if (j->grid.n_answers == 0)
        return cfg.fit ? err_set(err, ERR_FAIL, "--fit-kvzap: no context is left to run; see --overwrite") : 0;
    int code = get_ready(j, err);
    if (!code && !cfg.dry_run)
        code = shards_begin(&j->shards, err);
    if (!code && !cfg.dry_run)
        code = do_all(j, err);
    if (j->device.session && cfg.common.verbose > 0)
        profile_say_ops(engine_backend(j->device.engine));
    profile_device_close(&j->device);
    if (j->crew)
        crew_size(j->crew, &j->n_devices_failed);
    crew_end(j->crew, &j->timing);
    if (code && j->shards.fresh)
        log_info("finished contexts are kept in '%s'; run the same command again for the others", j->shards.dir);
    return code;
}

/* With a sample, every context becomes a row of FILE, also the contexts that were not run. */
static int write_file(struct job *j, struct err *err)
{
    const struct kv_shape shape = profile_configs_shape(model_config(j->model));
    const struct table_asked_run asked = { &j->questions, &j->contexts.ids, cfg.forget * 86400 };
    struct shards_whole whole = { .order = &j->contexts.ids, .lineage = j->lineage, .shape = &shape, .asked = &asked };
    struct table_made made = j->made.backend ? j->made : table_made(&j->shards.have);
    struct table rows = { 0 };
    int code = model_digest_wait(j->digest, err);

    if (!code && cfg.sample && made.backend) {
        code = unvisited_rows(&rows, &j->grid, &shape, err);
        if (!code)
            code = table_set_made(&rows, &made, err);
        whole.rows = &rows;
    }
    if (!code)
        code = shards_finish(&j->shards, &whole, err);
    table_release(&rows);
    return code;
}

static int finish(struct job *j, double start, struct err *err)
{
    const struct grid *g = &j->grid;
    int n_lost = g->n_refused + j->n_failed;
    char time[TEXT_SHORT];

    if (!cfg.dry_run && write_file(j, err))
        return err->code;
    profile_say_counts(g, n_lost, j->shards.n_forgotten, cfg.output);
    if (cfg.devices) {
        summary_int("devices", j->n_devices);
        summary_int("devices_failed", j->n_devices_failed);
    }
    profile_say_left_out(g, n_lost);
    profile_say_timing(&j->timing);
    if (!n_lost && g->n_answers && !cfg.dry_run)
        log_info("%d contexts in %s", g->n_contexts, text_seconds(time, clock_now() - start));
    if (!cfg.dry_run && (n_lost == 0 || n_lost < g->n_work + g->n_refused))
        next_say("evp-score", cfg.output, "-o", "table.h5", NULL);
    return 0;
}

static int run_job(struct job *j, int argc, char **argv, int first, struct err *err)
{
    if (method_plugins_open(cfg.plugin, err) || (cfg.kvzap && kvzap_use(cfg.kvzap, err)))
        return err->code;
    if (cfg.list_configs)
        return profile_configs_print(err);
    if (plan(j, argc, argv, first, err))
        return err->code;
    if (cfg.on)
        return profile_on(&j->grid, cfg.model, want(j).dtype, cfg.on, err);
    double start = clock_now();
    if (measure(j, err) || finish(j, start, err))
        return err->code;
    profile_say_hour(argv, cfg.dry_run && !cfg.sample && !list_of_cells() ? pace_left(&j->pace) : 0, cfg.output);
    return 0;
}

/* Were rows left out, or did a device fail? */
static bool is_partial(const struct job *j)
{
    return j->n_failed || j->n_devices_failed || j->grid.n_refused || j->grid.n_refused_questions;
}

int main(int argc, char **argv)
{
    struct err err;
    struct job job = { .shards.lock = -1 };

    wait_briefly(argv);
    int first, status = opt_parse(&tool, argc, argv, &first);
    if (status != OPT_RUN)
        return status;
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error to report, not the end of the process
    summary_begin(&tool, argc, argv);
    int code = run_job(&job, argc, argv, first, &err);
    status = is_partial(&job) ? 1 : 0;
    job_release(&job);
    return summary_end(code, status, &err);
}
