#include "planner/dual.h"

#include "base/rng.h"
#include "planner/master.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SAMPLE = 4096, LARGE_SAMPLE = 65536, BOXES = 40, HALVINGS = 50 };
static const double sample_tolerance = 1e-7, full_tolerance = 1e-11, smoothing = 0.3;

/* ---- L and its slope, over some contexts --------------------------------- */

/* What one block of contexts adds up to; summed in order, so that the result does not depend on the threads. */
struct partial {
    double value, demand[PLAN_TIERS];
};

struct oracle {
    const struct hull *h;
    const int *list; // contexts looked at, NULL: all
    int n;
    double capacity[PLAN_TIERS];
    double fixed_utility, fixed_demand[PLAN_TIERS]; // of the contexts that do not change in the box
    struct partial *part;                           // one per block of HULL_CHUNK contexts
    int calls;
};

static void add_block(const struct oracle *o, int block, const double *price, struct partial *sum)
{
    int last = (block + 1) * HULL_CHUNK < o->n ? (block + 1) * HULL_CHUNK : o->n;

    *sum = (struct partial){ 0 };
    for (int k = block * HULL_CHUNK; k < last; k++) {
        int context = o->list ? o->list[k] : k, i = context % HULL_CHUNK;
        const struct hull_chunk *c = hull_chunk_of(o->h, context);
        double value;
        int64_t best = hull_best(o->h, c, i, price, &value);
        sum->value += value;
        if (best != HULL_BASE)
            sum->demand[hull_point_tier(o->h, c, i, best)] += c->size[best];
    }
}

/* L at the price, and slope[d] = capacity less demand. */
static double oracle_ask(struct oracle *o, const double *price, double *slope)
{
    int n_blocks = (o->n + HULL_CHUNK - 1) / HULL_CHUNK, n_tiers = o->h->n_tiers;
    double bound = o->fixed_utility, lost = 0;

#pragma omp parallel for schedule(dynamic, 1) if (n_blocks > 1)
    for (int b = 0; b < n_blocks; b++)
        add_block(o, b, price, &o->part[b]);
    o->calls++;
    for (int d = 0; d < n_tiers; d++)
        slope[d] = o->capacity[d] - o->fixed_demand[d];
    for (int b = 0; b < n_blocks; b++) {
        double term = o->part[b].value - lost, next = bound + term;
        lost = (next - bound) - term;
        bound = next;
        for (int d = 0; d < n_tiers; d++)
            slope[d] -= o->part[b].demand[d];
    }
    for (int d = 0; d < n_tiers; d++)
        bound += price[d] * (o->capacity[d] - o->fixed_demand[d]);
    return bound;
}

/* ---- boxes --------------------------------------------------------------- */

struct box {
    double low[PLAN_TIERS], high[PLAN_TIERS];
};

/* No price needs to be above the one that clears its tier when all other tiers are closed. */
static void first_box(struct oracle *o, struct box *box)
{
    double price[PLAN_TIERS], slope[PLAN_TIERS];

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
        box->low[d] = 0;
        box->high[d] = 1.05 * high; /* the sample may clear a little lower than all contexts do */
    }
}

static void box_around(struct box *box, const double *price, const double *most, double share, int n_tiers)
{
    for (int d = 0; d < n_tiers; d++) {
        double reach = fmax(share * price[d], 1e-4 * most[d]);
        box->low[d] = fmax(price[d] - reach, 0);
        box->high[d] = price[d] + reach;
    }
}

/* ---- contexts that choose the same everywhere in a box --------------------- */

/* The best point of one tier at a price; HULL_BASE when none beats the base. */
static int64_t tier_best(const struct hull_chunk *c, const uint32_t *first, double base, double price, double *value)
{
    int64_t best = HULL_BASE;
    double last = -HUGE_VAL;

    *value = base;
    for (uint32_t k = first[0]; k < first[1]; k++) {
        double v = c->utility[k] - price * c->size[k];
        if (v <= last)
            break;
        last = v;
        if (v > *value) {
            *value = v;
            best = k;
        }
    }
    return best;
}

/* The option that wins at every price of the box: *fixed and 1, or 0. Compared at the box's worst corner, so it may be
 * missed, never wrong. */
