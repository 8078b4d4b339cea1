/* outcome.h - what a plan comes to: its total utility, the means over all accesses, and how much of the possible gain
 * it misses. The one definition, for evp-plan's manifest and that of a live plan. */
#ifndef EVP_OUTCOME_H
#define EVP_OUTCOME_H

#include "formats/manifest.h"

#include <float.h>
#include <math.h>

/* Of one context at its placement. */
struct outcome {
    double utility;
    double ttft_s, quality;
    double quality_test; // NAN: not known; the context is left out of that mean
};

/* Sums over contexts, zeroed at first. */
struct outcome_sums {
    struct outcome sum;
    double weight, weight_test; // accesses, and those of contexts whose quality_test is known, in OUTCOME_UNITs
};

/* Accesses are counted in units of a power of two, which changes no digit of a mean and keeps the sums of any
 * frequencies finite: 2^32 contexts, each with the largest number of accesses that there is and a TTFT of 1e30 s. */
#define OUTCOME_UNIT 0x1p140

/* Adds a context that is accessed so often. A total that leaves the range of numbers stays at its end. */
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

/* A line of the manifest's comparison; name: at most MANIFEST_CONFIG - 1 bytes of it. Means over no accesses are NAN.
 */
struct manifest_total outcome_total(const struct outcome_sums *s, const char *name);

/* The part of the possible gain over recomputing everything that a plan misses, by its proof:
 * (upper_bound - objective) / (upper_bound - recompute); 0 where nothing can be gained but by rounding. */
double outcome_gain_gap(double objective, double upper_bound, double recompute);

#endif
