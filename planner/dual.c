#include "planner/dual.h"

#include "base/rng.h"
#include "planner/master_lp.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SAMPLE = 4096, LARGE_SAMPLE = 65536, BOXES = 40, HALVINGS = 50 };
static const double sample_tolerance = 1e-7, full_tolerance = 1e-11, smoothing = 0.3;

/* ---- L and its slope, over some contexts --------------------------------- */

struct oracle {
    const struct hull *h;
    const int *list; // contexts looked at, NULL: all
    int n;
    double capacity[PLAN_TIERS];  // scaled to n contexts
    struct restricted restricted; // what the present box leaves open of them
};

/* L at the price, and slope[d] = capacity less demand. */
static double oracle_ask(const struct oracle *o, const double *price, double *slope)
{
    double demand[PLAN_TIERS], bound = restricted_ask(&o->restricted, price, demand);

    for (int d = 0; d < o->h->n_tiers; d++) {
        slope[d] = o->capacity[d] - demand[d];
        bound += price[d] * o->capacity[d];
    }
    return bound;
}

/* ---- boxes --------------------------------------------------------------- */

/* No price needs to be above the one that clears its tier when all other tiers are closed. */
static int first_box(struct oracle *o, struct box *box, struct err *err)
{
    double price[PLAN_TIERS], slope[PLAN_TIERS];

    for (int d = 0; d < o->h->n_tiers; d++) {
        box->low[d] = 0;
        box->high[d] = HUGE_VAL;
    }
    if (restricted_build(&o->restricted, o->h, o->list, o->n, box, NULL, err))
        return err->code;
    for (int d = 0; d < o->h->n_tiers; d++) {
        double low = 0, high = 1e-12;
        for (int e = 0; e < o->h->n_tiers; e++)
            price[e] = HUGE_VAL;
        for (int k = 0; k < 2 * HALVINGS; k++) {
            price[d] = high;
            oracle_ask(o, price, slope);
            if (slope[d] >= 0)
                break;
            low = high;
            high *= 8;
        }
        for (int k = 0; k < HALVINGS && high - low > 1e-3 * high; k++) {
            price[d] = (low + high) / 2;
            oracle_ask(o, price, slope);
            if (slope[d] < 0)
                low = price[d];
            else
                high = price[d];
        }
        box->high[d] = 1.05 * high; /* the sample may clear a little lower than all contexts do */
    }
    return 0;
}

static void box_around(struct box *box, const double *price, const double *most, double share, int n_tiers)
{
    for (int d = 0; d < n_tiers; d++) {
        double reach = fmax(share * price[d], 1e-4 * most[d]);
        box->low[d] = fmax(price[d] - reach, 0);
        box->high[d] = price[d] + reach;
    }
}

/* ---- cutting planes -------------------------------------------------------- */

static void keep_support(struct dual *dual, const struct master_lp *m, double (*asked)[PLAN_TIERS])
{
    dual->n_plans = 0;
    for (int k = 0; k < m->n_cuts && dual->n_plans <= m->n_dims; k++) {
        if (m->weight[k] <= 1e-12)
            continue;
        memcpy(dual->plan_price[dual->n_plans], asked[k], sizeof(asked[k]));
        dual->weight[dual->n_plans++] = m->weight[k];
    }
}

/* Minimises L in the box. *outside: may the minimum lie at a side of the box that is not price 0? Prices are measured
 * in units of the box's width. */
static int minimise(struct dual *dual, const struct oracle *o, const struct box *box, double tolerance, bool *outside,
                    struct err *err)
{
    static const double least_width = 1e-300;
    struct master_lp *m = malloc(sizeof(*m));
    double(*asked)[PLAN_TIERS] = calloc(MASTER_LP_CUTS, sizeof(*asked));
    double width[PLAN_TIERS], at[PLAN_TIERS], slope[PLAN_TIERS], unit[PLAN_TIERS];
    int n = o->h->n_tiers;

