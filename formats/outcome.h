/* outcome.h - the result of a plan: total utility, means over all accesses, and the share of the possible gain that it
 * misses. Shared by evp-plan and live plans. */
#ifndef EVP_OUTCOME_H
#define EVP_OUTCOME_H

#include "formats/manifest.h"

#include <float.h>
#include <math.h>

/* The result of one context at its placement. */
struct outcome {
    double utility;
    double ttft_s, quality;
    double quality_test; // NAN: not known; the context is left out of that mean
};

/* Sums over contexts, zeroed at first. */
struct outcome_sums {
    struct outcome sum;
    double weight, weight_test; // accesses of all contexts, and of those with a known quality_test, in OUTCOME_UNITs
};

/* The unit of accesses. A power of two leaves the digits of means unchanged; this one keeps sums finite even for 2^32
 * contexts with DBL_MAX accesses each and a TTFT of 1e30 s. */
#define OUTCOME_UNIT 0x1p140

/* Adds a context with its access frequency. Total utility is clamped to the range of double. */
static inline void outcome_add(struct outcome_sums *s, const struct outcome *o, double frequency)
{
    double weight = frequency / OUTCOME_UNIT;

    s->weight += weight;
    s->sum.utility = fmax(-DBL_MAX, fmin(s->sum.utility + o->utility, DBL_MAX));
    s->sum.ttft_s += weight * o->ttft_s;
    s->sum.quality += weight * o->quality;
    if (isnan(o->quality_test))
        return;
    s->weight_test += weight;
    s->sum.quality_test += weight * o->quality_test;
}

/* A line of the manifest's comparison; a longer name is cut to MANIFEST_CONFIG - 1 bytes. Means over no accesses are
 * NAN. */
struct manifest_total outcome_total(const struct outcome_sums *s, const char *name);

/* The share of the possible gain over recomputing everything that a plan misses at most: (upper_bound - objective) /
 * (upper_bound - recompute); 0 if the possible gain is within rounding errors. */
double outcome_gain_gap(double objective, double upper_bound, double recompute);

#endif
