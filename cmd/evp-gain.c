/* evp-gain - what caches of several sizes would have saved, from request logs alone. No model is run: its shape tells
 * bytes and operations, a GPU's data sheet the times, and a replay of the requests what an LRU cache would have held.
 */
#include "cmd/gain.h"

#include "base/parallel.h"
#include "cmd/options.h"
#include "cmd/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gain_choice cfg = { .hbm = UINT64_MAX };
static struct opt_common common;

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_MANY('d', "dataset", &cfg.dataset, "NAME,...", "take only these datasets; may be repeated"),
    OPT_PARTIAL(&cfg.partial),
    OPT_TIME_UNIT(&cfg.time_unit),
    OPT_REUSE(&cfg.reuse),
    OPT_HEAD("Model and device"),
    OPT_MODEL_SHAPE(&cfg.model),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_GPUS(&cfg.gpus, 0),
    OPT_BYTES(
        0, "hbm", &cfg.hbm,
        "GPU memory that engines keep KV in anyway, of all servers together; 0: none (default: nine tenths of the "
        "memory less the weights, of all GPUs)"),
    OPT_BYTES(0, "dram", &cfg.dram, "memory for caches, of all servers together"),
    OPT_BYTES(0, "ssd", &cfg.ssd, "space for caches on SSD, of all servers together"),
    OPT_BYTES(
        0, "ssd-read", &cfg.ssd_read,
        "bytes per second that are read from SSD, of all servers together; 0: four fifths of the 6.5 GB/s of a Samsung "
        "PM9A3"),
    OPT_BYTES(0, "ssd-write", &cfg.ssd_write,
              "bytes per second that are written to SSD; 0: four fifths of the 3.5 GB/s of that one"),
    OPT_HEAD("What to buy"),
    OPT_WORDS(0, "sweep", &cfg.sweep,
              "dram=64G..1T,ssd=1T..16T: uncompressed LRU caches of all these sizes, in powers of two, or with /N in N "
              "equal steps: dram=0..512G/8"),
    OPT_WORDS(0, "price", &cfg.price, "dram=USD,ssd=USD: of a GiB of DRAM and of a TiB of SSD"),
    OPT_WRITES(0, "picture", &cfg.picture, "FILE", "write a picture of the sweep, as SVG"),
    OPT_HEAD("Output"),
    OPT_JSON(&cfg.json),
    OPT_COMMON(&common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-gain",
    .summary = "tell from request logs what caches would have saved",
    .operands = "LOG...",
    .min_operands = 1,
    .max_operands = -1,
    .opts = opts,
    .common = &common,
    .about =
        "LOG is a log of OpenAI bodies from vLLM, SGLang, LiteLLM, nginx or batch files (docs/requests.md), or a trace "
        "with ids of blocks in place of text (docs/replay.md); compressed or not; '-' is standard input. All logs "
        "are one; --dataset names models.\n"
        "\n"
        "Requests are replayed by their times, or without times in the order of the lines. The table has rows for no "
        "cache, for what engines keep in the memory of the GPUs, from which savings count, and for LRU caches behind "
        "it, of KV as it is or 2, 3 and 10 times smaller, and without bounds.\n"
        "\n"
        "Shares are of prompt tokens; a token is found only with all before it.\n"
        "\n"
        "Without --gpus there are the fewest that are busy for at most 70 % of the time without a cache.\n"
        "\n"
        "--sweep tells which sizes are worth their --price: of them no other one is as cheap, as fast on average, and "
        "as fast for the slowest twentieth. --json has all sizes.\n"
        "\n"
        "No model is run: docs/gain.md has the assumptions and formulas. Which compression keeps the answers, a log "
        "cannot tell; evp-profile measures it.",
    .examples = "  evp-gain vllm.log --model Qwen/Qwen3-8B --gpu H100 --dram 256G --ssd 4T\n"
                "  evp-gain vllm.log --model Qwen/Qwen3-8B --gpu H100 \\\n"
                "      --sweep dram=64G..1T,ssd=1T..16T --price dram=5,ssd=100\n"
                "  evp-gain logs/* --model config.json --gpu A100 --gpus 4 --dram 1T --json\n"
                "  evp-gain trace.jsonl --model synthetic:llama-3.1-8b --gpu L4 --dram 64G\n",
};

