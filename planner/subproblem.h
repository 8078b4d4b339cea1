/* subproblem.h - a node of branch and bound: of each context that is not decided, the options that it still has.
 *
 * The bound is the minimum over prices of L (planner/dual.h) for those options, found by cutting planes. A cut is the
 * plan that is best at some prices. The master LP mixes cuts; the contexts on which the cuts of the mix differ are
 * those that are worth dividing.
 */
#ifndef EVP_SUBPROBLEM_H
#define EVP_SUBPROBLEM_H

#include "planner/master_lp.h"

#include <stdbool.h>

enum { SUBPROBLEM_CUTS = 64, PART_OF_NONE = -1 };

/* A candidate as bounds need it. */
struct option {
    double bytes, utility;
    int knapsack;  // -1: none
    int candidate; // its number, the user's
};

struct subproblem {
    int n, n_knapsacks;
    int *context, *first;             // (n), (n + 1) an open context's options: those from first[i] on
    struct option *option;            // (first[n]) of a context by knapsack, then bytes; no two have both alike
    int *decided;                     // (C) the candidate of each decided context
    double utility, left[PLAN_TIERS]; // of the decided contexts; the bytes that they leave of each knapsack
};

/* One side of a division of a context's options: those in a knapsack (-1: in none) with min_bytes or more, or all the
 * others. */
struct part {
    int context; // its place among the open ones; PART_OF_NONE: nothing is divided
    int knapsack;
    double min_bytes;
    bool inside;
};

static inline bool part_has(const struct part *s, const struct option *o)
{
    return (o->knapsack == s->knapsack && o->bytes >= s->min_bytes) == s->inside;
}

/* The plan that is best at some prices. */
struct cut {
    double price[PLAN_TIERS], utility, free[PLAN_TIERS]; // free: bytes, negative when the plan does not fit
    double weight;                                       // in the mix
    int *choice;                                         // (n) an option of each open context
};

struct bound {
    double value, price[PLAN_TIERS]; // L, and where: no plan of the subproblem is better
    int n_cuts;
    struct cut cut[SUBPROBLEM_CUTS];
    int *choices; // owned: what `choice` points into
};

/* What a search knows, and what it may still do. */
struct search_state {
    double goal;                  // only plans of more utility are wanted
    double max_price[PLAN_TIERS]; // bounds are sought at prices up to these
    int64_t options;              // that may still be looked at
    struct master_lp master;
    void (*found)(void *arg, const struct subproblem *s, const struct cut *plan); // a wanted plan that fits
    void *arg;
};

int subproblem_init(struct subproblem *s, int n_contexts, int n_options); // -1 without memory
void subproblem_copy(struct subproblem *to, const struct subproblem *from, int n_contexts);
void subproblem_release(struct subproblem *s); // zeroed is fine

int bound_init(struct bound *b, int n_contexts); // -1 without memory
void bound_release(struct bound *b);             // zeroed is fine

/* Makes *cut the plan that is best at cut->price, and returns L there. */
double subproblem_evaluate(const struct subproblem *s, const struct part *side, struct cut *cut,
                           struct search_state *state);

/* Bounds one side of a subproblem. Begins with the b->n_cuts cuts in *b, which must be cuts of that side, or at
 * b->price if there are none. Leaves the cuts of the mix, unless the value is at or below the goal. */
void subproblem_bound(const struct subproblem *s, const struct part *side, struct bound *b, struct search_state *state);

/* Makes *s one side of itself, removes the options that no wanted plan can have, given a bound of that side, and
 * decides the contexts that are left with one. false: there is no wanted plan. */
bool subproblem_tighten(struct subproblem *s, const struct part *side, const struct bound *b, double goal);

#endif
