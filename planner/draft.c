#include "planner/draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 20000, BUCKETS = 192, FILL_PASSES = 8 };

int draft_init(struct draft *d, const struct hull *h, const struct dual *dual, struct err *err)
{
    *d = (struct draft){ .h = h, .dual = dual, .spot = calloc((size_t)h->n_contexts + 1, sizeof(*d->spot)) };
    for (int t = 0; t < h->n_tiers; t++)
        d->room[t] = h->capacity[t];
    for (int i = 0; d->spot && i < h->n_contexts; i++)
        d->spot[i] = draft_spot(h, i, HULL_BASE);
    return d->spot ? 0 : err_nomem(err);
}

void draft_release(struct draft *d)
{
    free(d->spot);
    *d = (struct draft){ 0 };
}

struct spot draft_spot(const struct hull *h, int context, int64_t point)
{
    const struct hull_chunk *c = hull_chunk_of(h, context);
    int i = context % HULL_CHUNK;

    if (point == HULL_BASE)
        return (struct spot){ c->base_size[i], c->base[i], c->choice[i], -1 };
    int d = hull_point_tier(h, c, i, point);
    return (struct spot){ c->size[point], c->utility[point], { c->config[point], h->tier[d] }, d };
}

void draft_put(struct draft *d, int context, struct spot to)
{
    struct spot *at = &d->spot[context];

    if (at->tier >= 0)
        d->room[at->tier] += at->size;
    if (to.tier >= 0)
        d->room[to.tier] -= to.size;
    *at = to;
}

