/* evp-tiers - measures storage tiers and writes tiers.json.
 *
 * A tier is given as name=...,uri=...; numbers not given are measured in its folder. Only folders are measured: a GPU,
 * Redis and LMCache have tools of their own, and their numbers must be given.
 */
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/parse.h"
#include "cmd/next.h"
#include "cmd/summary.h"
#include "cmd/tiers_for.h"
#include "cmd/tiers_metrics.h"
#include "cmd/tiers_say.h"
#include "formats/tier_text.h"
#include "kernels/cuda/cuda.h"
#include "loader/store/probe.h"
#include "profiler/score/serving.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct opt_list tier;
    uint64_t probe;
    const char *output, *gpu, *parallel, *metrics, *model;
    int engine; // a number in TIERS_ENGINES
    struct opt_common common;
    struct tier_load load[TIER_LOADS]; // what --parallel asks for
    int n_loads;
} cfg = { .probe = 32 << 20, .parallel = "1" };

static const struct opt opts[] = {
    OPT_HEAD("Input"),
    OPT_MANY(0, "tier", &cfg.tier, "KEY=VALUE,...",
             "a tier, fast ones first; may be repeated; name=, uri= (a folder, redis://... or rediss://...), capacity= "
             "(none: unlimited), kind=; read=, write= (bytes per second) and latency= (seconds, or 1ms, 20us), "
             "measured if not given; pool= (tiers of one pool share one capacity, and each gives it), configs= (that "
             "the tier may hold: names between slashes), state= (a folder on this machine for evp-load's state of a "
             "redis tier, or of a folder on a network), access=read (another host fills this folder; needs read= and "
             "latency=)"),
    OPT_PICK(0, "for", &cfg.engine, TIERS_ENGINES,
             "let the tiers hold only configs that this serving engine can hold, so that plans use no others; a tier "
             "with configs= keeps its own, if the engine can hold them; vllm-drop: vLLM with evp's attention backend"),
    OPT_TEXT(
        'm', "model", &cfg.model, "MODEL",
        "the model that this engine serves (its config.json is enough): say what it can hold of its caches, or fail"),
    OPT_HEAD("Measurement"),
    OPT_BYTES(0, "probe", &cfg.probe, "write and read back a file of this size"),
    OPT_WORDS(0, "parallel", &cfg.parallel,
              "measure these numbers of simultaneous reads, each of its own file, like 1,4,16, for evp-plan "
              "--parallel-reads"),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_TEXT(
        0, "from-metrics", &cfg.metrics, "PATH",
        "give the tiers of FILE the bandwidth and latency that servers measured: a file of evp_write_metrics(), or "
        "all files *.prom of a folder together"),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-tiers",
    .summary = "measure storage tiers and write tiers.json",
    .operands = "[FILE]",
    .max_operands = 1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "Measures the tiers and writes tiers.json, to standard output without --output. Sizes take K, M, G, T (powers "
        "of 1024), also as 2GB or 2GiB; capacity=80% is a share of the folder's free space.\n"
        "\n"
        "The kind is gpu, dram, file, redis or lmcache; a folder in memory is dram, another folder is file. A folder "
        "is made for measuring if its parent exists, and removed again; tiers.json has its whole path. gpu, redis and "
        "lmcache are not measured: give read=, write= and latency=.\n"
        "\n"
        "Reads are measured as a thread of an engine makes them, checksums included.\n"
        "\n"
        "--parallel also measures several simultaneous reads, unless read= is given; evp-plan --parallel-reads uses "
        "the bandwidth of each. If there is an NVIDIA GPU (see evp-profile --backend), the bandwidth from pinned "
        "memory to it is measured too; --gpu computes it instead.\n"
        "\n"
        "FILE is a tiers.json for --from-metrics. A tier changes if servers read it at least 100 times and 100 MB of "
        "it. Their reads shared the tier with all others of that time, so plan with --parallel-reads 1.",
    .examples = "  evp-tiers --tier name=dram,uri=/dev/shm/evp,capacity=2G >tiers.json\n"
                "  evp-tiers --tier name=plain,uri=/ssd/a,pool=ssd,capacity=80%,configs=none \\\n"
                "      --tier name=small,uri=/ssd/b,pool=ssd,capacity=80%,configs=kivi\n"
                "  evp-tiers --for vllm \\\n"
                "      --tier name=dram,uri=/dev/shm/evp,capacity=2G >tiers.json\n"
                "  evp-tiers --tier \\\n"
                "      name=far,uri=redis://a,state=/srv/far,read=1G,write=1G,latency=1ms\n"
                "  evp-tiers tiers.json --from-metrics /srv/metrics -o measured.json\n",
};

