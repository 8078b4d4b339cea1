/* outcome.h - what a plan comes to: its total utility, the means over all accesses, and how much of the possible gain
 * it misses. The one definition, for evp-plan's manifest and that of a live plan. */
#ifndef EVP_OUTCOME_H
#define EVP_OUTCOME_H

#include "loader/formats/manifest.h"

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
    double weight, weight_test; // accesses, and those of contexts whose quality_test is known
};

/* Adds a context that is accessed so often. */
static inline void outcome_add(struct outcome_sums *s, const struct outcome *o, double frequency)
{
    s->weight += frequency;
    s->sum.utility += o->utility;
    s->sum.ttft_s += frequency * o->ttft_s;
    s->sum.quality += frequency * o->quality;
    if (isnan(o->quality_test))
        return;
    s->weight_test += frequency;
    s->sum.quality_test += frequency * o->quality_test;
}

/* A line of the manifest's comparison; name: at most MANIFEST_CONFIG - 1 bytes of it. Means over no accesses are NAN.
 */
struct manifest_total outcome_total(const struct outcome_sums *s, const char *name);

/* The part of the possible gain over recomputing everything that a plan misses, by its proof:
 * (upper_bound - objective) / (upper_bound - recompute); 0 where nothing can be gained but by rounding. */
double outcome_gain_gap(double objective, double upper_bound, double recompute);

#endif
