/* utility.h - what a placement is worth. The one place where TTFT and utility are computed; inline, because a plan asks
 * for every candidate of every context. */
#ifndef EVP_UTILITY_H
#define EVP_UTILITY_H

#include <math.h>
#include <stdint.h>

/* What planning must know of a storage tier. */
struct tier_speed {
    double latency_s, read_bytes_per_s;
};

/* Seconds to the first token: latency + bytes / bandwidth + decompress + question prefill. decompress_s NAN counts as
 * 0. */
static inline double ttft_stored(struct tier_speed tier, int64_t bytes, double decompress_s, double question_s)
{
    return tier.latency_s + (double)bytes / tier.read_bytes_per_s + (isnan(decompress_s) ? 0 : decompress_s) +
           question_s;
}

/* On `recompute`: the whole prefill, then the question. */
static inline double ttft_recompute(double prefill_s, double question_s)
{
    return prefill_s + question_s;
}

/* (alpha * quality - ttft) * frequency */
static inline double utility(double alpha, double quality, double ttft_s, double frequency)
{
    return (alpha * quality - ttft_s) * frequency;
}

/* What recomputing counts for a context that is pinned to a tier: so much less than anything can gain that it happens
 * only when the pins do not fit. */
static inline double utility_unpinned(double recompute)
{
    return recompute - 1e6 * (1 + fabs(recompute));
}

#endif
