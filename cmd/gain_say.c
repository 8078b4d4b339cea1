/* gain_say.c - evp-gain's table, its summary, and what must be known to read them. */
#include "base/log.h"
#include "base/parse.h"
#include "cmd/gain.h"
#include "cmd/next.h"
#include "cmd/replay_say.h"
#include "cmd/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By row; INFINITY: a cache without bounds, NAN: there is no cache but the GPU's own. */
static const struct {
    const char *name;
    double factor;
} rows[GAIN_ROWS] = {
    { "none", (double)NAN }, { "GPU memory alone", (double)NAN }, { "LRU", 1 }, { "LRU", 2 }, { "LRU", 3 },
    { "LRU", 10 },           { "without bounds", (double)NAN }
};

static int64_t whole(double v)
{
    return (int64_t)fmin(v, 9e18);
}

/* Seconds of GPUs less than with what engines keep anyway; NAN: without that. */
static double saved(const struct gain *g, int row)
{
    return row == GAIN_NONE ? (double)NAN : g->lane[GAIN_HBM].sim.gpu_busy_s - g->lane[row].sim.gpu_busy_s;
}

void gain_put_facts(struct sheet *s, const struct gain *g)
{
    const struct gain_stamps *stamps = &g->logs.log.stamped;
    double tokens = (double)g->logs.log.units * g->logs.model.unit_tokens, n = 1000, kv = n * g->logs.model.kv_token;

    sheet_part(s, "n_requests", g->logs.log.requests.n, g->logs.log.requests.n + g->logs.rq.n_left_out);
    sheet_int(s, "n_left_out", g->logs.rq.n_left_out - g->logs.rq.n_unknown);
    sheet_int(s, "n_not_recognised", g->logs.rq.n_unknown);
    sheet_seconds(s, "span_s", gain_span(g));
    sheet_int(s, "prompt_tokens", whole(tokens));
    sheet_real(s, "share_that_comes_again", gain_found(&g->lane[GAIN_AGAIN]), 3);
    if (stamps->n) {
        sheet_int(s, "n_alike_but_in_front", stamps->n);
        sheet_real(s, "share_without_what_changes", stamps->share, 3);
    }
    sheet_text(s, "model", g->logs.model.shape.name);
    sheet_real(s, "bytes_of_text_per_token", g->logs.log.traces ? (double)NAN : g->logs.model.token_bytes, 2);
    sheet_int(s, "n_prompts_tokenised", g->logs.model.n_sampled);
    sheet_bytes(s, "kv_per_token_bytes", (int64_t)shape_per_token(&g->logs.model.shape));
    if (shape_constant(&g->logs.model.shape) > 0)
        sheet_bytes(s, "kv_of_windows_and_states_bytes", (int64_t)shape_constant(&g->logs.model.shape));
    sheet_bytes(s, "kv_of_all_prompts_bytes", whole(tokens * g->logs.model.kv_token));
    sheet_bytes(s, "kv_of_distinct_blocks_bytes",
                whole((double)g->logs.log.n_blocks * (double)g->assumed.block_tokens * g->logs.model.kv_token));
    sheet_text(s, "gpu", g->logs.model.gpu->name);
    sheet_int(s, "n_gpus", g->n_gpus);
    sheet_bytes(s, "weights_bytes", whole(g->weights_bytes));
    sheet_bytes(s, "hbm_bytes", g->capacity[HBM]);
    if (!g->c->sweep) {
        sheet_bytes(s, "dram_bytes", g->capacity[DRAM]);
        sheet_bytes(s, "ssd_bytes", g->capacity[SSD]);
    }
    sheet_seconds(s, "computing_1000_tokens_s", n * g->logs.model.token_s);
    sheet_seconds(s, "reading_1000_tokens_from_dram_s", kv / serving_to_device(g->logs.model.gpu));
    sheet_seconds(s, "reading_1000_tokens_from_ssd_s", kv / g->ssd_read);
}

