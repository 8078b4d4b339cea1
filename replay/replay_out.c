/* replay_out.c - tab-separated values; '-' is unknown. */
#include "replay/replay_out.h"

#include <math.h>

static void put_real(struct buf *out, double x)
{
    if (!isfinite(x))
        buf_adds(out, "\t-");
    else
        buf_printf(out, "\t%.9g", x);
}

static void put_begin(struct buf *out, const struct replay_line *line)
{
    buf_adds(out, line->policy);
    put_real(out, line->rate);
    put_real(out, line->alpha);
}

void replay_out_head(struct buf *out, const struct tiers *tiers)
{
    buf_adds(out, "policy\trate\talpha\trequests\tttft_mean_s\tttft_p50_s\tttft_p95_s\tttft_p99_s\tttft_mean_ci_s\t"
                  "quality\tquality_p5\tbelow_floor\tquality_ci");
    for (int t = 0; t < tiers->n; t++)
        buf_printf(out, "\thits_%s", tiers->at[t].name);
    buf_adds(out, "\thits_recompute\ttoken_hits\tgpu_busy");
    for (int t = 0; t < tiers->n; t++)
        buf_printf(out, "\tbusy_%s", tiers->at[t].name);
    buf_adds(out, "\tbytes_written\tpromised_ttft_s\tpromised_quality\toperations\titl_s\te2e_s\tprofiled\tprofiling_s"
                  "\tbytes_dropped\tbusiest\tbusiest_busy\tinputs\thits_engine\n");
}

void replay_out_line(struct buf *out, const struct replay_line *line, const struct lane *l)
{
    const struct seen_row *o = &l->outcome;
    const bool given = l->world->block_tokens > 0; // qualities were given by hand, not measured
    const double some[] = { o->ttft_mean_s, o->ttft_s[0],   o->ttft_s[1],
                            o->ttft_s[2],   o->ttft_ci_s,   o->quality,
                            o->quality_p5,  o->below_floor, given ? (double)NAN : o->quality_ci };

    double token_hits = o->tokens_in_memory, busy;

    for (int t = 0; t < l->in.tiers.n; t++)
        token_hits += o->token_hits[t];
    put_begin(out, line);
    buf_printf(out, "\t%d", o->n);
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        put_real(out, some[i]);
    for (int t = 0; t < l->in.tiers.n; t++)
        put_real(out, o->hits[t]);
    put_real(out, o->recomputed);
    put_real(out, token_hits);
    put_real(out, l->sim.gpu_busy_s / l->n_gpus / l->sim.end_s);
    for (int t = 0; t < l->in.tiers.n; t++)
        put_real(out, l->sim.tier_busy_s[t] / l->sim.end_s);
    put_real(out, l->written);
    put_real(out, l->promised_ttft_s);
    put_real(out, l->promised_quality);
    buf_printf(out, "\t%lld", (long long)l->operations);
    put_real(out, o->itl_s);
    put_real(out, o->e2e_s);
    buf_printf(out, "\t%lld", (long long)l->profiled);
    put_real(out, l->profiling_s);
    put_real(out, l->dropped);
    const char *busiest = lane_busiest(l, &busy);
    buf_printf(out, "\t%s", l->alone ? "-" : busiest);
    put_real(out, l->alone ? (double)NAN : busy);
    buf_printf(out, "\t%s", line->inputs);
    put_real(out, o->in_memory);
    buf_addc(out, '\n');
}

void replay_requests_head(struct buf *out)
{
    buf_adds(out, "policy\trate\talpha\trequest\tat_s\tcontext\tfound\ttier\tconfig\tttft_s\tquality\n");
}

/* The tier in which a request found most; -1: it found nothing. */
static int most_of(const struct lane *l, int i)
{
    const double *share = l->seen.share + (int64_t)i * l->in.tiers.n;
    int most = -1;

    for (int t = 0; t < l->in.tiers.n; t++)
        if (share[t] > (most < 0 ? 0 : share[most]))
            most = t;
    return most;
}

void replay_requests(struct buf *out, const struct replay_line *line, const struct lane *l, const struct trace *trace)
{
    const struct replay_world *w = l->world;

    for (int i = w->warm; i < w->n; i++) {
        int tier = most_of(l, i);
        bool kept = l->seen.in_memory[i] > (tier < 0 ? 0 : l->seen.share[(int64_t)i * l->in.tiers.n + tier]);
        bool found = tier >= 0 && !kept;
        put_begin(out, line);
        buf_printf(out, "\t%d", trace->request[i].number + 1);
        put_real(out, l->alone ? (double)NAN : (double)l->at[i] / 1e9);
        buf_printf(out, "\t%s", w->block_tokens ? "-" : l->in.table.context_id[w->path[w->first[i]]]);
        put_real(out, seen_found(&l->seen, l->in.tiers.n, i));
        buf_printf(out, "\t%s\t%s",
                   kept    ? "engine"
                   : found ? l->in.tiers.at[tier].name
                           : "-",
                   found ? l->in.table.config_name[l->seen.config[i]] : "-");
        put_real(out, l->seen.ttft_s[i]);
        put_real(out, (double)l->seen.quality[i]);
        buf_addc(out, '\n');
    }
}
