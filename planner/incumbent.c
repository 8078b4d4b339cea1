#include "planner/incumbent.h"

#include "planner/sum.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 20000, SAMPLE = 65536, BUCKETS = 192, FILL_PASSES = 8, FIRST_ROOM = 1024 };

int incumbent_init(struct incumbent *d, const struct hull *h, const struct dual *dual, struct err *err)
{
    *d = (struct incumbent){ .h = h, .dual = dual, .spot = calloc((size_t)h->n_contexts + 1, sizeof(*d->spot)) };
    for (int t = 0; t < h->n_tiers; t++)
        d->room[t] = h->capacity[t];
    return d->spot ? 0 : err_nomem(err);
}

void incumbent_release(struct incumbent *d)
{
    free(d->spot);
    *d = (struct incumbent){ 0 };
}

struct spot incumbent_candidate(const struct hull *h, int context, int64_t point)
{
    const struct hull_chunk *c = hull_chunk_of(h, context);
    int i = context % HULL_CHUNK;

    if (point == HULL_BASE)
        return (struct spot){ c->base_size[i], c->base[i], c->placement[i], -1 };
    int d = hull_point_tier(h, c, i, point);
    return (struct spot){ c->size[point], c->utility[point], { c->config[point], h->tier[d] }, d };
}

void incumbent_put(struct incumbent *d, int context, struct spot to)
{
    struct spot *at = &d->spot[context];

    if (at->tier >= 0)
        d->room[at->tier] += at->size;
    if (to.tier >= 0)
        d->room[to.tier] -= to.size;
    *at = to;
}

double incumbent_total(const struct incumbent *d)
{
    struct sum sum = { 0, 0 };

    for (int i = 0; i < d->h->n_contexts; i++)
        sum_add(&sum, d->spot[i].utility);
    return sum.value;
}

double incumbent_value(const struct incumbent *d, const struct spot *s)
{
    return s->tier < 0 ? s->utility : s->utility - d->dual->price[s->tier] * s->size;
}

bool incumbent_is_close(const struct incumbent *d)
{
    static const double close_enough = 1e-6; /* share of the bound */

    return d->dual->bound - incumbent_total(d) <= close_enough * fabs(d->dual->bound);
}

double incumbent_best(const struct incumbent *d, int context)
{
    const struct hull_chunk *c = hull_chunk_of(d->h, context);
    int32_t fixed = d->dual->fixed[context];
    double best;

    if (fixed != RESTRICTED_OPEN) {
        struct spot s = incumbent_candidate(d->h, context, fixed);
        return incumbent_value(d, &s);
    }
    hull_best(d->h, c, context % HULL_CHUNK, d->dual->price, &best);
    return best;
}

double incumbent_loss(const struct incumbent *d, int context, const struct spot *at)
{
    return fmax(incumbent_best(d, context) - incumbent_value(d, at), 0);
}

static bool same_placement(struct plan_placement a, struct plan_placement b)
{
    return a.tier == b.tier && a.config == b.config;
}

static int compare(const void *a, const void *b)
{
    const struct move *x = a, *y = b;

    if (x->loss < y->loss || x->loss > y->loss)
        return x->loss < y->loss ? -1 : 1;
    if (x->context != y->context)
        return x->context - y->context;
    if (x->to.placement.tier != y->to.placement.tier)
        return x->to.placement.tier - y->to.placement.tier;
    return x->to.placement.config - y->to.placement.config;
}

int moves_add(struct moves *l, const struct move *m)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : FIRST_ROOM;
        struct move *at = realloc(l->at, (size_t)room * sizeof(*at));
        if (!at)
            return -1;
        l->at = at;
        l->room = room;
    }
    l->at[l->n++] = *m;
    return 0;
}

void moves_sort(struct moves *l, int most)
{
    if (l->n > 0)
        qsort(l->at, (size_t)l->n, sizeof(*l->at), compare);
    l->n = l->n < most ? l->n : most;
}

void moves_release(struct moves *l)
{
    free(l->at);
    *l = (struct moves){ 0 };
}

/* ---- rounding ------------------------------------------------------------- */

/* Of the plans' spots for one context, the one that brings the running error of every tier's fill closest to nothing.
 */
static struct spot deal(const struct incumbent *d, const struct spot *of, double *error)
{
    const struct dual *dual = d->dual;
    double mean[PLAN_TIERS] = { 0 }, least = HUGE_VAL;
    int best = 0, n = d->h->n_tiers;

    for (int k = 0; k < dual->n_plans; k++)
        if (of[k].tier >= 0)
            mean[of[k].tier] += dual->weight[k] * of[k].size;
    for (int k = 0; k < dual->n_plans; k++) {
        double sum = 0;
        for (int t = 0; t < n; t++) {
            double e = (error[t] - mean[t] + (of[k].tier == t ? of[k].size : 0)) / (d->h->capacity[t] + 1);
            sum += e * e;
        }
        if (sum < least) {
            least = sum;
            best = k;
        }
    }
    for (int t = 0; t < n; t++)
        error[t] += (of[best].tier == t ? of[best].size : 0) - mean[t];
    return of[best];
}

