/* evp-gain - what caches of several sizes would have saved, from request logs alone. No model is run: its shape tells
 * bytes and operations, a GPU's data sheet the times, and a replay of the requests what an LRU cache would have held.
 */
#include "base/log.h"
#include "cmd/options.h"
#include "base/parallel.h"
#include "replay/assumed.h"
#include "cmd/next.h"
#include "cmd/request_logs.h"
#include "show/show_sheet.h"
#include "cmd/summary.h"
#include "replay/lane.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct opt_list dataset;
    const char *model, *gpu;
    uint64_t dram, ssd, ssd_read;
    int gpus;
    bool json, partial;
    struct opt_common common;
} cfg;

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_MANY('d', "dataset", &cfg.dataset, "NAME,...", "take only these datasets; may be repeated"),
    OPT_PARTIAL(&cfg.partial),
    OPT_HEAD("Model and device"),
    OPT_MODEL_SHAPE(&cfg.model),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_GPUS(&cfg.gpus, 0),
    OPT_BYTES(0, "dram", &cfg.dram, "memory for caches, of all servers together"),
    OPT_BYTES(0, "ssd", &cfg.ssd, "space for caches on SSD, of all servers together"),
    OPT_BYTES(
        0, "ssd-read", &cfg.ssd_read,
        "bytes per second that are read from SSD, of all servers together; 0: four fifths of the 6.5 GB/s of a Samsung "
        "PM9A3"),
    OPT_HEAD("Output"),
    OPT_JSON(&cfg.json),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-gain",
    .summary = "tell from request logs what caches would have saved",
    .operands = "LOG...",
    .min_operands = 1,
    .max_operands = -1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "LOG is a log of OpenAI bodies from vLLM, SGLang, LiteLLM, nginx or batch files (docs/requests.md), or a trace "
        "of Mooncake, which has ids of blocks in place of text; compressed or not; '-' is standard input. All logs are "
        "one; --dataset names models.\n"
        "\n"
        "Requests are replayed by their times, or without times in the order of the lines. The table has rows for no "
        "cache, for LRU caches in DRAM and SSD that hold KV as it is or 2, 3 and 10 times smaller, and for a cache "
        "without bounds. Shares are of prompt tokens; a token is found only with all before it.\n"
        "\n"
        "Without --gpus there are the fewest that are busy for at most 70 % of the time without a cache.\n"
        "\n"
        "No model is run: docs/gain.md has the assumptions and formulas. Which compression keeps the answers, a log "
        "cannot tell; evp-profile measures it.",
    .examples = "  evp-gain vllm.log --model Qwen/Qwen3-8B --gpu H100 --dram 256G --ssd 4T\n"
                "  evp-gain logs/* --model config.json --gpu A100 --gpus 4 --dram 1T --json\n"
                "  evp-gain trace.jsonl --model synthetic:llama-3.1-8b --gpu L4 --dram 64G\n",
};

static const double busy_aim = 0.7;
static const double ssd_bytes_per_s = 0.8 * 6.5e9; // data sheet of the Samsung PM9A3 in U.2, and a share as for a GPU

/* By row of the table; INFINITY: a cache without bounds, 0: none. One more lane finds what comes again: without bounds,
 * each request after the one before. */
static const double factors[] = { 0, 1, 2, 3, 10, (double)INFINITY };
static const char *const policies[] = { "prefill", "lru", "lru+2x", "lru+3x", "lru+10x", "lru", "lru" };
enum { N_ROWS = sizeof(factors) / sizeof(*factors), AGAIN = N_ROWS, N_LANES, DRAM = 0, SSD = 1 };

struct gain {
    struct replayed_logs logs;
    double ssd_read; // bytes per second
    int n_gpus;
    struct assumed assumed;
    struct placement_input in, unbounded; // the same, with all the memory in the world: it borrows
    struct replay_world world, unbounded_world;
    int64_t *at; // (n) ns: arrivals
    struct lane lane[N_LANES];
    struct err err[N_LANES];
};

/* ---- the replay ----------------------------------------------------------- */

/* Of the log; NAN: its requests have no times. */
static double span_of(const struct gain *g)
{
    const struct trace *t = &g->assumed.trace;

    return t->timed ? (double)t->request[t->n - 1].at / 1e9 : (double)NAN;
}

