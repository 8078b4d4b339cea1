/* evp-replay - what users would have seen: a trace of requests through policies, tiers and GPUs.
 *
 * replay/ does the work. Here are the options, the lines of the table, and the messages.
 */
#include "base/array.h"
#include "base/file.h"
#include "show/model_say.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/parallel.h"
#include "base/parse.h"
#include "cmd/replay_say.h"
#include "cmd/request_logs.h"
#include "replay/assumed.h"
#include "replay/replay_out.h"
#include "cmd/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 64, POLICIES_MAX = 64, IDS_SHOWN = 10 };

static struct {
    const char *tiers, *rate, *alpha, *contexts, *assume, *reuse, *model, *gpu, *output, *requests;
    struct opt_list policy, trace;
    double warm, min_quality, move_cost, pack_weight;
    int gpus, output_tokens, seed, time_unit;
    uint64_t engine_cache; // UINT64_MAX: not given
    bool batch, topics_change, partial, access_before;
    struct opt_common common;
} cfg = { .alpha = "1", .warm = 0.5, .seed = 1, .engine_cache = UINT64_MAX };

static const struct opt opts[] = {
    OPT_HEAD("Input"),
    OPT_TIERS(&cfg.tiers),
    OPT_MANY(0, "trace", &cfg.trace, "TRACE,...",
             "requests with their times: files, whose requests are merged by time, or poisson:QPS,N; may be repeated"),
    OPT_TIME_UNIT(&cfg.time_unit),
    OPT_TEXT(
        0, "contexts", &cfg.contexts, "map|zipf:S[,drift:D][,churn:C]",
        "let the contexts of the trace stand for those of the table, in turn; or draw those that requests ask for"),
    OPT_BOOL(0, "topics-change", &cfg.topics_change,
             "ask the first half of a context's test questions in the first half of its requests, then the others"),
    OPT_HEAD("Without a table, and with --batch"),
    OPT_WORDS(0, "assume", &cfg.assume,
              "FACTOR:QUALITY,...: configs that make KV so many times smaller, and the quality of their answers; the "
              "trace is a request log, or one with ids of blocks"),
    OPT_REUSE(&cfg.reuse),
    OPT_PARTIAL(&cfg.partial),
    OPT_MODEL_SHAPE(&cfg.model),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_HEAD("What is compared"),
    OPT_MANY(0, "policy", &cfg.policy, "NAME,...", "policies, listed below; may be repeated"),
    OPT_WORDS(0, "rate", &cfg.rate, OPT_RATE_HELP),
    OPT_WORDS(0, "alpha", &cfg.alpha, OPT_ALPHA_HELP),
    OPT_GPUS(&cfg.gpus, 0),
    OPT_BYTES(
        0, "engine-cache", &cfg.engine_cache,
        "GPU memory, of all GPUs, in which engines keep KV before any policy (default: with --gpu nine tenths of it "
        "less the weights, else none)"),
    OPT_BOOL(0, "batch", &cfg.batch,
             "the GPUs compute in steps of 2,048 tokens for many requests at once, and decode; with --model and --gpu"),
    OPT_OUTPUT_TOKENS(&cfg.output_tokens),
    OPT_REAL(0, "warm", &cfg.warm, 0, 0.99, "share of the requests, from the first, that fill caches and do not count"),
    OPT_MIN_QUALITY(&cfg.min_quality),
    OPT_BOOL(0, "access-before", &cfg.access_before,
             "night and drift learn rates and newcomers from the halves of the requests that do not count, as evp-plan "
             "does"),
    OPT_MOVE_COST(&cfg.move_cost),
    OPT_PACK_WEIGHT(&cfg.pack_weight),
    OPT_SEED(&cfg.seed),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "PATH"),
    OPT_WRITES(0, "per-request", &cfg.requests, "FILE", "a line for each request that counts"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-replay",
    .summary = "replay a trace of requests and tell what users would have seen",
    .operands = "[TABLE]",
    .min_operands = 0,
    .max_operands = 1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "Every request asks one of its context's test questions. What the policy holds of the context is read from its "
        "tier, whose bandwidth all reads share; the rest is computed by a GPU, one request after the other, or with "
        "--batch in steps for many at once.\n"
        "\n"
        "--rate stretches the trace to one rate or several; at 0 requests come one after the other, and nobody waits. "
        "Without it their times are those of the trace. Without --gpus there is one, with --assume the fewest that are "
        "busy for at most 70 % of the time when nothing is stored.\n"
        "\n"
        "With --batch an answer has --output-tokens, or as many as the trace says, or 128.\n"
        "\n"
        "The table has a line for each policy, rate and alpha: TTFT, quality, hits, use of GPU and tiers "
        "(docs/formats/replay.md).\n"
        "\n"
        "A trace is an access log with times (\"at\"), one of Mooncake, Azure or BurstGPT, which name no contexts, so "
        "that --contexts or --reuse draws them, or one of libCacheSim (.oracleGeneral).\n"
        "\n"
        "--assume takes the place of a table: bytes and times are computed from --model and --gpu, and a prompt finds "
        "what is held of its prefix (docs/replay.md).\n"
        "\n"
        "Policies: prefill stores nothing. fifo, lru, lfu, gdsf, s3fifo, sieve, arc, slru are caches; lru+kivi:bits=4 "
        "compresses everything. tlru:1.5 is lru, but contexts that are computed within 1.5 s leave first. "
        "priority:FILE evicts the lowest count of an access log. belady knows the future.\n"
        "\n"
        "evicpress and adaptcache are the papers' Algorithm 1 at every miss.\n"
        "\n"
        "night is the plan that evp-plan makes from the requests that do not count, night:load with their rate; "
        "static-clairvoyant is the one from those that do; manifest=FILE is a manifest's.\n"
        "\n"
        "live follows the requests, as evp_plan_used() does, live=FILE from what a manifest stores.\n"
        "\n"
        "drift: like night, but when a GPU is idle it re-profiles contexts whose answers fall more than 0.3 below "
        "prediction, with drift:0.1 more than 0.1.",
    .examples = "  evp-replay table.h5 --tiers tiers.json --trace access.jsonl \\\n"
                "      --policy lru,s3fifo,night -o replay.tsv\n"
                "  evp-replay table.h5 -t tiers.json --trace poisson:2,20000 \\\n"
                "      --contexts zipf:1 --policy prefill,lru,night --rate 0.5,1,2 >replay.tsv\n"
                "  evp-replay --assume 3.6:0.97 -m Qwen/Qwen3-8B --gpu H100 -t tiers.json \\\n"
                "      --trace vllm.log --policy prefill,lru,lru+3.6x >replay.tsv\n",
};

