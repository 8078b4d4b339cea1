/* incremental.c - the current plan, and heaps that give the next step.
 *
 * For each context: its candidate, its best reduced value and the points of its hulls. For each knapsack: two lazy
 * heaps. `leave` has the contexts in it, by the least loss per freed byte of a step away or down; `enter` has the
 * contexts that could use it, by the gain per byte. Placing a context pushes its entries, which carry the number of
 * that placement: entries of an earlier placement are stale and are removed at the top of the heap. A step is the best
 * one among the first WINDOW entries of a heap, given the bytes that are free at that moment.
 *
 * During an event knapsacks may be overloaded; at its end the operations are ordered so that no tier is.
 */
#include "planner/incremental.h"

#include "base/array.h"
#include "base/parallel.h"
#include "planner/hull.h"
#include "planner/lazy_heap.h"
#include "planner/ordering.h"
#include "planner/sum.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_PER_LINE = 2, WINDOW = 3, MAX_FILLS = 4, FIRST_CAP = 64, MIN_STALE = 4096 };

static const struct candidate recomputed = { 0, 0, 0, PLAN_RECOMPUTE, -1 };

struct context {
    struct candidate *point; // (n_points) the base, then knapsack by knapsack; owned, NULL: removed
    struct candidate now;
    double best_value; // the best reduced value of its points
    int32_t op;        // its index among the event's operations; -1: none
    int n_points;
};

struct incremental {
    struct incremental_state state;
    struct plan_problem problem; // only sizes and capacities
    int64_t capacity[PLAN_TIERS];
    int pool[PLAN_TIERS];
    struct knapsacks knapsack;
    double price[PLAN_TIERS]; // of the knapsacks
    double move_cost;         // per byte
    int64_t free[PLAN_TIERS]; // of each knapsack now; state.free has the values before the event
    struct {
        struct context *at;
        int n, cap;
    } contexts;
    struct {
        uint32_t *at;
        int n, cap;
    } placed; // how often each context was placed; a separate array, so that much of it stays in the cache
    struct {
        int *at;
        int n, cap;
    } unused; // numbers of removed contexts
    struct lazy_heap leave[PLAN_TIERS], enter[PLAN_TIERS];
    struct hull_work work;
    struct candidate *scratch; // (1 + V * D)
    struct ordering ordering;
    struct {
        struct candidate *at;
        int n, cap;
    } before; // earlier candidates of the contexts in ordering.wanted, in its order
    struct sum objective, bound;
    int failed; // no memory for an entry or an operation
};

static double reduced_value(const struct incremental *m, const struct candidate *c)
{
    return candidate_reduced_value(c, m->price);
}

/* ---- a context's points ---------------------------------------------------- */

/* Gives a context the points in `from`; -1 without memory. */
static int keep_points(const struct incremental *m, struct context *c, const struct candidate *from, int n)
{
    struct candidate *own = realloc(c->point, (size_t)n * sizeof(*own));

    if (!own)
        return -1;
    memcpy(own, from, (size_t)n * sizeof(*own));
    c->point = own;
    c->n_points = n;
    c->best_value = reduced_value(m, &own[0]);
    for (int k = 1; k < n; k++)
        c->best_value = fmax(c->best_value, reduced_value(m, &own[k]));
    return 0;
}

/* ---- steps ------------------------------------------------------------------- */

/* Returns the step out of the context's knapsack, or to fewer bytes in it, with the least loss of reduced value per
 * freed byte; bytes beyond `need` do not count. Sets *cost to that loss. NULL: no step costs less than *cost. */
static const struct candidate *cheapest_step(const struct incremental *m, const struct context *c, int64_t need,
                                             double *cost)
{
    const struct candidate *best = NULL, *now = &c->now;
    double value_now = reduced_value(m, now);

    need = need < now->bytes ? need : now->bytes; /* no step can free more */
    for (int k = 0; k < c->n_points; k++) {
        const struct candidate *to = &c->point[k];
        double lost = value_now - reduced_value(m, to) + candidate_write_cost(to, m->move_cost);
        int64_t freed = -candidate_added(now, to, now->knapsack);
        int up = to->knapsack >= 0 && to->knapsack < now->knapsack;
        if (freed <= 0 || lost >= *cost * (double)need || (up && to->bytes > m->free[to->knapsack]))
            continue;
        double one = lost / (double)(freed < need ? freed : need);
        if (one >= *cost)
            continue;
        *cost = one;
        best = to;
    }
    return best;
}

