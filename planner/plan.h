/* plan.h - one candidate for every context, so that total utility is high and no tier exceeds its capacity.
 *
 *     max  sum_i u[i][choice_i]    with  sum over the contexts placed on tier t of their bytes <= capacity[t]
 *
 * This is a multiple-choice knapsack problem with one knapsack per tier, or per pool: tiers that share one capacity. A
 * candidate is (config, tier). Every context can also be recomputed (no bytes, no tier), so every problem has a
 * solution, whatever the capacities. Pure arithmetic: candidates in, placements out; no files, no JSON.
 * planner/README.md explains the algorithm.
 *
 * Solvers
 *   evicpress   EvicPress, Algorithm 1 with the cascade of its section 4.4: every context starts at the candidate with
 *               the highest utility; from the fastest tier down, while a tier is over capacity, the step that loses the
 *               least utility is taken: a smaller config in place, or the best candidate on a slower tier or none
 *   adaptcache  AdaptCache: the same, with the step that loses the least utility per freed byte
 *   optimal     Lagrangian dual, rounding, repair; local search (up to 20,000 contexts); branch and bound (up to 200
 *               contexts, or to 20,000 with plan_effort.work)
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

/* The choices: V configs, T tiers, up to PLAN_CONFIGS and PLAN_TIERS. */
struct plan_problem {
    int n_contexts, n_configs, n_tiers;
    const int64_t *capacity; // (T) bytes; INT64_MAX: unlimited; equal for all tiers of a pool
    /* Writes the candidates of one context: bytes[v], -1 when config v is not available; utility[v * T + t], NAN when
     * not available. Returns the utility of recomputing. Must give the same every time; may be called from several
     * threads.
     */
    double (*candidates)(const void *arg, int context, int64_t *bytes, double *utility);
    const void *arg;
    const int *pool; // (T) the first tier of each tier's pool, the tier itself without one; NULL: no pools
};

struct plan_placement {
    int32_t config, tier; // tier PLAN_RECOMPUTE: config is 0
};

enum plan_solver { PLAN_EVICPRESS, PLAN_ADAPTCACHE, PLAN_OPTIMAL };

struct plan {
    struct plan_placement *placement; // (C), owned
    int n_contexts;
    double objective, upper_bound;
    bool optimal;             // branch and bound, or a gap of 0, shows that no plan is better
    double price[PLAN_TIERS]; // dual price, utility per byte, equal within a pool; upper_bound follows from these
    int64_t fill[PLAN_TIERS]; // bytes placed on each tier
};

/* The effort of `optimal`. */
struct plan_effort {
    int64_t work;        // extra work on small problems: a million takes about a second
    const double *start; // (T) prices to begin with, or NULL
    bool rough;          // only round: knapsacks may be slightly overloaded; for an estimate of the objective
    bool brief;          // no searches after rounding and repair
};

/* Solves, and proves the bound. */
int plan_solve(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
               const struct plan_effort *effort, struct err *err) MUST_CHECK;
void plan_release(struct plan *plan);

/* Runs a greedy algorithm without the bound: upper_bound and price stay 0. */
int plan_greedy(struct plan *plan, const struct plan_problem *problem, enum plan_solver solver,
                struct err *err) MUST_CHECK;

/* The same as the papers' caches work: one context after the other, at its best candidate, and the others make space.
 * It begins with nothing stored. `problem` is borrowed. NULL on failure; close accepts NULL. */
struct plan_greedy *plan_greedy_open(const struct plan_problem *problem, enum plan_solver solver,
                                     struct err *err) MUST_CHECK;
void plan_greedy_close(struct plan_greedy *g);

struct plan_greedy_moves {
    struct plan_greedy_move {
        int context;
        struct plan_placement from;
    } * at; // each context once
    int n, cap;
};

/* A context was used: its candidates may have changed since, those of others may not. It is stored if it was not. The
 * time grows with the logarithm of the contexts. *moves: who went from where, borrowed until the next call. */
int plan_greedy_used(struct plan_greedy *g, int context, const struct plan_greedy_moves **moves,
                     struct err *err) MUST_CHECK;
struct plan_placement plan_greedy_at(const struct plan_greedy *g, int context);

/* (upper_bound - objective) / |upper_bound|; 1 when only the bound is 0, 0 when both are. */
double plan_gap(const struct plan *plan);

/* ---- plans to compare with ---- */

enum plan_baseline {
    BASELINE_RECOMPUTE, // nothing is stored
    BASELINE_PLAIN,     // uncompressed (config 0); the most used contexts first, each on the fastest tier with space
    BASELINE_SINGLE,    // the same with one config for all contexts: the one with the highest total utility
    BASELINE_COUNT
};

/* Makes all baselines. order: contexts by falling frequency. *config gets the config of BASELINE_SINGLE. upper_bound
 * and price stay 0. The caller releases each plan; after a failure there is none. */
int plan_baselines(struct plan plan[BASELINE_COUNT], const struct plan_problem *problem, const int *order, int *config,
                   struct err *err) MUST_CHECK;

/* ---- shared by the solvers (planner/problem.c) ---- */

/* One context's candidates, in arrays of the problem's size. */
struct plan_candidates {
    int64_t *bytes;  // (V)
    double *utility; // (V, T)
    double recompute;
};

/* Fails when there are more than PLAN_TIERS tiers or PLAN_CONFIGS configs, or `pool` is not as above. */
int plan_check(const struct plan_problem *problem, struct err *err) MUST_CHECK;

int plan_candidates_init(struct plan_candidates *all, const struct plan_problem *problem, struct err *err) MUST_CHECK;
void plan_candidates_get(struct plan_candidates *all, const struct plan_problem *problem, int context);
void plan_candidates_release(struct plan_candidates *all);

/* The index of a config on a tier in the (V, T) array. */
static inline int plan_cell(const struct plan_problem *problem, int config, int tier)
{
    return config * problem->n_tiers + tier;
}

/* Is a config on a tier available, and not larger than the whole tier? */
static inline int plan_candidate_ok(const struct plan_candidates *all, const struct plan_problem *problem, int config,
                                    int tier)
{
    return all->bytes[config] >= 0 && all->bytes[config] <= problem->capacity[tier] &&
           !isnan(all->utility[plan_cell(problem, config, tier)]);
}

double plan_candidate_utility(const struct plan_candidates *all, const struct plan_problem *problem,
                              struct plan_placement at);

/* Sets objective and fill from the placements. */
int plan_total(struct plan *plan, const struct plan_problem *problem, struct err *err) MUST_CHECK;

#endif
