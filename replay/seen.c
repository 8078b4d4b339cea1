/* seen.c - means, percentiles and intervals. Intervals are of batch means: the requests, in their order, in 20 equal
 * parts, whose means are taken for independent (A. Law, Simulation Modeling and Analysis, 9.5.3). */
#include "replay/seen.h"

#include <math.h>
#include <stdlib.h>

enum { BATCHES = 20 };
static const double t_19 = 2.093024; // Student's t, 19 degrees of freedom, 95 %

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest of sorted numbers that a share of them does not exceed. */
static double percentile(const double *sorted, int n, double share)
{
    int at = (int)ceil(share * n) - 1;

    return n ? sorted[at < 0 ? 0 : at] : (double)NAN;
}

static double mean_of(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* Half of the 95 % interval of the mean; NAN: too few. */
static double half_width(const double *x, int n)
{
    int size = n / BATCHES;
    double mean[BATCHES], all, var = 0;

    if (size == 0)
        return (double)NAN;
    for (int b = 0; b < BATCHES; b++)
        mean[b] = mean_of(x + b * size, size);
    all = mean_of(mean, BATCHES);
    for (int b = 0; b < BATCHES; b++)
        var += (mean[b] - all) * (mean[b] - all) / (BATCHES - 1);
    return t_19 * sqrt(var / BATCHES);
}

double seen_found(const struct seen *seen, int n_tiers, int64_t i)
{
    double sum = seen->in_memory[i];

    for (int t = 0; t < n_tiers; t++)
        sum += seen->share[i * n_tiers + t];
    return sum;
}

static void count_hits(struct seen_row *o, const struct replay_world *w, const struct seen *seen)
{
    int n_tiers = w->in->tiers.n;
    double all = 0;

    for (int i = w->warm; i < w->n; i++)
        all += world_tokens(w, i);
    for (int i = w->warm; i < w->n; i++) {
        o->in_memory += seen->in_memory[i] / o->n;
        o->tokens_in_memory += seen->in_memory[i] * world_tokens(w, i) / all;
    }
    o->recomputed = 1 - o->in_memory;
    for (int t = 0; t < n_tiers; t++) {
        for (int64_t i = w->warm; i < w->n; i++) {
            double share = seen->share[i * n_tiers + t];
            o->hits[t] += share / o->n;
            o->token_hits[t] += share * world_tokens(w, (int)i) / all;
        }
        o->recomputed -= o->hits[t];
    }
}

static void count_decoding(struct seen_row *o, const struct replay_world *w, const struct seen *seen)
{
    double seconds = 0, tokens = 0;

    o->e2e_s = o->itl_s = (double)NAN;
    if (!seen->e2e_s)
        return;
    o->e2e_s = mean_of(seen->e2e_s + w->warm, o->n);
    for (int i = w->warm; i < w->n; i++) {
        seconds += seen->e2e_s[i] - seen->ttft_s[i];
        tokens += seen->output[i] - 1;
    }
    o->itl_s = tokens > 0 ? seconds / tokens : (double)NAN;
}

int seen_row_of(struct seen_row *o, const struct replay_world *w, const struct seen *seen, double quality_floor,
                struct err *err)
{
    int n = w->n - w->warm;
    double *x = calloc((size_t)n + 1, sizeof(*x));

    if (!x)
        return err_nomem(err);
    *o = (struct seen_row){ .n = n };
    for (int i = 0; i < n; i++)
        x[i] = seen->ttft_s[w->warm + i];
    o->ttft_mean_s = mean_of(x, n);
    o->ttft_ci_s = half_width(x, n);
    qsort(x, (size_t)n, sizeof(*x), rising);
    o->ttft_s[0] = percentile(x, n, 0.5);
    o->ttft_s[1] = percentile(x, n, 0.95);
    o->ttft_s[2] = percentile(x, n, 0.99);
    for (int i = 0; i < n; i++) {
        x[i] = (double)seen->quality[w->warm + i];
        o->below_floor += (x[i] < quality_floor) / (double)n;
    }
    o->quality = mean_of(x, n);
    o->quality_ci = half_width(x, n);
    qsort(x, (size_t)n, sizeof(*x), rising);
    o->quality_p5 = percentile(x, n, 0.05);
    count_decoding(o, w, seen);
    count_hits(o, w, seen);
    free(x);
    return 0;
}