static void put_policies(struct sheet *s, const struct gain *g)
{
    static const char *const columns[] = { "cache",
                                           "compression_x",
                                           "hbm",
                                           "dram",
                                           "ssd",
                                           "computed",
                                           "prefill_s",
                                           "saved_s",
                                           "ssd_busy",
                                           "gpus_busy",
                                           "ttft_s",
                                           "ttft_p95_s",
                                           "writes_dropped_bytes" };
    double span = gain_span(g);

    sheet_table(s, "caches", columns, sizeof(columns) / sizeof(*columns));
    for (int i = 0; i < GAIN_ROWS; i++) {
        const struct lane *l = &g->lane[i];
        sheet_text(s, NULL, rows[i].name);
        sheet_times(s, NULL, rows[i].factor);
        for (int t = 0; t < GAIN_TIERS; t++)
            sheet_real(s, NULL, l->outcome.token_hits[t], 3);
        sheet_real(s, NULL, 1 - gain_found(l), 3);
        sheet_seconds(s, NULL, l->sim.gpu_busy_s);
        sheet_seconds(s, NULL, saved(g, i));
        sheet_real(s, NULL, span > 0 ? l->sim.tier_busy_s[SSD] / span : (double)NAN, 3);
        sheet_real(s, NULL, span > 0 ? l->sim.gpu_busy_s / span / g->n_gpus : (double)NAN, 3);
        sheet_seconds(s, NULL, l->outcome.ttft_mean_s);
        sheet_seconds(s, NULL, l->outcome.ttft_s[1]);
        sheet_bytes(s, NULL, whole(l->dropped));
    }
    sheet_table_end(s);
}

static void summarise(const struct gain *g)
{
    const struct gain_log *log = &g->logs.log;

    summary_int("requests", log->requests.n);
    summary_int("prompt_tokens", whole((double)log->units * g->logs.model.unit_tokens));
    json_put_real(summary_json(), "share_again", gain_found(&g->lane[GAIN_AGAIN]));
    json_begin(summary_json(), "caches", '[');
    for (int i = 0; i < GAIN_ROWS; i++) {
        json_begin(summary_json(), NULL, '{');
        json_put_text(summary_json(), "cache", rows[i].name);
        json_put_real(summary_json(), "compression_x", rows[i].factor);
        json_put_real(summary_json(), "computed", 1 - gain_found(&g->lane[i]));
        json_put_real(summary_json(), "saved_s", saved(g, i));
        json_put_real(summary_json(), "ttft_s", g->lane[i].outcome.ttft_mean_s);
        json_end(summary_json(), '}');
    }
    json_end(summary_json(), ']');
}

void gain_begin(struct sheet *s, char **path, int n)
{
    struct buf files = { 0 };

    for (int i = 0; i < n; i++)
        buf_printf(&files, i ? " %s" : "%s", path[i]);
    sheet_begin(s, buf_str(&files), "gain");
    s->text.failed |= buf_failed(&files);
    buf_release(&files);
}

static void put_left_out(struct sheet *s, const struct requests *rq)
{
    static const char *const columns[] = { "left_out", "reason" };

    sheet_table(s, "left_out_by_reason", columns, 2);
    for (int i = 0; i < REQUEST_ASIDE; i++)
        if (rq->line.flaws[i]) {
            sheet_int(s, NULL, rq->line.flaws[i]);
            sheet_text(s, NULL, request_flaw_text((enum request_flaw)i));
        }
    sheet_table_end(s);
}

int gain_end(struct sheet *s, const struct gain *g, struct err *err)
{
    put_left_out(s, &g->logs.rq);
    int code = sheet_end(s, err);

    if (!code)
        fputs(g->c->json ? buf_str(&s->json) : buf_str(&s->text), stdout);
    sheet_release(s);
    return code;
}

int gain_print(const struct gain *g, char **path, int n, struct err *err)
{
    struct sheet s = { 0 };

    gain_begin(&s, path, n);
    gain_put_facts(&s, g);
    put_policies(&s, g);
    summarise(g);
    return gain_end(&s, g, err);
}

/* ---- messages --------------------------------------------------------------- */

static void say_assumptions(const struct gain *g)
{
    char reads[TEXT_SHORT], writes[TEXT_SHORT];
    const struct serving_gpu *gpu = g->logs.model.gpu;
    double flop = 1 / serving_seconds(gpu, 1, 0), pcie = serving_to_device(gpu);

    log_info("assumed: %.0f %% of %.0f TFLOP/s in prefills, %.0f %% of the %.0f GB/s of PCIe from DRAM (%s), %s/s from "
             "SSD, %s/s to it",
             100 * flop / gpu->flop_per_s, gpu->flop_per_s / 1e12, 100 * pcie / gpu->pcie_bytes_per_s,
             gpu->pcie_bytes_per_s / 1e9, gpu->source, text_bytes(reads, g->ssd_read),
             text_bytes(writes, g->ssd_write));
    if (!g->logs.log.traces)
        log_info("assumed: %.2f bytes of text per token, %s", g->logs.model.token_bytes,
                 g->logs.model.n_sampled ? "measured with the model's tokenizer"
                                         : "as is usual in English: no tokenizer");
    if (shape_constant(&g->logs.model.shape) > 0)
        log_info(
            "assumed: what a prompt has once, its windows and states, is spread over a prompt of mean length: %s a "
            "token with it",
            text_bytes(reads, g->logs.model.kv_token));
    log_info("not counted: decoding");
}