/* ---- --parallel ------------------------------------------------------------ */

/* A single read is always measured, so 1 is not listed. */
static int take_parallel(struct err *err)
{
    double reads[TIER_LOADS + 1];
    int n = parse_list(cfg.parallel, reads, TIER_LOADS + 1), last = 0;

    for (int i = 0; i < n; i++) {
        if (!(reads[i] > last && reads[i] <= PROBE_READS_MAX) || reads[i] != floor(reads[i]) ||
            cfg.n_loads == TIER_LOADS)
            n = -1;
        else if ((last = (int)reads[i]) > 1)
            cfg.load[cfg.n_loads++].reads = last;
    }
    if (n >= 0)
        return 0;
    return err_set(err, ERR_USAGE, "'--parallel=%s' is not a rising list of up to %d numbers from 1 to %d",
                   cfg.parallel, TIER_LOADS, PROBE_READS_MAX);
}

/* ---- a --tier ------------------------------------------------------------ */

/* Makes the folder if only its parent exists and this host may write. *made: the caller removes it again. */
static int enter_folder(const struct tier *t, bool *made, struct err *err)
{
    *made = !t->read_only && mkdir(t->uri, 0777) == 0;
    if (!*made && !t->read_only && errno != EEXIST)
        return err_set(err, ERR_IO, "cannot make folder '%s': %s", t->uri,
                       errno == ENOENT ? "its parent does not exist" : strerror(errno));
    return file_is_dir(t->uri) ? 0 : err_set(err, ERR_IO, "'%s' is not a folder", t->uri);
}

static void warn_of(const struct tier *t, const struct folder *folder, const struct probe *p)
{
    char capacity[TEXT_SHORT], left[TEXT_SHORT];

    if (!t->read_only && t->capacity != INT64_MAX && (uint64_t)t->capacity > folder->free_bytes)
        log_warn("tier '%s' has a capacity of %s, but '%s' has only %s free", t->name,
                 text_bytes(capacity, (double)t->capacity), t->uri, text_bytes(left, (double)folder->free_bytes));
    if (p->cached > 0.05)
        log_warn("tier '%s': %.0f %% of the test file stayed in memory, so the read bandwidth is partly memory's; give "
                 "read= and latency=",
                 t->name, 100 * p->cached);
}

/* tiers.json is read in other working folders. */
static int make_absolute(struct tier *t, const char *absolute, struct err *err)
{
    char *uri = strdup(absolute);

    if (!uri)
        return err_nomem(err);
    free(t->uri);
    t->uri = uri;
    return 0;
}

static int measure_loads(struct tier *t, struct err *err)
{
    struct tier_load load[TIER_LOADS];

    memcpy(load, cfg.load, sizeof(load));
    if (cfg.n_loads && probe_parallel(load, cfg.n_loads, t->uri, cfg.probe, err))
        return err->code;
    for (int i = 0; i < cfg.n_loads; i++)
        if (tier_add_load(t, &load[i], err))
            return err->code;
    return 0;
}

static int measure_folder(struct tier *t, const struct tier_text *given, struct err *err)
{
    char absolute[PATH_MAX];
    bool by_hand = given->read && given->latency && (given->write || t->read_only), made;
    struct folder folder;
    struct probe p = { 0 };

    if (t->read_only && !by_hand)
        return err_set(err, ERR_USAGE,
                       "a tier with access=read is not measured, since that writes a file: give read= and latency=");
    if (enter_folder(t, &made, err))
        return err->code;
    int code = probe_look(&folder, t->uri, err);
    if (!code && !by_hand)
        code = probe_run(&p, t->uri, cfg.probe, err);
    if (!code && !given->read)
        code = measure_loads(t, err);
    if (!code && !realpath(t->uri, absolute))
        code = err_set(err, ERR_IO, "cannot find the whole path of '%s': %s", t->uri, strerror(errno));
    if (made)
        rmdir(t->uri);
    if (code)
        return code;
    if (!given->kind)
        t->kind = folder.in_memory ? TIER_DRAM : TIER_FILE;
    if (!given->read) {
        t->read_bytes_per_s = p.read_bytes_per_s;
        t->read_spread = p.read_spread;
    }
    if (!given->write)
        t->write_bytes_per_s = p.write_bytes_per_s;
    if (!given->latency)
        t->latency_s = p.latency_s;
    if (given->share > 0)
        t->capacity = (int64_t)(given->share * (double)folder.free_bytes);
    warn_of(t, &folder, &p);
    return make_absolute(t, absolute, err);
}

