/* prices.c - see prices.h. No share of time counts as more than BUSY: queues that grow have no price. */
#include "planner/prices.h"

static const double busy_most = .95;

static void derive(struct prices *p)
{
    double per_s = p->requests > 0 ? 1 / fmax(p->seconds, 1e-9) : 0, gpus = p->n_gpus;
    double busy = fmin(p->gpu_s * per_s / gpus, busy_most), idle = 1 - busy;
    double rate = p->requests * per_s / gpus, square = p->requests > 0 ? p->gpu_s2 / p->requests : 0;

    p->rate = p->requests > 0 ? p->requests * per_s : 1;
    p->gpu_linear = 1 + (p->timed ? rate * rate * square / (2 * idle * idle) : 0);
    p->gpu_square = p->timed ? rate / (2 * idle) : 0;
    for (int t = 0; t < p->n_tiers; t++) {
        double reads = fmin(p->read_s[t] * per_s, busy_most), writes = fmin(p->write_s[t] * per_s, busy_most);
        double free = 1 - fmin(reads + writes, busy_most), waits = p->timed ? reads / (free * free) : 0;
        p->read[t] = (p->timed ? 1 / free : 1) + waits;
        p->write[t] = waits;
        p->bytes_per_s[t] = p->written[t] * per_s;
    }
}

void prices_begin(struct prices *p)
{
    derive(p);
}

void prices_request(struct prices *p, double now_s, double gpu_s)
{
    double kept = 1 - 1. / PRICES_REQUESTS;

    if (!p->timed)
        p->first_s = p->last_s = now_s;
    p->requests = p->requests * kept + p->timed;
    p->timed = true;
    p->seconds = p->seconds * kept + fmax(now_s - p->last_s, 0);
    p->last_s = fmax(now_s, p->last_s);
    p->gpu_s = p->gpu_s * kept + gpu_s;
    p->gpu_s2 = p->gpu_s2 * kept + gpu_s * gpu_s;
    for (int t = 0; t < p->n_tiers; t++) {
        p->read_s[t] *= kept;
        p->write_s[t] *= kept;
        p->written[t] *= kept;
    }
    derive(p);
}
