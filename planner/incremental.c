/* incremental.c - the plan as it is now, and the heaps from which the next step is taken.
 *
 * Of each context its place, its worth at best and the points of its hulls are kept. Each finite tier has two queues:
 * `leave`, who is on it, by what the cheapest step away or down loses per byte freed; `enter`, who could be, by what it
 * would gain per byte. Entries are pushed when a context is put somewhere and carry the number of that move: an entry
 * of an earlier move is stale, and is thrown out when it is met. What is looked at is the top of a lazy_heap's heap,
 * WINDOW entries, with the room there is at that moment.
 *
 * Within an event tiers may be too full; what is to be carried out is put in order at its end.
 */
#include "planner/incremental.h"

#include "planner/ordering.h"
#include "planner/hull.h"
#include "planner/lazy_heap.h"
#include "planner/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_PER_LINE = 2, WINDOW = 3, FILLS = 4, FIRST_ROOM = 64, STALE_LEAST = 4096 };

struct context {
    struct point *point; // (n_points) the base, then tier by tier; owned, NULL: removed
    struct point now;
    double best;    // worth of its best point at the prices
    int32_t change; // its place in this event's list of changes; -1: none
    int n_points;
};

struct incremental {
    struct incremental_state state;
    struct plan_problem problem; // sizes and capacities alone
    int64_t capacity[PLAN_TIERS];
    int n_finite, tier[PLAN_TIERS]; // finite tiers, their indices in the problem
    double price[PLAN_TIERS];       // of the finite ones
    int64_t room[PLAN_TIERS], room_before[PLAN_TIERS];
    struct context *at;
    uint32_t *move; // (n_room) how often each was put somewhere; by itself, so that much of it stays in the cache
    int n, n_room;
    int *spare, n_spare; // numbers to use again; room for all
    struct lazy_heap leave[PLAN_TIERS], enter[PLAN_TIERS];
    struct hull_work work;
    struct point *scratch; // (1 + V * n_finite)
    struct changes changes;
    struct sum objective, bound;
    int failed; // no memory for an entry or a change
};

static double worth(const struct incremental *m, const struct point *p)
{
    return p->finite < 0 ? p->utility : p->utility - m->price[p->finite] * (double)p->bytes;
}

/* ---- a context's points ---------------------------------------------------- */

/* Returns how many. to: room for all configs on all finite tiers and the base. */
static int find_points(struct incremental *m, struct hull_work *w, struct point *to, const struct plan_candidates *o)
{
    struct plan_placement base;
    double utility = hull_base(w, o, &m->problem, &base);
    int n = 1;

    to[0] = (struct point){ 0, utility, (uint16_t)base.config, (int8_t)base.tier, -1 };
    if (base.tier >= 0)
        to[0].bytes = o->bytes[base.config];
    for (int d = 0; d < m->n_finite; d++) {
        hull_scan(w, o, &m->problem, m->tier[d], utility);
        for (int k = 0; k < w->n; k++)
            to[n++] = (struct point){ (int64_t)w->size[k], w->utility[k], w->config[k], (int8_t)m->tier[d], (int8_t)d };
    }
    return n;
}

/* Gives a context the points in `from`; -1 without memory. */
static int keep_points(const struct incremental *m, struct context *c, const struct point *from, int n)
{
    struct point *own = realloc(c->point, (size_t)n * sizeof(*own));

    if (!own)
        return -1;
    memcpy(own, from, (size_t)n * sizeof(*own));
    c->point = own;
    c->n_points = n;
    c->best = worth(m, &own[0]);
    for (int k = 1; k < n; k++)
        c->best = fmax(c->best, worth(m, &own[k]));
    return 0;
}

/* The place that a placement means under these candidates. */
static struct point point_of(const struct incremental *m, const struct plan_candidates *o, struct plan_placement c)
{
    struct point p = { 0, plan_candidate_utility(o, &m->problem, c), (uint16_t)c.config, (int8_t)c.tier, -1 };

    if (c.tier == PLAN_RECOMPUTE)
        return p;
    p.bytes = o->bytes[c.config];
    for (int d = 0; d < m->n_finite && p.bytes > 0; d++)
        if (m->tier[d] == c.tier)
            p.finite = (int8_t)d;
    return p;
}

/* ---- steps ------------------------------------------------------------------- */

/* The step that loses least per byte of the `need` it frees on the tier it starts from, if less than *cost; or NULL. */
static const struct point *cheapest_step(const struct incremental *m, const struct context *c, int64_t need,
                                         double *cost)
{
    const struct point *best = NULL, *now = &c->now;
    double worth_now = worth(m, now);

    need = need < now->bytes ? need : now->bytes; /* more than that no step can free */
    for (int k = 0; k < c->n_points; k++) {
        const struct point *to = &c->point[k];
        double lost = worth_now - worth(m, to);
        int64_t freed = -point_added(now, to, now->finite);
        int up = to->finite >= 0 && to->finite < now->finite;
        if (freed <= 0 || lost >= *cost * (double)need || (up && to->bytes > m->room[to->finite]))
            continue;
        double one = lost / (double)(freed < need ? freed : need);
        if (one >= *cost)
            continue;
        *cost = one;
        best = to;
    }
    return best;
}

