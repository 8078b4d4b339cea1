/* spread.h - plans for many tiers of few kinds, such as cluster nodes with equal GPUs, memory and disks.
 *
 * Tiers are of one kind when every context has the same utility on all of them under every config. A context may wish
 * for one tier; its utility there counts for the whole kind. A problem with one tier per kind, capacities added up,
 * takes the time of few tiers. It allows more than the original, because a kind may hold a set of contexts that cannot
 * be divided among its tiers; so its bound holds for the original too. Its prices, repeated for each tier of a kind,
 * certify that bound for the original.
 *
 * Then the contexts of each kind are divided among its tiers (bin packing): large ones first, each to the tier that is
 * left with the fewest free bytes. The few that fit nowhere go to the most useful candidate that fits.
 *
 * Johnson, Demers, Ullman, Garey, Graham: Worst-case performance bounds for simple one-dimensional packing algorithms,
 * SIAM J. Comput. 3 (1974), for best fit decreasing.
 */
#ifndef EVP_SPREAD_H
#define EVP_SPREAD_H

#include "planner/plan.h"

/* Fewest contexts to plan by kinds: with fewer, dividing loses more than kinds save. */
enum { SPREAD_MIN = 20000 };

struct spread {
    const struct plan_problem *problem, *kinds; // with all tiers; with kinds, the solved one
    const int *kind;                            // (T) the kind of each tier, a tier of `kinds`
    const int *wish;                            // (C) the tier that a context should get if its kind is chosen; -1: any
};

/* Turns a plan of kinds into one of all tiers. On failure *plan is released. */
int plan_spread(struct plan *plan, const struct spread *s, struct err *err) MUST_CHECK;

#endif
