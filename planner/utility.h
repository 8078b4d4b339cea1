/* utility.h - the one definition of TTFT and utility, for evp-score's tables, evp-plan and live plans. Inline, because
 * planning calls it for every candidate of every context.
 *
 *     on a tier      TTFT = read + decompress + question
 *     recomputed     TTFT = prefill + question, quality 1
 *     utility = (alpha * quality - TTFT - slo_weight * lateness) * frequency
 *
 * Times and utility are in seconds: a quality of 1 is worth alpha seconds, an expected second of lateness costs
 * slo_weight seconds. The time to read from a tier is tier_read_s() of formats/tiers.h, its standard deviation
 * tier_read_sd_s().
 *
 * Lateness is the expected time of the first token beyond slo_ttft_s. For a normal TTFT with mean m and standard
 * deviation s, and z = (m - slo_ttft_s) / s,
 *
 *     lateness = E max(0, TTFT - slo_ttft_s) = (m - slo_ttft_s) * Phi(z) + s * phi(z)
 *
 * Phi and phi are the distribution function and density of the standard normal distribution; s comes from the spread of
 * the tier's reads and of the context's measured prefills and questions. Where s is 0, lateness is
 * max(0, m - slo_ttft_s).
 */
#ifndef EVP_UTILITY_H
#define EVP_UTILITY_H

#include "planner/normal.h"

#include <math.h>
#include <stdint.h>

/* The weights of quality, TTFT and lateness. */
struct plan_goal {
    double alpha;      // seconds of TTFT that a quality of 1 is worth
    double slo_ttft_s; // the promised TTFT, in seconds
    double slo_weight; // seconds of TTFT that an expected second of lateness costs; 0: nothing is promised
};

/* Seconds to the first token. decompress_s NAN (unknown) counts as 0. */
static inline double ttft_stored(double read_s, double decompress_s, double question_s)
{
    return read_s + (isnan(decompress_s) ? 0 : decompress_s) + question_s;
}

static inline double ttft_recomputed(double prefill_s, double question_s)
{
    return prefill_s + question_s;
}

/* Expected seconds beyond slo_ttft_s, as above. sd_s 0: the TTFT is certain. */
static inline double lateness(double ttft_s, double sd_s, double slo_ttft_s)
{
    const double far = 8; // standard deviations; beyond, the correction is below 1e-16 of one
    double over = ttft_s - slo_ttft_s;

    if (fabs(over) >= far * sd_s)
        return over > 0 ? over : 0;
    double z = over / sd_s;
    return over * normal_cdf(z) + sd_s * normal_density(z);
}

/* sd_s: the standard deviation of the TTFT; 0: unknown. */
static inline double utility(const struct plan_goal *goal, double quality, double ttft_s, double sd_s, double frequency)
{
    double late = goal->slo_weight > 0 ? goal->slo_weight * lateness(ttft_s, sd_s, goal->slo_ttft_s) : 0;

    return (goal->alpha * quality - ttft_s - late) * frequency;
}

/* Recomputing loses no quality. */
static inline double utility_recomputed(const struct plan_goal *goal, double ttft_s, double sd_s, double frequency)
{
    return utility(goal, 1, ttft_s, sd_s, frequency);
}

/* The standard deviation of the sum of two independent times: reading and question, or prefill and question. The spread
 * of decompression is unknown. */
static inline double sd_of_sum(double a_s, double b_s)
{
    return sqrt(a_s * a_s + b_s * b_s);
}

/* The utility of recomputing a pinned context: so low that a plan does it only when the pins do not fit. */
static inline double utility_unpinned(double recomputed)
{
    return recomputed - 1e6 * (1 + fabs(recomputed));
}

#endif