/* Per knapsack the minimum of -gain per added byte; HUGE_VAL: no gain. */
static void enter_keys(const struct incremental *m, const struct context *c, double *key)
{
    for (int d = 0; d < m->knapsack.n; d++)
        key[d] = HUGE_VAL;
    for (int k = 1; k < c->n_points; k++) {
        const struct candidate *to = &c->point[k];
        int64_t added = candidate_added(&c->now, to, to->knapsack);
        double gain = to->utility - c->now.utility - candidate_write_cost(to, m->move_cost);
        if (gain > 0 && added > 0)
            key[to->knapsack] = fmin(key[to->knapsack], -gain / (double)added);
    }
}

/* Pushes a context's entries for its current candidate. */
static void push_steps(struct incremental *m, int context)
{
    const struct context *c = &m->contexts.at[context];
    struct heap_entry e = { .context = context, .tag = m->placed.at[context] };
    double key[PLAN_TIERS];

    if (c->now.knapsack >= 0) {
        e.key = HUGE_VAL;
        cheapest_step(m, c, INT64_MAX, &e.key);
        m->failed |= lazy_heap_push(&m->leave[c->now.knapsack], e);
    }
    enter_keys(m, c, key);
    for (int d = 0; d < m->knapsack.n; d++) {
        e.key = key[d];
        if (key[d] < HUGE_VAL)
            m->failed |= lazy_heap_push(&m->enter[d], e);
    }
}

static int is_fresh(const void *arg, const struct heap_entry *e)
{
    const struct incremental *m = arg;

    return m->placed.at[e->context] == e->tag;
}

/* Removes stale entries when they are the majority. */
static void drop_stale(struct incremental *m, struct lazy_heap *q)
{
    if (lazy_heap_size(q) >= 2 * (size_t)m->contexts.n + MIN_STALE)
        lazy_heap_filter(q, is_fresh, m);
}

/* Returns a heap with fresh entries in its first WINDOW places, or fewer if it runs out. Prefetches data for this call
 * and the next ones: a million contexts do not fit the cache. */
static const struct heap *top(struct incremental *m, struct lazy_heap *q)
{
    struct heap *h = &q->low;
    size_t k = 0;

    while (k < WINDOW) {
        if (k == h->n) {
            m->failed |= lazy_heap_fill(q, WINDOW);
            if (k == h->n)
                break;
        } else if (!is_fresh(m, &h->at[k])) {
            heap_remove(h, k);
            k = 0; /* its replacement may have risen, and may be stale too */
        } else {
            const struct context *c = &m->contexts.at[h->at[k++].context];
            for (int p = 0; p < c->n_points; p += CANDIDATES_PER_LINE)
                __builtin_prefetch(&c->point[p]);
        }
    }
    for (; k < 3 * WINDOW && k < h->n; k++)
        __builtin_prefetch(&m->contexts.at[h->at[k].context]);
    return h;
}

/* ---- placing --------------------------------------------------------------------- */

/* Notes the operation of a context before it changes, unless it has one. The end of the event sets `to`. */
static void note_operation(struct incremental *m, int context)
{
    struct context *c = &m->contexts.at[context];
    struct incremental_op op = { .context = context, .from = candidate_placement(&c->now), .from_bytes = c->now.bytes };

    if (c->op >= 0)
        return;
    c->op = m->ordering.wanted.n;
    m->failed |= ARRAY_PUSH(&m->ordering.wanted, op) || ARRAY_PUSH(&m->before, c->now);
}

/* Adds a candidate to free bytes and objective (sign 1), or takes it out (-1). */
static void count(struct incremental *m, const struct candidate *c, int sign)
{
    if (c->knapsack >= 0)
        m->free[c->knapsack] -= sign * c->bytes;
    sum_add(&m->objective, sign * c->utility);
}

static void place(struct incremental *m, int context, struct candidate to)
{
    struct context *c = &m->contexts.at[context];

    note_operation(m, context);
    count(m, &c->now, -1);
    c->now = to;
    count(m, &c->now, 1);
    m->placed.at[context]++;
    push_steps(m, context);
}

/* Takes the cheapest step at the top of a knapsack's heap; -1: none. */
static int relieve(struct incremental *m, int d)
{
    const struct heap *h = top(m, &m->leave[d]);
    const struct candidate *best = NULL;
    double min_cost = HUGE_VAL;
    int context = -1;

    for (size_t k = 0; k < h->n && k < WINDOW; k++) {
        const struct heap_entry *e = &h->at[k];
        if (e->key >= min_cost) /* freeing more than needed never makes a step cheaper */
            continue;
        const struct candidate *to = cheapest_step(m, &m->contexts.at[e->context], -m->free[d], &min_cost);
        best = to ? to : best;
        context = to ? e->context : context;
    }
    if (!best)
        return -1;
    place(m, context, *best);
    return 0;
}