struct run {
    struct placement_input in;
    struct trace trace;
    struct replay_world world;
    struct assumed assumed;
    struct steps_gpu gpu;  // with --batch
    int32_t *path, *first; // (n), (n + 1): the rows of the requests
    int64_t *at;           // (n)
    int32_t *output;       // (n)
    double rate[NUMBERS_MAX], alpha[NUMBERS_MAX];
    int n_rates, n_alphas;
    const char *policy[POLICIES_MAX];
    int n_policies;
    int n_gpus;
    struct buf names, inputs, out, requests;
    struct {
        char **at;
        int n, cap;
    } traces;      // their names
    bool left_out; // requests of a log
};

/* ---- what is asked for ------------------------------------------------------- */

/* Cuts lists at the commas that are followed by a policy; others belong to a config. */
static int take_policies(struct run *run, struct err *err)
{
    for (int i = 0; i < cfg.policy.n; i++)
        buf_add(&run->names, cfg.policy.at[i], strlen(cfg.policy.at[i]) + 1);
    if (buf_failed(&run->names))
        return err_nomem(err);
    for (char *at = run->names.at, *end = at + run->names.n; at < end; at += strlen(at) + 1) {
        for (char *comma = strchr(at, ','); comma; comma = strchr(comma + 1, ','))
            if (policy_find(comma + 1)) {
                *comma = '\0';
                break;
            }
        if (run->n_policies == POLICIES_MAX)
            return err_set(err, ERR_USAGE, "more than %d policies", POLICIES_MAX);
        if (!policy_find(at))
            return err_set(err, ERR_USAGE, "there is no policy '%s'; --help lists them", at);
        run->policy[run->n_policies++] = at;
    }
    return run->n_policies ? 0 : err_set(err, ERR_USAGE, "--policy is needed: prefill,lru,night for example");
}

