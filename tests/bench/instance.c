/* instance.c - placement problems from random numbers: `real` after LongBench's lengths and measured losses of quality,
 * the others after the classes of the knapsack literature (Pisinger): uncorrelated, weakly, strongly correlated. */
#include "tests/bench/instance.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DATASETS = 12, TOKEN_BYTES = 128 << 10, UNIT = 64, METHODS = 4, DROPS = 15 };

static const double keep[DROPS] = { 1, .95, .9, .85, .8, .7, .6, .5, .4, .3, .25, .2, .15, .1, .05 };
static const double tier_factor[INSTANCE_TIERS] = { 1, .9, .75, .5 };
static const double per_byte[INSTANCE_TIERS] = { 1e-12, 1 / 20e9, 1 / 3e9, 1e-9 }; // seconds
static const double latency[INSTANCE_TIERS] = { .001, .003, .010, .050 };          // seconds

static double normal(struct rng *r)
{
    double u = rng_unit(r), v = rng_unit(r);

    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* Mean tokens of LongBench's datasets and the loss of quality their answers show at the hardest drop. */
static void make_real(struct instance *in, struct rng *r)
{
    static const double mean[DATASETS] = {
        30000, 5000, 7000, 13000, 7500, 15500, 11000, 15000, 3000, 7500, 12000, 9500
    };
    static const double loss[DATASETS] = { .34, .38, .42, .45, .49, .53, .57, .60, .64, .68, .72, .76 };
    double total = 0;

    for (int i = 0; i < in->n; i++) {
        int dataset = (int)rng_below(r, DATASETS);
        double tokens = round(mean[dataset] * exp(.5 * normal(r) - .125));
        tokens = fmin(fmax(tokens, 256), 131072);
        in->full[i] = (int64_t)tokens * TOKEN_BYTES;
        total += (double)in->full[i];
        double sensitivity = loss[dataset] * (.75 + .5 * rng_unit(r));
        for (int m = 0; m < METHODS; m++) {
            double strength = sensitivity * (.6 + .8 * rng_unit(r)), power = 1.2 + 2.8 * rng_unit(r);
            for (int k = 0; k < DROPS; k++) {
                size_t o = (size_t)i * INSTANCE_CONFIGS + (size_t)(m * DROPS + k);
                double q = 1 - strength * pow(1 - keep[k], power) + (k ? .01 * normal(r) : 0);
                in->quality[o] = (float)fmin(fmax(q, 0), 1);
                in->size[o] = (int32_t)((double)in->full[i] * keep[k] / UNIT);
            }
        }
    }
    static const double share[INSTANCE_TIERS] = { .025, .09, .15, .2 };
    bool nodes = in->kind == INSTANCE_NODES;
    in->n_tiers = nodes ? INSTANCE_TIERS_MAX : INSTANCE_TIERS;
    for (int t = 0; t < in->n_tiers; t++) {
        int k = nodes ? t / INSTANCE_NODES_N : t, node = nodes ? t % INSTANCE_NODES_N : 0;
        double own = nodes && k < 3 ? share[k] / INSTANCE_NODES_N : share[k];
        in->capacity[t] = k == 3 && !nodes ? INT64_MAX : (int64_t)(total * own);
        in->pool[t] = k == 3 ? t - node : t;
        in->kind_of[t] = k;
        in->per_byte[t] = per_byte[k];
        in->latency[t] = latency[k];
    }
}

/* Zipf(0.8), 20 accesses per context in the mean, dealt out at random. */
static void make_frequencies(struct instance *in, struct rng *r)
{
    double sum = 0;

    for (int i = 0; i < in->n; i++) {
        in->frequency[i] = (float)pow(i + 1, -.8);
        sum += (double)in->frequency[i];
    }
    for (int i = in->n - 1; i >= 0; i--) {
        int k = (int)rng_below(r, (uint64_t)i + 1);
        float f = in->frequency[k];
        in->frequency[k] = in->frequency[i];
        in->frequency[i] = (float)((double)f * 20 * in->n / sum);
    }
}

static void make_random(struct instance *in, struct rng *r)
{
    double total = 0;

    for (size_t o = 0; o < (size_t)in->n * INSTANCE_CONFIGS; o++) {
        in->size[o] = 1 + (int32_t)rng_below(r, 100000);
        double near = in->size[o] * (.9 + .2 * rng_unit(r)), apart = 1 + 1e5 * rng_unit(r);
        in->quality[o] = (float)(in->kind == INSTANCE_UNC    ? apart
                                 : in->kind == INSTANCE_WEAK ? near
                                                             : in->size[o] + 1e4);
        total += in->size[o];
    }
    double mean_total = total / INSTANCE_CONFIGS / (in->kind == INSTANCE_UNC ? 10 : 1);
    in->n_tiers = INSTANCE_TIERS;
    for (int t = 0; t < INSTANCE_TIERS; t++) {
        in->capacity[t] = (int64_t)(mean_total * .05 * (t + 1));
        in->pool[t] = t;
    }
}

int instance_make(struct instance *in, enum instance_kind kind, int n, uint64_t seed, struct err *err)
{
    struct rng r = rng_new(seed * 4 + (uint64_t)kind);

    *in = (struct instance){ .kind = kind,
                             .n = n,
                             .full = calloc((size_t)n + 1, sizeof(*in->full)),
                             .frequency = calloc((size_t)n + 1, sizeof(*in->frequency)),
                             .quality = calloc((size_t)n * INSTANCE_CONFIGS + 1, sizeof(*in->quality)),
                             .size = calloc((size_t)n * INSTANCE_CONFIGS + 1, sizeof(*in->size)) };
    if (!in->full || !in->frequency || !in->quality || !in->size) {
        instance_release(in);
        return err_nomem(err);
    }
    if (kind == INSTANCE_REAL || kind == INSTANCE_NODES)
        make_real(in, &r);
    else
        make_random(in, &r);
    make_frequencies(in, &r);
    return 0;
}

void instance_release(struct instance *in)
{
    free(in->full);
    free(in->frequency);
    free(in->quality);
    free(in->size);
    *in = (struct instance){ 0 };
}

static double candidates_real(const struct instance *in, int context, int64_t *bytes, double *utility)
{
    const int32_t *size = in->size + (size_t)context * INSTANCE_CONFIGS;
    const float *quality = in->quality + (size_t)context * INSTANCE_CONFIGS;
    double f = (double)in->frequency[context], full = (double)in->full[context], tokens = full / TOKEN_BYTES;

    for (int v = 0; v < INSTANCE_CONFIGS; v++) {
        double decode =
            v >= 3 * DROPS ? full / 40e9 : 0; /* the fourth method must be unpacked, but on the first tier */
        bytes[v] = (int64_t)size[v] * UNIT;
        for (int t = 0; t < in->n_tiers; t++) {
            bool first = t < in->n_tiers / INSTANCE_TIERS;
            double ttft = .03 + in->latency[t] + (double)bytes[v] * in->per_byte[t] + (first ? 0 : decode);
            utility[v * in->n_tiers + t] = ((double)quality[v] - ttft) * f;
        }
    }
    return (1 - .03 - tokens / 8000 - 4e-10 * tokens * tokens) * f;
}

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct instance *in = arg;
    const int32_t *size = in->size + (size_t)context * INSTANCE_CONFIGS;
    const float *quality = in->quality + (size_t)context * INSTANCE_CONFIGS;

    if (in->kind == INSTANCE_REAL || in->kind == INSTANCE_NODES)
        return candidates_real(in, context, bytes, utility);
    for (int v = 0; v < INSTANCE_CONFIGS; v++) {
        bytes[v] = size[v];
        for (int t = 0; t < INSTANCE_TIERS; t++)
            utility[v * INSTANCE_TIERS + t] = (double)quality[v] * tier_factor[t];
    }
    return 0;
}

struct plan_problem instance_problem(const struct instance *in)
{
    return (struct plan_problem){ in->n, INSTANCE_CONFIGS, in->n_tiers, in->capacity, candidates, in, in->pool };
}

struct instance instance_kinds(const struct instance *in)
{
    struct instance kinds = *in;

    kinds.n_tiers = INSTANCE_TIERS;
    for (int k = 0; k < INSTANCE_TIERS; k++) {
        int first = k * INSTANCE_NODES_N;
        kinds.capacity[k] = in->capacity[first] * (k < 3 ? INSTANCE_NODES_N : 1); /* the fourth is a pool */
        kinds.pool[k] = k;
        kinds.per_byte[k] = in->per_byte[first];
        kinds.latency[k] = in->latency[first];
    }
    return kinds;
}
