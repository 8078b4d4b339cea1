/* plan_frontier.h - the rows of frontier.tsv (docs/formats/README.md), which formats/frontier.h reads. */
#ifndef EVP_PLAN_FRONTIER_H
#define EVP_PLAN_FRONTIER_H

#include "base/buf.h"
#include "formats/manifest.h"
#include "planner/plan.h"

struct plan_frontier_row {
    struct manifest_total total;
    double share[PLAN_TIERS + 1]; // of the accesses, by tier; recompute last
};

void plan_frontier_head(struct buf *out, const struct tiers *tiers);
void plan_frontier_add(struct buf *out, double alpha, const struct plan_frontier_row *row, int n_tiers);

#endif
