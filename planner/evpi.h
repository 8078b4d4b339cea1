/* evpi.h - the value of knowing more about a context: the expected value of perfect information.
 *
 * The values of candidates are uncertain like their qualities: independent and normal. Choosing now brings the highest
 * mean; choosing after all is known brings the highest value, whose expectation is higher:
 *
 *     EVPI = E max(known, X_1, .., X_n) - max(known, E X_1, .., E X_n)        X_i ~ N(value_i, sd_i^2)
 *
 * Howard: Information value theory, IEEE Trans. Systems Science and Cybernetics 2 (1966).
 *
 * With values reduced by dual prices, the sum of EVPI over the contexts plus the gap between plan and bound is the
 * expected loss of a plan compared with one that knows everything, at any prices. Positively correlated values only
 * lower it (Slepian 1962).
 */
#ifndef EVP_EVPI_H
#define EVP_EVPI_H

struct evpi_candidate {
    double value, sd; // sd 0: certain
    double lowest;    // values below this are not allowed: quality below a floor; -HUGE_VAL: none
    double highest;   // of quality 1: a value above counts as this; HUGE_VAL: no limit
};

/* E max(known, X_1, .., X_n); a draw that is not allowed does not count. */
double expected_best(double known, const struct evpi_candidate *at, int n);

#endif
