/* queues.c - what was busy, and what that means, in words. */
#include "replay/lane.h"

#include <math.h>
#include <stdio.h>

static const double too_busy = 0.95;
enum { enough = 100 }; // requests, to tell a queue from a short trace

static double gpu_share(const struct lane *l)
{
    return l->sim.gpu_busy_s / l->n_gpus / l->sim.end_s;
}

const char *lane_busiest(const struct lane *l, double *share)
{
    const char *name = "gpu";

    *share = gpu_share(l);
    for (int t = 0; t < l->in.tiers.n; t++) {
        double busy = l->sim.tier_busy_s[t] / l->sim.end_s;
        if (busy > *share) {
            *share = busy;
            name = l->in.tiers.at[t].name;
        }
    }
    return name;
}

static void put_grows(struct buf *out, const char *what, double share)
{
    buf_printf(out, "%s%s busy for %.0f %% of the time: TTFT is the length of the trace, not of a request",
               out->n ? "; " : "", what, 100 * fmin(share, 1));
}

bool lane_saturated(const struct lane *l, struct buf *out)
{
    const double dropped = l->dropped / (l->written + l->dropped);
    size_t before = out->n;

    if (l->alone || l->at[l->world->n - 1] == l->at[0])
        return false;
    if (gpu_share(l) > too_busy)
        put_grows(out, "the GPUs are", gpu_share(l));
    for (int t = 0; t < l->in.tiers.n; t++) {
        const char *name = l->in.tiers.at[t].name;
        double busy = l->sim.tier_busy_s[t] / l->sim.end_s, reads = l->sim.tier_read_s[t] / l->sim.end_s;
        char what[TIER_NAME + 16];
        snprintf(what, sizeof(what), "reads keep %s", name);
        if (reads > too_busy)
            put_grows(out, what, reads);
        else if (busy > too_busy)
            buf_printf(out, "%s%s is busy for %.0f %% of the time", out->n ? "; " : "", name, 100 * busy);
    }
    if (dropped > 1 - too_busy)
        buf_printf(out, "%s%.0f %% of what it would write is not written: its tiers are too slow", out->n ? "; " : "",
                   100 * dropped);
    const double share = l->outcome.ttft_mean_s / l->sim.end_s;
    if (out->n == before && share > 1 - too_busy && l->outcome.n >= enough)
        buf_printf(out, "a queue grows for a part of the time: mean TTFT is %.0f %% of the length of the trace",
                   100 * share);
    return out->n > before;
}