/* The fewest GPUs that are not too busy without a cache. */
static int enough_gpus(const struct gain *g)
{
    double seconds = 0, span = span_of(g);

    for (int i = 0; i < g->assumed.trace.n; i++) {
        double n = (double)g->assumed.token[i];
        seconds += n * (g->logs.model.token_s + g->logs.model.pair_s * n / 2);
    }
    return span > 0 ? (int)fmin(fmax(ceil(seconds / span / busy_aim), 1), 1e6) : 1;
}

/* DRAM, from which every GPU has a link of its own, and an SSD. Writing takes no time. */
static int make_tiers(struct gain *g, struct err *err)
{
    double link = serving_to_device(g->logs.model.gpu);
    int links = g->n_gpus < TIER_READS_MAX ? g->n_gpus : TIER_READS_MAX;
    const struct tier_load all = { .reads = links, .bytes_per_s = links * link };
    struct tier *tier = calloc(2, sizeof(*tier));

    if (!tier)
        return err_nomem(err);
    g->in.tiers = (struct tiers){ tier, 2 };
    tier[DRAM] =
        (struct tier){ .name = "dram", .kind = TIER_DRAM, .capacity = (int64_t)cfg.dram, .read_bytes_per_s = link };
    tier[SSD] = (struct tier){
        .name = "ssd", .kind = TIER_FILE, .capacity = (int64_t)cfg.ssd, .read_bytes_per_s = g->ssd_read
    };
    return links > 1 ? tier_add_load(&tier[DRAM], &all, err) : 0;
}

static int make_worlds(struct gain *g, struct err *err)
{
    const struct assumed_configs configs = { .factor = { 2, 3, 10 }, .quality = { 1, 1, 1 }, .n = 3 };
    const struct placement_files files = { .table = "the log" };

    if (assumed_make(&g->assumed, &g->logs.log, &g->logs.model, &configs, err))
        return err->code;
    g->n_gpus = cfg.gpus ? cfg.gpus : enough_gpus(g);
    g->in = (struct placement_input){ .max_move = INT64_MAX, .kind = QUALITY_RAW };
    if (make_tiers(g, err) || placement_input_take(&g->in, &g->assumed.table, &files, err))
        return err->code;
    g->unbounded = g->in;
    g->unbounded.capacity[DRAM] = INT64_MAX / 4;
    g->world = assumed_world(&g->assumed, &g->logs.model, &g->in);
    g->unbounded_world = assumed_world(&g->assumed, &g->logs.model, &g->unbounded);
    return world_open(&g->world, 0, err) ? err->code : world_open(&g->unbounded_world, 0, err);
}

static void run_lane(void *arg, int i)
{
    struct gain *g = arg;

    (void)!lane_run(&g->lane[i], policies[i], &g->err[i]); /* err says it */
    lane_close(&g->lane[i]);                               /* its outcome stays */
}

static int run_replay(struct gain *g, struct err *err)
{
    const struct trace *t = &g->assumed.trace;

    g->ssd_read = cfg.ssd_read ? (double)cfg.ssd_read : ssd_bytes_per_s;
    if (make_worlds(g, err))
        return err->code;
    g->at = malloc(((size_t)t->n + 1) * sizeof(*g->at));
    if (!g->at)
        return err_nomem(err);
    for (int i = 0; i < t->n; i++)
        g->at[i] = t->request[i].at;
    for (int i = 0; i < N_LANES; i++)
        g->lane[i] = (struct lane){ .world = i + 1 < N_ROWS ? &g->world : &g->unbounded_world,
                                    .at = g->at,
                                    .n_gpus = g->n_gpus,
                                    .alone = !t->timed || i == AGAIN };
    parallel_do(parallel_threads(), N_LANES, run_lane, g);
    for (int i = 0; i < N_LANES; i++)
        if (g->err[i].code) {
            *err = g->err[i];
            return err->code;
        }
    return 0;
}

static void release(struct gain *g)
{
    world_close(&g->world);
    world_close(&g->unbounded_world);
    placement_input_release(&g->in);
    assumed_release(&g->assumed);
    free(g->at);
    replayed_logs_release(&g->logs);
}

/* ---- the result ----------------------------------------------------------- */

/* The share of all tokens that a cache had. */
static double found_of(const struct gain *g, int i)
{
    return g->lane[i].outcome.token_hits[DRAM] + g->lane[i].outcome.token_hits[SSD];
}

static int64_t whole(double v)
{
    return (int64_t)fmin(v, 9e18);
}

