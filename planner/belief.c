/* belief.c - fits one config after another. Every sum goes over the contexts in order, so the numbers are the same
 * every time. */
#include "planner/belief.h"

#include <math.h>
#include <stdlib.h>

enum { EM_ROUNDS = 4 };
enum { USUAL_CONTEXTS = 5, POOL_FREEDOM = 3 }; // as which the usual ratio, and the variance of all configs, count
static const double VARIANCE_MAX = 0.25;       // the largest variance of numbers from 0 to 1
static const double USUAL_RATIO = 0.1;         // of between to within
static const double USUAL_WITHIN = 0.07;       // where no two answers can be compared

static size_t cell_of(const struct belief_cells *cells, int context, int config)
{
    return (size_t)context * (size_t)cells->n_configs + (size_t)config;
}

static bool is_asked(const struct belief_cells *cells, int context, int config)
{
    size_t cell = cell_of(cells, context, config);

    return cells->n[cell] > 0 && !isnan(cells->mean[cell]); // a cell that breaks a rule has no mean
}

struct believed belief_of(const struct belief *b, int config, double mean, int n)
{
    double between = b->between[config], within = b->within[config], doubt = b->doubt ? b->doubt[config] : 0;

    if (n <= 0)
        return (struct believed){ b->mean[config], sqrt(between + doubt) };
    double noise = between + within / n, weight = noise > 0 ? between / noise : 1;
    return (struct believed){ fmin(b->mean[config] + weight * (mean - b->mean[config]), 1),
                              sqrt(between * (1 - weight) + (1 - weight) * (1 - weight) * doubt) };
}

/* ---- moments --------------------------------------------------------------- */

/* complete[c]: all asked configs were asked in context c. Without such a context all count as complete. */
static void find_complete(const struct belief_cells *cells, const bool *asked, bool *complete)
{
    bool any = false;

    for (int c = 0; c < cells->n_contexts; c++) {
        complete[c] = true;
        for (int v = 0; v < cells->n_configs; v++)
            complete[c] = complete[c] && (!asked[v] || is_asked(cells, c, v));
        any = any || complete[c];
    }
    for (int c = 0; c < cells->n_contexts && !any; c++)
        complete[c] = true;
}

/* The variance of similarities within the cells of a config, and its degrees of freedom; 0: no cell has two
 * questions. */
static double pooled_within(const struct belief_cells *cells, int v, double *freedom)
{
    double squares = 0;

    *freedom = 0;
    for (int c = 0; c < cells->n_contexts; c++) {
        size_t cell = cell_of(cells, c, v);
        if (!is_asked(cells, c, v) || cells->n[cell] < 2)
            continue;
        squares += (cells->n[cell] - 1) * cells->std[cell] * cells->std[cell];
        *freedom += cells->n[cell] - 1;
    }
    return *freedom > 0 ? squares / *freedom : 0;
}

/* Sets within of all asked configs, each drawn towards that of all; NAN: no cell of any config has two questions. */
static void fit_within(struct belief *b, const struct belief_cells *cells, const bool *asked)
{
    double squares = 0, all = 0, freedom;

    for (int v = 1; v < b->n_configs; v++) {
        squares += asked[v] ? pooled_within(cells, v, &freedom) * freedom : 0;
        all += asked[v] ? freedom : 0;
    }
    for (int v = 1; v < b->n_configs; v++)
        if (asked[v]) {
            double own = pooled_within(cells, v, &freedom);
            b->within[v] = (freedom * own + POOL_FREEDOM * squares / all) / (freedom + POOL_FREEDOM);
        }
}

static void fit_moments(struct belief *b, const struct belief_cells *cells, const bool *complete, int v)
{
    double sum = 0, squares = 0, per_question = 0, n = 0;

    for (int c = 0; c < cells->n_contexts; c++)
        if (complete[c] && is_asked(cells, c, v)) {
            sum += cells->mean[cell_of(cells, c, v)];
            per_question += 1.0 / cells->n[cell_of(cells, c, v)];
            n++;
        }
    b->mean[v] = sum / n;
    for (int c = 0; c < cells->n_contexts; c++)
        if (complete[c] && is_asked(cells, c, v)) {
            double off = cells->mean[cell_of(cells, c, v)] - b->mean[v];
            squares += off * off;
        }
    double variance = n > 1 ? squares / (n - 1) : 0;
    if (isnan(b->within[v]))
        b->within[v] = n > 1 ? variance * n / per_question : USUAL_WITHIN;
    b->between[v] = fmax(0, variance - b->within[v] * per_question / n);
}

