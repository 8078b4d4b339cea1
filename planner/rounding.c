/* rounding.c - rounds the fractional plan, the dual's mix, to a plan by error diffusion.
 *
 * Most contexts have the same candidate in every plan of the mix. The others are assigned one after another: each takes
 * the candidate of one of the plans, such that the running difference between placed bytes and the mix's bytes in each
 * knapsack stays closest to zero.
 */
#include "planner/incumbent.h"

#include "base/parallel.h"

#include <math.h>

enum { UNASSIGNED = -2 }; // a value of candidate.knapsack

/* Chooses among a context's candidates in the plans. error (D): the running differences in bytes. */
static struct candidate diffuse(const struct incumbent *x, const struct candidate *of, double *error)
{
    const struct dual *dual = x->dual;
    double mean[PLAN_TIERS] = { 0 }, min = HUGE_VAL;
    int best = 0, n = x->h->knapsack.n;

    for (int k = 0; k < dual->n_plans; k++)
        if (of[k].knapsack >= 0)
            mean[of[k].knapsack] += dual->weight[k] * (double)of[k].bytes;
    for (int k = 0; k < dual->n_plans; k++) {
        double sum = 0;
        for (int d = 0; d < n; d++) {
            double e = (error[d] - mean[d] + (of[k].knapsack == d ? (double)of[k].bytes : 0)) /
                       ((double)x->h->knapsack.capacity[d] + 1);
            sum += e * e;
        }
        if (sum < min) {
            min = sum;
            best = k;
        }
    }
    for (int d = 0; d < n; d++)
        error[d] += (of[best].knapsack == d ? (double)of[best].bytes : 0) - mean[d];
    return of[best];
}

/* Finds a context's points in the plans of the mix. Are they all the same? */
static bool plan_points(const struct incumbent *x, int context, int64_t *point)
{
    const struct hull_chunk *c = hull_chunk_of(x->h, context);
    double value;
    bool same = true;

    for (int k = 0; k < x->dual->n_plans; k++) {
        point[k] = hull_best(x->h, c, context % HULL_CHUNK, x->dual->plan_price[k], &value);
        same &= point[k] == point[0];
    }
    return same;
}

/* Assigns the contexts of a chunk on which all plans agree. */
static void assign_chunk(void *arg, int chunk)
{
    struct incumbent *x = arg;
    int first = chunk * HULL_CHUNK;

    for (int i = first; i < first + x->h->chunk[chunk].n; i++) {
        int64_t point[PLAN_TIERS + 1] = { x->dual->fixed[i] };
        x->at[i].knapsack = UNASSIGNED;
        if (point[0] != RESTRICTED_OPEN || plan_points(x, i, point))
            x->at[i] = hull_candidate(x->h, i, point[0]);
    }
}

void incumbent_round(struct incumbent *x)
{
    double error[PLAN_TIERS] = { 0 };
    int n = x->h->n_contexts;

    parallel_do(parallel_threads(), x->h->n_chunks, assign_chunk, x);
    for (int i = 0; i < n; i++) {
        int64_t point[PLAN_TIERS + 1];
        struct candidate of[PLAN_TIERS + 1];
        if (x->at[i].knapsack == UNASSIGNED) {
            plan_points(x, i, point);
            for (int k = 0; k < x->dual->n_plans; k++)
                of[k] = hull_candidate(x->h, i, point[k]);
            x->at[i] = diffuse(x, of, error);
        }
        if (x->at[i].knapsack >= 0)
            x->free[x->at[i].knapsack] -= x->at[i].bytes;
    }
}
