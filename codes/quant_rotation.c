/* quant_rotation.c - random orthogonal matrices: rows of about normal numbers, made orthogonal one after the other
 * (Gram and Schmidt), which is Q of a QR decomposition whose R has a positive diagonal. In double, with operations that
 * IEEE 754 rounds; a normal number is the sum of twelve uniform ones, so that no library's logarithm has a say.
 */
#include "codes/quant_rotation.h"

#include "base/rng.h"

#include <stdlib.h>

static double normal(struct rng *r)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rng_unit(r);
    return sum;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Row i, at right angles to the rows before it. */
static void make_row(double *row, int i, int n, struct rng *r)
{
    double *x = row + (size_t)i * (size_t)n;

    for (int j = 0; j < n; j++)
        x[j] = normal(r);
    for (int before = 0; before < i; before++) {
        const double *b = row + (size_t)before * (size_t)n;
        double along = dot(x, b, n);
        for (int j = 0; j < n; j++)
            x[j] -= along * b[j];
    }
    double norm = sqrt(dot(x, x, n));
    for (int j = 0; j < n; j++)
        x[j] /= norm;
}

static void put_matrices(float *to, double *q, int n)
{
    struct rng r = rng_new(42);

    for (int i = 0; i < n; i++)
        make_row(q, i, n, &r);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            float x = (float)(sqrt((double)n) * q[i * n + j]);
            to[j * n + i] = x;
            to[n * n + i * n + j] = x;
        }
    }
}

float *quant_rotation_new(const struct quant_row *q)
{
    int rest = q->columns - q->outliers;
    float *to = malloc((quant_rotation_size(q) + 1) * sizeof(*to));
    double *work = malloc((size_t)q->columns * (size_t)q->columns * sizeof(*work));

    if (to && work) {
        put_matrices(to, work, rest);
        put_matrices(to + 2 * rest * rest, work, q->outliers);
    }
    free(work);
    if (!work) {
        free(to);
        to = NULL;
    }
    return to;
}
