/* branch.h - branch and bound: shows that no plan is better than the incumbent, or finds one.
 *
 * A node is a set of candidates for each context. Its bound is the minimum of L over prices (planner/dual.h) for those
 * candidates alone (planner/subproblem.h). Three rules keep the tree small:
 *   - a candidate that loses more, at the node's prices, than the bound is above the best plan cannot be part of a
 *     better plan, and is removed (reduced-cost fixing);
 *   - a context that is left with one candidate is decided;
 *   - a node whose bound is not above the best plan is done.
 * Any other node divides the candidates of one context in two. Some divisions are tried, and the one that lowers both
 * bounds most is taken (strong branching).
 *
 * Work is counted in candidates looked at, never in time, and one thread does all of it: the result is the same
 * everywhere.
 *
 * Land, Doig: An automatic method of solving discrete programming problems, Econometrica 28 (1960). Fisher: The
 * Lagrangian relaxation method for solving integer programming problems, Management Science 27 (1981). Applegate,
 * Bixby, Chvatal, Cook: Finding cuts in the TSP, DIMACS report 95-05 (1995), for strong branching.
 */
#ifndef EVP_BRANCH_H
#define EVP_BRANCH_H

#include "planner/incumbent.h"

/* Improves *x until no plan is better, or until `work` is done, in the unit of struct plan_effort. *closed: no plan is
 * better than *x is now, up to rounding. */
int incumbent_branch(struct incumbent *x, const struct plan_problem *problem, int64_t work, bool *closed,
                     struct err *err) MUST_CHECK;

#endif
