/* outcome.c - sums become a line of the manifest's comparison. */
#include "formats/outcome.h"

#include <math.h>
#include <stdio.h>

static const double rounding = 1e-9; // of a sum: a million terms in another order differ by less

static double error_of(double variance, double weight)
{
    double error = sqrt(variance) / weight;

    return isfinite(error) ? error : (double)NAN;
}

struct manifest_total outcome_total(const struct outcome_sums *s, const char *name)
{
    bool complete = s->n_tested == s->n_compressed && s->weight > 0;
    struct manifest_total total = { .utility = s->utility,
                                    .ttft_s = s->ttft_s / s->weight,
                                    .quality = s->quality / s->weight,
                                    .quality_error = error_of(s->variance + s->common * s->common, s->weight),
                                    .quality_test = (double)NAN,
                                    .quality_tested = s->tested / s->weight_tested,
                                    .quality_test_error = error_of(s->tested_variance, s->weight_tested),
                                    .n_compressed = s->n_compressed,
                                    .n_tested = s->n_tested };

    if (complete) {
        total.quality_test = (s->weight - s->weight_compressed + s->tested) / s->weight;
        total.quality_test_error = error_of(s->tested_variance, s->weight);
    }
    snprintf(total.name, sizeof(total.name), "%s", name);
    return total;
}

double outcome_gain_gap(double objective, double upper_bound, double recompute)
{
    double top = upper_bound / 4, gain = top - recompute / 4; /* a quarter, so that no difference overflows */

    return gain > rounding * fabs(top) ? (top - objective / 4) / gain : 0;
}
