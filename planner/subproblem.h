/* subproblem.h - a node of branch and bound: the remaining options of each undecided context.
 *
 * The bound is the minimum over prices of L (planner/dual.h) for those options, found by cutting planes. A cut is the
 * plan that is best at some prices. The master LP mixes cuts; contexts on which the cuts of the mix differ are worth
 * dividing.
 */
#ifndef EVP_SUBPROBLEM_H
#define EVP_SUBPROBLEM_H

#include "planner/master_lp.h"

#include <stdbool.h>

enum { SUBPROBLEM_CUTS = 64, SIDE_OF_NONE = -1 };

/* A candidate, reduced to the fields that a bound needs. */
struct option {
    double bytes, utility;
    int knapsack;  // -1: none
    int candidate; // the caller's number
};

struct subproblem {
    int n, n_knapsacks;
    int *context, *first;             // (n), (n + 1): context[i] is open and has options first[i] .. first[i + 1] - 1
    struct option *option;            // (first[n]) per context sorted by knapsack, then bytes; no two are equal in both
    int *decided;                     // (C) the candidate of each decided context
    double utility, left[PLAN_TIERS]; // of the decided contexts; the bytes that they leave in each knapsack
};

/* One side of a division of a context's options: those in a knapsack (-1: in none) with at least min_bytes, or all
 * others. */
struct subproblem_side {
    int context; // index among the open ones; SIDE_OF_NONE: no division
    int knapsack;
    double min_bytes;
    bool inside;
};

static inline bool side_has(const struct subproblem_side *s, const struct option *o)
{
    return (o->knapsack == s->knapsack && o->bytes >= s->min_bytes) == s->inside;
}

/* The plan that is best at some prices. */
struct cut {
    double price[PLAN_TIERS], utility, free[PLAN_TIERS]; // free: bytes, negative when the plan does not fit
    double weight;                                       // in the mix
    int *choice;                                         // (n) the option of each open context
};

struct bound {
    double value, price[PLAN_TIERS]; // L at `price`: no plan of the subproblem has more utility
    int n_cuts;
    struct cut cut[SUBPROBLEM_CUTS];
    int *choices; // owned: the memory of every `choice`
};

/* The state of a search. */
struct search_state {
    double target;                // only plans with more utility are wanted
    double max_price[PLAN_TIERS]; // bounds are searched at prices up to these
    int64_t options;              // budget: options that may still be looked at
    struct master_lp master;
    void (*found)(void *arg, const struct subproblem *s,
                  const struct cut *plan); // gets every wanted plan that fits
    void *arg;
};

int subproblem_init(struct subproblem *s, int n_contexts, int n_options); // -1 without memory
void subproblem_copy(struct subproblem *to, const struct subproblem *from, int n_contexts);
void subproblem_release(struct subproblem *s); // zeroed is fine

int bound_init(struct bound *b, int n_contexts); // -1 without memory
void bound_release(struct bound *b);             // zeroed is fine

/* Makes *cut the best plan at cut->price. Returns L there. */
double subproblem_evaluate(const struct subproblem *s, const struct subproblem_side *side, struct cut *cut,
                           struct search_state *state);

/* Bounds one side of a subproblem. Starts from the b->n_cuts cuts in *b, which must be cuts of that side, or from
 * b->price if there are none. Leaves the cuts of the mix in *b, unless the value is not above the target. */
void subproblem_bound(const struct subproblem *s, const struct subproblem_side *side, struct bound *b,
                      struct search_state *state);

/* Reduces *s to one side, removes the options that no wanted plan can have, given a bound of that side, and decides the
 * contexts with one option left. false: there is no wanted plan. */
bool subproblem_tighten(struct subproblem *s, const struct subproblem_side *side, const struct bound *b, double target);

#endif
