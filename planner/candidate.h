/* candidate.h - a possible placement of a context: one variant on one tier, or recomputing. The optimal solver
 * moves contexts between candidates.
 *
 * A knapsack is a tier of limited capacity, or a pool of tiers. Knapsacks are numbered in the order of their first
 * tiers (`d`, a dimension of the dual); tiers keep the numbers of the problem (`t`). Recomputing, variants of 0 bytes
 * and unlimited tiers use no knapsack.
 */
#ifndef EVP_CANDIDATE_H
#define EVP_CANDIDATE_H

#include "planner/plan.h"

struct knapsacks {
    int n, n_tiers;
    int tier[PLAN_TIERS]; // (n) the first tier of each
    int size[PLAN_TIERS]; // (n) how many tiers it has
    int of[PLAN_TIERS];   // (n_tiers) the knapsack of a tier; -1: unlimited
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
static inline int knapsack_of_tier(const struct knapsacks *k, int tier)
{
    return tier == PLAN_RECOMPUTE ? -1 : k->of[tier];
}

static inline struct plan_placement candidate_placement(const struct candidate *c)
{
    return (struct plan_placement){ c->config, c->tier };
}

/* Utility - price * bytes, with one dual price per knapsack. */
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
