/* belief.h - predicts a quality from few questions.
 *
 * The best of many noisy means is overrated (the winner's curse): a plan from raw means of six questions can be worse
 * than no compression at all. So each measured mean is drawn towards its config's mean over all contexts: the fewer
 * questions, the further. This is empirical Bayes with a normal model (Efron and Morris, "Data analysis using Stein's
 * estimator and its generalizations", JASA 1975), for each config separately:
 *
 *     quality of context c under config v       ~ N(mean[v], between[v])
 *     the mean of n questions' similarities     ~ N(that quality, within[v] / n)
 *
 * Pure arithmetic: no files, no table. Config 0 is the reference: its quality is exactly 1.
 */
#ifndef EVP_BELIEF_H
#define EVP_BELIEF_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Per config (V); NAN where it was never asked. */
struct belief {
    int n_configs;
    double *mean;    // over contexts
    double *between; // variance between contexts
    double *within;  // variance between the questions of a context
    double *doubt;   // variance of the error of `mean`; NULL: 0
};

/* Measurements of C contexts and V configs; each array is (C, V). */
struct belief_cells {
    int n_contexts, n_configs;
    const double *mean; // mean similarity; read where n > 0
    const double *std;  // standard deviation of the similarities (n - 1); NAN for n < 2
    const int32_t *n;   // number of questions; 0 or less: not asked
};

/* A predicted quality. */
struct believed {
    double quality, sd;
};

/* Fits *b; belief_release() frees it.
 *
 * within: pooled over the config's cells, and drawn towards that of all configs, which counts as three degrees of
 * freedom. mean, between: moments over the contexts that answered under every asked config (over all cells when there
 * is no such context), then four rounds of EM over all cells. between is then drawn towards the common ratio of between
 * to within over all configs, with weight 10 / (9 + contexts), because few contexts say little about a variance.
 *
 * A single context gives no estimate of `between`, so we add five pseudo-contexts with between = within / 10, the usual
 * ratio. The mean has an error of its own, whose variance is that of a mean of independent contexts, (between + within
 * / questions) / n; it enters a prediction as far as that leans on the mean.
 *
 * Where no cell of any config has two questions, within explains all variance of
 * a config's means, or with one context is 0.07, as usual. Returns 0 or ERR_NOMEM. */
int belief_fit(struct belief *b, const struct belief_cells *cells, struct err *err) MUST_CHECK;
void belief_release(struct belief *b); // zeroed is fine

/* Predicts the quality of one cell with mean `mean` over n questions; n 0: not asked, `mean` is not read. */
struct believed belief_of(const struct belief *b, int config, double mean, int n);

#endif