/* Takes the best gain that fits the free bytes of a knapsack, among the top of its heap; 0: none. */
static int fill(struct incremental *m, int d)
{
    const struct heap *h = top(m, &m->enter[d]);
    const struct candidate *best = NULL;
    double max_gain = 0;
    int context = -1;

    for (size_t k = 0; k < h->n && k < WINDOW; k++) {
        const struct heap_entry *e = &h->at[k];
        const struct context *c = &m->contexts.at[e->context];
        for (int p = 1; p < c->n_points && -e->key * (double)m->free[d] > max_gain; p++) {
            double gain = c->point[p].utility - c->now.utility - candidate_write_cost(&c->point[p], m->move_cost);
            if (c->point[p].knapsack != d || gain <= max_gain || candidate_added(&c->now, &c->point[p], d) > m->free[d])
                continue;
            max_gain = gain;
            best = &c->point[p];
            context = e->context;
        }
    }
    if (best)
        place(m, context, *best);
    return best != NULL;
}

/* ---- events ------------------------------------------------------------------------ */

/* From the fastest tier down: ends every overload, then uses the bytes that became free. */
static void rebalance(struct incremental *m)
{
    for (int d = 0; d < m->knapsack.n; d++)
        while (m->free[d] < 0 && !m->failed)
            m->failed |= relieve(m, d);
    for (int d = 0; d < m->knapsack.n; d++)
        for (int k = 0; k < MAX_FILLS && m->free[d] > m->state.free[m->knapsack.tier[d]] && !m->failed; k++)
            if (!fill(m, d))
                break;
}

/* The gain of the event so far, less the cost of its writes. */
static double gain_of_event(const struct incremental *m)
{
    struct sum gain = { 0, 0 };

    for (int k = 0; k < m->before.n; k++) {
        int context = m->ordering.wanted.at[k].context;
        sum_add(&gain, candidate_net_gain(&m->before.at[k], &m->contexts.at[context].now, m->move_cost));
    }
    return gain.value;
}

/* Undoes the event, except that its own context goes to `to`. */
static void take_back(struct incremental *m, struct candidate to)
{
    for (int k = m->before.n - 1; k >= 0; k--) {
        int context = m->ordering.wanted.at[k].context;
        place(m, context, k == 0 ? to : m->before.at[k]);
        m->contexts.at[context].op = k == 0 ? 0 : -1;
    }
    m->before.n = m->ordering.wanted.n = 1;
}

/* Rebalances for the context of the first operation. Undoes it if `modest`, which overloads nothing, is better. */
static void rebalance_or(struct incremental *m, struct candidate modest)
{
    rebalance(m);
    if (!m->failed && gain_of_event(m) < candidate_net_gain(&m->before.at[0], &modest, m->move_cost))
        take_back(m, modest);
}

static int order_operations(struct incremental *m)
{
    for (int k = 0; k < m->ordering.wanted.n; k++) {
        struct incremental_op *op = &m->ordering.wanted.at[k];
        struct context *c = &m->contexts.at[op->context];
        op->to = candidate_placement(&c->now);
        op->to_bytes = c->now.bytes;
        c->op = -1;
    }
    return ordering_make(&m->ordering, m->state.free);
}

/* Sets the free bytes of each tier in the state. */
static void tell_free(struct incremental *m)
{
    for (int t = 0; t < m->problem.n_tiers; t++)
        if (m->knapsack.of[t] >= 0)
            m->state.free[t] = m->free[m->knapsack.of[t]];
}

/* Ends an event; afterwards the state describes it. */
static int finish_event(struct incremental *m, struct err *err)
{
    m->before.n = 0;
    if (m->failed || order_operations(m)) {
        m->failed = 1;
        return err_nomem(err);
    }
    for (int d = 0; d < m->knapsack.n; d++) {
        drop_stale(m, &m->leave[d]);
        drop_stale(m, &m->enter[d]);
    }
    tell_free(m);
    m->state.op = m->ordering.ordered.at;
    m->state.n_ops = m->ordering.ordered.n;
    m->state.objective = m->objective.value;
    m->state.upper_bound = m->bound.value + 64 * 0x1p-52 * fabs(m->bound.value);
    return 0;
}

/* A context's point with the highest reduced value, less the cost of going there from `now`. */
static struct candidate best_point(const struct incremental *m, const struct context *c, struct candidate now)
{
    struct candidate best = now;
    double max = reduced_value(m, &now);