/* Per tier the least of -gain per byte added to it; HUGE_VAL where nothing is to be gained. */
static void enter_keys(const struct incremental *m, const struct context *c, double *key)
{
    for (int d = 0; d < m->n_finite; d++)
        key[d] = HUGE_VAL;
    for (int k = 1; k < c->n_points; k++) {
        const struct point *to = &c->point[k];
        int64_t more = point_added(&c->now, to, to->finite);
        double gain = to->utility - c->now.utility;
        if (gain > 0 && more > 0)
            key[to->finite] = fmin(key[to->finite], -gain / (double)more);
    }
}

/* The entries of where a context is now. */
static void push_steps(struct incremental *m, int context)
{
    const struct context *c = &m->at[context];
    struct heap_entry e = { .context = context, .tag = m->move[context] };
    double key[PLAN_TIERS];

    if (c->now.finite >= 0) {
        e.key = HUGE_VAL;
        cheapest_step(m, c, INT64_MAX, &e.key);
        m->failed |= lazy_heap_push(&m->leave[c->now.finite], e);
    }
    enter_keys(m, c, key);
    for (int d = 0; d < m->n_finite; d++) {
        e.key = key[d];
        if (key[d] < HUGE_VAL)
            m->failed |= lazy_heap_push(&m->enter[d], e);
    }
}

static int stale(const struct incremental *m, const struct heap_entry *e)
{
    return m->move[e->context] != e->tag;
}

static int is_valid(const void *m, const struct heap_entry *e)
{
    return !stale(m, e);
}

/* Throws stale entries out when they are the most. */
static void clean(struct incremental *m, struct lazy_heap *q)
{
    if (lazy_heap_size(q) >= 2 * (size_t)m->n + STALE_LEAST)
        lazy_heap_filter(q, is_valid, m);
}

/* Has a context's points fetched to the cache. */
static void fetch_points(const struct context *c)
{
    for (int k = 0; k < c->n_points; k += POINTS_PER_LINE)
        __builtin_prefetch(&c->point[k]);
}

/* The heap with WINDOW valid entries at its top, if there are so many. What will be looked at, now or by one of the
 * next calls, is fetched to the cache: a million contexts do not fit there. */
static const struct heap *top(struct incremental *m, struct lazy_heap *q)
{
    struct heap *h = &q->low;
    size_t k = 0;

    while (k < WINDOW) {
        if (k == h->n) {
            m->failed |= lazy_heap_want(q, WINDOW);
            if (k == h->n)
                break;
        } else if (stale(m, &h->at[k])) {
            heap_remove(h, k);
            k = 0; /* what took its place may have risen above it, and be stale too */
        } else {
            fetch_points(&m->at[h->at[k++].context]);
        }
    }
    for (; k < 3 * WINDOW && k < h->n; k++)
        __builtin_prefetch(&m->at[h->at[k].context]);
    return h;
}

/* ---- changes -------------------------------------------------------------------- */

static void note_change(struct incremental *m, int context)
{
    struct context *c = &m->at[context];

    if (c->change < 0)
        c->change = changes_note(&m->changes, context, &c->now);
    m->failed |= c->change < 0;
}

/* Where a context is, in room and objective. */
static void count_place(struct incremental *m, const struct point *p, int sign)
{
    if (p->finite >= 0)
        m->room[p->finite] -= sign * p->bytes;
    sum_add(&m->objective, sign * p->utility);
}

static void put(struct incremental *m, int context, struct point to)
{
    struct context *c = &m->at[context];

    note_change(m, context);
    count_place(m, &c->now, -1);
    c->now = to;
    count_place(m, &c->now, 1);
    m->move[context]++;
    push_steps(m, context);
}

/* The cheapest of the steps at the top of a tier's heap; -1: there is none. */
static int relieve(struct incremental *m, int d)
{
    const struct heap *h = top(m, &m->leave[d]);
    const struct point *best = NULL;
    double least = HUGE_VAL;
    int who = -1;

    for (size_t k = 0; k < h->n && k < WINDOW; k++) {
        const struct heap_entry *e = &h->at[k];
        if (e->key >= least) /* freeing more than is needed makes a step dearer, never cheaper */
            continue;
        const struct point *to = cheapest_step(m, &m->at[e->context], -m->room[d], &least);
        best = to ? to : best;
        who = to ? e->context : who;
    }
    if (!best)
        return -1;
    put(m, who, *best);
    return 0;
}

