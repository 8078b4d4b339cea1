/* aim.h - which answers to compute next: those that can improve a plan most.
 *
 * A request asks n more questions over some configs of one context. It costs `visit` for the prefill and `answer` per
 * answer. Its worth is the knowledge gradient: the expected rise in the value of the context's best placement, at the
 * plan's prices and under the current predictions (planner/belief.h). It has a closed form, pair by pair: each config
 * against the best one now. The list holds the requests that bring more than tau per unit of cost; bisection finds the
 * tau that spends the budget.
 *
 * Frazier, Powell, Dayanik: A knowledge-gradient policy for sequential information collection, SIAM J. Control Optim.
 * 47 (2008); the pairwise form and the prices are ours. Pure arithmetic, the same for any number of threads.
 *
 *     struct aim_list list;
 *     if (aim_list_make(&list, &problem, &budget, err)) ...
 *     for each of list.n: list.at[i] asks list.at[i].n more questions over list.config[first ..]
 *     aim_list_release(&list);
 */
#ifndef EVP_AIM_H
#define EVP_AIM_H

#include "planner/belief.h"
#include "planner/plan.h"

#include <stddef.h>

/* One context. */
struct aim_context {
    size_t first;    // index of its V cells in the arrays
    double scale;    // utility of quality 1: alpha * frequency
    double floor;    // lowest allowed quality; 0: any
    double visit;    // cost of a prefill
    double answer;   // cost of one answer
    int n_questions; // questions that each config can be asked
};

struct aim_problem {
    const struct plan_problem *plan; // predicted utilities, without floors
    const double *price;             // (T) utility per byte
    const struct belief *belief;
    const double *quality; // (cells) predicted
    const float *sd;       // (cells) of the predictions
    const int32_t *asked;  // (cells) questions behind each prediction; 0 or less: none
    double sure_z;         // a floor is compared with quality - sure_z * sd
    struct aim_context (*context)(const void *arg, int context); // may be called from several threads
    const void *arg;
};

/* Asks n more questions over each of n_configs configs, or all that are left. */
struct aim_request {
    int context, n;
    size_t first; // index of its configs in the list's `configs`
    int n_configs;
    double cost, worth; // worth: the utility that the answers are expected to bring
};

struct aim_list {
    struct aim_request *at; // by context
    int n, cap;
    struct aim_configs {
        uint16_t *at; // of all requests
        size_t n, cap;
    } configs;
    double cost, tau; // of the list; utility that each unit of cost must bring
    bool too_dear;    // empty because each worthwhile request exceeds the budget
};

struct aim_budget {
    double cost;    // limit for the list
    double min_tau; // requests that bring less are left out
};

/* Makes a list: the best request for each context, at the tau that spends the budget. Contexts with exactly equal
 * numbers share a tau; when the budget does not cover all of them, the first ones are taken. ERR_NOMEM. */
int aim_list_make(struct aim_list *list, const struct aim_problem *problem, const struct aim_budget *budget,
                  struct err *err) MUST_CHECK;
void aim_list_release(struct aim_list *list); // zeroed is fine

/* The expected loss of choosing now, compared with knowing everything, summed over the contexts (planner/evpi.h). More
 * than 20,000 contexts are sampled evenly. Does not read belief or asked. */
int aim_expected_loss(const struct aim_problem *problem, double *loss, struct err *err) MUST_CHECK;

/* The knowledge gradient of one pair: st (phi(g) + g Phi(g)) with g = behind / st. behind: the challenger's value minus
 * the best one, 0 or negative. st: standard deviation of the change that the answers make in the difference. */
double aim_pair_gradient(double st, double behind);

#endif
