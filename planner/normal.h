/* normal.h - the standard normal distribution. */
#ifndef EVP_NORMAL_H
#define EVP_NORMAL_H

#include <math.h>

static inline double normal_cdf(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752440);
}

static inline double normal_density(double z)
{
    return 0.39894228040143267794 * exp(-0.5 * z * z);
}

/* z with normal_cdf(z) = p, 0 < p < 1, to the last digits: by bisection. */
static inline double normal_quantile(double p)
{
    double low = -40, high = 40;

    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (normal_cdf(middle) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

#endif
