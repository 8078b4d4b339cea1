/* aim.h - which answers are worth computing next: requests, by what they can change in a plan.
 *
 * A request asks n more questions over some configs of one context. Its worth is the knowledge gradient: how much
 * better the context's best placement is expected to be after the answers than before, at the plan's own prices and
 * under what is believed (planner/belief.h). It is computed in closed form, pair by pair: each config against the best
 * one now. A request costs a prefill, unless nothing of the sort is due, and so much per answer. The list holds the
 * requests that bring more than tau per cost, and tau is found by bisection, so that the list costs what it may.
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

/* What a context is to the aim. */
struct aim_context {
    size_t first;    // of its V cells in the arrays
    double scale;    // utility of a quality of 1: alpha * frequency
    double floor;    // lowest quality that may be placed; 0: any
    double visit;    // cost of a prefill
    double answer;   // cost of one answer
    int n_questions; // that may be asked over each config
};

struct aim_problem {
    const struct plan_problem *plan; // utilities as believed; floors left out
    const double *price;             // (T) utility per byte
    const struct belief *belief;
    const double *quality;                                       // (cells) believed
    const float *sd;                                             // (cells) of these beliefs
    const int32_t *asked;                                        // (cells) questions that they rest on; 0 or less: none
    double sure_z;                                               // a floor holds for a quality less so many of its sd
    struct aim_context (*context)(const void *arg, int context); // may be called from several threads
    const void *arg;
};

/* Asks n more questions over each of n_configs configs; one that has fewer left is asked those. */
struct aim_request {
    int context, n;
    size_t first; // of its configs in the list's
    int n_configs;
    double cost, worth; // what it costs; how much utility the answers are expected to bring
};

struct aim_list {
    struct aim_request *at; // by context
    int n, cap;
    struct aim_configs {
        uint16_t *at; // of all requests
        size_t n, cap;
    } configs;
    double cost, tau; // of the list; the utility that each cost of it must bring
    bool too_dear;    // it is empty because no request that is worth its cost is within the budget
};

struct aim_budget {
    double cost;    // of the list at most
    double min_tau; // a request that brings less is not worth asking
};

/* The requests of a list: the best for each context at the tau that spends the budget. Contexts that are alike to the
 * last digit share a tau: of those as many as the budget allows, the first ones. ERR_NOMEM. */
int aim_list_make(struct aim_list *list, const struct aim_problem *problem, const struct aim_budget *budget,
                  struct err *err) MUST_CHECK;
void aim_list_release(struct aim_list *list); // zeroed is fine

/* The expected loss of choosing now, against knowing everything, summed over the contexts (planner/evpi.h), of more
 * than 20,000 from an even sample. Reads neither belief nor asked. */
int aim_expected_loss(const struct aim_problem *problem, double *loss, struct err *err) MUST_CHECK;

/* The knowledge gradient of one pair: st (phi(g) + g Phi(g)) with g = behind / st, where `behind` is how much lower the
 * challenger's value is (negative or 0), and st the sd of the change that the answers make in the difference. */
double aim_pair_gradient(double st, double behind);

#endif