static int complete(struct tier *t, const struct tier_text *given, struct err *err)
{
    if (tier_is_folder(t))
        return measure_folder(t, given, err);
    if (given->share > 0)
        return err_set(err, ERR_USAGE, "'capacity=%g%%': the free space of a tier of kind %s is unknown here",
                       100 * given->share, tier_kind_name(t->kind));
    if (!given->read || !given->write || !given->latency)
        return err_set(err, ERR_USAGE, "a tier of kind %s cannot be measured here: give read=, write= and latency=",
                       tier_kind_name(t->kind));
    return 0;
}

static int take_tier(struct tiers *tiers, const char *text, struct err *err)
{
    struct tier *t = &tiers->at[tiers->n++];
    struct tier_text given;
    int code = tier_text_read(&given, text, err);

    *t = given.tier;
    if (!code)
        code = complete(t, &given, err);
    if (!code)
        code = tier_check(t, err);
    if (!code && tiers_find(tiers, t->name) != tiers->n - 1)
        code = err_set(err, ERR_USAGE, "another tier has the same name");
    if (!code)
        return 0;
    if (code == ERR_FORMAT) // malformed in a file, a wrong command line here
        err->code = ERR_USAGE;
    return err_wrap(err, "--tier '%s'", text);
}

/* ---- from memory to the GPU ---------------------------------------------- */

/* *bytes_per_s 0: no GPU here, and --gpu is not given. */
static int device_rate(double *bytes_per_s, const char **how, struct err *err)
{
    struct serving_gpu given;
    const struct serving_gpu *gpu = cfg.gpu ? serving_find(cfg.gpu, &given, err) : NULL;

    *bytes_per_s = 0;
    *how = gpu ? "computed" : "measured";
    if (gpu)
        *bytes_per_s = serving_to_device(gpu);
    if (cfg.gpu)
        return gpu ? 0 : err_wrap(err, "--gpu");
    struct backend *be = cuda_load(&(struct backend_options){ .name = "cuda" }, err);
    if (!be) {
        log_debug("the bandwidth to a GPU is not measured: %s", err->msg);
        return 0;
    }
    int code = cuda_upload_rate(be, bytes_per_s, err);
    be->close(be);
    return code;
}

/* Every tier that is not on the GPU itself is read through the host's memory. */
static int add_device(struct tiers *tiers, struct err *err)
{
    char text[TEXT_SHORT];
    const char *how;
    double rate;

    if (device_rate(&rate, &how, err))
        return err->code;
    for (int i = 0; i < tiers->n; i++)
        if (tiers->at[i].kind != TIER_GPU)
            tiers->at[i].device_bytes_per_s = rate;
    if (rate > 0)
        log_info("%s/s from pinned memory to the GPU, %s", text_bytes(text, rate), how);
    return 0;
}

/* ---- the result ---------------------------------------------------------- */

/* The bandwidth of several simultaneous reads. */
static void show_loads(const struct tier *t)
{
    char together[TEXT_SHORT];

    for (int i = 0; i < t->n_loads; i++)
        log_info("%-12s %d reads at once: %s/s together, times spread by %.0f %%", t->name, t->load[i].reads,
                 text_bytes(together, t->load[i].bytes_per_s), 100 * t->load[i].spread);
}

