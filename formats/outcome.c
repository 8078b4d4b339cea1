/* outcome.c - sums become a line of the manifest's comparison. */
#include "formats/outcome.h"

#include <math.h>
#include <stdio.h>

static const double rounding = 1e-9; // of a sum: a million terms in another order differ by less

struct manifest_total outcome_total(const struct outcome_sums *s, const char *name)
{
    struct manifest_total total = { .utility = s->sum.utility,
                                    .ttft_s = s->sum.ttft_s / s->weight,
                                    .quality = s->sum.quality / s->weight,
                                    .quality_test = s->sum.quality_test / s->weight_test };

    snprintf(total.name, sizeof(total.name), "%s", name);
    return total;
}

double outcome_gain_gap(double objective, double upper_bound, double recompute)
{
    double top = upper_bound / 4, gain = top - recompute / 4; /* a quarter, so that no difference overflows */

    return gain > rounding * fabs(top) ? (top - objective / 4) / gain : 0;
}
