#include "planner/hull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int hull_work_init(struct hull_work *w, const struct plan_problem *p, struct err *err)
{
    size_t v = (size_t)p->n_configs + 1;

    *w = (struct hull_work){ .order = calloc(v, sizeof(*w->order)),
                             .rising = calloc(v, sizeof(*w->rising)),
                             .bytes = calloc(v, sizeof(*w->bytes)),
                             .size = calloc(v, sizeof(*w->size)),
                             .utility = calloc(v, sizeof(*w->utility)),
                             .config = calloc(v, sizeof(*w->config)) };
    if (!w->order || !w->rising || !w->bytes || !w->size || !w->utility || !w->config) {
        hull_work_release(w);
        return err_nomem(err);
    }
    for (int i = 0; i < p->n_configs; i++)
        w->order[i] = i;
    return 0;
}

void hull_work_release(struct hull_work *w)
{
    free(w->order);
    free(w->rising);
    free(w->bytes);
    free(w->size);
    free(w->utility);
    free(w->config);
    *w = (struct hull_work){ 0 };
}

/* Insertion sort by (bytes, config): near linear, because the order hardly changes from one context to the next. */
static void sort_configs(struct hull_work *w, const int64_t *bytes, int n)
{
    for (int i = 1; i < n; i++) {
        int v = w->order[i], k = i;
        for (; k > 0; k--) {
            int u = w->order[k - 1];
            if (bytes[u] < bytes[v] || (bytes[u] == bytes[v] && u < v))
                break;
            w->order[k] = u;
        }
        w->order[k] = v;
    }
    for (int k = 0; k < n; k++)
        w->bytes[k] = (double)bytes[w->order[k]];
    for (w->stored = 0; w->stored < n && w->bytes[w->stored] <= 0;)
        w->stored++;
}

/* The better of the base so far and a tier's best among `n` configs that take no room on it. */
static void better_base(const struct hull_work *w, const struct plan_candidates *o, const struct plan_problem *p,
                        int tier, int n, double *best, struct plan_placement *placement)
{
    for (int k = 0; k < n; k++) {
        int v = w->order[k];
        double u = o->utility[v * p->n_tiers + tier];
        if (w->bytes[k] < 0 || !(u > *best))
            continue;
        *best = u;
        *placement = (struct plan_placement){ v, tier };
    }
}

double hull_base(struct hull_work *w, const struct plan_candidates *o, const struct plan_problem *p,
                 struct plan_placement *placement)
{
    double best = o->recompute;

    sort_configs(w, o->bytes, p->n_configs);
    *placement = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    for (int t = 0; t < p->n_tiers; t++)
        better_base(w, o, p, t, p->capacity[t] == INT64_MAX ? p->n_configs : w->stored, &best, placement);
    return best;
}

/* Andrew's scan over rising sizes. What is no better than a smaller config is left out first, without branches: whether
 * it is cannot be predicted. */
void hull_scan(struct hull_work *w, const struct plan_candidates *o, const struct plan_problem *p, int tier,
               double base)
{
    const double *utility = o->utility + tier, *bytes = w->bytes;
    double capacity = (double)p->capacity[tier], top = base;
    int *order = w->order, *rising = w->rising, stride = p->n_tiers, n = 0, n_rising = 0;

    for (int k = w->stored; k < p->n_configs && bytes[k] <= capacity; k++) {
        double u = utility[order[k] * stride];
        rising[n_rising] = k;
        n_rising += u > top; /* not when u is NAN */
        top = u > top ? u : top;
    }
    for (int i = 0; i < n_rising; i++) {
        int v = order[rising[i]];
        double u = utility[v * stride], s = bytes[rising[i]];
        for (; n > 0; n--) {
            double s0 = n > 1 ? w->size[n - 2] : 0, u0 = n > 1 ? w->utility[n - 2] : base;
            double s1 = w->size[n - 1], u1 = w->utility[n - 1];
            if ((u1 - u0) * (s - s1) > (u - u1) * (s1 - s0))
                break;
        }
        w->size[n] = s;
        w->utility[n] = u;
        w->config[n++] = (uint16_t)v;
    }
    w->n = n;
    w->n_rising = n_rising;
}

static int set_room(struct hull_chunk *c, size_t more)
{
    double *size = realloc(c->size, more * sizeof(*size));
    c->size = size ? size : c->size;
    double *utility = realloc(c->utility, more * sizeof(*utility));
    c->utility = utility ? utility : c->utility;
    uint16_t *config = realloc(c->config, more * sizeof(*config));
    c->config = config ? config : c->config;
    return size && utility && config ? 0 : -1;
}

/* Room for `need` points in all, and for as many again. */
static int grow(struct hull_chunk *c, size_t *room, size_t need)
{
    if (need <= *room)
        return 0;
    *room = 2 * need;
    return set_room(c, *room);
}

