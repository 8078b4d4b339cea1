#include "planner/restricted.h"

#include "planner/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    double utility, size;
    int tier; // among the hull's, -1: takes no room
};

struct restricted_block {
    int n;           // open contexts
    uint32_t *first; // (n + 1) candidates of each
    struct candidate *at;
    double utility, demand[PLAN_TIERS]; // of the fixed contexts
    double value, wanted[PLAN_TIERS];   // answer to the last question
};

void restricted_release(struct restricted *restricted)
{
    for (int b = 0; restricted->block && b < restricted->n_blocks; b++) {
        free(restricted->block[b].first);
        free(restricted->block[b].at);
    }
    free(restricted->block);
    restricted->block = NULL;
    restricted->n_blocks = 0;
}

/* ---- building --------------------------------------------------------------- */

/* Of one context the points that can win in the box, into `to`; how many. When it is one, *only is that point. What a
 * tier can hope for is its best at its lowest price, what is sure its best at its highest: tiers that hope for less
 * than another one is sure of are out. */
static int find_candidates(const struct hull *h, const struct hull_chunk *c, int i, const struct box *box,
                           struct candidate *to, int64_t *only)
{
    double hope[PLAN_TIERS], base = c->base[i], most = base;
    int64_t low[PLAN_TIERS], high[PLAN_TIERS];
    int n = 0, winner = -1;

    for (int d = 0; d < h->n_tiers; d++) {
        const uint32_t *first = c->first + i * h->n_tiers + d;
        double sure = hope[d] = base;
        high[d] = hull_tier_best(c, first, box->high[d], &sure);
        low[d] = hull_tier_best(c, first, box->low[d], &hope[d]);
        winner = sure > most ? d : winner;
        most = sure > most ? sure : most;
    }
    *only = HULL_BASE;
    if (winner < 0)
        to[n++] = (struct candidate){ base, 0, -1 };
    for (int d = 0; d < h->n_tiers; d++) {
        if (low[d] == HULL_BASE || (d != winner && hope[d] <= most))
            continue;
        int64_t from = high[d] == HULL_BASE ? (int64_t)c->first[i * h->n_tiers + d] : high[d];
        for (int64_t k = from; k <= low[d]; k++)
            to[n++] = (struct candidate){ c->utility[k], c->size[k], d };
        *only = low[d];
    }
    return n;
}

static size_t most_points(const struct hull *h, const int *list, int from, int to)
{
    size_t n = 0;

    for (int k = from; k < to; k++) {
        int context = list ? list[k] : k;
        const uint32_t *first = hull_chunk_of(h, context)->first + context % HULL_CHUNK * h->n_tiers;
        n += first[h->n_tiers] - first[0] + 1;
    }
    return n;
}

static int build_block(struct restricted_block *b, const struct hull *h, const int *list, int from, int to,
                       const struct box *box, int32_t *fixed)
{
    uint32_t n_points = 0;
    struct sum utility = { 0, 0 };

    b->first = malloc(((size_t)(to - from) + 1) * sizeof(*b->first));
    b->at = malloc(most_points(h, list, from, to) * sizeof(*b->at));
    if (!b->first || !b->at)
        return -1;
    for (int k = from; k < to; k++) {
        int context = list ? list[k] : k;
        const struct hull_chunk *c = hull_chunk_of(h, context);
        struct candidate *at = b->at + n_points;
        int64_t only;
        int n = find_candidates(h, c, context % HULL_CHUNK, box, at, &only);
        if (fixed)
            fixed[context] = n == 1 ? (int32_t)only : RESTRICTED_OPEN;
        if (n > 1) {
            b->first[b->n++] = n_points;
            n_points += (uint32_t)n;
            continue;
        }
        sum_add(&utility, at->utility);
        if (at->tier >= 0)
            b->demand[at->tier] += at->size;
    }
    b->utility = utility.value;
    b->first[b->n] = n_points;
    struct candidate *fit = realloc(b->at, ((size_t)n_points + 1) * sizeof(*b->at));
    b->at = fit ? fit : b->at;
    return 0;
}

int restricted_build(struct restricted *restricted, const struct hull *h, const int *list, int n, const struct box *box,
                     int32_t *fixed, struct err *err)
{
    int failed = 0, n_blocks = (n + HULL_CHUNK - 1) / HULL_CHUNK;

    restricted_release(restricted);
    *restricted = (struct restricted){ h, n_blocks, calloc((size_t)n_blocks + 1, sizeof(*restricted->block)) };
    if (!restricted->block)
        return err_nomem(err);
#pragma omp parallel for schedule(dynamic, 1) reduction(| : failed) if (n_blocks > 1)
    for (int b = 0; b < n_blocks; b++)
        failed |= build_block(&restricted->block[b], h, list, b * HULL_CHUNK,
                              (b + 1) * HULL_CHUNK < n ? (b + 1) * HULL_CHUNK : n, box, fixed);
    return failed ? err_nomem(err) : 0;
}

/* ---- asking ----------------------------------------------------------------- */

static void ask_block(struct restricted_block *b, int n_tiers, const double *price_by_tier)
{
    const double *price = price_by_tier + 1; /* price[-1] is 0 */
    double value = 0, wanted[PLAN_TIERS + 1] = { 0 };

    for (int i = 0; i < b->n; i++) {
        const struct candidate *at = b->at + b->first[i], *end = b->at + b->first[i + 1], *best = at;
        double most = at->utility - price[at->tier] * at->size;
        for (at++; at < end; at++) {
            double v = at->utility - price[at->tier] * at->size;
            best = v > most ? at : best;
            most = v > most ? v : most;
        }
        value += most;
        wanted[best->tier + 1] += best->size;
    }
    b->value = value;
    memcpy(b->wanted, wanted + 1, (size_t)n_tiers * sizeof(*wanted));
}

double restricted_ask(const struct restricted *restricted, const double *price, double *demand)
{
    double by_tier[PLAN_TIERS + 1] = { 0 };
    struct sum sum = { 0, 0 };
    int n_tiers = restricted->h->n_tiers;

    memcpy(by_tier + 1, price, (size_t)n_tiers * sizeof(*price));
#pragma omp parallel for schedule(static) if (restricted->n_blocks > 1)
    for (int b = 0; b < restricted->n_blocks; b++)
        ask_block(&restricted->block[b], n_tiers, by_tier);
    for (int d = 0; d < n_tiers; d++)
        demand[d] = 0;
    for (int k = 0; k < restricted->n_blocks; k++) {
        const struct restricted_block *b = &restricted->block[k];
        sum_add(&sum, b->utility);
        sum_add(&sum, b->value);
        for (int d = 0; d < n_tiers; d++)
            demand[d] = demand[d] + b->demand[d] + b->wanted[d];
    }
    for (int k = 0; k < restricted->n_blocks; k++)
        for (int d = 0; d < n_tiers; d++)
            sum.value -= price[d] * restricted->block[k].demand[d];
    return sum.value;
}
