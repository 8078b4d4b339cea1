/* sample.c - weights are relative to the largest, so that none overflows; their sum is a double, added in the order of
 * the later search. */
#include "engine/transformer/sample.h"

#include <math.h>
#include <stdbool.h>

/* The lowest id of the largest logit; -1: a logit is not finite. */
static int32_t largest(const float *logit, int n)
{
    int32_t best = 0;
    bool finite = true;

    for (int i = 0; i < n; i++) {
        finite &= isfinite(logit[i]) != 0;
        best = logit[i] > logit[best] ? i : best;
    }
    return finite ? best : -1;
}

int32_t sample_token(float *logit, int n, double temperature, double unit)
{
    const int32_t best = largest(logit, n);
    double sum = 0, below = 0;

    if (best < 0)
        return -1;
    const float top = logit[best];
    for (int i = 0; i < n; i++) {
        logit[i] = expf((float)((double)(logit[i] - top) / temperature));
        sum += (double)logit[i];
    }
    for (int i = 0; i < n; i++) {
        below += (double)logit[i];
        if (below > unit * sum)
            return i;
    }
    return best; // unit * sum was rounded up to the sum
}