static void put_facts(struct sheet *s, const struct gain *g)
{
    const struct gain_stamps *stamps = &g->logs.log.stamped;
    double tokens = (double)g->logs.log.units * g->logs.model.unit_tokens, n = 1000, kv = n * g->logs.model.kv_token;

    sheet_int(s, "n_requests", g->logs.log.requests.n);
    sheet_int(s, "n_left_out", g->logs.rq.n_left_out - g->logs.rq.n_unknown);
    sheet_int(s, "n_not_recognised", g->logs.rq.n_unknown);
    sheet_seconds(s, "span_s", span_of(g));
    sheet_int(s, "prompt_tokens", whole(tokens));
    sheet_real(s, "share_that_comes_again", found_of(g, AGAIN), 3);
    if (stamps->n) {
        sheet_int(s, "n_alike_but_in_front", stamps->n);
        sheet_real(s, "share_without_what_changes", stamps->share, 3);
    }
    sheet_text(s, "model", model_config(g->logs.model.model)->name);
    sheet_real(s, "bytes_of_text_per_token", g->logs.log.traces ? (double)NAN : g->logs.model.token_bytes, 2);
    sheet_int(s, "n_prompts_tokenised", g->logs.model.n_sampled);
    sheet_bytes(s, "kv_per_token_bytes", (int64_t)g->logs.model.kv_token);
    sheet_bytes(s, "kv_of_all_prompts_bytes", whole(tokens * g->logs.model.kv_token));
    sheet_bytes(s, "kv_of_distinct_blocks_bytes",
                whole((double)g->logs.log.n_blocks * (double)g->assumed.block_tokens * g->logs.model.kv_token));
    sheet_text(s, "gpu", g->logs.model.gpu->name);
    sheet_int(s, "n_gpus", g->n_gpus);
    sheet_bytes(s, "dram_bytes", (int64_t)cfg.dram);
    sheet_bytes(s, "ssd_bytes", (int64_t)cfg.ssd);
    sheet_seconds(s, "computing_1000_tokens_s", n * g->logs.model.token_s);
    sheet_seconds(s, "reading_1000_tokens_from_dram_s", kv / serving_to_device(g->logs.model.gpu));
    sheet_seconds(s, "reading_1000_tokens_from_ssd_s", kv / g->ssd_read);
}

static const char *cache_name(int i)
{
    return factors[i] == 0 ? "none" : isfinite(factors[i]) ? "LRU" : "without bounds";
}

/* NAN: the row has no compression. */
static double factor_of(int i)
{
    return factors[i] > 0 && isfinite(factors[i]) ? factors[i] : (double)NAN;
}

static void put_policies(struct sheet *s, const struct gain *g)
{
    static const char *const columns[] = { "cache",     "compression_x", "dram",     "ssd",       "computed",
                                           "prefill_s", "saved_s",       "ssd_busy", "gpus_busy", "ttft_s" };
    double span = span_of(g);

    sheet_table(s, "caches", columns, sizeof(columns) / sizeof(*columns));
    for (int i = 0; i < N_ROWS; i++) {
        const struct lane *l = &g->lane[i];
        sheet_text(s, NULL, cache_name(i));
        sheet_times(s, NULL, factor_of(i));
        sheet_real(s, NULL, l->outcome.token_hits[DRAM], 3);
        sheet_real(s, NULL, l->outcome.token_hits[SSD], 3);
        sheet_real(s, NULL, 1 - found_of(g, i), 3);
        sheet_seconds(s, NULL, l->sim.gpu_busy_s);
        sheet_seconds(s, NULL, g->lane[0].sim.gpu_busy_s - l->sim.gpu_busy_s);
        sheet_real(s, NULL, span > 0 ? l->sim.tier_busy_s[SSD] / span : (double)NAN, 3);
        sheet_real(s, NULL, span > 0 ? l->sim.gpu_busy_s / span / g->n_gpus : (double)NAN, 3);
        sheet_seconds(s, NULL, l->outcome.ttft_mean_s);
    }
    sheet_table_end(s);
}

static int print(const struct gain *g, char **path, int n, struct err *err)
{
    struct sheet s = { 0 };
    struct buf file = { 0 };

    for (int i = 0; i < n; i++)
        buf_printf(&file, i ? " %s" : "%s", path[i]);
    sheet_begin(&s, buf_str(&file), "gain");
    put_facts(&s, g);
    put_policies(&s, g);
    int code = buf_failed(&file) ? err_nomem(err) : sheet_end(&s, err);
    if (!code)
        fputs(cfg.json ? buf_str(&s.json) : buf_str(&s.text), stdout);
    sheet_release(&s);
    buf_release(&file);
    return code;
}

