/* utility.h - what a placement is worth: the one definition of TTFT and utility, for evp-score's tables, evp-plan and
 * live plans. Inline, because a plan asks for every candidate of every context.
 *
 *     on a tier      TTFT = read + decompress + question      utility = (alpha * quality - TTFT) * frequency
 *     recomputed     TTFT = prefill + question                the same, of quality 1
 *
 * How long a tier takes to read so many bytes is tier_read_s() of loader/formats/tiers.h.
 */
#ifndef EVP_UTILITY_H
#define EVP_UTILITY_H

#include <math.h>
#include <stdint.h>

/* Seconds to the first token. decompress_s NAN, not known, counts as 0. */
static inline double ttft_stored(double read_s, double decompress_s, double question_s)
{
    return read_s + (isnan(decompress_s) ? 0 : decompress_s) + question_s;
}

static inline double ttft_recomputed(double prefill_s, double question_s)
{
    return prefill_s + question_s;
}

static inline double utility(double alpha, double quality, double ttft_s, double frequency)
{
    return (alpha * quality - ttft_s) * frequency;
}

/* Recomputing loses no quality. */
static inline double utility_recomputed(double alpha, double ttft_s, double frequency)
{
    return utility(alpha, 1, ttft_s, frequency);
}

/* Recomputing a context that is pinned to a tier: worth so little that a plan does it only when the pins do not fit. */
static inline double utility_unpinned(double recomputed)
{
    return recomputed - 1e6 * (1 + fabs(recomputed));
}

#endif
