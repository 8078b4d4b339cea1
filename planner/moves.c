/* moves.c - sorts, applies and finds moves. */
#include "planner/moves.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct move *m = a, *n = b;

    if (m->loss < n->loss || m->loss > n->loss)
        return m->loss < n->loss ? -1 : 1;
    if (m->context != n->context)
        return m->context - n->context;
    if (m->to.tier != n->to.tier)
        return m->to.tier - n->to.tier;
    return m->to.config - n->to.config;
}

void moves_sort(struct moves *l, int max)
{
    if (l->n > 0)
        qsort(l->at, (size_t)l->n, sizeof(*l->at), compare);
    l->n = l->n < max ? l->n : max;
}

void moves_release(struct moves *l)
{
    free(l->at);
    *l = (struct moves){ 0 };
}

bool moves_apply_gains(const struct moves *l, struct incumbent *x)
{
    bool changed = false;

    for (int k = 0; k < l->n; k++) {
        const struct move *m = &l->at[k];
        if (incumbent_gain(x, m) <= 0 || (m->to.knapsack >= 0 && incumbent_free_after(x, m, m->to.knapsack) < 0))
            continue;
        incumbent_apply(x, m);
        changed = true;
    }
    return changed;
}

/* ---- finding ---------------------------------------------------------------- */

struct finder {
    struct moves *moves;
    const struct incumbent *x;
    const struct plan_problem *problem;
    const struct moves_filter *filter;
    struct plan_candidates all;
    struct hull_work work;
};

static int add(struct finder *f, struct move m)
{
    return f->filter->price(f->filter->arg, &m) ? ARRAY_PUSH(f->moves, m) : 0;
}

/* Adds the moves to the base, then to every variant in every knapsack. */
static int add_moves(struct finder *f, int context)
{
    const struct plan_problem *p = f->problem;
    const struct knapsacks *sacks = &f->x->h->knapsack;
    const struct hull_work *w = &f->work;
    struct candidate base = hull_base(&f->work, &f->all, p);
    int failed = add(f, (struct move){ context, 0, base });

    for (int d = 0; d < sacks->n; d++) {
        double top = f->filter->undominated ? base.utility : -HUGE_VAL;
        const struct hull_configs in = hull_configs_in(&f->work, &f->all, p, d);
        for (int k = w->stored; k < w->n_configs && w->sorted_bytes[k] <= (double)sacks->capacity[d] && !failed; k++) {
            int v = w->order[k];
            double u = in.utility[v * in.stride];
            if (!(u > top)) /* or NAN */
                continue;
            top = f->filter->undominated ? u : top;
            int8_t tier = in.tier ? in.tier[v] : in.one_tier;
            struct candidate to = { f->all.bytes[v], u, (uint16_t)v, tier, (int8_t)d };
            failed = add(f, (struct move){ context, 0, to });
        }
    }
    return failed;
}

int moves_find(struct moves *l, const struct incumbent *x, const struct plan_problem *problem,
               const struct moves_filter *filter, struct err *err)
{
    struct finder f = { .moves = l, .x = x, .problem = problem, .filter = filter };
    int failed = plan_candidates_init(&f.all, problem, err) || hull_work_init(&f.work, problem, err);

    l->n = 0;
    for (int i = 0; i < problem->n_contexts && !failed; i++) {
        plan_candidates_get(&f.all, problem, i);
        failed = add_moves(&f, i);
    }
    plan_candidates_release(&f.all);
    hull_work_release(&f.work);
    moves_sort(l, MOVES_MAX);
    return failed ? err_nomem(err) : 0;
}
