/* restricted.c - blocks the size of a hull's chunk: built by all threads, evaluated by all threads, summed in order. */
#include "planner/restricted.h"

#include "base/parallel.h"
#include "planner/sum.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct restricted_block {
    int n;                                 // open contexts
    uint32_t *first;                       // (n + 1) first candidate of each
    struct candidate *at;                  // the candidates
    double utility, demand[PLAN_TIERS];    // of the fixed contexts
    double value, open_demand[PLAN_TIERS]; // of the open contexts, at the last prices
};

void restricted_release(struct restricted *r)
{
    for (int b = 0; r->block && b < r->n_blocks; b++) {
        free(r->block[b].first);
        free(r->block[b].at);
    }
    free(r->block);
    r->block = NULL;
    r->n_blocks = 0;
}

/* ---- building --------------------------------------------------------------- */

/* The inputs of every block. */
struct source {
    struct restricted_block *block;
    const struct hull *h;
    const struct sample *sample;
    const struct box *box;
    int32_t *fixed;
    atomic_int failed;
};

static int context_of(const struct source *s, int k)
{
    return s->sample->context ? s->sample->context[k] : k;
}

/* Writes the candidates of a context that can win in the box to `to` and returns their number. If it is 1, *only is
 * that candidate's point. A knapsack's best reduced value falls as its price rises, so a knapsack cannot win whose best
 * value at its lowest price is not above another one's at its highest price. */
static int find_candidates(const struct source *s, int context, struct candidate *to, int64_t *only)
{
    const struct hull *h = s->h;
    const struct hull_chunk *c = hull_chunk_of(h, context);
    struct candidate base = c->base[context % HULL_CHUNK];
    double max_offer[PLAN_TIERS], best = base.utility;
    int64_t low[PLAN_TIERS], high[PLAN_TIERS];
    int n = 0, winner = -1;

    for (int d = 0; d < h->knapsack.n; d++) {
        const uint32_t *first = hull_first(h, context) + d;
        double min_offer = max_offer[d] = base.utility;
        high[d] = hull_best_in(c, first, s->box->high[d], &min_offer);
        low[d] = hull_best_in(c, first, s->box->low[d], &max_offer[d]);
        winner = min_offer > best ? d : winner;
        best = min_offer > best ? min_offer : best;
    }
    *only = HULL_BASE;
    if (winner < 0)
        to[n++] = base;
    for (int d = 0; d < h->knapsack.n; d++) {
        if (low[d] == HULL_BASE || (d != winner && max_offer[d] <= best))
            continue;
        int64_t from = high[d] == HULL_BASE ? (int64_t)hull_first(h, context)[d] : high[d];
        for (int64_t k = from; k <= low[d]; k++)
            to[n++] = hull_point(c, d, k);
        *only = low[d];
    }
    return n;
}

/* An upper limit of the number of candidates of contexts `from` to `to` - 1. */
static size_t max_candidates(const struct source *s, int from, int to)
{
    size_t n = 0;

    for (int k = from; k < to; k++) {
        const uint32_t *first = hull_first(s->h, context_of(s, k));
        n += first[s->h->knapsack.n] - first[0] + 1;
    }
    return n;
}

static int build_block(struct restricted_block *b, const struct source *s, int from, int to)
{
    uint32_t n_candidates = 0;
    struct sum utility = { 0, 0 };

    b->first = malloc(((size_t)(to - from) + 1) * sizeof(*b->first));
    b->at = malloc(max_candidates(s, from, to) * sizeof(*b->at));
    if (!b->first || !b->at)
        return -1;
    for (int k = from; k < to; k++) {
        struct candidate *at = b->at + n_candidates;
        int64_t only;
        int context = context_of(s, k), n = find_candidates(s, context, at, &only);
        if (s->fixed)
            s->fixed[context] = n == 1 ? (int32_t)only : RESTRICTED_OPEN;
        if (n > 1) {
            b->first[b->n++] = n_candidates;
            n_candidates += (uint32_t)n;
            continue;
        }
        sum_add(&utility, at->utility);
        if (at->knapsack >= 0)
            b->demand[at->knapsack] += (double)at->bytes;
    }
    b->utility = utility.value;
    b->first[b->n] = n_candidates;
    struct candidate *fit = realloc(b->at, ((size_t)n_candidates + 1) * sizeof(*b->at));
    b->at = fit ? fit : b->at;
    return 0;
}

static void build(void *arg, int block)
{
    struct source *s = arg;
    int from = block * HULL_CHUNK, left = s->sample->n - from;

    if (build_block(&s->block[block], s, from, from + (left < HULL_CHUNK ? left : HULL_CHUNK)))
        s->failed = 1;
}

int restricted_build(struct restricted *r, const struct sample *sample, const struct box *box, int32_t *fixed,
                     struct err *err)
{
    int n_blocks = (sample->n + HULL_CHUNK - 1) / HULL_CHUNK;

    restricted_release(r);
    r->block = calloc((size_t)n_blocks + 1, sizeof(*r->block));
    if (!r->block)
        return err_nomem(err);
    r->n_blocks = n_blocks;
    struct source source = { r->block, r->h, sample, box, fixed, 0 };
    parallel_do(parallel_threads(), n_blocks, build, &source);
    return source.failed ? err_nomem(err) : 0;
}

/* ---- evaluating --------------------------------------------------------------- */

struct evaluation {
    struct restricted_block *block;
    int n_knapsacks;
    double price_after_none[PLAN_TIERS + 1]; // 0 for candidates without a knapsack, then the prices
};

/* Finds the best candidate of each open context of a block. */
static void evaluate(void *arg, int block)
{
    const struct evaluation *e = arg;
    struct restricted_block *b = &e->block[block];
    const double *price = e->price_after_none + 1;
    double value = 0, demand[PLAN_TIERS + 1] = { 0 };

    for (int i = 0; i < b->n; i++) {
        const struct candidate *at = b->at + b->first[i], *end = b->at + b->first[i + 1], *best = at;
        double max = at->utility - price[at->knapsack] * (double)at->bytes;
        for (at++; at < end; at++) {
            double v = at->utility - price[at->knapsack] * (double)at->bytes;
            best = v > max ? at : best;
            max = v > max ? v : max;
        }
        value += max;
        demand[best->knapsack + 1] += (double)best->bytes;
    }
    b->value = value;
    memcpy(b->open_demand, demand + 1, (size_t)e->n_knapsacks * sizeof(*demand));
}

double restricted_evaluate(const struct restricted *r, const double *price, double *demand)
{
    int n_knapsacks = r->h->knapsack.n;
    struct evaluation e = { r->block, n_knapsacks, { 0 } };
    struct sum sum = { 0, 0 };

    memcpy(e.price_after_none + 1, price, (size_t)n_knapsacks * sizeof(*price));
    parallel_do(parallel_threads(), r->n_blocks, evaluate, &e);
    for (int d = 0; d < n_knapsacks; d++)
        demand[d] = 0;
    for (int k = 0; k < r->n_blocks; k++) {
        const struct restricted_block *b = &r->block[k];
        sum_add(&sum, b->utility);
        sum_add(&sum, b->value);
        for (int d = 0; d < n_knapsacks; d++)
            demand[d] = demand[d] + b->demand[d] + b->open_demand[d];
    }
    for (int k = 0; k < r->n_blocks; k++)
        for (int d = 0; d < n_knapsacks; d++)
            sum.value -= price[d] * r->block[k].demand[d];
    return sum.value;
}