/* Uses room on a tier for the best gain that fits among the top of its heap; whether there was one. */
static int fill(struct incremental *m, int d)
{
    const struct heap *h = top(m, &m->enter[d]);
    const struct point *best = NULL;
    double most = 0;
    int who = -1;

    for (size_t k = 0; k < h->n && k < WINDOW; k++) {
        const struct heap_entry *e = &h->at[k];
        const struct context *c = &m->at[e->context];
        for (int p = 1; p < c->n_points && -e->key * (double)m->room[d] > most; p++) {
            double gain = c->point[p].utility - c->now.utility;
            if (c->point[p].finite != d || gain <= most || point_added(&c->now, &c->point[p], d) > m->room[d])
                continue;
            most = gain;
            best = &c->point[p];
            who = e->context;
        }
    }
    if (best)
        put(m, who, *best);
    return best != NULL;
}

/* ---- events ------------------------------------------------------------------------ */

static void begin(struct incremental *m)
{
    m->changes.n = 0;
    memcpy(m->room_before, m->room, sizeof(m->room));
}

/* Ends an event: what is too full is relieved, from the fastest tier down, then what is left over is used. */
static int settle(struct incremental *m, struct err *err)
{
    for (int d = 0; d < m->n_finite; d++)
        while (m->room[d] < 0 && !m->failed)
            m->failed |= relieve(m, d);
    for (int d = 0; d < m->n_finite; d++)
        for (int k = 0; k < FILLS && m->room[d] > m->room_before[d] && !m->failed; k++)
            k = fill(m, d) ? k : FILLS;
    for (int k = 0; k < m->changes.n; k++) {
        struct context *c = &m->at[m->changes.at[k].context];
        m->changes.at[k].to = c->now;
        c->change = -1;
    }
    m->failed = m->failed || changes_order(&m->changes, m->room_before);
    for (int d = 0; d < m->n_finite; d++) {
        clean(m, &m->leave[d]);
        clean(m, &m->enter[d]);
        m->state.room[m->tier[d]] = m->room[d];
    }
    m->state.op = m->changes.op;
    m->state.n_ops = m->changes.n_ops;
    m->state.objective = m->objective.value;
    m->state.upper_bound = m->bound.value + 64 * 0x1p-52 * fabs(m->bound.value);
    return m->failed ? err_nomem(err) : 0;
}

/* Its best point at the prices; where it is already, if that is as good. */
static struct point best_point(const struct incremental *m, const struct context *c, const struct point *now)
{
    struct point best = now ? *now : c->point[0];

    for (int k = 0; k < c->n_points; k++)
        if (worth(m, &c->point[k]) > worth(m, &best))
            best = c->point[k];
    return best;
}

/* Room for one more context; its number, or -1. */
static int new_number(struct incremental *m)
{
    if (m->n_spare > 0)
        return m->spare[--m->n_spare];
    if (m->n == m->n_room) {
        int room = m->n_room + m->n_room / 2 + FIRST_ROOM;
        struct context *at = realloc(m->at, (size_t)room * sizeof(*at));
        m->at = at ? at : m->at;
        int *spare = realloc(m->spare, (size_t)room * sizeof(*spare));
        m->spare = spare ? spare : m->spare;
        uint32_t *move = realloc(m->move, (size_t)room * sizeof(*move));
        m->move = move ? move : m->move;
        if (!at || !spare || !move)
            return -1;
        m->n_room = room;
    }
    m->at[m->n] = (struct context){ .change = -1 };
    m->move[m->n] = 0;
    return m->n++;
}

int incremental_add(struct incremental *m, const struct plan_candidates *o, int *context, struct err *err)
{
    *context = new_number(m);
    if (*context < 0)
        return err_nomem(err);
    struct context *c = &m->at[*context];
    begin(m);
    c->now = point_recomputed;
    if (keep_points(m, c, m->scratch, find_points(m, &m->work, m->scratch, o)))
        return err_nomem(err);
    m->state.n_contexts++;
    sum_add(&m->bound, c->best);
    put(m, *context, best_point(m, c, NULL));
    return settle(m, err);
}

int incremental_update(struct incremental *m, int context, const struct plan_candidates *o, struct err *err)
{
    struct context *c = &m->at[context];
    struct plan_placement placement = { c->now.config, c->now.tier };
    int stays = c->now.tier == PLAN_RECOMPUTE || plan_candidate_ok(o, &m->problem, placement.config, placement.tier);

    begin(m);
    sum_add(&m->bound, -c->best);
    if (keep_points(m, c, m->scratch, find_points(m, &m->work, m->scratch, o)))
        return err_nomem(err);
    sum_add(&m->bound, c->best);
    struct point now = stays ? point_of(m, o, placement) : c->point[0];
    put(m, context, best_point(m, c, &now));
    return settle(m, err);
}