    for (int k = 0; k < c->n_points; k++) {
        double value = reduced_value(m, &c->point[k]) - candidate_write_cost(&c->point[k], m->move_cost);
        if (value <= max)
            continue;
        max = value;
        best = c->point[k];
    }
    return best;
}

/* The best candidate that uses no knapsack, for a context that is not stored; counts the cost of writing. */
static struct candidate modest_place(const struct incremental *m, const struct context *c,
                                     const struct plan_candidates *all)
{
    return m->move_cost > 0 ? candidate_of_no_knapsack(all, &m->problem, m->move_cost) : c->point[0];
}

/* `is`, the new form of a stored context's candidate `was`, if it fits and is not worse than `modest`, or `modest`. */
static struct candidate staying_or(const struct incremental *m, const struct candidate *was, struct candidate is,
                                   struct candidate modest)
{
    bool fits = is.knapsack < 0 || candidate_added(was, &is, is.knapsack) <= m->free[is.knapsack];

    return fits && candidate_net_gain(was, &is, m->move_cost) >= candidate_net_gain(was, &modest, m->move_cost)
               ? is
               : modest;
}

/* Returns the number for a new context, or -1 without memory. */
static int new_number(struct incremental *m)
{
    if (m->unused.n > 0)
        return m->unused.at[--m->unused.n];
    if (ARRAY_PUSH(&m->contexts, (struct context){ .op = -1 }) || ARRAY_PUSH(&m->placed, 0))
        return -1;
    return m->contexts.n - 1;
}

int incremental_add(struct incremental *m, const struct plan_candidates *all, int *context, struct err *err)
{
    *context = new_number(m);
    if (*context < 0)
        return err_nomem(err);
    struct context *c = &m->contexts.at[*context];
    c->now = recomputed;
    if (keep_points(m, c, m->scratch, hull_points(&m->work, all, &m->problem, m->scratch)))
        return err_nomem(err);
    m->state.n_contexts++;
    sum_add(&m->bound, c->best_value);
    struct candidate modest = modest_place(m, c, all);
    place(m, *context, best_point(m, c, modest));
    rebalance_or(m, modest);
    return finish_event(m, err);
}

int incremental_update(struct incremental *m, int context, const struct plan_candidates *all, struct err *err)
{
    struct context *c = &m->contexts.at[context];
    struct plan_placement at = candidate_placement(&c->now);
    int stays = at.tier == PLAN_RECOMPUTE || plan_candidate_ok(all, &m->problem, at.config, at.tier);

    sum_add(&m->bound, -c->best_value);
    if (keep_points(m, c, m->scratch, hull_points(&m->work, all, &m->problem, m->scratch)))
        return err_nomem(err);
    sum_add(&m->bound, c->best_value);
    struct candidate modest = modest_place(m, c, all), is = modest;
    if (stays) {
        is = candidate_at(all, &m->problem, &m->knapsack, at);
        modest = staying_or(m, &c->now, is, modest);
    }
    place(m, context, best_point(m, c, is));
    rebalance_or(m, modest);
    return finish_event(m, err);
}

int incremental_remove(struct incremental *m, int context, struct err *err)
{
    struct context *c = &m->contexts.at[context];

    note_operation(m, context);
    sum_add(&m->bound, -c->best_value);
    count(m, &c->now, -1);
    c->now = recomputed;
    m->placed.at[context]++;
    free(c->point);
    c->point = NULL;
    c->n_points = 0;
    m->state.n_contexts--;
    m->failed |= ARRAY_PUSH(&m->unused, context);
    rebalance(m);
    return finish_event(m, err);
}

int incremental_lose(struct incremental *m, int context, const struct plan_candidates *all, struct err *err)
{
    place(m, context, candidate_at(all, &m->problem, &m->knapsack, candidate_placement(&recomputed)));
    return finish_event(m, err);
}

/* ---- life -------------------------------------------------------------------------- */

/* Taking over a plan: several threads find the points of its contexts, HULL_CHUNK at a time. */
struct taking {
    struct incremental *m;
    const struct plan_problem *problem;
    const struct plan *plan;
    atomic_int failed;
};

