/* incumbent.c - bookkeeping of an incumbent: free bytes, objective, losses and gains. */
#include "planner/incumbent.h"

#include "planner/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int incumbent_init(struct incumbent *x, const struct dual *dual, struct err *err)
{
    const struct hull *h = dual->h;

    *x = (struct incumbent){ .h = h, .dual = dual, .at = calloc((size_t)h->n_contexts + 1, sizeof(*x->at)) };
    memcpy(x->free, h->knapsack.capacity, sizeof(x->free));
    return x->at ? 0 : err_nomem(err);
}

void incumbent_release(struct incumbent *x)
{
    free(x->at);
    *x = (struct incumbent){ 0 };
}

void incumbent_apply(struct incumbent *x, const struct move *m)
{
    struct candidate *at = &x->at[m->context];

    if (at->knapsack >= 0)
        x->free[at->knapsack] += at->bytes;
    if (m->to.knapsack >= 0)
        x->free[m->to.knapsack] -= m->to.bytes;
    *at = m->to;
}

double incumbent_objective(const struct incumbent *x)
{
    struct sum sum = { 0, 0 };

    for (int i = 0; i < x->h->n_contexts; i++)
        sum_add(&sum, x->at[i].utility);
    return sum.value;
}

double incumbent_gap(const struct incumbent *x)
{
    return x->dual->bound - incumbent_objective(x);
}

bool incumbent_is_close(const struct incumbent *x)
{
    static const double close_enough = 1e-6; /* share of the bound */

    return incumbent_gap(x) <= close_enough * fabs(x->dual->bound);
}

double incumbent_rounding(const struct incumbent *x)
{
    static const double relative = 4e-13;
    double scale = fabs(x->dual->bound);

    for (int i = 0; i < x->h->n_contexts; i++)
        scale += fabs(x->at[i].utility);
    return relative * scale;
}

double incumbent_reduced_value(const struct incumbent *x, const struct candidate *c)
{
    return candidate_reduced_value(c, x->dual->price);
}

double incumbent_best_value(const struct incumbent *x, int context)
{
    int32_t fixed = x->dual->fixed[context];
    double best;

    if (fixed != RESTRICTED_OPEN) {
        struct candidate c = hull_candidate(x->h, context, fixed);
        return incumbent_reduced_value(x, &c);
    }
    hull_best(x->h, hull_chunk_of(x->h, context), context % HULL_CHUNK, x->dual->price, &best);
    return best;
}

double incumbent_loss(const struct incumbent *x, int context, const struct candidate *c)
{
    return fmax(incumbent_best_value(x, context) - incumbent_reduced_value(x, c), 0);
}
