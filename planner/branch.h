/* branch.h - branch and bound: shows that no plan is better than the incumbent, or finds one.
 *
 * A node is a set of candidates for each context. Its bound is the minimum of L over prices (planner/dual.h) for those
 * candidates alone (planner/subproblem.h). Three rules keep the tree small:
 *   - a candidate whose loss at the node's prices exceeds (bound - best plan) cannot be in a better plan and is removed
 *     (reduced-cost fixing);
 *   - a context with one candidate left is decided;
 *   - a node whose bound is not above the best plan is done.
 * Any other node divides the candidates of one context in two. Several divisions are tried; the one that lowers both
 * bounds most is taken (strong branching).
 *
 * Work is counted in candidates looked at, not in time, and one thread does all of it, so the result is the same on
 * every machine.
 *
 * Land, Doig: An automatic method of solving discrete programming problems, Econometrica 28 (1960). Fisher: The
 * Lagrangian relaxation method for solving integer programming problems, Management Science 27 (1981). Applegate,
 * Bixby, Chvatal, Cook: Finding cuts in the TSP, DIMACS report 95-05 (1995), for strong branching.
 */
#ifndef EVP_BRANCH_H
#define EVP_BRANCH_H

#include "planner/incumbent.h"

/* Improves *x until no plan is better or `work` (as in struct plan_effort) is done. *closed: no plan is better than *x
 * now, up to rounding. */
int incumbent_branch(struct incumbent *x, const struct plan_problem *problem, int64_t work, bool *closed,
                     struct err *err) MUST_CHECK;

#endif
