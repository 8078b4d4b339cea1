/* drift_test.h - has the mean similarity of a context's answers, or the share of facts that they keep, fallen below
 * what the plan relies on? Arithmetic alone.
 *
 * Null hypothesis: given everything before it, the expected similarity of a variant's answer to the uncompressed
 * cache's is at least `floor`, whatever its distribution on [0, 1]. A bet of strength b multiplies its wealth by 1 + b
 * / (1 - floor) * (floor - x) for each similarity x. Under the null hypothesis no bet can expect to grow, so neither
 * can their mean (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024:
 * the hedged capital process, one side). Looking after every answer, and stopping when one likes, changes nothing.
 *
 * Drift may begin on any night, so wealth below 1 is lifted to 1 before a night begins. What results is an e-detector
 * (Shin, Ramdas, Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", arXiv:2203.03532):
 * the expected number of nights before the wealth of a context without drift reaches L is at least L. With L = m / a
 * for each of m contexts, the expected number of nights before any of them is flagged wrongly is at least 1 / a.
 */
#ifndef EVP_DRIFT_TEST_H
#define EVP_DRIFT_TEST_H

enum { DRIFT_BETS = 3 };

struct drift_test {
    double wealth[DRIFT_BETS]; // of a weak, a middling and a strong bet
};

/* What the plan relies on, less its own doubt: predicted - 2 sd, at most 0.999. */
double drift_floor(double predicted, double sd);

/* Between two nights; a zeroed struct is a context that was never tested. */
void drift_test_night(struct drift_test *t);

/* One similarity, clamped to [0, 1]. */
void drift_test_see(struct drift_test *t, double floor, double similarity);

double drift_test_wealth(const struct drift_test *t); // the mean

#endif
