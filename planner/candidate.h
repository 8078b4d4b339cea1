/* candidate.h - where a context could be: one variant on one tier, or nowhere. What the optimal solver and the live
 * plan move contexts between.
 *
 * A knapsack is a tier of limited capacity. Knapsacks have numbers of their own (`d`, a dimension of the dual); tiers
 * have those of the problem (`t`). Recomputing, variants of no bytes and tiers without limit use no knapsack.
 */
#ifndef EVP_CANDIDATE_H
#define EVP_CANDIDATE_H

#include "planner/plan.h"

struct knapsacks {
    int n, tier[PLAN_TIERS]; // of each, its tier
    int64_t capacity[PLAN_TIERS];
};

/* 24 bytes: a million contexts have fifteen million of them. */
struct candidate {
    int64_t bytes;
    double utility;
    uint16_t config;
    int8_t tier;     // PLAN_RECOMPUTE: nowhere
    int8_t knapsack; // -1: uses none
};

struct knapsacks knapsacks_of(const struct plan_problem *problem);

/* Returns the knapsack of a tier, or -1 when the tier is unlimited or PLAN_RECOMPUTE. */
int knapsack_of_tier(const struct knapsacks *k, int tier);

/* The candidate that a placement means. */
struct candidate candidate_at(const struct plan_candidates *all, const struct plan_problem *problem,
                              const struct knapsacks *k, struct plan_placement at);

static inline struct plan_placement candidate_placement(const struct candidate *c)
{
    return (struct plan_placement){ c->config, c->tier };
}

/* Utility less what the bytes cost at the dual prices, one per knapsack. */
static inline double candidate_reduced_value(const struct candidate *c, const double *price)
{
    return c->knapsack < 0 ? c->utility : c->utility - price[c->knapsack] * (double)c->bytes;
}

/* The bytes that a context adds to a knapsack when it goes from one candidate to another. */
static inline int64_t candidate_added(const struct candidate *from, const struct candidate *to, int knapsack)
{
    return (to->knapsack == knapsack ? to->bytes : 0) - (from->knapsack == knapsack ? from->bytes : 0);
}

#endif
