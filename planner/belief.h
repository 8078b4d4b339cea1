/* belief.h - what is believed of a quality that few questions have measured.
 *
 * The best of many noisy means is overrated (the winner's curse): a plan from raw means of six questions can be worse
 * than not compressing at all. So each measured mean moves towards its config's mean over all contexts, the further,
 * the fewer questions it rests on. This is empirical Bayes with a normal model (Efron and Morris, "Data analysis using
 * Stein's estimator and its generalizations", JASA 1975), for each config on its own:
 *
 *     quality of context c under config v       ~ N(mean[v], between[v])
 *     the mean of n questions' similarities     ~ N(that quality, within[v] / n)
 *
 * Pure arithmetic: no files, no table. Config 0 is the reference: its quality is 1 and never in doubt.
 */
#ifndef EVP_BELIEF_H
#define EVP_BELIEF_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Of each config: NAN where it was never asked. (V) */
struct belief {
    int n_configs;
    double *mean;    // over contexts
    double *between; // variance between contexts
    double *within;  // variance between the questions of a context
};

/* What was measured: C contexts, V configs, each array (C, V). */
struct belief_cells {
    int n_contexts, n_configs;
    const double *mean;         // of the similarities; read where n > 0
    const double *std;          // their standard deviation, with n - 1; NAN below two
    const int32_t *n;           // how many; 0 or less: not asked
    const struct belief *prior; // of other contexts, of these configs; NULL: nothing was believed before
};

enum { BELIEF_PRIOR_CONTEXTS = 10, BELIEF_PRIOR_QUESTIONS = 12 }; // what a prior counts as

/* A quality as it is believed to be. */
struct believed {
    double quality, sd;
};

/* Fits *b, which belief_release() frees. within: pooled over the config's cells. mean and between: moments over the
 * contexts in which every config was asked that was asked at all (over all cells where there is no such context), then
 * four rounds of EM over all cells. between is then drawn towards the configs' common ratio to within, by 10 / (9 +
 * contexts), because few contexts say little of a variance. A prior takes the place of
 * the moments and counts, there and in EM, as BELIEF_PRIOR_CONTEXTS contexts with BELIEF_PRIOR_QUESTIONS questions;
 * configs that only the prior knows are as it says. Where no cell of a config has two questions, its contexts'
 * means vary as questions do, and between is 0. Returns 0 or ERR_NOMEM. */
int belief_fit(struct belief *b, const struct belief_cells *cells, struct err *err) MUST_CHECK;
void belief_release(struct belief *b); // zeroed is fine

/* What is believed of one cell with mean `mean` over n questions; n 0: not asked, `mean` is not read. */
struct believed belief_of(const struct belief *b, int config, double mean, int n);

#endif
