/* dual.c - the oracle that evaluates L; the box that has all useful prices; Kelley's cutting planes inside a box; the
 * levels from a sample of the contexts to all of them. */
#include "planner/dual.h"

#include "base/rng.h"
#include "planner/master_lp.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SAMPLE = 4096, LARGE_SAMPLE = 65536, MAX_BOXES = 40, MAX_HALVINGS = 50 };
enum { MANY = 8 }; // knapsacks; with more, cuts that gain less than rounding loses are not worth their time
static const double sample_tolerance = 1e-7, full_tolerance = 1e-11, many_tolerance = 1e-8, smoothing = 0.3;

/* ---- L and its slope, over some contexts --------------------------------- */

struct oracle {
    const struct hull *h;
    struct sample sample;
    double capacity[PLAN_TIERS];  // scaled to the sample
    double tolerance;             // relative distance from the minimum of L
    struct restricted restricted; // of the sample, in the current box
};

/* Returns L at the prices; slope[d] = capacity - demand. */
static double oracle_evaluate(const struct oracle *o, const double *price, double *slope)
{
    double demand[PLAN_TIERS], bound = restricted_evaluate(&o->restricted, price, demand);

    for (int d = 0; d < o->h->knapsack.n; d++) {
        slope[d] = o->capacity[d] - demand[d];
        bound += price[d] * o->capacity[d];
    }
    return bound;
}

/* ---- boxes --------------------------------------------------------------- */

/* Limits each price: at the limit the knapsack has space for all demand even if all other knapsacks are closed, so no
 * price needs to be higher. */
static int first_box(struct oracle *o, struct box *box, struct err *err)
{
    double price[PLAN_TIERS], slope[PLAN_TIERS];
    int n = o->h->knapsack.n;

    for (int d = 0; d < n; d++) {
        box->low[d] = 0;
        box->high[d] = HUGE_VAL;
    }
    if (restricted_build(&o->restricted, &o->sample, box, NULL, err))
        return err->code;
    for (int d = 0; d < n; d++) {
        double low = 0, high = 1e-12;
        for (int e = 0; e < n; e++)
            price[e] = HUGE_VAL;
        for (int k = 0; k < 2 * MAX_HALVINGS; k++) {
            price[d] = high;
            oracle_evaluate(o, price, slope);
            if (slope[d] >= 0)
                break;
            low = high;
            high *= 8;
        }
        for (int k = 0; k < MAX_HALVINGS && high - low > 1e-3 * high; k++) {
            price[d] = (low + high) / 2;
            oracle_evaluate(o, price, slope);
            if (slope[d] < 0)
                low = price[d];
            else
                high = price[d];
        }
        box->high[d] = 1.05 * high; /* the price of the sample may be a little below that of all contexts */
    }
    return 0;
}

static void box_around(struct box *box, const double *price, const double *max_price, double share, int n_knapsacks)
{
    for (int d = 0; d < n_knapsacks; d++) {
        double reach = fmax(share * price[d], 1e-4 * max_price[d]);
        box->low[d] = fmax(price[d] - reach, 0);
        box->high[d] = price[d] + reach;
    }
}

/* ---- cutting planes -------------------------------------------------------- */

/* Keeps the plans of the mix: cuts with weight in the master. query: the prices of each cut. */
static void keep_mix(struct dual *dual, const struct master_lp *m, double (*query)[PLAN_TIERS])
{
    dual->n_plans = 0;
    for (int k = 0; k < m->n_cuts && dual->n_plans <= m->n_dims; k++) {
        if (m->weight[k] <= 1e-12)
            continue;
        memcpy(dual->plan_price[dual->n_plans], query[k], sizeof(query[k]));
        dual->weight[dual->n_plans++] = m->weight[k];
    }
}

/* Adds cuts until the master's lower bound meets L. query[k]: the prices of cut k. The master measures prices in units
 * of the box's width. */
static void add_cuts(struct dual *dual, const struct oracle *o, const struct box *box, struct master_lp *m,
                     double (*query)[PLAN_TIERS])
{
    static const double min_width = 1e-300;
    double width[PLAN_TIERS], at[PLAN_TIERS], slope[PLAN_TIERS], unit[PLAN_TIERS];
    int n = o->h->knapsack.n;

    for (int d = 0; d < n; d++) {
        width[d] = fmax(box->high[d] - box->low[d], min_width);
        unit[d] = 1;
        at[d] = (box->low[d] + box->high[d]) / 2;
    }
    master_lp_init(m, n, unit);
    dual->bound = HUGE_VAL;
    for (;;) {
        double bound = oracle_evaluate(o, at, slope), value = bound;
        for (int d = 0; d < n; d++) {
            value -= slope[d] * (at[d] - box->low[d]);
            slope[d] *= width[d];
        }
        memcpy(query[m->n_cuts], at, sizeof(at));
        if (bound < dual->bound) {
            dual->bound = bound;
            memcpy(dual->price, at, sizeof(at));
        }
        if (master_lp_add(m, value, slope) || dual->bound - m->theta <= o->tolerance * fabs(dual->bound) ||
            m->n_cuts == MASTER_LP_CUTS)
            return;
        for (int d = 0; d < n; d++) {
            double lowest = box->low[d] + m->at[d] * width[d];
            at[d] = (1 - smoothing) * lowest + smoothing * dual->price[d];
        }
    }
}