static void summarise(const struct gain *g)
{
    const struct gain_log *log = &g->logs.log;

    summary_int("requests", log->requests.n);
    summary_int("prompt_tokens", whole((double)log->units * g->logs.model.unit_tokens));
    json_put_real(summary_json(), "share_again", found_of(g, AGAIN));
    json_begin(summary_json(), "caches", '[');
    for (int i = 0; i < N_ROWS; i++) {
        json_begin(summary_json(), NULL, '{');
        json_put_text(summary_json(), "cache", cache_name(i));
        json_put_real(summary_json(), "compression_x", factor_of(i));
        json_put_real(summary_json(), "computed", 1 - found_of(g, i));
        json_put_real(summary_json(), "saved_s", g->lane[0].sim.gpu_busy_s - g->lane[i].sim.gpu_busy_s);
        json_put_real(summary_json(), "ttft_s", g->lane[i].outcome.ttft_mean_s);
        json_end(summary_json(), '}');
    }
    json_end(summary_json(), ']');
}

static void say_assumptions(const struct gain *g)
{
    char ssd[TEXT_SHORT];
    const struct serving_gpu *gpu = g->logs.model.gpu;
    double flop = 1 / serving_seconds(gpu, 1, 0), pcie = serving_to_device(gpu);

    log_info("assumed: %.0f %% of %.0f TFLOP/s in prefills, %.0f %% of the %.0f GB/s of PCIe from DRAM (%s), %s/s from "
             "SSD",
             100 * flop / gpu->flop_per_s, gpu->flop_per_s / 1e12, 100 * pcie / gpu->pcie_bytes_per_s,
             gpu->pcie_bytes_per_s / 1e9, gpu->source, text_bytes(ssd, g->ssd_read));
    if (!g->logs.log.traces)
        log_info("assumed: %.2f bytes of text per token, %s", g->logs.model.token_bytes,
                 g->logs.model.n_sampled ? "measured with the model's tokenizer"
                                         : "as is usual in English: no tokenizer");
    log_info("not counted: decoding, writing, and what the GPU's own memory keeps");
}

/* Rows whose TTFT needs an explanation. */
static void say_queues(const struct gain *g)
{
    double span = span_of(g);
    int n = g->n_gpus, slow = 1;

    if (span > 0 && g->lane[0].sim.gpu_busy_s > span * n)
        log_warn("without a cache %d GPU%s cannot serve the log in its time: TTFT there is the length of the queue", n,
                 n == 1 ? "" : "s");
    while (slow < N_ROWS && (g->lane[slow].outcome.ttft_mean_s <= g->lane[0].outcome.ttft_mean_s ||
                             g->lane[slow].sim.tier_busy_s[SSD] < 0.1 * span))
        slow++;
    if (span > 0 && slow < N_ROWS)
        log_warn("the cache at %gx makes TTFT longer: what is read from its SSD takes %.2f of the time of the log",
                 factors[slow], g->lane[slow].sim.tier_busy_s[SSD] / span);
}

static void say(const struct gain *g, char **path, int n)
{
    const struct gain_log *log = &g->logs.log;

    if (log->n_timeless == log->requests.n)
        log_warn("no request has a time: they are replayed in the order of the lines, and TTFT is without waiting");
    else if (log->n_timeless)
        log_warn("%" PRId64 " requests have no time and count as sent with the request before them", log->n_timeless);
    say_queues(g);
    if (cfg.dram == 0 && cfg.ssd == 0)
        log_warn("without --dram and --ssd there is no cache but that without bounds");
    if (g->logs.model.kv_token / serving_to_device(g->logs.model.gpu) >= g->logs.model.token_s)
        log_warn("reading an uncompressed token from DRAM takes longer than computing it");
    else if (cfg.ssd && g->logs.model.kv_token / g->ssd_read >= g->logs.model.token_s)
        log_warn("reading an uncompressed token from SSD takes longer than computing it");
    say_assumptions(g);
    log_info(
        "which compression keeps the answers, a log cannot tell: evp-profile measures it on contexts and questions "
        "that evp-import makes of the log");
    if (n == 1 && !log->traces)
        next_say("evp-import", "--requests", path[0], "-o", "contexts", NULL);
}

static int run(struct gain *g, char **path, int n, struct err *err)
{
    const struct replayed_from from = { cfg.model, cfg.gpu, &cfg.dataset, path, n };

    g->logs.rq.partial = cfg.partial;
    if (replayed_logs_read(&g->logs, &from, err) || run_replay(g, err) || print(g, path, n, err))
        return err->code;
    summarise(g);
    say(g, path, n);
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
