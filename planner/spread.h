/* spread.h - plans for many tiers of few kinds: nodes of a cluster that all have the same GPUs, memory and disks.
 *
 * Tiers are of one kind when a context is worth the same on all of them under every config, but for a tier that it
 * wishes for; then its kind is worth what that tier is. A problem in which each kind is
 * one tier, with the capacities added up, is solved in the time of few tiers. Its bound holds for the problem of all
 * tiers too, because it allows more: a kind may hold what no division among its tiers could. Its prices do as well, the
 * same for each tier of a kind, which is why the certificate of the one is that of the other.
 *
 * What is left is to divide the contexts of each kind among its tiers (bin packing): large ones first, each to the tier
 * that is left with the least free bytes. The few that then fit nowhere go where they are worth most of what is free.
 *
 * Johnson, Demers, Ullman, Garey, Graham: Worst-case performance bounds for simple one-dimensional packing algorithms,
 * SIAM J. Comput. 3 (1974), for best fit decreasing.
 */
#ifndef EVP_SPREAD_H
#define EVP_SPREAD_H

#include "planner/plan.h"

/* From this many contexts on kinds are worth it: with fewer, dividing costs more than kinds save. */
enum { SPREAD_MIN = 20000 };

struct spread {
    const struct plan_problem *problem, *kinds; // of all tiers, and the one that was solved
    const int *kind;                            // (T) of each tier its kind, a tier of `kinds`
    const int *wish;                            // (C) the tier that a context should get if its kind is right; -1: any
};

/* Turns a plan of kinds into one of all tiers. On failure *plan is released. */
int plan_spread(struct plan *plan, const struct spread *s, struct err *err) MUST_CHECK;

#endif
