/* plan_frontier.c - frontier.tsv: the plans of several alphas side by side. */
#include "cmd/plan_frontier.h"

#include <math.h>

void plan_frontier_head(struct buf *out, const struct tiers *tiers)
{
    buf_adds(out, "alpha\tquality\tquality_test\tttft_s");
    for (int t = 0; t < tiers->n; t++)
        buf_printf(out, "\thits_%s", tiers->at[t].name);
    buf_adds(out, "\thits_recompute\tquality_error\tquality_test_error\ttested\n");
}

static void put_means(struct buf *out, const double *mean, int n)
{
    for (int i = 0; i < n; i++)
        buf_printf(out, isnan(mean[i]) ? "\t-" : "\t%.6f", mean[i]);
}

void plan_frontier_add(struct buf *out, double alpha, const struct plan_frontier_row *row, int n_tiers)
{
    const struct manifest_total *t = &row->total;
    double tested = t->n_compressed ? (double)t->n_tested / t->n_compressed : (double)NAN;

    buf_printf(out, "%g", alpha);
    put_means(out, (const double[]){ t->quality, t->quality_test, t->ttft_s }, 3);
    put_means(out, row->share, n_tiers + 1);
    put_means(out, (const double[]){ t->quality_error, t->quality_test_error, tested }, 3);
    buf_addc(out, '\n');
}