double draft_total(const struct draft *d)
{
    double sum = 0, lost = 0;

    for (int i = 0; i < d->h->n_contexts; i++) {
        double term = d->spot[i].utility - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
}

static double worth(const struct draft *d, const struct spot *s)
{
    return s->tier < 0 ? s->utility : s->utility - d->dual->price[s->tier] * s->size;
}

double draft_loss(const struct draft *d, int context, const struct spot *at)
{
    double best;

    hull_best(d->h, hull_chunk_of(d->h, context), context % HULL_CHUNK, d->dual->price, &best);
    return fmax(best - worth(d, at), 0);
}

int move_compare(const void *a, const void *b)
{
    const struct move *x = a, *y = b;

    if (x->loss < y->loss || x->loss > y->loss)
        return x->loss < y->loss ? -1 : 1;
    if (x->context != y->context)
        return x->context - y->context;
    if (x->to.choice.tier != y->to.choice.tier)
        return x->to.choice.tier - y->to.choice.tier;
    return x->to.choice.config - y->to.choice.config;
}

/* ---- rounding ------------------------------------------------------------- */

/* Of the plans' spots for one context, the one that brings the running error of every tier's fill closest to nothing.
 */
static struct spot deal(const struct draft *d, const struct spot *of, double *error)
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
static int plan_points(const struct draft *d, int context, int64_t *point)
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

void draft_round(struct draft *d)
{
    double error[PLAN_TIERS] = { 0 };
    int n = d->h->n_contexts;

#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
        int64_t point[PLAN_TIERS + 1];
        d->spot[i].tier = -2; /* still to be dealt */
        if (plan_points(d, i, point))
            d->spot[i] = draft_spot(d->h, i, point[0]);
    }
    for (int i = 0; i < n; i++) {
        int64_t point[PLAN_TIERS + 1];
        struct spot of[PLAN_TIERS + 1];
        if (d->spot[i].tier == -2) {
            plan_points(d, i, point);
            for (int k = 0; k < d->dual->n_plans; k++)
                of[k] = draft_spot(d->h, i, point[k]);
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

/* Calls each(arg, move) for every place of the contexts of one chunk that is not their present one. */
static void each_move(const struct draft *d, int chunk, void (*each)(void *arg, const struct move *m), void *arg)
{
    const struct hull *h = d->h;
    const struct hull_chunk *c = &h->chunk[chunk];

    for (int i = 0; i < c->n; i++) {
        int context = chunk * HULL_CHUNK + i;
        const struct spot *now = &d->spot[context];
        double best;
        hull_best(h, c, i, d->dual->price, &best);
        for (int t = -1; t < h->n_tiers; t++) {
            int64_t from = t < 0 ? HULL_BASE : (int64_t)c->first[i * h->n_tiers + t];
            int64_t to = t < 0 ? HULL_BASE + 1 : (int64_t)c->first[i * h->n_tiers + t + 1];
            for (int64_t p = from; p < to; p++) {
                struct move m = { .context = context, .to = draft_spot(h, context, p) };
                if (m.to.choice.tier == now->choice.tier && m.to.choice.config == now->choice.config)
                    continue;
                m.loss = fmax(best - worth(d, &m.to), 0);
                each(arg, &m);
            }
        }
    }
}

struct gather {
    int count[PLAN_TIERS + 1][BUCKETS]; // by destination, -1 first
    int last[PLAN_TIERS + 1];           // highest bucket taken
    struct move *at;
    int n, room;
    int failed;
};

static void count_move(void *arg, const struct move *m)
{
    ((struct gather *)arg)->count[m->to.tier + 1][bucket(m->loss)]++;
}

static void take_move(void *arg, const struct move *m)
{
    struct gather *g = arg;

    if (bucket(m->loss) > g->last[m->to.tier + 1] || g->failed)
        return;
    if (g->n == g->room) {
        int room = g->room ? 2 * g->room : 1024;
        struct move *at = realloc(g->at, (size_t)room * sizeof(*at));
        if (!at) {
            g->failed = 1;
            return;
        }
        g->at = at;
        g->room = room;
    }
    g->at[g->n++] = *m;
}

static void add_counts(struct gather *all, const struct gather *one)
{
    for (int t = 0; t <= PLAN_TIERS; t++)
        for (int b = 0; b < BUCKETS; b++)
            all->count[t][b] += one->count[t][b];
}

/* As many moves per destination as asked for, those of least loss; a destination must not crowd out another. */
static int gather_moves(const struct draft *d, struct gather *g, struct err *err)
{
    int quota = CANDIDATES / (d->h->n_tiers + 1);

    *g = (struct gather){ 0 };
    struct gather *part = calloc((size_t)d->h->n_chunks + 1, sizeof(*part));
    if (!part)
        return err_nomem(err);
#pragma omp parallel for schedule(dynamic, 1)
    for (int c = 0; c < d->h->n_chunks; c++)
        each_move(d, c, count_move, &part[c]);
    for (int c = 0; c < d->h->n_chunks; c++)
        add_counts(g, &part[c]);
    for (int t = 0; t <= d->h->n_tiers; t++)
        for (int n = 0; g->last[t] < BUCKETS - 1 && (n += g->count[t][g->last[t]]) < quota;)
            g->last[t]++;
#pragma omp parallel for schedule(dynamic, 1)
    for (int c = 0; c < d->h->n_chunks; c++) {
        memcpy(part[c].last, g->last, sizeof(g->last));
        each_move(d, c, take_move, &part[c]);
    }
    for (int c = 0; c < d->h->n_chunks; c++) {
        for (int k = 0; k < part[c].n; k++)
            take_move(g, &part[c].at[k]);
        g->failed |= part[c].failed;
        free(part[c].at);
    }
    free(part);
    if (!g->failed) {
        if (g->n > 0)
            qsort(g->at, (size_t)g->n, sizeof(*g->at), move_compare);
        return 0;
    }
    free(g->at);
    return err_nomem(err);
}

/* ---- repair ------------------------------------------------------------------ */

static double overload(const struct draft *d, int tier)
{
    return tier >= 0 && d->room[tier] < 0 ? -d->room[tier] : 0;
}

/* How many bytes of overload a move ends, on its old and new tier together. */
static double relief(const struct draft *d, const struct move *m)
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

static const struct move *cheapest(const struct draft *d, const struct move *at, int n)
{
    const struct move *best = NULL;
    double least = HUGE_VAL;

    for (int k = 0; k < n; k++) {
        double end = relief(d, &at[k]);
        if (end <= 0)
            continue;
        double cost = (worth(d, &d->spot[at[k].context]) - worth(d, &at[k].to)) / end;
        if (cost < least) {
            least = cost;
            best = &at[k];
        }
    }
    return best;
}

struct search {
    const struct draft *d;
    struct move best;
    double least;
};

static void search_move(void *arg, const struct move *m)
{
    struct search *s = arg;
    double end = relief(s->d, m);
    double cost = end > 0 ? (worth(s->d, &s->d->spot[m->context]) - worth(s->d, &m->to)) / end : HUGE_VAL;

    if (cost < s->least) {
        s->least = cost;
        s->best = *m;
    }
}

static int overloaded(const struct draft *d)
{
    for (int t = 0; t < d->h->n_tiers; t++)
        if (d->room[t] < 0)
            return 1;
    return 0;
}

static void end_overloads(struct draft *d, const struct gather *g)
{
    while (overloaded(d)) {
        const struct move *m = cheapest(d, g->at, g->n);
        struct search s = { .d = d, .least = HUGE_VAL };
        if (!m) { /* not among the cheap ones: look at all; the base, which takes no room, is always there */
            for (int c = 0; c < d->h->n_chunks; c++)
                each_move(d, c, search_move, &s);
            m = &s.best;
        }
        draft_put(d, m->context, m->to);
    }
}

/* Does the move fit, and is it for the better? */
static int improves(const struct draft *d, const struct move *m)
{
    const struct spot *now = &d->spot[m->context];

    if (m->to.utility <= now->utility)
        return 0;
    return m->to.tier < 0 || m->to.size <= d->room[m->to.tier] + (m->to.tier == now->tier ? now->size : 0);
}

int draft_repair(struct draft *d, struct err *err)
{
    struct gather g;
    int changed = 1;

    if (gather_moves(d, &g, err))
        return err->code;
    end_overloads(d, &g);
    for (int pass = 0; pass < FILL_PASSES && changed; pass++) {
        changed = 0;
        for (int k = 0; k < g.n; k++) {
            if (!improves(d, &g.at[k]))
                continue;
            draft_put(d, g.at[k].context, g.at[k].to);
            changed = 1;
        }
    }
    free(g.at);
    return 0;
}

int draft_from_plan(struct draft *d, const struct plan_problem *problem, const struct plan_choice *choice,
                    struct err *err)
{
    struct plan_options o;

    if (plan_options_init(&o, problem, err))
        return err->code;
    for (int i = 0; i < problem->n_contexts; i++) {
        struct spot s = { 0, 0, choice[i], -1 };
        plan_options_get(&o, problem, i);
        s.utility = plan_option_utility(&o, problem, choice[i]);
        if (choice[i].tier != PLAN_RECOMPUTE) {
            s.size = (double)o.bytes[choice[i].config];
            s.tier = s.size > 0 ? hull_tier(d->h, choice[i].tier) : -1;
        }
        draft_put(d, i, s);
    }
    plan_options_release(&o);
    return 0;
}
