/* evpi.c - one integral per context: E max X = low + the integral of 1 - F(x) from low on; F is the product of the
 * candidates' distribution functions. Gauss-Legendre with 64 points over the range where F is neither 0 nor 1. */
#include "planner/evpi.h"

#include "planner/normal.h"

#include <math.h>

enum { HALF = 32 };                // of the points, which are symmetric
static const double far_off = 8.5; // standard deviations; the probability beyond is below 1e-16

static const double position[HALF] = {
    0.024350292663424429, 0.072993121787799042, 0.12146281929612056, 0.1696444204239928,  0.21742364374000708,
    0.26468716220876742,  0.31132287199021097,  0.35722015833766813, 0.40227015796399163, 0.44636601725346409,
    0.48940314570705296,  0.53127946401989457,  0.571895646202634,   0.61115535517239328, 0.64896547125465731,
    0.68523631305423327,  0.71988185017161077,  0.75281990726053194, 0.78397235894334139, 0.81326531512279754,
    0.84062929625258032,  0.86599939815409277,  0.88931544599511414, 0.91052213707850282, 0.92956917213193957,
    0.94641137485840277,  0.96100879965205377,  0.97332682778991098, 0.98333625388462598, 0.99101337147674429,
    0.99634011677195522,  0.99930504173577217
};
static const double weight[HALF] = {
    0.048690957009139751,  0.048575467441503456, 0.048344762234802954, 0.047999388596458317, 0.047540165714830301,
    0.04696818281621,      0.046284796581314375, 0.045491627927418114, 0.044590558163756545, 0.043583724529323464,
    0.042473515123653598,  0.041262563242623486, 0.03995374113272035,  0.038550153178615591, 0.037055128540240151,
    0.035472213256882323,  0.033805161837141787, 0.032057928354851453, 0.030234657072402495, 0.028339672614259702,
    0.026377469715054627,  0.024352702568710853, 0.022270173808383007, 0.020134823153530094, 0.017951715775697302,
    0.015726030476025082,  0.013463047896718231, 0.011168139460131466, 0.008846759826364391, 0.0065044579689796543,
    0.0041470332605629233, 0.0017832807216942152
};

/* The probability that a candidate's value is at most x; values below the floor count as none, those above the highest
 * as that. */
static double below(const struct evpi_candidate *c, double x)
{
    double z = ((x > c->lowest ? x : c->lowest) - c->value) / c->sd;

    return z > far_off || x >= c->highest ? 1 : z < -far_off ? 0 : normal_cdf(z);
}

/* The probability that any candidate is above x. */
static double above(const struct evpi_candidate *at, int n, double x)
{
    double f = 1;

    for (int i = 0; i < n && f > 0; i++)
        if (at[i].sd > 0)
            f *= below(&at[i], x);
    return 1 - f;
}

double expected_best(double known, const struct evpi_candidate *at, int n)
{
    double low = known, high = known, sum = 0;

    for (int i = 0; i < n; i++) {
        double spread = far_off * at[i].sd;
        if (at[i].sd > 0 ? at[i].value - spread >= at[i].lowest : at[i].value >= at[i].lowest)
            low = fmax(low, at[i].value - spread);
        if (at[i].sd > 0 || at[i].value >= at[i].lowest)
            high = fmax(high, fmin(at[i].value + spread, at[i].highest));
    }
    double middle = (high + low) / 2, half = (high - low) / 2;
    for (int k = 0; k < HALF && half > 0; k++)
        sum += weight[k] * (above(at, n, middle - half * position[k]) + above(at, n, middle + half * position[k]));
    return low + half * sum;
}