static int add_trace(void *arg, const char *item, size_t n)
{
    struct run *run = arg;
    char *path = strndup(item, n);

    if (path && ARRAY_PUSH(&run->traces, path) == 0)
        return 0;
    free(path);
    return ERR_NOMEM;
}

/* The names of files, between commas; poisson:QPS,N has one of its own. */
static int take_traces(struct run *run, struct err *err)
{
    for (int i = 0; i < cfg.trace.n; i++) {
        const char *text = cfg.trace.at[i];
        bool whole = strncmp(text, "poisson:", strlen("poisson:")) == 0;
        if (whole ? add_trace(run, text, strlen(text)) : opt_split(text, add_trace, run))
            return err_nomem(err);
    }
    return 0;
}

static int take_numbers(const char *name, const char *text, double *to, int *n, struct err *err)
{
    *n = parse_list(text, to, NUMBERS_MAX);
    for (int i = 0; i < *n; i++)
        if (!(to[i] >= 0))
            *n = -1;
    return *n > 0 ? 0 : err_set(err, ERR_USAGE, "--%s '%s' is not a list of up to %d numbers", name, text, NUMBERS_MAX);
}

static int take_options(struct run *run, struct err *err)
{
    if (cfg.output && cfg.requests && strcmp(cfg.output, cfg.requests) == 0)
        return err_set(err, ERR_USAGE, "--output and --per-request must be different files");
    if (!cfg.tiers || !cfg.trace.n)
        return err_set(err, ERR_USAGE, "--%s is needed", cfg.tiers ? "trace" : "tiers");
    if (cfg.reuse && !cfg.assume)
        return err_set(err, ERR_USAGE, "--reuse is for --assume; --contexts draws those of a table");
    if (cfg.assume && cfg.contexts)
        return err_set(err, ERR_USAGE, "--assume takes contexts from the trace; --contexts draws those of a table");
    if (cfg.assume && cfg.topics_change)
        return err_set(err, ERR_USAGE, "--topics-change needs a table: --assume has no questions");
    if (!cfg.assume && !cfg.batch && (cfg.model || cfg.gpu))
        return err_set(err, ERR_USAGE, "--%s is for --assume and --batch: a table has its own times",
                       cfg.model ? "model" : "gpu");
    run->n_gpus = cfg.gpus ? cfg.gpus : 1;
    if (take_numbers("alpha", cfg.alpha, run->alpha, &run->n_alphas, err) ||
        (cfg.rate && take_numbers("rate", cfg.rate, run->rate, &run->n_rates, err)))
        return err->code;
    return take_traces(run, err) ? err->code : take_policies(run, err);
}

/* ---- reading ----------------------------------------------------------------- */

static struct placement_input input_of(enum placement_quality kind)
{
    return (struct placement_input){ .min_quality = cfg.min_quality,
                                     .max_move = INT64_MAX,
                                     .move_cost = cfg.move_cost * 0x1p-30,
                                     .pack_weight = cfg.pack_weight,
                                     .kind = kind };
}

static int read_table(struct run *run, const char *path, struct err *err)
{
    const struct placement_files files = { .table = path, .tiers = cfg.tiers };
    struct table t;

    if (table_read(&t, path, TABLE_ALL, err))
        return err->code;
    run->in = input_of(QUALITY_PREDICTED);
    return placement_input_take(&run->in, &t, &files, err);
}

/* The first contexts of the trace that the table lacks, in a sentence. */
static int refuse_unknown(const struct run *run, struct err *err)
{
    struct buf ids = { 0 };
    int n = 0;

    for (int i = 0; i < run->trace.contexts.n; i++) {
        const char *id = run->trace.contexts.at[i].key;
        if (map_find(&run->in.table.ids, id, strlen(id)) != MAP_ABSENT)
            continue;
        if (n++ < IDS_SHOWN)
            buf_printf(&ids, "%s '%s'", n > 1 ? "," : "", id);
    }
    int code = err_set(err, ERR_FORMAT, "'%s': %d of its %d contexts are not in the table:%s%s", run->traces.at[0], n,
                       run->trace.contexts.n, buf_str(&ids), n > IDS_SHOWN ? ", ..." : "");
    buf_release(&ids);
    return code;
}

