/* evpi.h - what knowing more of a context could bring: the expected value of perfect information.
 *
 * Candidates' values are doubted as their qualities are: independent and normal. Choosing now brings the highest mean;
 * choosing after all is known brings the highest value, which is more in expectation:
 *
 *     EVPI = E max(known, X_1, .., X_n) - max(known, E X_1, .., E X_n)        X_i ~ N(value_i, sd_i^2)
 *
 * Howard: Information value theory, IEEE Trans. Systems Science and Cybernetics 2 (1966). With values reduced by dual
 * prices the sum over the contexts, and the gap between plan and bound, are the expected loss of a plan against one
 * that knows everything, for any prices. Values that rise and fall together only lower it (Slepian 1962).
 */
#ifndef EVP_EVPI_H
#define EVP_EVPI_H

struct evpi_candidate {
    double value, sd; // sd 0: not in doubt
    double lowest;    // a value below this is barred, because its quality is below a floor; -HUGE_VAL: none is
};

/* E max(known, X_1, .., X_n); a candidate that turns out to be barred counts for nothing. */
double expected_best(double known, const struct evpi_candidate *at, int n);

#endif
