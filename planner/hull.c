/* hull.c - first one context: its configs by rising bytes, its base, and Andrew's scan for each hull; then all
 * contexts, chunk by chunk, on all threads; then queries on the result. */
#include "planner/hull.h"

#include "base/array.h"
#include "base/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- one context --------------------------------------------------------------- */

int hull_work_init(struct hull_work *w, const struct plan_problem *p, struct err *err)
{
    size_t v = (size_t)p->n_configs + 1;

    *w = (struct hull_work){ .order = calloc(v, sizeof(*w->order)),
                             .rising = calloc(v, sizeof(*w->rising)),
                             .sorted_bytes = calloc(v, sizeof(*w->sorted_bytes)),
                             .bytes = calloc(v, sizeof(*w->bytes)),
                             .utility = calloc(v, sizeof(*w->utility)),
                             .config = calloc(v, sizeof(*w->config)),
                             .tier = calloc(v, sizeof(*w->tier)),
                             .pooled = calloc(v, sizeof(*w->pooled)),
                             .pooled_tier = calloc(v, sizeof(*w->pooled_tier)),
                             .knapsack = knapsacks_of(p) };
    if (!w->order || !w->rising || !w->sorted_bytes || !w->bytes || !w->utility || !w->config || !w->tier ||
        !w->pooled || !w->pooled_tier) {
        hull_work_release(w);
        return err_nomem(err);
    }
    return 0;
}

void hull_work_release(struct hull_work *w)
{
    free(w->order);
    free(w->rising);
    free(w->sorted_bytes);
    free(w->bytes);
    free(w->utility);
    free(w->config);
    free(w->tier);
    free(w->pooled);
    free(w->pooled_tier);
    *w = (struct hull_work){ 0 };
}

/* Finds how many configs the order has; unavailable ones have -1 bytes. */
static void limit_configs(struct hull_work *w, const int64_t *bytes, int n)
{
    while (n > 0 && bytes[n - 1] < 0)
        n--;
    for (int i = 0; i < n && w->n_configs != n; i++)
        w->order[i] = i;
    w->n_configs = n;
}

/* Insertion sort by (bytes, config): almost linear, because the order hardly changes from one context to the next. The
 * test compares config numbers only among equal bytes, because that comparison is unpredictable for the processor. */
static void sort_configs(struct hull_work *w, const int64_t *bytes, int n)
{
    for (int i = 1; i < n; i++) {
        int v = w->order[i], k = i;
        for (; k > 0; k--) {
            int u = w->order[k - 1];
            if (bytes[u] <= bytes[v] && (bytes[u] < bytes[v] || u < v))
                break;
            w->order[k] = u;
        }
        w->order[k] = v;
    }
    for (int k = 0; k < n; k++)
        w->sorted_bytes[k] = (double)bytes[w->order[k]];
    for (w->stored = 0; w->stored < n && w->sorted_bytes[w->stored] <= 0;)
        w->stored++;
}

/* The better of the base so far and the best candidate on a tier that uses no knapsack. */
static struct candidate better_base(const struct hull_work *w, const struct plan_candidates *all,
                                    const struct plan_problem *p, int tier, struct candidate base)
{
    int n = p->capacity[tier] == INT64_MAX ? w->n_configs : w->stored;

    for (int k = 0; k < n; k++) {
        int v = w->order[k];
        double u = all->utility[plan_cell(p, v, tier)];
        if (w->sorted_bytes[k] < 0 || !(u > base.utility))
            continue;
        base = (struct candidate){ all->bytes[v], u, (uint16_t)v, (int8_t)tier, -1 };
    }
    return base;
}

struct candidate hull_base(struct hull_work *w, const struct plan_candidates *all, const struct plan_problem *p)
{
    struct candidate base = { 0, all->recompute, 0, PLAN_RECOMPUTE, -1 };

    limit_configs(w, all->bytes, p->n_configs);
    sort_configs(w, all->bytes, w->n_configs);
    for (int t = 0; t < p->n_tiers; t++)
        base = better_base(w, all, p, t, base);
    return base;
}