/* Minimises L in the box. *outside: the minimum is at the edge of the box (but not at price 0), so the true one may be
 * outside. */
static int minimise(struct dual *dual, const struct oracle *o, const struct box *box, bool *outside, struct err *err)
{
    struct master_lp *m = malloc(sizeof(*m));
    double(*query)[PLAN_TIERS] = calloc(MASTER_LP_CUTS, sizeof(*query));
    int code = m && query ? 0 : err_nomem(err);

    if (!code) {
        add_cuts(dual, o, box, m, query);
        keep_mix(dual, m, query);
        *outside = false;
        for (int d = 0; d < o->h->knapsack.n; d++)
            *outside |= m->at[d] >= 1 - 1e-9 || (m->at[d] <= 1e-9 && box->low[d] > 0);
    }
    free(m);
    free(query);
    return code;
}

/* ---- levels ------------------------------------------------------------------ */

/* Minimises over boxes around the prices in *dual until the minimum is inside the box. share: the first box's width. */
static int follow_minimum(struct dual *dual, struct oracle *o, const double *max_price, double share, struct err *err)
{
    int32_t *fixed = o->sample.context ? NULL : dual->fixed;
    bool outside = true;
    struct box box;

    for (int k = 0; k < MAX_BOXES && outside; k++, share *= 1.6) {
        box_around(&box, dual->price, max_price, share, o->h->knapsack.n);
        if (restricted_build(&o->restricted, &o->sample, &box, fixed, err) || minimise(dual, o, &box, &outside, err))
            return err->code;
    }
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Sets the contexts that the oracle evaluates: n of them, ascending and the same every time, or all when there are at
 * most n. A few repeats do no harm. list: space for n. */
static void draw_sample(struct oracle *o, int *list, int n)
{
    struct rng r = rng_new(20260521);
    int all = o->h->n_contexts;
    bool some = n < all;

    for (int k = 0; some && k < n; k++)
        list[k] = (int)rng_below(&r, (uint64_t)all);
    if (some)
        qsort(list, (size_t)n, sizeof(*list), compare_ints);
    o->sample = some ? (struct sample){ list, n } : (struct sample){ NULL, all };
    o->tolerance = some ? sample_tolerance : o->h->knapsack.n > MANY ? many_tolerance : full_tolerance;
    for (int d = 0; d < o->h->knapsack.n; d++) {
        double capacity = (double)o->h->knapsack.capacity[d];
        o->capacity[d] = some ? capacity * n / all : capacity;
    }
}

static int solve_levels(struct dual *dual, struct oracle *o, int *list, const double *start, struct err *err)
{
    static const int level[] = { SMALL_SAMPLE, LARGE_SAMPLE, INT_MAX };
    static const double share[] = { 1, 0.1, 0.02 };
    struct box box;
    int code;

    draw_sample(o, list, SMALL_SAMPLE);
    if (first_box(o, &box, err))
        return err->code;
    for (int d = 0; d < o->h->knapsack.n; d++)
        dual->price[d] = start ? fmin(start[d], box.high[d]) : box.high[d] / 2;
    int l = start ? 2 : 0;
    do {
        draw_sample(o, list, level[l]);
        code = follow_minimum(dual, o, box.high, share[l], err);
    } while (!code && o->sample.context && ++l);
    return code;
}

/* Without knapsacks there are no prices; the only plan takes the best candidate of every context. */
static int solve_unlimited(struct dual *dual, struct oracle *o, struct err *err)
{
    struct box none = { { 0 }, { 0 } };

    draw_sample(o, NULL, INT_MAX);
    if (restricted_build(&o->restricted, &o->sample, &none, dual->fixed, err))
        return err->code;
    dual->bound = oracle_evaluate(o, dual->price, none.low);
    dual->n_plans = 1;
    dual->weight[0] = 1;
    return 0;
}

int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err)
{
    struct oracle o = { .h = h, .restricted.h = h };
    int *list = malloc(LARGE_SAMPLE * sizeof(*list));

    *dual = (struct dual){ .h = h, .fixed = malloc(((size_t)h->n_contexts + 1) * sizeof(*dual->fixed)) };
    int code = !list || !dual->fixed ? err_nomem(err)
               : h->knapsack.n > 0   ? solve_levels(dual, &o, list, start, err)
                                     : solve_unlimited(dual, &o, err);
    restricted_release(&o.restricted);
    free(list);
    if (code)
        dual_release(dual);
    return code;
}

void dual_release(struct dual *dual)
{
    free(dual->fixed);
    *dual = (struct dual){ 0 };
}