static int find_rows(struct run *run, struct err *err)
{
    const struct trace *t = &run->trace;
    int n_contexts = run->in.table.n_contexts;

    if (cfg.contexts && trace_draw(&run->trace, cfg.contexts, n_contexts, (uint64_t)cfg.seed, err))
        return err_wrap(err, "--contexts");
    for (int i = 0; i <= t->n; i++)
        run->first[i] = i;
    for (int i = 0; i < t->n; i++) {
        int32_t context = t->request[i].context;
        if (context < 0)
            return err_set(err, ERR_USAGE, "'%s' names no contexts: --contexts draws them, zipf:1 for example",
                           run->traces.at[0]);
        run->path[i] = context;
        if (cfg.contexts)
            continue;
        run->path[i] = map_find(&run->in.table.ids, t->contexts.at[context].key, strlen(t->contexts.at[context].key));
        if (run->path[i] == MAP_ABSENT)
            return refuse_unknown(run, err);
    }
    return 0;
}

/* Tokens of the answers: as asked for, or of the trace, or 128. */
static void set_output(struct run *run)
{
    enum { USUAL = 128 };

    for (int i = 0; i < run->trace.n; i++) {
        int of_trace = run->trace.request[i].output;
        run->output[i] = cfg.output_tokens ? cfg.output_tokens : of_trace ? of_trace : USUAL;
    }
}

static int open_world(struct run *run, struct err *err)
{
    if (!run->trace.timed && !cfg.rate) {
        log_warn("'%s' has no times: requests follow each other, and nobody waits; --rate gives them times",
                 run->traces.at[0]);
        run->rate[0] = 0;
        run->n_rates = 1;
    }
    run->at = malloc(((size_t)run->trace.n + 1) * sizeof(*run->at));
    run->output = malloc(((size_t)run->trace.n + 1) * sizeof(*run->output));
    if (!run->at || !run->output)
        return err_nomem(err);
    set_output(run);
    run->world.in = &run->in;
    run->world.n = run->trace.n;
    run->world.warm = (int)(cfg.warm * run->trace.n);
    run->world.topics_change = cfg.topics_change;
    run->world.learns = cfg.access_before;
    return world_open(&run->world, (uint64_t)cfg.seed, err);
}

static int read_trace(struct run *run, struct err *err)
{
    if (trace_read(&run->trace, run->traces.at, run->traces.n, (uint64_t)cfg.seed, err))
        return err->code;
    if (run->trace.unit > 0 && cfg.time_unit)
        trace_scale(&run->trace, replayed_unit(cfg.time_unit) / run->trace.unit);
    else if (run->trace.unit > 0 && run->trace.request[run->trace.n - 1].at > 0)
        request_logs_say_unit(run->trace.unit);
    run->path = malloc(((size_t)run->trace.n + 1) * sizeof(*run->path));
    run->first = malloc(((size_t)run->trace.n + 2) * sizeof(*run->first));
    if (!run->path || !run->first)
        return err_nomem(err);
    if (find_rows(run, err))
        return err->code;
    run->world = (struct replay_world){ .path = run->path, .first = run->first };
    return open_world(run, err);
}

static int check_gpu(const struct run *run, struct err *err)
{
    if (!cfg.batch || run->gpu.weights_bytes < run->gpu.memory_bytes)
        return 0;
    return err_set(err, ERR_USAGE, "the weights of '%s' do not fit an %s: %.0f GB of %.0f GB", cfg.model, cfg.gpu,
                   run->gpu.weights_bytes / 1e9, run->gpu.memory_bytes / 1e9);
}

static int read_gpu(struct run *run, struct err *err)
{
    struct gain_model m = { 0 };
    int code = gain_model_open(&m, cfg.model, cfg.gpu, err);

    if (!code) {
        model_say_shape(&m.shape);
        run->gpu = gain_model_steps(&m);
    }
    gain_model_close(&m);
    return code ? code : check_gpu(run, err);
}

/* ---- without a table --------------------------------------------------------- */

/* In seconds, at the highest rate. */
static double span_of(const struct run *run, const struct trace *t)
{
    double span = t->timed ? (double)t->request[t->n - 1].at / 1e9 : 0, most = 0;

    for (int i = 0; i < run->n_rates; i++)
        most = fmax(most, run->rate[i]);
    return run->n_rates ? (most > 0 ? (t->n - 1) / most : 0) : span;
}

