/* outcome.h - the result of a plan: total utility, means over all accesses, and the share of the possible gain that it
 * misses. Shared by evp-plan and live plans. */
#ifndef EVP_OUTCOME_H
#define EVP_OUTCOME_H

#include "formats/manifest.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* The result of one context at its placement. */
struct outcome {
    double utility;
    double ttft_s, quality;
    double quality_sd;               // standard error of quality alone; NAN: not known
    double common_sd;                // that of its config's mean, which all contexts with the config share
    bool compressed;                 // else quality and quality_test are exactly 1
    double quality_test, quality_se; // on test questions, and its standard error; NAN: not known
};

/* Sums over contexts, zeroed at first. */
struct outcome_sums {
    double utility, ttft_s, quality, variance, common; // variance, common: of quality
    double tested, tested_variance;                    // of quality_test, over compressed contexts that have it
    double weight, weight_compressed, weight_tested;   // accesses in OUTCOME_UNITs
    int n_compressed, n_tested;                        // contexts with accesses
};

/* The unit of accesses. A power of two leaves the digits of means unchanged; this one keeps sums finite even for 2^32
 * contexts with DBL_MAX accesses each and a TTFT of 1e30 s. */
#define OUTCOME_UNIT 0x1p140

/* Adds a context with its access frequency. Total utility is clamped to the range of double. */
static inline void outcome_add(struct outcome_sums *s, const struct outcome *o, double frequency)
{
    double weight = frequency / OUTCOME_UNIT;

    s->weight += weight;
    s->utility = fmax(-DBL_MAX, fmin(s->utility + o->utility, DBL_MAX));
    s->ttft_s += weight * o->ttft_s;
    s->quality += weight * o->quality;
    if (!o->compressed || !(weight > 0))
        return;
    s->variance += weight * o->quality_sd * (weight * o->quality_sd);
    s->common += weight * o->common_sd;
    s->weight_compressed += weight;
    s->n_compressed++;
    if (isnan(o->quality_test))
        return;
    s->tested += weight * o->quality_test;
    s->tested_variance += weight * o->quality_se * (weight * o->quality_se);
    s->weight_tested += weight;
    s->n_tested++;
}

/* A line of the manifest's comparison; a longer name is cut to MANIFEST_CONFIG - 1 bytes. Means over no accesses are
 * NAN, and so is quality_test unless every compressed context has one. Contexts count as independent, except that all
 * share the doubt about the configs' means. */
struct manifest_total outcome_total(const struct outcome_sums *s, const char *name);

/* The share of the possible gain over recomputing everything that a plan misses at most: (upper_bound - objective) /
 * (upper_bound - recompute); 0 if the possible gain is within rounding errors. */
double outcome_gain_gap(double objective, double upper_bound, double recompute);

#endif
