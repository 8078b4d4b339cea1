/* forest_internal.h - the trees at given prices (forest.c), for the search of prices and plans (forest_solve.c). */
#ifndef EVP_FOREST_INTERNAL_H
#define EVP_FOREST_INTERNAL_H

#include "planner/candidate.h"
#include "planner/forest.h"

#include <stddef.h>

/* A candidate of a context that can be the best at some prices. */
struct forest_option {
    double bytes, utility, gain; // gain: of uses below
    uint16_t config;
    int8_t tier, knapsack;
};

/* What F, P and H of a node were decided by. */
struct forest_best {
    double value, from; // P; not stored where the parent's gain is above `from`
    int option;         // FOREST_NONE: `part` decides
    int part;           // tier
};

struct forest_part {
    double value;      // H
    int option, child; // both: the option here, the uncompressed cache below the child; one alone: only that
};

struct trees {
    const struct forest *f; // borrowed, like `problem`
    const struct plan_problem *problem;
    struct knapsacks knapsack;
    size_t *first; // (N + 1) options of node v: first[v] to before first[v + 1]
    struct forest_option *option;
    double *recompute;        // (N) of the context; 0 without one
    double low;               // the least gain
    struct forest_best *best; // (N)
    struct forest_part *part; // (N, T)
    int *block, n_blocks;     // (n_blocks + 1) first nodes of groups of whole trees
    double *value;            // (n_blocks) sums of F(0)
    int failed;
};

/* forest_serve() of one tree. gain: (N) of each stored node, to a use below. */
void trees_serve(const struct forest *f, const struct plan_placement *placement, const double *gain, int root,
                 struct forest_use *use);

int trees_init(struct trees *t, const struct forest *f, const struct plan_problem *problem, struct err *err) MUST_CHECK;
void trees_release(struct trees *t);

/* Finds the best placements at prices (D). Returns the sum of F(0) over all trees. */
int trees_evaluate(struct trees *t, const double *price, double *value, struct err *err) MUST_CHECK;

/* Writes them, and the bytes of each knapsack (D). */
int trees_placements(const struct trees *t, struct plan_placement *placement, double *demand,
                     struct err *err) MUST_CHECK;

#endif
