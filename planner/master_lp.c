/* master_lp.c - the revised simplex method. The first cut with slacks is a basis; each further cut is a column that may
 * enter it. */
#include "planner/master_lp.h"

#include <math.h>
#include <string.h>

enum { MAX_PIVOTS = 2000, BLAND = 200 }; /* more than ever needed; from BLAND on, Bland's rule, which cannot cycle */

void master_lp_init(struct master_lp *m, int n_dims, const double *width)
{
    m->n_dims = n_dims;
    m->n_cuts = 0;
    memcpy(m->width, width, (size_t)n_dims * sizeof(*width));
}

/* An entry of the constraint matrix. Row 0 sums the weights to 1; row d + 1 keeps the mix within dimension d. */
static double coefficient(const struct master_lp *m, int column, int row)
{
    if (column < MASTER_LP_CUTS)
        return row == 0 ? 1 : -m->slope[column][row - 1];
    int d = (column - MASTER_LP_CUTS) % m->n_dims;
    return row != d + 1 ? 0 : column < MASTER_LP_CUTS + m->n_dims ? 1 : -1;
}

/* A column's coefficient in the objective, which is maximised. */
static double objective(const struct master_lp *m, int column)
{
    if (column < MASTER_LP_CUTS)
        return m->value[column];
    return column < MASTER_LP_CUTS + m->n_dims ? 0 : -m->width[column - MASTER_LP_CUTS - m->n_dims];
}

/* Starts with the first cut, and a slack or a width in every other row: a basis without arithmetic. */
static void first_basis(struct master_lp *m)
{
    int rows = m->n_dims + 1;

    for (int r = 0; r < rows; r++)
        memset(m->inverse[r], 0, (size_t)rows * sizeof(**m->inverse));
    m->basis[0] = 0;
    m->inverse[0][0] = 1;
    for (int r = 1; r < rows; r++) {
        int overloaded = -m->slope[0][r - 1] > 0; /* the width's column takes the excess */
        double sign = overloaded ? -1 : 1;
        m->basis[r] = MASTER_LP_CUTS + (overloaded ? m->n_dims : 0) + r - 1;
        m->inverse[r][r] = sign;
        m->inverse[r][0] = sign * m->slope[0][r - 1];
    }
}

static void dual_prices(const struct master_lp *m, double *y)
{
    int rows = m->n_dims + 1;

    for (int c = 0; c < rows; c++) {
        y[c] = 0;
        for (int r = 0; r < rows; r++)
            y[c] += objective(m, m->basis[r]) * m->inverse[r][c];
    }
}

/* The gain in the objective per unit of a column. Called for every column at every step, so it skips a column's zeros.
 * */
static double reduced_profit(const struct master_lp *m, int column, const double *y)
{
    if (column >= MASTER_LP_CUTS) {
        int d = column - MASTER_LP_CUTS;
        return d < m->n_dims ? -y[d + 1] : y[d - m->n_dims + 1] - m->width[d - m->n_dims];
    }
    double g = m->value[column] - y[0];

    for (int d = 0; d < m->n_dims; d++)
        g += y[d + 1] * m->slope[column][d];
    return g;
}

/* The column that enters the basis: the highest reduced profit, or the first positive one (Bland's rule); -1: none. */
static int entering(const struct master_lp *m, const double *y, int bland)
{
    double max = 1e-11 * (fabs(y[0]) + 1);
    int best = -1, last = MASTER_LP_CUTS + 2 * m->n_dims;

    for (int c = 0; c < last; c++) {
        if (c == m->n_cuts)
            c = MASTER_LP_CUTS;
        double g = reduced_profit(m, c, y);
        if (g <= max)
            continue;
        best = c;
        if (bland)
            break;
        max = g;
    }
    return best;
}

/* The row that leaves the basis: the smallest ratio, ties to the lower column; -1: none. The right-hand side is the
 * first unit vector. */
static int leaving(const struct master_lp *m, const double *column)
{
    int best = -1;
    double min = HUGE_VAL;

    for (int r = 0; r <= m->n_dims; r++) {
        if (column[r] <= 1e-12)
            continue;
        double ratio = fmax(m->inverse[r][0], 0) / column[r];
        if (ratio < min || (ratio <= min && m->basis[r] < m->basis[best])) {
            min = ratio;
            best = r;
        }
    }
    return best;
}

static void pivot(struct master_lp *m, int row, int column, const double *direction)
{
    int rows = m->n_dims + 1;

    for (int c = 0; c < rows; c++)
        m->inverse[row][c] /= direction[row];
    for (int r = 0; r < rows; r++) {
        if (r == row)
            continue;
        for (int c = 0; c < rows; c++)
            m->inverse[r][c] -= direction[r] * m->inverse[row][c];
    }
    m->basis[row] = column;
}

void master_lp_solve(struct master_lp *m)
{
    double y[PLAN_TIERS + 1], direction[PLAN_TIERS + 1];
    int rows = m->n_dims + 1;

    for (int step = 0; step < MAX_PIVOTS; step++) {
        dual_prices(m, y);
        int column = entering(m, y, step > BLAND);
        if (column < 0)
            break;
        for (int r = 0; r < rows; r++) {
            direction[r] = 0;
            for (int c = 0; c < rows; c++)
                direction[r] += m->inverse[r][c] * coefficient(m, column, c);
        }
        int row = leaving(m, direction);
        if (row < 0)
            break;
        pivot(m, row, column, direction);
    }
    dual_prices(m, y);
    m->theta = y[0];
    for (int d = 0; d < m->n_dims; d++)
        m->at[d] = fmin(fmax(y[d + 1], 0), m->width[d]);
    memset(m->weight, 0, (size_t)m->n_cuts * sizeof(*m->weight));
    for (int r = 0; r < rows; r++)
        if (m->basis[r] < MASTER_LP_CUTS)
            m->weight[m->basis[r]] = fmax(m->inverse[r][0], 0);
}

int master_lp_append(struct master_lp *m, double value, const double *slope)
{
    if (m->n_cuts == MASTER_LP_CUTS)
        return -1;
    m->value[m->n_cuts] = value;
    memcpy(m->slope[m->n_cuts++], slope, (size_t)m->n_dims * sizeof(*slope));
    if (m->n_cuts == 1)
        first_basis(m);
    return 0;
}

int master_lp_add(struct master_lp *m, double value, const double *slope)
{
    if (master_lp_append(m, value, slope))
        return -1;
    master_lp_solve(m);
    return 0;
}
