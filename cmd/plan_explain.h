/* plan_explain.h - the sentences of evp-plan that say what its numbers mean.
 */
#ifndef EVP_PLAN_EXPLAIN_H
#define EVP_PLAN_EXPLAIN_H

#include "base/parse.h"
#include "placement/placement.h"

/* Of a sum over all uses what one use has; "-" without uses. */
const char *plan_text_per_use(char out[TEXT_SHORT], const struct placement_plan *p, double sum);

/* A price of a byte as one per GiB; below 1e-9 it is rounding, and 0. */
const char *plan_text_price(char out[TEXT_SHORT], double price);

/* Says so where every context that is used is kept whole: compressing would gain nothing. */
void plan_explain_fit(const struct placement_plan *p);

/* What a quality of nothing is, where the table knows. */
void plan_explain_quality(const struct placement_plan *p);

/* The utility, its bound, and what lies between them as a part of what planning gains. */
void plan_explain_gap(const struct manifest *m);

/* A sweep: the frontier as it is in frontier.tsv, in columns, and how to read it. */
void plan_explain_frontier(const char *tsv);

#endif