static void take_chunk(void *arg, int chunk)
{
    struct taking *t = arg;
    struct incremental *m = t->m;
    const struct plan_problem *p = t->problem;
    struct hull_work w = { 0 };
    struct plan_candidates all = { 0 };
    struct candidate *points = calloc((size_t)p->n_configs * (size_t)m->knapsack.n + 1, sizeof(*points));
    struct err err;
    int failed = !points || hull_work_init(&w, p, &err) || plan_candidates_init(&all, p, &err);

    for (int i = chunk * HULL_CHUNK; i < p->n_contexts && i / HULL_CHUNK == chunk && !failed; i++) {
        struct context *c = &m->contexts.at[i];
        plan_candidates_get(&all, p, i);
        c->now = candidate_at(&all, p, &m->knapsack, t->plan->placement[i]);
        failed = keep_points(m, c, points, hull_points(&w, &all, &m->problem, points));
    }
    t->failed |= failed;
    plan_candidates_release(&all);
    hull_work_release(&w);
    free(points);
}

/* Reserves space for more than n contexts, so that the first events do not have to move all of them. */
static int reserve(struct incremental *m, int n)
{
    int cap = n + n / 4 + FIRST_CAP;

    if (ARRAY_GROW(&m->contexts, cap) || ARRAY_GROW(&m->placed, cap))
        return -1;
    for (int i = 0; i < n; i++) {
        m->contexts.at[m->contexts.n++] = (struct context){ .op = -1 };
        m->placed.at[m->placed.n++] = 0;
    }
    m->scratch = calloc((size_t)m->problem.n_configs * (size_t)m->knapsack.n + 1, sizeof(*m->scratch));
    return m->scratch ? 0 : -1;
}

static void set_up_tiers(struct incremental *m, const struct plan_problem *problem, const struct plan *plan)
{
    for (int t = 0; t < problem->n_tiers; t++) {
        m->capacity[t] = m->state.free[t] = problem->capacity[t];
        m->pool[t] = problem->pool ? problem->pool[t] : t;
    }
    m->ordering.pool = m->pool;
    m->knapsack = knapsacks_of(problem);
    for (int d = 0; d < m->knapsack.n; d++) {
        double price = m->price[d] = plan->price[m->knapsack.tier[d]];
        lazy_heap_init(&m->leave[d]);
        lazy_heap_init(&m->enter[d]);
        m->free[d] = m->knapsack.capacity[d];
        sum_add(&m->bound, price > 0 ? price * (double)m->knapsack.capacity[d] : 0);
    }
}

static int set_up(struct incremental *m, const struct plan_problem *problem, const struct plan *plan, struct err *err)
{
    struct taking taking = { m, problem, plan, 0 };
    int n = m->state.n_contexts = problem->n_contexts;

    set_up_tiers(m, problem, plan);
    taking.failed = reserve(m, n) || hull_work_init(&m->work, problem, err);
    if (!taking.failed)
        parallel_do(parallel_threads(), (n + HULL_CHUNK - 1) / HULL_CHUNK, take_chunk, &taking);
    if (taking.failed)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        sum_add(&m->bound, m->contexts.at[i].best_value);
        count(m, &m->contexts.at[i].now, 1);
    }
    for (int i = 0; i < n; i++)
        push_steps(m, i);
    for (int d = 0; d < m->knapsack.n; d++)
        m->failed |= lazy_heap_fill(&m->leave[d], WINDOW) | lazy_heap_fill(&m->enter[d], WINDOW);
    tell_free(m);
    rebalance(m);
    return finish_event(m, err);
}

struct incremental *incremental_new(const struct plan_problem *problem, const struct plan *plan, double move_cost,
                                    struct err *err)
{
    if (plan_check(problem, err))
        return NULL;
    struct incremental *m = calloc(1, sizeof(*m));
    if (!m) {
        err_nomem(err);
        return NULL;
    }
    m->move_cost = move_cost;
    m->problem = (struct plan_problem){ 0, problem->n_configs, problem->n_tiers, m->capacity, NULL, NULL, m->pool };
    if (!set_up(m, problem, plan, err))
        return m;
    incremental_free(m);
    return NULL;
}

void incremental_free(struct incremental *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->contexts.n; i++)
        free(m->contexts.at[i].point);
    for (int d = 0; d < m->knapsack.n; d++) {
        lazy_heap_release(&m->leave[d]);
        lazy_heap_release(&m->enter[d]);
    }
    hull_work_release(&m->work);
    free(m->contexts.at);
    free(m->placed.at);
    free(m->unused.at);
    free(m->scratch);
    free(m->before.at);
    ordering_release(&m->ordering);
    free(m);
}

struct plan_placement incremental_placement(const struct incremental *m, int context)
{
    return candidate_placement(&m->contexts.at[context].now);
}

const struct incremental_state *incremental_state(const struct incremental *m)
{
    return &m->state;
}