static int take_assumed(struct run *run, const struct gain_model *m, struct err *err)
{
    const struct placement_files files = { .table = "the assumed table", .tiers = cfg.tiers };
    struct assumed *a = &run->assumed;

    run->in = input_of(QUALITY_RAW);
    if (placement_input_take(&run->in, &a->table, &files, err))
        return err->code;
    run->gpu = gain_model_steps(m);
    run->world = assumed_world(a, m, &run->in);
    if (!cfg.gpus)
        run->n_gpus = assumed_gpus(a, m, span_of(run, &a->trace));
    run->trace = a->trace;
    a->trace = (struct trace){ 0 };
    log_info("assumed: bytes and times from the shape of %s and the data sheet of an %s, qualities by hand: %s",
             m->shape.name, m->gpu->name, *cfg.assume ? cfg.assume : "none");
    return check_gpu(run, err) ? err->code : open_world(run, err);
}

static int read_assumed(struct run *run, struct err *err)
{
    const struct opt_list all = { 0 };
    const struct replayed_from from = { cfg.model,     cfg.gpu,        &all,         cfg.reuse,
                                        cfg.time_unit, run->traces.at, run->traces.n };
    struct assumed_configs configs;
    struct replayed_logs r = { .rq.partial = cfg.partial };
    int code = 0;

    if (assumed_parse(&configs, cfg.assume, err) || replayed_logs_read(&r, &from, err) ||
        assumed_make(&run->assumed, &r.log, &r.model, &configs, err) || take_assumed(run, &r.model, err))
        code = err->code;
    run->left_out = request_logs_lack(&r.rq);
    replayed_logs_release(&r);
    return code;
}

static int read_all(struct run *run, const char *table, struct err *err)
{
    if (cfg.assume)
        return table ? err_set(err, ERR_USAGE, "'%s' and --assume exclude each other", table) : read_assumed(run, err);
    if (!table)
        return err_set(err, ERR_USAGE, "a table of evp-score is needed, or --assume");
    if (cfg.batch && read_gpu(run, err))
        return err->code;
    return read_table(run, table, err) ? err->code : read_trace(run, err);
}

/* ---- lanes ------------------------------------------------------------------- */

/* Sets the arrivals of a rate; returns the requests per second. NAN: as in the trace. */
static double set_arrivals(struct run *run, double rate)
{
    const struct trace *t = &run->trace;
    double span_s = (double)t->request[t->n - 1].at / 1e9;

    if (rate > 0)
        trace_stretch(&run->trace, rate);
    for (int i = 0; i < t->n; i++)
        run->at[i] = t->request[i].at;
    return !isnan(rate) ? rate : span_s > 0 ? (t->n - 1) / span_s : (double)NAN;
}

/* What is replayed, in words; control characters of names are not. */
static int describe(struct run *run, const char *table, struct err *err)
{
    struct buf *in = &run->inputs;
    char capacity[TEXT_SHORT];

    for (int i = 0; i < run->traces.n; i++)
        buf_printf(in, i ? ", %s" : "%s", run->traces.at[i]);
    buf_printf(in, "; %s%s%s; %d GPU%s", table ? table : cfg.model, table ? "" : " on ", table ? "" : cfg.gpu,
               run->n_gpus, run->n_gpus == 1 ? "" : "s");
    for (int t = 0; t < run->in.tiers.n; t++) {
        const struct tier *tier = &run->in.tiers.at[t];
        buf_printf(in, "%s %s %s", t ? "," : ";", tier->name,
                   tier->capacity == INT64_MAX ? "without bounds" : text_bytes(capacity, (double)tier->capacity));
    }
    if (cfg.assume)
        buf_printf(in, "; qualities by hand: %s", *cfg.assume ? cfg.assume : "none");
    if (buf_failed(in))
        return err_nomem(err);
    for (size_t i = 0; i < in->n; i++)
        in->at[i] = (unsigned char)in->at[i] < ' ' ? '?' : in->at[i];
    return 0;
}

/* One policy at one rate and alpha, and its lines. */
struct job {
    struct run *run;
    struct replay_line line;
    struct lane lane;
    struct buf requests;
    int code;
    struct err err;
};

static int64_t engine_bytes(const struct run *run)
{
    double left = run->n_gpus * fmax(run->gpu.memory_bytes - run->gpu.weights_bytes, 0); // 0 without --gpu

    return cfg.engine_cache == UINT64_MAX ? (int64_t)fmin(left, 1e18) : (int64_t)cfg.engine_cache;
}