/* The spots that the dual's plans give one context; returns whether they are all the same. */
static int plan_points(const struct incumbent *d, int context, int64_t *point)
{
    const struct hull_chunk *c = hull_chunk_of(d->h, context);
    double value;
    int same = 1;

    for (int k = 0; k < d->dual->n_plans; k++) {
        point[k] = hull_best(d->h, c, context % HULL_CHUNK, d->dual->plan_price[k], &value);
        same &= point[k] == point[0];
    }
    return same;
}

void incumbent_round(struct incumbent *d)
{
    double error[PLAN_TIERS] = { 0 };
    int n = d->h->n_contexts;

#pragma omp parallel for schedule(static) if (d->h->n_chunks > 1)
    for (int i = 0; i < n; i++) {
        int64_t point[PLAN_TIERS + 1] = { d->dual->fixed[i] };
        d->spot[i].tier = -2; /* still to be dealt */
        if (point[0] != RESTRICTED_OPEN || plan_points(d, i, point))
            d->spot[i] = incumbent_candidate(d->h, i, point[0]);
    }
    for (int i = 0; i < n; i++) {
        int64_t point[PLAN_TIERS + 1];
        struct spot of[PLAN_TIERS + 1];
        if (d->spot[i].tier == -2) {
            plan_points(d, i, point);
            for (int k = 0; k < d->dual->n_plans; k++)
                of[k] = incumbent_candidate(d->h, i, point[k]);
            d->spot[i] = deal(d, of, error);
        }
        if (d->spot[i].tier >= 0)
            d->room[d->spot[i].tier] -= d->spot[i].size;
    }
}

/* ---- candidates for repair: the moves that lose least ------------------------ */

/* Losses by powers of two: finer than any threshold needs to be. */
static int bucket(double loss)
{
    if (!(loss > 0))
        return 0;
    int b = ilogb(loss) + BUCKETS / 2;
    return b < 1 ? 1 : b >= BUCKETS ? BUCKETS - 1 : b;
}

/* Calls each(arg, move) for the places of some contexts of one chunk that are not their present one, and lose less than
 * below[tier + 1] there (NULL: whatever they lose). stride: every so many contexts are looked at. */
static void each_move(const struct incumbent *d, int chunk, int stride, const double *below,
                      void (*each)(void *arg, const struct move *m), void *arg)
{
    const struct hull *h = d->h;
    const struct hull_chunk *c = &h->chunk[chunk];

    for (int i = 0; i < c->n; i += stride) {
        const uint32_t *first = c->first + i * h->n_tiers;
        struct move m = { .context = chunk * HULL_CHUNK + i };
        double best = incumbent_best(d, m.context);
        for (int t = -1; t < h->n_tiers; t++) {
            int64_t from = t < 0 ? HULL_BASE : (int64_t)first[t], to = t < 0 ? HULL_BASE + 1 : (int64_t)first[t + 1];
            for (int64_t p = from; p < to; p++) {
                double own = t < 0 ? c->base[i] : c->utility[p] - d->dual->price[t] * c->size[p];
                m.loss = best > own ? best - own : 0;
                if (below && m.loss >= below[t + 1])
                    continue;
                m.to = incumbent_candidate(h, m.context, p);
                if (!same_placement(m.to.placement, d->spot[m.context].placement))
                    each(arg, &m);
            }
        }
    }
}

struct gather {
    int64_t count[PLAN_TIERS + 1][BUCKETS]; // by destination, -1 first
    struct moves moves;
    int failed;
};

static void count_move(void *arg, const struct move *m)
{
    ((struct gather *)arg)->count[m->to.tier + 1][bucket(m->loss)]++;
}

static void take_move(void *arg, const struct move *m)
{
    struct gather *g = arg;

    g->failed = g->failed || moves_add(&g->moves, m);
}

/* Per destination the loss below which there are about as many moves as asked for, judged by a sample of the contexts;
 * a destination must not crowd out another. */
static void find_limits(const struct incumbent *d, struct gather *part, double *below)
{
    int stride = d->h->n_contexts / SAMPLE + 1, quota = CANDIDATES / (d->h->n_tiers + 1) / stride + 1;

#pragma omp parallel for schedule(dynamic, 1) if (d->h->n_chunks > 1)
    for (int c = 0; c < d->h->n_chunks; c++)
        each_move(d, c, stride, NULL, count_move, &part[c]);
    for (int t = 0; t <= d->h->n_tiers; t++) {
        int64_t n = 0;
        int b = 0;
        for (; b < BUCKETS && n < quota; b++)
            for (int c = 0; c < d->h->n_chunks; c++)
                n += part[c].count[t][b];
        below[t] = b == BUCKETS ? HUGE_VAL : ldexp(1, b - BUCKETS / 2);
    }
}