    if (!m || !asked) {
        free(m);
        free(asked);
        return err_nomem(err);
    }
    for (int d = 0; d < n; d++) {
        width[d] = fmax(box->high[d] - box->low[d], least_width);
        unit[d] = 1;
        at[d] = (box->low[d] + box->high[d]) / 2;
    }
    master_lp_init(m, n, unit);
    dual->bound = HUGE_VAL;
    for (;;) {
        double bound = oracle_ask(o, at, slope), value = bound;
        for (int d = 0; d < n; d++) {
            value -= slope[d] * (at[d] - box->low[d]);
            slope[d] *= width[d];
        }
        memcpy(asked[m->n_cuts], at, sizeof(at));
        if (bound < dual->bound) {
            dual->bound = bound;
            memcpy(dual->price, at, sizeof(at));
        }
        if (master_lp_add(m, value, slope) || dual->bound - m->theta <= tolerance * fabs(dual->bound) ||
            m->n_cuts == MASTER_LP_CUTS)
            break;
        for (int d = 0; d < n; d++) {
            double query = box->low[d] + m->at[d] * width[d];
            at[d] = (1 - smoothing) * query + smoothing * dual->price[d];
        }
    }
    keep_support(dual, m, asked);
    *outside = false;
    for (int d = 0; d < n; d++)
        *outside |= m->at[d] >= 1 - 1e-9 || (m->at[d] <= 1e-9 && box->low[d] > 0);
    free(m);
    free(asked);
    return 0;
}

/* Minimises over boxes that follow the minimum until it lies inside one, from the prices in dual. */
static int settle(struct dual *dual, struct oracle *o, const double *most, double share, double tolerance,
                  struct err *err)
{
    int32_t *fixed = o->list ? NULL : dual->fixed;
    bool outside = true;
    struct box box;

    for (int k = 0; k < BOXES && outside; k++, share *= 1.6) {
        box_around(&box, dual->price, most, share, o->h->n_tiers);
        if (restricted_build(&o->restricted, o->h, o->list, o->n, &box, fixed, err) ||
            minimise(dual, o, &box, tolerance, &outside, err))
            return err->code;
    }
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Has the oracle ask n of all contexts, or all when there are no more. Ascending, the same every time; a few repeats do
 * no harm. */
static void look_at(struct oracle *o, int *list, int n)
{
    struct rng r = rng_new(20260521);
    int all = o->h->n_contexts;

    o->n = n < all ? n : all;
    o->list = n < all ? list : NULL;
    for (int k = 0; o->list && k < n; k++)
        list[k] = (int)rng_below(&r, (uint64_t)all);
    if (o->list)
        qsort(list, (size_t)n, sizeof(*list), compare_ints);
    for (int d = 0; d < o->h->n_tiers; d++)
        o->capacity[d] = o->list ? o->h->capacity[d] * n / all : o->h->capacity[d];
}

static int solve_levels(struct dual *dual, struct oracle *o, int *list, const double *start, struct err *err)
{
    static const int level[] = { SMALL_SAMPLE, LARGE_SAMPLE, INT_MAX };
    static const double reach[] = { 1, 0.1, 0.02 };
    struct box box;
    int code;

    look_at(o, list, SMALL_SAMPLE);
    if (first_box(o, &box, err))
        return err->code;
    for (int d = 0; d < o->h->n_tiers; d++)
        dual->price[d] = start ? fmin(start[d], box.high[d]) : box.high[d] / 2;
    int l = start ? 2 : 0;
    do {
        look_at(o, list, level[l]);
        code = settle(dual, o, box.high, reach[l], o->list ? sample_tolerance : full_tolerance, err);
    } while (!code && o->list && ++l);
    return code;
}

/* Without finite tiers nothing has a price, and the one plan is everybody's best. */
static int solve_free(struct dual *dual, struct oracle *o, struct err *err)
{
    struct box none = { { 0 }, { 0 } };

    look_at(o, NULL, INT_MAX);
    if (restricted_build(&o->restricted, o->h, NULL, o->n, &none, dual->fixed, err))
        return err->code;
    dual->bound = oracle_ask(o, dual->price, none.low);
    dual->n_plans = 1;
    dual->weight[0] = 1;
    return 0;
}

int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err)
{
    struct oracle o = { .h = h };
    int *list = malloc(LARGE_SAMPLE * sizeof(*list));

    *dual = (struct dual){ .fixed = malloc(((size_t)h->n_contexts + 1) * sizeof(*dual->fixed)) };
    int code = !list || !dual->fixed ? err_nomem(err)
               : h->n_tiers > 0      ? solve_levels(dual, &o, list, start, err)
                                     : solve_free(dual, &o, err);
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
