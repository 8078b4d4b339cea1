/* plan_explain.h - evp-plan's messages about the meaning of its numbers. */
#ifndef EVP_PLAN_EXPLAIN_H
#define EVP_PLAN_EXPLAIN_H

#include "base/parse.h"
#include "placement/placement.h"

/* sum / uses; "-" without uses. */
const char *plan_text_per_use(char out[TEXT_SHORT], const struct placement_plan *p, double sum);

/* A price per byte as a price per GiB; below 1e-9 it is a rounding error and printed as 0. */
const char *plan_text_price(char out[TEXT_SHORT], double price);

/* A message if every used context is kept uncompressed. */
void plan_explain_fit(const struct placement_plan *p);

/* The qualities of second answers and of unrelated ones, if the table knows them. */
void plan_explain_quality(const struct placement_plan *p);

/* A message if nearly all uses are recomputed: what that takes, what loading would take, and which is the reason. */
void plan_explain_recompute(const struct placement_plan *p);

/* The utility and what moves take of it, its bound, and the gap as a share of the gain over recomputing everything. */
void plan_explain_gap(const struct manifest *m);

/* A sweep: the rows of frontier.tsv in columns, and how to read them. */
void plan_explain_frontier(const char *tsv);

#endif