struct hull_configs hull_configs_in(struct hull_work *w, const struct plan_candidates *all,
                                    const struct plan_problem *p, int knapsack)
{
    int first = w->knapsack.tier[knapsack];

    if (w->knapsack.size[knapsack] == 1)
        return (struct hull_configs){ all->utility + first, p->n_tiers, NULL, (int8_t)first };
    for (int v = 0; v < w->n_configs; v++) {
        const double *utility = all->utility + plan_cell(p, v, 0);
        w->pooled[v] = (double)NAN;
        w->pooled_tier[v] = (int8_t)first;
        for (int t = first; t < p->n_tiers; t++) {
            if (w->knapsack.of[t] != knapsack || !(utility[t] > w->pooled[v] || isnan(w->pooled[v])))
                continue;
            w->pooled[v] = utility[t];
            w->pooled_tier[v] = (int8_t)t;
        }
    }
    return (struct hull_configs){ w->pooled, 1, w->pooled_tier, (int8_t)first };
}

/* Andrew's scan over rising bytes. First drops configs that are not better than a smaller one, without branches,
 * because the processor could not predict them. */
void hull_scan(struct hull_work *w, const struct plan_candidates *all, const struct plan_problem *p, int knapsack,
               double base)
{
    const struct hull_configs in = hull_configs_in(w, all, p, knapsack);
    const double *utility = in.utility, *sorted_bytes = w->sorted_bytes;
    double capacity = (double)w->knapsack.capacity[knapsack], top = base;
    int *order = w->order, *rising = w->rising, stride = in.stride, n = 0, n_rising = 0;

    for (int k = w->stored; k < w->n_configs && sorted_bytes[k] <= capacity; k++) {
        double u = utility[order[k] * stride];
        rising[n_rising] = k;
        n_rising += u > top; /* not when u is NAN */
        top = u > top ? u : top;
    }
    for (int i = 0; i < n_rising; i++) {
        int v = order[rising[i]];
        double u = utility[v * stride], s = sorted_bytes[rising[i]];
        for (; n > 0; n--) {
            double s0 = n > 1 ? w->bytes[n - 2] : 0, u0 = n > 1 ? w->utility[n - 2] : base;
            double s1 = w->bytes[n - 1], u1 = w->utility[n - 1];
            if ((u1 - u0) * (s - s1) > (u - u1) * (s1 - s0))
                break;
        }
        w->bytes[n] = s;
        w->utility[n] = u;
        w->tier[n] = in.tier ? in.tier[v] : in.one_tier;
        w->config[n++] = (uint16_t)v;
    }
    w->n = n;
}

/* ---- all contexts ---------------------------------------------------------------- */

struct point {
    double bytes, utility;
    uint16_t config;
    int8_t tier;
};

/* A thread's workspace. */
struct builder {
    const struct plan_problem *problem;
    struct hull_work work;
    struct plan_candidates all;
    struct {
        struct point *at;
        size_t n, cap;
    } points; // of the current chunk
};

static int builder_init(struct builder *b, const struct plan_problem *problem)
{
    struct err err;

    *b = (struct builder){ .problem = problem };
    return hull_work_init(&b->work, problem, &err) || plan_candidates_init(&b->all, problem, &err) ? -1 : 0;
}

static void builder_release(struct builder *b)
{
    plan_candidates_release(&b->all);
    hull_work_release(&b->work);
    free(b->points.at);
}

/* Adds the hull of one context in one knapsack. */
static int add_points(struct builder *b, int knapsack, double base)
{
    struct hull_work *w = &b->work;

    hull_scan(w, &b->all, b->problem, knapsack, base);
    if (ARRAY_GROW(&b->points, b->points.n + (size_t)w->n))
        return -1;
    for (int k = 0; k < w->n; k++)
        b->points.at[b->points.n++] = (struct point){ w->bytes[k], w->utility[k], w->config[k], w->tier[k] };
    return 0;
}