int incremental_remove(struct incremental *m, int context, struct err *err)
{
    struct context *c = &m->at[context];

    begin(m);
    note_change(m, context);
    sum_add(&m->bound, -c->best);
    count_place(m, &c->now, -1);
    c->now = point_recomputed;
    m->move[context]++;
    free(c->point);
    c->point = NULL;
    c->n_points = 0;
    m->state.n_contexts--;
    m->spare[m->n_spare++] = context;
    return settle(m, err);
}

/* ---- making one -------------------------------------------------------------------- */

/* The points of all contexts of the plan. */
static int take_contexts(struct incremental *m, const struct plan_problem *problem, const struct plan *plan)
{
    int failed = 0;

#pragma omp parallel reduction(| : failed) if (problem->n_contexts > HULL_CHUNK)
    {
        struct hull_work w;
        struct plan_candidates o = { 0 };
        struct err mine;
        struct point *points = calloc((size_t)problem->n_configs * (size_t)m->n_finite + 1, sizeof(*points));
        failed |= hull_work_init(&w, problem, &mine) || plan_candidates_init(&o, problem, &mine) || !points;
#pragma omp for schedule(dynamic, 256)
        for (int i = 0; i < problem->n_contexts; i++) {
            struct context *c = &m->at[i];
            if (failed)
                continue;
            plan_candidates_get(&o, problem, i);
            c->change = -1;
            c->now = point_of(m, &o, plan->placement[i]);
            failed |= keep_points(m, c, points, find_points(m, &w, points, &o));
        }
        plan_candidates_release(&o);
        hull_work_release(&w);
        free(points);
    }
    return failed;
}

static int set_up(struct incremental *m, const struct plan_problem *problem, const struct plan *plan, struct err *err)
{
    for (int t = 0; t < problem->n_tiers; t++) {
        m->capacity[t] = m->state.room[t] = problem->capacity[t];
        if (problem->capacity[t] == INT64_MAX)
            continue;
        lazy_heap_init(&m->leave[m->n_finite]);
        lazy_heap_init(&m->enter[m->n_finite]);
        m->price[m->n_finite] = plan->price[t];
        m->room[m->n_finite] = problem->capacity[t];
        sum_add(&m->bound, plan->price[t] > 0 ? plan->price[t] * (double)problem->capacity[t] : 0);
        m->tier[m->n_finite++] = t;
    }
    m->n = m->state.n_contexts = problem->n_contexts;
    m->n_room = m->n + m->n / 4 + FIRST_ROOM; /* moving all of them takes long: not in one of the first events */
    m->at = calloc((size_t)m->n_room, sizeof(*m->at));
    m->move = calloc((size_t)m->n_room, sizeof(*m->move));
    m->spare = calloc((size_t)m->n_room, sizeof(*m->spare));
    m->scratch = calloc((size_t)problem->n_configs * (size_t)m->n_finite + 1, sizeof(*m->scratch));
    if (!m->at || !m->move || !m->spare || !m->scratch || hull_work_init(&m->work, problem, err) ||
        take_contexts(m, problem, plan))
        return err_nomem(err);
    for (int i = 0; i < m->n; i++) {
        sum_add(&m->bound, m->at[i].best);
        count_place(m, &m->at[i].now, 1);
    }
    for (int i = 0; i < m->n; i++)
        push_steps(m, i);
    for (int d = 0; d < m->n_finite; d++)
        m->failed |= lazy_heap_want(&m->leave[d], WINDOW) | lazy_heap_want(&m->enter[d], WINDOW);
    begin(m);
    return settle(m, err);
}

struct incremental *incremental_new(const struct plan_problem *problem, const struct plan *plan, struct err *err)
{
    struct incremental *m = calloc(1, sizeof(*m));

    if (!m) {
        err_nomem(err);
        return NULL;
    }
    m->problem = (struct plan_problem){ 0, problem->n_configs, problem->n_tiers, m->capacity, NULL, NULL };
    if (!set_up(m, problem, plan, err))
        return m;
    incremental_free(m);
    return NULL;
}

void incremental_free(struct incremental *m)
{
    if (!m)
        return;
    for (int i = 0; m->at && i < m->n; i++)
        free(m->at[i].point);
    for (int d = 0; d < m->n_finite; d++) {
        lazy_heap_release(&m->leave[d]);
        lazy_heap_release(&m->enter[d]);
    }
    hull_work_release(&m->work);
    free(m->at);
    free(m->move);
    free(m->spare);
    free(m->scratch);
    changes_release(&m->changes);
    free(m);
}

struct plan_placement incremental_placement(const struct incremental *m, int context)
{
    return (struct plan_placement){ m->at[context].now.config, m->at[context].now.tier };
}

const struct incremental_state *incremental_state(const struct incremental *m)
{
    return &m->state;
}