static void run_job(void *arg, int i)
{
    struct job *j = (struct job *)arg + i;
    struct run *run = j->run;

    j->lane = (struct lane){ .world = &run->world,
                             .alpha = j->line.alpha,
                             .at = run->at,
                             .n_gpus = run->n_gpus,
                             .gpu = cfg.batch ? &run->gpu : NULL,
                             .output = run->output,
                             .alone = j->line.rate == 0,
                             .engine_bytes = engine_bytes(run),
                             .quality_floor = cfg.min_quality };
    j->code = lane_run(&j->lane, j->line.policy, &j->err);
    if (!j->code && cfg.requests)
        replay_requests(&j->requests, &j->line, &j->lane, &run->trace);
    lane_close(&j->lane);
    progress_add(run->trace.n);
}

static void put_lines(struct run *run, const struct job *j)
{
    const struct lane *l = &j->lane;

    replay_out_line(&run->out, &j->line, l);
    buf_add(&run->requests, j->requests.at, j->requests.n);
    replay_say_line(&j->line, l);
}

static int run_rate(struct run *run, double rate, struct err *err)
{
    int n = run->n_alphas * run->n_policies, code = 0;
    struct job *job = calloc((size_t)n, sizeof(*job));

    if (!job)
        return err_nomem(err);
    for (int i = 0; i < n; i++)
        job[i] = (struct job){ .run = run,
                               .line = { run->policy[i % run->n_policies], rate, run->alpha[i / run->n_policies],
                                         buf_str(&run->inputs) } };
    parallel_do(parallel_threads(), n, run_job, job);
    for (int i = 0; i < n; i++) {
        if (job[i].code && !code)
            *err = job[i].err;
        code = code ? code : job[i].code;
        if (!code)
            put_lines(run, &job[i]);
        buf_release(&job[i].requests);
    }
    free(job);
    return code;
}

static int run_all(struct run *run, struct err *err)
{
    const int64_t slow = 2000000; // requests, more than a second
    int n_rates = run->n_rates ? run->n_rates : 1, code = 0;
    int64_t all = (int64_t)run->trace.n * n_rates * run->n_alphas * run->n_policies;

    replay_out_head(&run->out, &run->in.tiers);
    replay_requests_head(&run->requests);
    log_info("%d requests for %d %s%s%s, of which the last %d count", run->trace.n, run->in.table.n_contexts,
             cfg.assume ? "prefixes" : "contexts", cfg.contexts ? ", by " : "", cfg.contexts ? cfg.contexts : "",
             run->trace.n - run->world.warm);
    replay_say_spread(&run->trace);
    summary_int("requests", run->trace.n);
    summary_int("contexts", run->in.table.n_contexts);
    json_begin(summary_json(), "lines", '[');
    if (all > slow)
        progress_begin("requests", all);
    for (int r = 0; r < n_rates && !code; r++)
        code = run_rate(run, set_arrivals(run, run->n_rates ? run->rate[r] : (double)NAN), err);
    progress_end();
    json_end(summary_json(), ']');
    return code;
}

static int write_out(const struct run *run, struct err *err)
{
    if (buf_failed(&run->out) || buf_failed(&run->requests))
        return err_nomem(err);
    if (cfg.requests && file_write(cfg.requests, run->requests.at, run->requests.n, err))
        return err->code;
    if (cfg.output && strcmp(cfg.output, "-") != 0)
        return file_write(cfg.output, run->out.at, run->out.n, err);
    fwrite(run->out.at, 1, run->out.n, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static struct run run;
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = take_options(&run, &err);
    if (!code &&
        (read_all(&run, first < argc ? argv[first] : NULL, &err) ||
         describe(&run, first < argc ? argv[first] : NULL, &err) || run_all(&run, &err) || write_out(&run, &err)))
        code = err.code;
    world_close(&run.world);
    trace_release(&run.trace);
    assumed_release(&run.assumed);
    placement_input_release(&run.in);
    free(run.path);
    free(run.first);
    free(run.at);
    free(run.output);
    for (int i = 0; i < run.traces.n; i++)
        free(run.traces.at[i]);
    free(run.traces.at);
    buf_release(&run.names);
    buf_release(&run.inputs);
    buf_release(&run.out);
    buf_release(&run.requests);
    return summary_end(code, run.left_out ? 1 : 0, &err);
}