static int find_fixed(const struct hull *h, const struct hull_chunk *c, int i, const struct box *box, int64_t *fixed)
{
    double sure[PLAN_TIERS], hope[PLAN_TIERS], most = c->base[i];
    int winner = -1;

    *fixed = HULL_BASE;
    for (int d = 0; d < h->n_tiers; d++) {
        const uint32_t *first = c->first + i * h->n_tiers + d;
        int64_t at_high = tier_best(c, first, c->base[i], box->high[d], &sure[d]);
        if (tier_best(c, first, c->base[i], box->low[d], &hope[d]) != at_high)
            return 0;
        if (at_high == HULL_BASE || sure[d] <= most)
            continue;
        most = sure[d];
        winner = d;
        *fixed = at_high;
    }
    for (int d = 0; d < h->n_tiers; d++)
        if (d != winner && hope[d] > (winner < 0 ? c->base[i] : most))
            return 0;
    return 1;
}

static void fix_contexts(struct oracle *o, int *core)
{
    double lost = 0;

    o->list = core;
    o->n = 0;
    o->fixed_utility = 0;
    memset(o->fixed_demand, 0, sizeof(o->fixed_demand));
    for (int context = 0; context < o->h->n_contexts; context++) {
        const struct hull_chunk *c = hull_chunk_of(o->h, context);
        int i = context % HULL_CHUNK;
        if (core[context] < 0) {
            int64_t best = -2 - (int64_t)core[context];
            best = best < 0 ? HULL_BASE : best;
            double term = (best == HULL_BASE ? c->base[i] : c->utility[best]) - lost, next = o->fixed_utility + term;
            lost = (next - o->fixed_utility) - term;
            o->fixed_utility = next;
            if (best != HULL_BASE)
                o->fixed_demand[hull_point_tier(o->h, c, i, best)] += c->size[best];
        } else {
            core[o->n++] = context;
        }
    }
}

/* Splits all contexts into the fixed, summed up, and the core, listed. core: room for all contexts. */
static void split(struct oracle *o, int *core, const struct box *box)
{
#pragma omp parallel for schedule(dynamic, 1) if (o->h->n_chunks > 1)
    for (int b = 0; b < o->h->n_chunks; b++) {
        const struct hull_chunk *c = &o->h->chunk[b];
        for (int i = 0; i < c->n; i++) {
            int64_t fixed;
            /* -1: fixed at its base; -2 - k: at point k; 0: core */
            core[b * HULL_CHUNK + i] = !find_fixed(o->h, c, i, box, &fixed) ? 0
                                       : fixed == HULL_BASE                 ? -1
                                                                            : (int)(-2 - fixed);
        }
    }
    fix_contexts(o, core);
}

/* ---- cutting planes -------------------------------------------------------- */

static void keep_support(struct dual *dual, const struct master *m, double (*asked)[PLAN_TIERS])
{
    dual->n_plans = 0;
    for (int k = 0; k < m->n_cuts && dual->n_plans <= m->n_dims; k++) {
        if (m->weight[k] <= 1e-12)
            continue;
        memcpy(dual->plan_price[dual->n_plans], asked[k], sizeof(asked[k]));
        dual->weight[dual->n_plans++] = m->weight[k];
    }
}

/* Minimises L in the box. Returns whether the minimum may lie outside: at a side of the box that is not price 0. Prices
 * are measured in units of the box's width. */
static int minimise(struct dual *dual, struct oracle *o, const struct box *box, double tolerance)
{
    static const double least_width = 1e-300;
    struct master *m = malloc(sizeof(*m));
    double(*asked)[PLAN_TIERS] = calloc(MASTER_CUTS, sizeof(*asked));
    double width[PLAN_TIERS], at[PLAN_TIERS], slope[PLAN_TIERS], unit[PLAN_TIERS];
    int n = o->h->n_tiers, outside = 0;

    if (!m || !asked) {
        free(m);
        free(asked);
        return -1;
    }
    for (int d = 0; d < n; d++) {
        width[d] = fmax(box->high[d] - box->low[d], least_width);
        unit[d] = 1;
        at[d] = (box->low[d] + box->high[d]) / 2;
    }
    master_init(m, n, unit);
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
        if (master_add(m, value, slope) || dual->bound - m->theta <= tolerance * fabs(dual->bound) ||
            m->n_cuts == MASTER_CUTS)
            break;
        for (int d = 0; d < n; d++) {
            double query = box->low[d] + m->at[d] * width[d];
            at[d] = (1 - smoothing) * query + smoothing * dual->price[d];
        }
    }
    keep_support(dual, m, asked);
    for (int d = 0; d < n; d++)
        outside |= m->at[d] >= 1 - 1e-9 || (m->at[d] <= 1e-9 && box->low[d] > 0);
    free(m);
    free(asked);
    return outside;
}