static int build_chunk(const struct hull *h, int at, const struct plan_problem *p, struct hull_work *w,
                       struct plan_candidates *o)
{
    struct hull_chunk *c = &h->chunk[at];
    size_t n_points = 0, room = 0;

    c->n = h->n_contexts - at * HULL_CHUNK < HULL_CHUNK ? h->n_contexts - at * HULL_CHUNK : HULL_CHUNK;
    c->first = calloc((size_t)c->n * (size_t)h->n_tiers + 1, sizeof(*c->first));
    c->base = calloc((size_t)c->n, sizeof(*c->base));
    c->base_size = calloc((size_t)c->n, sizeof(*c->base_size));
    c->placement = calloc((size_t)c->n, sizeof(*c->placement));
    if (!c->first || !c->base || !c->base_size || !c->placement)
        return -1;
    for (int i = 0; i < c->n; i++) {
        plan_candidates_get(o, p, at * HULL_CHUNK + i);
        c->base[i] = hull_base(w, o, p, &c->placement[i]);
        if (c->placement[i].tier != PLAN_RECOMPUTE)
            c->base_size[i] = (double)o->bytes[c->placement[i].config];
        for (int d = 0; d < h->n_tiers; d++) {
            hull_scan(w, o, p, h->tier[d], c->base[i]);
            if (w->n > 0 && grow(c, &room, n_points + (size_t)w->n))
                return -1;
            for (int k = 0; k < w->n; k++, n_points++) {
                c->size[n_points] = w->size[k];
                c->utility[n_points] = w->utility[k];
                c->config[n_points] = w->config[k];
            }
            c->first[i * h->n_tiers + d + 1] = (uint32_t)n_points;
        }
    }
    return set_room(c, n_points + 1);
}

int hull_build(struct hull *h, const struct plan_problem *problem, struct err *err)
{
    int failed = 0;

    *h = (struct hull){ .n_contexts = problem->n_contexts,
                        .n_chunks = (problem->n_contexts + HULL_CHUNK - 1) / HULL_CHUNK };
    if (problem->n_configs > UINT16_MAX)
        return err_set(err, ERR_FAIL, "more than %d configs", UINT16_MAX);
    for (int t = 0; t < problem->n_tiers; t++) {
        if (problem->capacity[t] == INT64_MAX)
            continue;
        h->tier[h->n_tiers] = t;
        h->capacity[h->n_tiers++] = (double)problem->capacity[t];
    }
    h->chunk = calloc((size_t)h->n_chunks + 1, sizeof(*h->chunk));
    if (!h->chunk)
        return err_nomem(err);
#pragma omp parallel reduction(| : failed) if (h->n_chunks > 1)
    {
        struct hull_work w;
        struct plan_candidates o = { 0 };
        struct err mine;
        failed |= hull_work_init(&w, problem, &mine) || plan_candidates_init(&o, problem, &mine);
#pragma omp for schedule(dynamic, 1)
        for (int c = 0; c < h->n_chunks; c++)
            failed |= failed || build_chunk(h, c, problem, &w, &o) != 0;
        plan_candidates_release(&o);
        hull_work_release(&w);
    }
    if (!failed)
        return 0;
    hull_release(h);
    return err_nomem(err);
}

void hull_release(struct hull *h)
{
    for (int i = 0; h->chunk && i < h->n_chunks; i++) {
        free(h->chunk[i].first);
        free(h->chunk[i].size);
        free(h->chunk[i].utility);
        free(h->chunk[i].config);
        free(h->chunk[i].base);
        free(h->chunk[i].base_size);
        free(h->chunk[i].placement);
    }
    free(h->chunk);
    *h = (struct hull){ 0 };
}

int64_t hull_tier_best(const struct hull_chunk *c, const uint32_t *first, double price, double *value)
{
    int64_t best = HULL_BASE;
    double last = -HUGE_VAL;

    for (uint32_t k = first[0]; k < first[1]; k++) { /* concave: values rise, then fall */
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

int64_t hull_best(const struct hull *h, const struct hull_chunk *c, int i, const double *price, double *value)
{
    int64_t best = HULL_BASE;

    *value = c->base[i];
    for (int d = 0; d < h->n_tiers; d++) {
        int64_t point = hull_tier_best(c, c->first + i * h->n_tiers + d, price[d], value);
        best = point != HULL_BASE ? point : best;
    }
    return best;
}

int hull_point_tier(const struct hull *h, const struct hull_chunk *c, int i, int64_t point)
{
    const uint32_t *first = c->first + i * h->n_tiers;
    int d = 0;

    while (point >= first[d + 1])
        d++;
    return d;
}

int hull_tier(const struct hull *h, int tier)
{
    for (int d = 0; d < h->n_tiers; d++)
        if (h->tier[d] == tier)
            return d;
    return -1;
}