/* Data sheet of the Samsung PM9A3 in U.2, and a share as for a GPU. */
static const double ssd_read_bytes_per_s = 0.8 * 6.5e9, ssd_write_bytes_per_s = 0.8 * 3.5e9;
static const double usable = 0.9; // of a GPU's memory: vLLM's gpu_memory_utilization

static const char *const policies[GAIN_LANES] = {
    "prefill", "lru", "lru", "lru+2x", "lru+3x", "lru+10x", "lru", "lru"
};

/* ---- the replay ----------------------------------------------------------- */

double gain_span(const struct gain *g)
{
    const struct trace *t = &g->assumed.trace;

    return t->timed ? (double)t->request[t->n - 1].at / 1e9 : (double)NAN;
}

double gain_found(const struct lane *l)
{
    return l->outcome.token_hits[HBM] + l->outcome.token_hits[DRAM] + l->outcome.token_hits[SSD];
}

/* As many bytes as can be added up. */
static int64_t bounded(uint64_t bytes)
{
    return bytes < INT64_MAX / 4 ? (int64_t)bytes : INT64_MAX / 4;
}

/* GPUs, and what their memory keeps beside the weights, each copy of which is on as few GPUs as hold it. */
static void set_gpus(struct gain *g)
{
    double memory = usable * g->logs.model.gpu->memory_bytes;

    g->weights_bytes = g->logs.model.shape.weights_bytes;
    g->gpus_each = (int)fmin(ceil(g->weights_bytes / memory), 1e6);
    g->n_gpus = cfg.gpus ? cfg.gpus : assumed_gpus(&g->assumed, &g->logs.model, gain_span(g));
    if (!cfg.gpus && g->n_gpus < g->gpus_each)
        g->n_gpus = g->gpus_each;
    double copies = floor((double)g->n_gpus / g->gpus_each);
    double left = fmax(g->n_gpus * memory - copies * g->weights_bytes, 0);
    g->capacity[HBM] = cfg.hbm != UINT64_MAX ? bounded(cfg.hbm) : copies > 0 ? (int64_t)left : 0;
    g->capacity[DRAM] = bounded(cfg.dram);
    g->capacity[SSD] = bounded(cfg.ssd);
}

/* The memory of the GPUs, DRAM, to which every GPU has a link of its own, and an SSD. */
static int make_tiers(struct gain *g, struct err *err)
{
    double link = serving_to_device(g->logs.model.gpu);
    int links = g->n_gpus < TIER_READS_MAX ? g->n_gpus : TIER_READS_MAX;
    const struct tier_load all = { .reads = links, .bytes_per_s = links * link };
    struct tier *tier = calloc(GAIN_TIERS, sizeof(*tier));

    if (!tier)
        return err_nomem(err);
    g->in.tiers = (struct tiers){ tier, GAIN_TIERS };
    tier[HBM] = (struct tier){ .name = "hbm", .kind = TIER_GPU, .read_bytes_per_s = link };
    tier[DRAM] = (struct tier){ .name = "dram", .kind = TIER_DRAM, .read_bytes_per_s = link };
    tier[DRAM].write_bytes_per_s = all.bytes_per_s;
    tier[SSD] = (struct tier){ .name = "ssd", .kind = TIER_FILE, .read_bytes_per_s = g->ssd_read };
    tier[SSD].write_bytes_per_s = g->ssd_write;
    for (int t = 0; t < GAIN_TIERS; t++)
        tier[t].capacity = g->capacity[t];
    return links > 1 ? tier_add_load(&tier[DRAM], &all, err) : 0;
}