/* Copies the builder's points to the chunk, in arrays of exactly their size. */
static int keep_points(struct hull_chunk *c, const struct builder *b)
{
    size_t n = b->points.n;

    c->bytes = malloc((n + 1) * sizeof(*c->bytes));
    c->utility = malloc((n + 1) * sizeof(*c->utility));
    c->config = malloc((n + 1) * sizeof(*c->config));
    c->tier = malloc(n + 1);
    if (!c->bytes || !c->utility || !c->config || !c->tier)
        return -1;
    for (size_t k = 0; k < n; k++) {
        c->bytes[k] = b->points.at[k].bytes;
        c->utility[k] = b->points.at[k].utility;
        c->config[k] = b->points.at[k].config;
        c->tier[k] = b->points.at[k].tier;
    }
    return 0;
}

static int build_points(const struct hull *h, int at, struct builder *b)
{
    struct hull_chunk *c = &h->chunk[at];
    int n_knapsacks = h->knapsack.n, left = h->n_contexts - at * HULL_CHUNK;

    c->n = left < HULL_CHUNK ? left : HULL_CHUNK;
    c->first = calloc((size_t)c->n * (size_t)n_knapsacks + 1, sizeof(*c->first));
    c->base = calloc((size_t)c->n, sizeof(*c->base));
    if (!c->first || !c->base)
        return -1;
    for (int i = 0; i < c->n; i++) {
        plan_candidates_get(&b->all, b->problem, at * HULL_CHUNK + i);
        c->base[i] = hull_base(&b->work, &b->all, b->problem);
        for (int d = 0; d < n_knapsacks; d++) {
            if (add_points(b, d, c->base[i].utility))
                return -1;
            c->first[i * n_knapsacks + d + 1] = (uint32_t)b->points.n;
        }
    }
    return keep_points(c, b);
}

struct building {
    const struct hull *h;
    const struct plan_problem *problem;
    atomic_int failed;
};

static void build_chunk(void *arg, int at)
{
    struct building *building = arg;
    struct builder b;

    if (builder_init(&b, building->problem) || build_points(building->h, at, &b))
        building->failed = 1;
    builder_release(&b);
}

int hull_build(struct hull *h, const struct plan_problem *problem, struct err *err)
{
    struct building building = { h, problem, 0 };

    *h = (struct hull){ .n_contexts = problem->n_contexts,
                        .n_chunks = (problem->n_contexts + HULL_CHUNK - 1) / HULL_CHUNK,
                        .knapsack = knapsacks_of(problem) };
    h->chunk = calloc((size_t)h->n_chunks + 1, sizeof(*h->chunk));
    if (!h->chunk)
        return err_nomem(err);
    parallel_do(parallel_threads(), h->n_chunks, build_chunk, &building);
    if (!building.failed)
        return 0;
    hull_release(h);
    return err_nomem(err);
}

void hull_release(struct hull *h)
{
    for (int i = 0; h->chunk && i < h->n_chunks; i++) {
        free(h->chunk[i].first);
        free(h->chunk[i].bytes);
        free(h->chunk[i].utility);
        free(h->chunk[i].config);
        free(h->chunk[i].tier);
        free(h->chunk[i].base);
    }
    free(h->chunk);
    *h = (struct hull){ 0 };
}

/* ---- queries ----------------------------------------------------------------------- */

int64_t hull_best_in(const struct hull_chunk *c, const uint32_t *first, double price, double *value)
{
    int64_t best = HULL_BASE;
    double last = -HUGE_VAL;

    for (uint32_t k = first[0]; k < first[1]; k++) { /* concave: values rise, then fall */
        double v = c->utility[k] - price * c->bytes[k];
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

int64_t hull_best(const struct hull *h, const struct hull_chunk *c, int i, const double *price, double *value)
{
    int64_t best = HULL_BASE;

    *value = c->base[i].utility;
    for (int d = 0; d < h->knapsack.n; d++) {
        int64_t point = hull_best_in(c, c->first + i * h->knapsack.n + d, price[d], value);
        best = point != HULL_BASE ? point : best;
    }
    return best;
}

struct candidate hull_candidate(const struct hull *h, int context, int64_t point)
{
    const struct hull_chunk *c = hull_chunk_of(h, context);
    const uint32_t *first = hull_first(h, context);
    int d = 0;

    if (point == HULL_BASE)
        return c->base[context % HULL_CHUNK];
    while (point >= first[d + 1])
        d++;
    return hull_point(c, d, point);
}