/* ---- expectation-maximisation ---------------------------------------------- */

static void refine(struct belief *b, const struct belief_cells *cells, int v)
{
    double sum = 0, squares = 0;
    struct belief old = *b;
    int n = 0;

    for (int c = 0; c < cells->n_contexts; c++)
        if (is_asked(cells, c, v)) {
            sum += belief_of(&old, v, cells->mean[cell_of(cells, c, v)], cells->n[cell_of(cells, c, v)]).quality;
            n++;
        }
    double mean = sum / n;
    for (int c = 0; c < cells->n_contexts; c++)
        if (is_asked(cells, c, v)) {
            struct believed is = belief_of(&old, v, cells->mean[cell_of(cells, c, v)], cells->n[cell_of(cells, c, v)]);
            squares += is.sd * is.sd + (is.quality - mean) * (is.quality - mean);
        }
    b->mean[v] = mean;
    b->between[v] = squares / n;
}

/* ---- one scale for all configs --------------------------------------------- */

static int count_asked(const struct belief_cells *cells, int v)
{
    int n = 0;

    for (int c = 0; c < cells->n_contexts; c++)
        n += is_asked(cells, c, v);
    return n;
}

/* Draws each config's `between` towards within * (sum of `between` / sum of `within` over all configs). */
static void pool_scale(struct belief *b, const struct belief_cells *cells, const bool *asked)
{
    double between = 0, within = 0;

    for (int v = 1; v < b->n_configs; v++)
        if (asked[v]) {
            between += b->between[v];
            within += b->within[v];
        }
    for (int v = 1; v < b->n_configs && within > 0; v++)
        if (asked[v]) {
            double share = 10.0 / (9 + count_asked(cells, v)), pooled = between * b->within[v] / within;
            b->between[v] = fmin((1 - share) * b->between[v] + share * pooled, VARIANCE_MAX);
        }
}

/* ---- few contexts ------------------------------------------------------------ */

static void add_doubt(struct belief *b, const struct belief_cells *cells, int v)
{
    const double tiny = 1e-12; /* a cell without any variance */
    double n = count_asked(cells, v), said = 0;

    b->between[v] = (USUAL_CONTEXTS * USUAL_RATIO * b->within[v] + n * b->between[v]) / (USUAL_CONTEXTS + n);
    for (int c = 0; c < cells->n_contexts; c++)
        if (is_asked(cells, c, v))
            said += 1 / fmax(b->between[v] + b->within[v] / cells->n[cell_of(cells, c, v)], tiny);
    b->doubt[v] = 1 / said;
}

/* ---- the whole fit ----------------------------------------------------------- */

static int allocate(struct belief *b, int n_configs, struct err *err)
{
    size_t n = (size_t)n_configs + 1;

    *b = (struct belief){ n_configs, calloc(n, sizeof(double)), calloc(n, sizeof(double)), calloc(n, sizeof(double)),
                          calloc(n, sizeof(double)) };
    if (!b->mean || !b->between || !b->within || !b->doubt)
        return err_nomem(err);
    for (int v = 0; v < n_configs; v++)
        b->mean[v] = b->between[v] = b->within[v] = (double)NAN;
    b->mean[0] = 1;
    b->between[0] = b->within[0] = 0;
    return 0;
}

int belief_fit(struct belief *b, const struct belief_cells *cells, struct err *err)
{
    bool *asked = calloc((size_t)cells->n_configs + 1, sizeof(*asked));
    bool *complete = calloc((size_t)cells->n_contexts + 1, sizeof(*complete));
    int code = allocate(b, cells->n_configs, err);

    if (!code && (!asked || !complete))
        code = err_nomem(err);
    if (!code) {
        for (int v = 1; v < cells->n_configs; v++)
            asked[v] = count_asked(cells, v) > 0;
        find_complete(cells, asked, complete);
        fit_within(b, cells, asked);
        for (int v = 1; v < cells->n_configs; v++) {
            if (!asked[v])
                continue;
            fit_moments(b, cells, complete, v);
            for (int i = 0; i < EM_ROUNDS; i++)
                refine(b, cells, v);
        }
        pool_scale(b, cells, asked);
        for (int v = 1; v < cells->n_configs; v++)
            if (asked[v])
                add_doubt(b, cells, v);
    }
    free(asked);
    free(complete);
    return code;
}

void belief_release(struct belief *b)
{
    free(b->mean);
    free(b->between);
    free(b->within);
    free(b->doubt);
    *b = (struct belief){ 0 };
}