static void show(const struct tiers *tiers)
{
    char capacity[TEXT_SHORT], reads[TEXT_SHORT], writes[TEXT_SHORT], latency[TEXT_SHORT];

    json_begin(summary_json(), "tiers", '[');
    log_info("%-12s %-8s %12s %14s %14s %10s", "tier", "kind", "capacity", "read", "write", "latency");
    for (int i = 0; i < tiers->n; i++) {
        const struct tier *t = &tiers->at[i];
        json_begin(summary_json(), NULL, '{');
        json_put_text(summary_json(), "name", t->name);
        json_put_real(summary_json(), "read_bytes_per_s", t->read_bytes_per_s);
        json_put_real(summary_json(), "write_bytes_per_s", t->write_bytes_per_s);
        json_put_real(summary_json(), "latency_s", t->latency_s);
        json_end(summary_json(), '}');
        log_info("%-12s %-8s %12s %12s/s %12s/s %10s", t->name, tier_kind_name(t->kind),
                 t->capacity == INT64_MAX ? "unlimited" : text_bytes(capacity, (double)t->capacity),
                 text_bytes(reads, t->read_bytes_per_s),
                 t->write_bytes_per_s > 0 ? text_bytes(writes, t->write_bytes_per_s) : "-",
                 text_seconds(latency, t->latency_s));
        show_loads(t);
        if (i > 0 && t->read_bytes_per_s > 1.5 * t[-1].read_bytes_per_s)
            log_warn("tier '%s' reads faster than '%s' before it: list fast tiers first", t->name, t[-1].name);
    }
    json_end(summary_json(), ']');
    tiers_say_doubts(tiers);
}

static int write_tiers(const struct tiers *tiers, struct err *err)
{
    struct buf text = { 0 };
    int code = 0;

    tiers_write(tiers, &text);
    buf_addc(&text, '\n');
    if (buf_failed(&text))
        code = err_nomem(err);
    else if (cfg.output && strcmp(cfg.output, "-") != 0)
        code = file_write(cfg.output, text.at, text.n, err);
    else
        fwrite(text.at, 1, text.n, stdout);
    buf_release(&text);
    return code;
}

/* The tiers of --tier, measured. */
static int measure_tiers(struct tiers *tiers, struct err *err)
{
    int code = 0;

    if (cfg.tier.n == 0)
        return err_set(err, ERR_USAGE, "no tier is given: add --tier name=NAME,uri=FOLDER");
    if (take_parallel(err))
        return err->code;
    if (cfg.tier.n > TIER_MAX)
        return err_set(err, ERR_USAGE, "%d tiers are given; %d is the maximum", cfg.tier.n, TIER_MAX);
    tiers->at = calloc((size_t)cfg.tier.n, sizeof(*tiers->at));
    if (!tiers->at)
        return err_nomem(err);
    for (int i = 0; i < cfg.tier.n && !code; i++)
        code = take_tier(tiers, cfg.tier.at[i], err);
    if (!code)
        code = add_device(tiers, err);
    if (!code && tiers_check_together(tiers, err))
        code = err->code = ERR_USAGE;
    return code;
}

/* The tiers of a file, with what servers measured. */
static int read_tiers(struct tiers *tiers, const char *file, struct err *err)
{
    if (file && strchr(file, '=') && !cfg.metrics)
        return err_set(err, ERR_USAGE, "a tier is given as --tier name=NAME,uri=FOLDER, not '%s'", file);
    if (!file || !cfg.metrics || cfg.tier.n)
        return err_set(err, ERR_USAGE, "--from-metrics needs a tiers.json as its only operand, and no --tier");
    return tiers_read(tiers, file, err) ? err->code : tiers_take_metrics(tiers, cfg.metrics, err);
}

static int run(const char *file, struct err *err)
{
    struct tiers tiers = { 0 };
    int code = cfg.model ? tiers_for_model(cfg.engine, cfg.model, err) : 0;

    if (!code)
        code = file || cfg.metrics ? read_tiers(&tiers, file, err) : measure_tiers(&tiers, err);
    if (!code)
        code = tiers_for(&tiers, cfg.engine, err);
    if (!code) {
        show(&tiers);
        code = write_tiers(&tiers, err);
        if (!code && cfg.output && file_exists("table.h5"))
            next_say("evp-plan", "table.h5", "--tiers", cfg.output, "-o", "manifest.jsonl", NULL);
    }
    tiers_release(&tiers);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(argv[first], &err);
    return summary_end(code, 0, &err);
}
