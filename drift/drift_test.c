/* drift_test.c - three bets against a mean. */
#include "drift/drift_test.h"

#include <math.h>

/* A drift of .4 is seen soonest with the strong bet, a small or noisy one with the weak. 1 would lose all its wealth on
 * one similarity of 1. */
static const double bets[DRIFT_BETS] = { 0.1, 0.3, 0.9 };

double drift_floor(double predicted, double sd)
{
    return fmin(predicted - 2 * sd, 0.999);
}

double drift_test_wealth(const struct drift_test *t)
{
    double sum = 0;

    for (int k = 0; k < DRIFT_BETS; k++)
        sum += t->wealth[k];
    return sum / DRIFT_BETS;
}

void drift_test_night(struct drift_test *t)
{
    if (drift_test_wealth(t) >= 1)
        return;
    for (int k = 0; k < DRIFT_BETS; k++)
        t->wealth[k] = 1;
}

void drift_test_see(struct drift_test *t, double floor, double similarity)
{
    double x = fmin(fmax(similarity, 0), 1);

    for (int k = 0; k < DRIFT_BETS; k++)
        t->wealth[k] *= 1 + bets[k] / (1 - floor) * (floor - x);
}