static void say_times(const struct gain *g)
{
    const struct gain_log *log = &g->logs.log;

    if (log->n_timeless == log->requests.n)
        log_warn("no request has a time: they are replayed in the order of the lines, and TTFT is without waiting");
    else if (log->n_timeless)
        log_warn("%" PRId64 " requests have no time and count as sent with the request before them", log->n_timeless);
    replay_say_spread(&g->assumed.trace);
}

/* " at 3x", or nothing. */
static const char *factor_text(char out[TEXT_SHORT], int row)
{
    *out = '\0';
    if (rows[row].factor > 0)
        snprintf(out, TEXT_SHORT, " at %gx", rows[row].factor);
    return out;
}

/* Rows of which the same is to be said are named together. */
static void say_saturated(const struct gain *g)
{
    struct buf words = { 0 }, next = { 0 }, names = { 0 };
    char at[TEXT_SHORT];

    for (int i = 0; i <= GAIN_ROWS; i++) {
        buf_clear(&next);
        if (i < GAIN_ROWS)
            (void)lane_saturated(&g->lane[i], &next);
        if (words.n && strcmp(buf_str(&words), buf_str(&next)) != 0)
            log_warn("%s: %s", buf_str(&names), buf_str(&words));
        if (strcmp(buf_str(&words), buf_str(&next)) != 0)
            buf_clear(&names);
        if (i < GAIN_ROWS)
            buf_printf(&names, "%s%s%s", names.n ? ", " : "", rows[i].name, factor_text(at, i));
        buf_clear(&words);
        buf_adds(&words, buf_str(&next));
    }
    buf_release(&words);
    buf_release(&next);
    buf_release(&names);
}

/* Rows whose TTFT needs an explanation. */
static void say_queues(const struct gain *g)
{
    const double span = gain_span(g), base = g->lane[GAIN_HBM].outcome.ttft_mean_s;
    int slow = GAIN_HBM + 1;

    say_saturated(g);
    while (slow < GAIN_ROWS &&
           (g->lane[slow].outcome.ttft_mean_s <= base || g->lane[slow].sim.tier_busy_s[SSD] < 0.1 * span))
        slow++;
    if (span > 0 && slow < GAIN_ROWS)
        log_warn("the cache at %gx makes TTFT longer: its SSD reads and writes for %.2f of the time of the log",
                 rows[slow].factor, g->lane[slow].sim.tier_busy_s[SSD] / span);
}

static void say_memory(const struct gain *g)
{
    char weights[TEXT_SHORT];

    if (g->gpus_each > 1)
        log_warn("the weights, %s, do not fit an %s: each copy is spread over %d GPUs, and there are %d%s",
                 text_bytes(weights, g->weights_bytes), g->logs.model.gpu->name, g->gpus_each, g->n_gpus,
                 g->n_gpus < g->gpus_each ? ": too few" : "");
}

/* With the model, if it has a tokenizer. */
static void say_next(const struct gain *g, char **path, int n)
{
    const char **word = calloc((size_t)n + 8, sizeof(*word));
    int at = 0;

    if (!word)
        return;
    word[at++] = "evp-import";
    word[at++] = "--requests";
    for (int i = 0; i < n; i++)
        word[at++] = path[i];
    word[at++] = g->logs.model.n_sampled ? "--model" : "";
    word[at++] = g->logs.model.n_sampled ? g->c->model : "";
    word[at++] = "-o";
    word[at++] = "mine";
    next_words(word);
    free(word);
}

void gain_say(const struct gain *g, char **path, int n)
{
    say_times(g);
    say_memory(g);
    if (!g->c->sweep)
        say_queues(g);
    if (!g->c->sweep && g->c->dram == 0 && g->c->ssd == 0)
        log_warn("without --dram and --ssd there is no cache but the GPUs' own and that without bounds");
    if (g->logs.model.kv_token / serving_to_device(g->logs.model.gpu) >= g->logs.model.token_s)
        log_warn("reading an uncompressed token from DRAM takes longer than computing it");
    else if ((g->c->ssd || g->c->sweep) && g->logs.model.kv_token / g->ssd_read >= g->logs.model.token_s)
        log_warn("reading an uncompressed token from SSD takes longer than computing it");
    say_assumptions(g);
    log_info(
        "which compression keeps the answers, a log cannot tell: evp-profile measures it on contexts and questions "
        "that evp-import makes of the log");
    if (!g->logs.log.traces)
        say_next(g, path, n);
}