/* Minimises over boxes that follow the minimum until it lies inside one. `core` NULL: the oracle's list as it is. */
static int settle(struct dual *dual, struct oracle *o, int *core, const double *start, const double *most, double share,
                  double tolerance)
{
    struct box box;
    double at[PLAN_TIERS];

    memcpy(at, start, sizeof(at));
    for (int k = 0; k < BOXES; k++, share *= 1.6) {
        box_around(&box, at, most, share, o->h->n_tiers);
        if (core)
            split(o, core, &box);
        int outside = minimise(dual, o, &box, tolerance);
        if (outside <= 0)
            return outside;
        memcpy(at, dual->price, sizeof(at));
    }
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* n of all contexts, ascending, the same every time: Floyd's sampling is not needed, a few repeats do no harm. */
static void sample(int *list, int n, int n_contexts)
{
    struct rng r = rng_new(20260521);

    for (int k = 0; k < n; k++)
        list[k] = (int)rng_below(&r, (uint64_t)n_contexts);
    qsort(list, (size_t)n, sizeof(*list), compare_ints);
}

static void scale_capacity(struct oracle *o, int n)
{
    o->n = n;
    for (int d = 0; d < o->h->n_tiers; d++)
        o->capacity[d] = o->h->capacity[d] * n / o->h->n_contexts;
}

static int solve_levels(struct dual *dual, struct oracle *o, int *list, const double *start)
{
    static const int level[] = { SMALL_SAMPLE, LARGE_SAMPLE };
    static const double reach[] = { 1, 0.1, 0.02 };
    struct box box = { { 0 }, { 0 } };
    int n = o->h->n_contexts, first = n < SMALL_SAMPLE ? n : SMALL_SAMPLE, l = 0, failed = 0;

    o->list = n > first ? list : NULL;
    if (o->list)
        sample(list, first, n);
    scale_capacity(o, first);
    first_box(o, &box);
    double at[PLAN_TIERS] = { 0 };
    for (int d = 0; d < o->h->n_tiers; d++)
        at[d] = start ? fmin(start[d], box.high[d]) : box.high[d] / 2;
    if (start)
        l = 2;
    else if (n > first)
        for (; l < 2 && n > level[l] && !failed; l++) {
            sample(list, level[l], n);
            scale_capacity(o, level[l]);
            failed = settle(dual, o, NULL, at, box.high, reach[l], sample_tolerance) < 0;
            memcpy(at, dual->price, sizeof(at));
        }
    scale_capacity(o, n);
    return failed ? -1 : settle(dual, o, list, at, box.high, reach[l], full_tolerance);
}

static int oracle_init(struct oracle *o, const struct hull *h, struct err *err)
{
    size_t blocks = (size_t)h->n_chunks + LARGE_SAMPLE / HULL_CHUNK + 1;

    *o = (struct oracle){ .h = h, .n = h->n_contexts, .part = calloc(blocks, sizeof(*o->part)) };
    memcpy(o->capacity, h->capacity, sizeof(o->capacity));
    return o->part ? 0 : err_nomem(err);
}

/* L at any prices, over all contexts. */
static int dual_bound(const struct hull *h, const double *price, double *bound, struct err *err)
{
    struct oracle o;
    double slope[PLAN_TIERS];

    if (oracle_init(&o, h, err))
        return err->code;
    *bound = oracle_ask(&o, price, slope);
    free(o.part);
    return 0;
}

int dual_solve(struct dual *dual, const struct hull *h, const double *start, struct err *err)
{
    struct oracle o;
    int room = h->n_contexts > LARGE_SAMPLE ? h->n_contexts : LARGE_SAMPLE;
    int *list = calloc((size_t)room + 1, sizeof(*list));

    *dual = (struct dual){ 0 };
    if (!list || oracle_init(&o, h, err)) {
        free(list);
        return err_nomem(err);
    }
    /* Without finite tiers nothing has a price, and the one plan is everybody's best. */
    int failed = h->n_tiers > 0 ? solve_levels(dual, &o, list, start) : 0;
    if (h->n_tiers == 0) {
        dual->n_plans = 1;
        dual->weight[0] = 1;
    }
    free(list);
    free(o.part);
    return failed < 0 ? err_nomem(err) : dual_bound(h, dual->price, &dual->bound, err);
}