/* The moves that lose least, sorted. On failure there is nothing to release. */
static int gather_moves(const struct incumbent *d, struct moves *moves, struct err *err)
{
    double below[PLAN_TIERS + 1];
    int failed = 0;
    struct gather *part = calloc((size_t)d->h->n_chunks + 1, sizeof(*part));

    *moves = (struct moves){ 0 };
    if (!part)
        return err_nomem(err);
    find_limits(d, part, below);
#pragma omp parallel for schedule(dynamic, 1) if (d->h->n_chunks > 1)
    for (int c = 0; c < d->h->n_chunks; c++)
        each_move(d, c, 1, below, take_move, &part[c]);
    for (int c = 0; c < d->h->n_chunks; c++) {
        for (int k = 0; k < part[c].moves.n; k++)
            failed = failed || moves_add(moves, &part[c].moves.at[k]);
        failed |= part[c].failed;
        moves_release(&part[c].moves);
    }
    free(part);
    if (!failed) {
        moves_sort(moves, INT_MAX);
        return 0;
    }
    moves_release(moves);
    return err_nomem(err);
}

/* ---- repair ------------------------------------------------------------------ */

static double overload(const struct incumbent *d, int tier)
{
    return tier >= 0 && d->room[tier] < 0 ? -d->room[tier] : 0;
}

/* How many bytes of overload a move ends, on its old and new tier together. */
static double relief(const struct incumbent *d, const struct move *m)
{
    const struct spot *now = &d->spot[m->context];

    if (now->tier == m->to.tier) {
        double after = now->tier < 0 ? 0 : d->room[now->tier] + now->size - m->to.size;
        return overload(d, now->tier) - (after < 0 ? -after : 0);
    }
    double end = 0;
    if (now->tier >= 0)
        end = fmin(overload(d, now->tier), now->size);
    if (m->to.tier >= 0)
        end -= fmax(m->to.size - fmax(d->room[m->to.tier], 0), 0);
    return end;
}

static const struct move *cheapest(const struct incumbent *d, const struct move *at, int n)
{
    const struct move *best = NULL;
    double least = HUGE_VAL;

    for (int k = 0; k < n; k++) {
        double end = relief(d, &at[k]);
        if (end <= 0)
            continue;
        double cost = (incumbent_value(d, &d->spot[at[k].context]) - incumbent_value(d, &at[k].to)) / end;
        if (cost < least) {
            least = cost;
            best = &at[k];
        }
    }
    return best;
}

struct search {
    const struct incumbent *d;
    struct move best;
    double least;
};

static void search_move(void *arg, const struct move *m)
{
    struct search *s = arg;
    double end = relief(s->d, m);
    double cost =
        end > 0 ? (incumbent_value(s->d, &s->d->spot[m->context]) - incumbent_value(s->d, &m->to)) / end : HUGE_VAL;

    if (cost < s->least) {
        s->least = cost;
        s->best = *m;
    }
}

static int overloaded(const struct incumbent *d)
{
    for (int t = 0; t < d->h->n_tiers; t++)
        if (d->room[t] < 0)
            return 1;
    return 0;
}

static void end_overloads(struct incumbent *d, const struct moves *moves)
{
    while (overloaded(d)) {
        const struct move *m = cheapest(d, moves->at, moves->n);
        struct search s = { .d = d, .least = HUGE_VAL };
        if (!m) { /* not among the cheap ones: look at all; the base, which takes no room, is always there */
            for (int c = 0; c < d->h->n_chunks; c++)
                each_move(d, c, 1, NULL, search_move, &s);
            m = &s.best;
        }
        incumbent_put(d, m->context, m->to);
    }
}

/* Does the move fit, and is it for the better? */
static int improves(const struct incumbent *d, const struct move *m)
{
    const struct spot *now = &d->spot[m->context];

    if (m->to.utility <= now->utility)
        return 0;
    return m->to.tier < 0 || m->to.size <= d->room[m->to.tier] + (m->to.tier == now->tier ? now->size : 0);
}

int incumbent_repair(struct incumbent *d, struct err *err)
{
    struct moves moves;
    int changed = 1;

    if (gather_moves(d, &moves, err))
        return err->code;
    end_overloads(d, &moves);
    for (int pass = 0; pass < FILL_PASSES && changed; pass++) {
        changed = 0;
        for (int k = 0; k < moves.n; k++) {
            if (!improves(d, &moves.at[k]))
                continue;
            incumbent_put(d, moves.at[k].context, moves.at[k].to);
            changed = 1;
        }
    }
    moves_release(&moves);
    return 0;
}

int incumbent_from_plan(struct incumbent *d, const struct plan_problem *problem, const struct plan_placement *placement,
                        struct err *err)
{
    struct plan_candidates o;

    if (plan_candidates_init(&o, problem, err))
        return err->code;
    for (int i = 0; i < problem->n_contexts; i++) {
        struct spot s = { 0, 0, placement[i], -1 };
        plan_candidates_get(&o, problem, i);
        s.utility = plan_candidate_utility(&o, problem, placement[i]);
        if (placement[i].tier != PLAN_RECOMPUTE) {
            s.size = (double)o.bytes[placement[i].config];
            s.tier = s.size > 0 ? hull_tier(d->h, placement[i].tier) : -1;
        }
        if (s.tier >= 0)
            d->room[s.tier] -= s.size;
        d->spot[i] = s;
    }
    plan_candidates_release(&o);
    return 0;
}
