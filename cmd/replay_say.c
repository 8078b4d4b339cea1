/* replay_say.c - one line of a replay in words, and in the summary. */
#include "cmd/replay_say.h"

#include "base/log.h"
#include "cmd/summary.h"

static void summarise(const struct replay_line *line, const struct lane *l)
{
    struct json_out *json = summary_json();

    json_begin(json, NULL, '{');
    json_put_text(json, "policy", line->policy);
    json_put_real(json, "rate", line->rate);
    json_put_real(json, "alpha", line->alpha);
    json_put_real(json, "ttft_s", l->outcome.ttft_mean_s);
    json_put_real(json, "quality", l->outcome.quality);
    json_end(json, '}');
}

static void warn(const struct replay_line *line, const struct lane *l)
{
    struct buf words = { 0 };

    if (lane_saturated(l, &words))
        log_warn("%s: %s", line->policy, buf_str(&words));
    buf_release(&words);
}

void replay_say_line(const struct replay_line *line, const struct lane *l)
{
    summarise(line, l);
    log_info("%-24s rate %-8.4g alpha %-6g TTFT %.4g s, 95 %% below %.4g s, quality %.4g, GPU %.0f %% busy",
             line->policy, line->rate, line->alpha, l->outcome.ttft_mean_s, l->outcome.ttft_s[1], l->outcome.quality,
             100 * l->sim.gpu_busy_s / l->n_gpus / l->sim.end_s);
    warn(line, l);
}

void replay_say_spread(const struct trace *t)
{
    struct buf words = { 0 };

    if (trace_was_spread(t, &words))
        log_warn("%s", buf_str(&words));
    buf_release(&words);
}