static int make_world(struct gain *g, struct err *err)
{
    const struct assumed_configs configs = { .factor = { 2, 3, 10 }, .quality = { 1, 1, 1 }, .n = 3 };
    const struct placement_files files = { .table = "the log" };

    if (assumed_make(&g->assumed, &g->logs.log, &g->logs.model, &configs, err))
        return err->code;
    set_gpus(g);
    g->in = (struct placement_input){ .max_move = INT64_MAX, .kind = QUALITY_RAW };
    if (make_tiers(g, err) || placement_input_take(&g->in, &g->assumed.table, &files, err))
        return err->code;
    g->world = assumed_world(&g->assumed, &g->logs.model, &g->in);
    g->world.n_device = 1;
    return world_open(&g->world, 0, err);
}

struct lanes {
    struct lane *lane;
    const char *const *policy;
    struct err *err; // (n)
};

static void run_lane(void *arg, int i)
{
    struct lanes *l = arg;

    (void)!lane_run(&l->lane[i], l->policy[i], &l->err[i]); /* err says it */
    lane_close(&l->lane[i]);                                /* its outcome stays */
}

int gain_run_lanes(struct lane *lane, const char *const *policy, int n, struct err *err)
{
    struct lanes lanes = { lane, policy, calloc((size_t)n, sizeof(*lanes.err)) };
    int code = lanes.err ? 0 : err_nomem(err);

    if (!code)
        parallel_do(parallel_threads(), n, run_lane, &lanes);
    for (int i = 0; i < n && !code; i++)
        if (lanes.err[i].code) {
            *err = lanes.err[i];
            code = err->code;
        }
    free(lanes.err);
    return code;
}

/* Capacities of the lanes: of the memory of GPUs alone, of all tiers, and without bounds. */
static void set_lanes(struct gain *g)
{
    bool waits = g->assumed.trace.timed;

    for (int i = 0; i < GAIN_LANES; i++) {
        int64_t *capacity = g->of_lane[i];
        memcpy(capacity, g->capacity, sizeof(g->capacity));
        if (i == GAIN_HBM)
            capacity[DRAM] = capacity[SSD] = 0;
        if (i >= GAIN_ROWS - 1)
            capacity[DRAM] = INT64_MAX / 4;
        g->lane[i] = (struct lane){ .world = &g->world,
                                    .at = g->at,
                                    .capacity = capacity,
                                    .n_gpus = g->n_gpus,
                                    .alone = !waits || i == GAIN_AGAIN };
    }
}

static int run_replay(struct gain *g, struct err *err)
{
    g->ssd_read = cfg.ssd_read ? (double)cfg.ssd_read : ssd_read_bytes_per_s;
    g->ssd_write = cfg.ssd_write ? (double)cfg.ssd_write : ssd_write_bytes_per_s;
    if (make_world(g, err))
        return err->code;
    const struct trace *t = &g->assumed.trace;
    g->at = malloc(((size_t)t->n + 1) * sizeof(*g->at));
    if (!g->at)
        return err_nomem(err);
    for (int i = 0; i < t->n; i++)
        g->at[i] = t->request[i].at;
    set_lanes(g);
    return gain_run_lanes(g->lane, policies, GAIN_LANES, err);
}

static void release(struct gain *g)
{
    world_close(&g->world);
    placement_input_release(&g->in);
    assumed_release(&g->assumed);
    free(g->at);
    replayed_logs_release(&g->logs);
}

static int run(struct gain *g, char **path, int n, struct err *err)
{
    const struct replayed_from from = { cfg.model, cfg.gpu, &cfg.dataset, cfg.reuse, cfg.time_unit, path, n };

    if (gain_sweep_check(&cfg, err))
        return err->code;
    g->c = &cfg;
    g->logs.rq.partial = cfg.partial;
    if (replayed_logs_read(&g->logs, &from, err) || run_replay(g, err))
        return err->code;
    if (cfg.sweep ? gain_sweep(g, path, n, err) : gain_print(g, path, n, err))
        return err->code;
    gain_say(g, path, n);
    return 0;
}

int main(int argc, char **argv)
{
    static struct gain g;
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(&g, argv + first, argc - first, &err);
    bool partial = request_logs_lack(&g.logs.rq);
    release(&g);
    return summary_end(code, partial ? 1 : 0, &err);
}
