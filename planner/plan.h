/* plan.h - one candidate for every context, so that total utility is high and no tier exceeds its capacity.
 *
 *     max  sum_i u[i][choice_i]    with  sum over the contexts placed on tier t of their bytes <= capacity[t]
 *
 * This is a multiple-choice knapsack problem with one knapsack per tier, or per pool: the tiers of a pool share one
 * capacity, which holds for the bytes on all of them together. A candidate is (config, tier); besides, every
 * context can be recomputed: no bytes, on no tier. So every problem has a solution, whatever the capacities. Pure
 * arithmetic: candidates in, placements out; no files, no JSON. planner/README.md explains the algorithm.
 *
 * Solvers
 *   evicpress   EvicPress, Algorithm 1 with the cascade of its section 4.4: every context starts at its most useful
 *               candidate; from the fastest tier down, while a tier is over capacity, the step that loses the least
 *               utility is taken: a smaller config in place, or the best candidate on a slower tier or none
 *   adaptcache  AdaptCache: the same, but the step that loses the least utility per byte it frees
 *   optimal     Lagrangian dual, rounding, repair; local and pair search (up to 20,000 contexts); branch and bound (up
 *               to 200 contexts, or 20,000 when more work than usual is asked for)
 *
 * Every plan comes with an upper bound on what any plan could reach: for dual prices lambda[t] >= 0 per byte,
 *     sum_t lambda[t] * capacity[t] + sum_i max_o (u[i][o] - lambda[tier o] * bytes o)
 * bounds the optimum (Lagrangian duality; a pool has one price and counts once), so the prices are a certificate that
 * anyone can check in one pass.
 */
#ifndef EVP_PLAN_H
#define EVP_PLAN_H

#include "base/err.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { PLAN_RECOMPUTE = -1, PLAN_TIERS = 64, PLAN_CONFIGS = UINT16_MAX };

/* What there is to choose from. V configs, T tiers, up to PLAN_CONFIGS and PLAN_TIERS. */
struct plan_problem {
    int n_contexts, n_configs, n_tiers;
    const int64_t *capacity; // (T) bytes; INT64_MAX: unlimited; the same for all tiers of a pool
    /* One context's candidates: bytes[v], -1 when config v is not available; utility[v * T + t], NAN when not
     * available. Returns the utility of recomputing. Must give the same every time; may be called from several threads.
     */
    double (*candidates)(const void *arg, int context, int64_t *bytes, double *utility);
    const void *arg;
    const int *pool; // (T) of each tier the first tier of its pool, itself if it shares with none; NULL: none shares
};

struct plan_placement {
    int32_t config, tier; // tier PLAN_RECOMPUTE: config is 0
};

enum plan_solver { PLAN_EVICPRESS, PLAN_ADAPTCACHE, PLAN_OPTIMAL };

struct plan {
    struct plan_placement *placement; // (C), owned
    int n_contexts;
    double objective, upper_bound;
    bool optimal;             // branch and bound, or the bound itself, shows that no plan is better
    double price[PLAN_TIERS]; // dual price, utility per byte, one for a pool: upper_bound follows from these
    int64_t fill[PLAN_TIERS]; // bytes placed on each tier
};

/* How hard `optimal` tries. */
struct plan_effort {
    int64_t work;        // more than usual, for small problems: a million is a second or so
    const double *start; // (T) prices to begin with, or NULL
    bool rough;          // only rounds, so that knapsacks may be overloaded a little: for what a plan comes to
};

/* Solves, and proves the bound. */
int plan_solve(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
               const struct plan_effort *effort, struct err *err) MUST_CHECK;
void plan_release(struct plan *plan);

/* A greedy alone: upper_bound and price stay 0. */
int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
                struct err *err) MUST_CHECK;

/* (upper_bound - objective) / |upper_bound|; 1 when the bound alone is 0, and 0 when both are. */
double plan_gap(const struct plan *plan);

/* ---- what a plan is measured against ---- */

enum plan_baseline {
    BASELINE_RECOMPUTE, // nothing is stored
    BASELINE_PLAIN,     // config 0, uncompressed, the most used contexts first, each on the fastest tier it fits on
    BASELINE_SINGLE,    // the same with the one config for all that gives the highest total utility
    BASELINE_COUNT
};

/* Makes all of them. order: contexts by falling frequency. *config gets the config of BASELINE_SINGLE. upper_bound and
 * price stay 0. The caller releases each plan; on failure there is none. */
int plan_baselines(struct plan plan[BASELINE_COUNT], const struct plan_problem *problem, const int *order, int *config,
                   struct err *err) MUST_CHECK;

/* ---- what the solvers share (planner/problem.c) ---- */

/* One context's candidates, in arrays of the problem's size. */
struct plan_candidates {
    int64_t *bytes;  // (V)
    double *utility; // (V, T)
    double recompute;
};

/* Fails when there are more tiers or configs than a plan can tell apart, or a pool is not as `pool` above says. */
int plan_check(const struct plan_problem *problem, struct err *err) MUST_CHECK;

int plan_candidates_init(struct plan_candidates *all, const struct plan_problem *problem, struct err *err) MUST_CHECK;
void plan_candidates_get(struct plan_candidates *all, const struct plan_problem *problem, int context);
void plan_candidates_release(struct plan_candidates *all);

/* Where in the (V, T) array a config on a tier is. */
static inline int plan_cell(const struct plan_problem *problem, int config, int tier)
{
    return config * problem->n_tiers + tier;
}

/* Can config v on tier t be chosen: is it available, and not larger than the whole tier? */
static inline int plan_candidate_ok(const struct plan_candidates *all, const struct plan_problem *problem, int config,
                                    int tier)
{
    return all->bytes[config] >= 0 && all->bytes[config] <= problem->capacity[tier] &&
           !isnan(all->utility[plan_cell(problem, config, tier)]);
}

double plan_candidate_utility(const struct plan_candidates *all, const struct plan_problem *problem,
                              struct plan_placement at);

/* Sets objective and fill to what the placements give. */
int plan_total(struct plan *plan, const struct plan_problem *problem, struct err *err) MUST_CHECK;

#endif
