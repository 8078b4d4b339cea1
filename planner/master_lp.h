/* master_lp.h - the small linear program of the cutting-plane method.
 *
 *     min theta   with  theta >= value_k + sum_d at_d * slope_kd  for every cut k,  0 <= at_d <= width_d
 *
 * Solved as its dual, the Dantzig-Wolfe master: n_dims + 1 rows, one column per cut, primal simplex on a dense inverse,
 * starting from the last basis. The columns' weights are the weights of the cuts' plans in the mix.
 */
#ifndef EVP_MASTER_LP_H
#define EVP_MASTER_LP_H

#include "planner/plan.h"

enum { MASTER_LP_CUTS = 256 };

struct master_lp {
    int n_dims, n_cuts;
    double width[PLAN_TIERS];
    double value[MASTER_LP_CUTS], slope[MASTER_LP_CUTS][PLAN_TIERS];
    /* solution */
    double theta, at[PLAN_TIERS], weight[MASTER_LP_CUTS];
    /* private: the basis and its inverse. Columns: k: cut k; MASTER_LP_CUTS + d: slack of row d + 1; MASTER_LP_CUTS +
     * n_dims + d: width of dimension d */
    int basis[PLAN_TIERS + 1];
    double inverse[PLAN_TIERS + 1][PLAN_TIERS + 1];
};

void master_lp_init(struct master_lp *m, int n_dims, const double *width);

/* Adds a cut and solves again. Returns -1 and changes nothing when there are MASTER_LP_CUTS already, else 0. */
int master_lp_add(struct master_lp *m, double value, const double *slope);

/* The two halves of master_lp_add(), to add several cuts before the next solution. */
int master_lp_append(struct master_lp *m, double value, const double *slope);
void master_lp_solve(struct master_lp *m); // needs a cut

#endif
