/* hull.h - the candidates of a context that can be part of a best plan at some dual prices.
 *
 * Of the candidates that use no knapsack (recomputing, unlimited tiers, variants of 0 bytes) only the best is kept: the
 * base. In a knapsack of several tiers a config is on the tier where it is worth most, because all of them take the
 * same bytes from the same capacity. In each knapsack only the points of the upper concave hull over (0, base) can win
 * at a price per byte; all others are LP-dominated (Sinha and Zoltners 1979). About 15 of 240 candidates remain.
 *
 * Contexts are kept in chunks of fixed size, so that sums have the same order with any number of threads.
 */
#ifndef EVP_HULL_H
#define EVP_HULL_H

#include "planner/candidate.h"

#include <stdint.h>

enum { HULL_CHUNK = 4096, HULL_BASE = -1 };

struct hull_chunk {
    int n;                   // contexts
    uint32_t *first;         // (n * D + 1): first point of context i in knapsack d at [i * D + d]
    double *bytes, *utility; // points, by rising bytes and utility
    uint16_t *config;        // of each point
    int8_t *tier;            // of each point
    struct candidate *base;  // (n)
};

struct hull {
    int n_contexts, n_chunks;
    struct knapsacks knapsack; // D
    struct hull_chunk *chunk;
};

int hull_build(struct hull *h, const struct plan_problem *problem, struct err *err) MUST_CHECK;
void hull_release(struct hull *h);

/* Returns the best point at a price among points first[0] .. first[1] - 1 of one knapsack, and sets *value to its
 * reduced value. Returns HULL_BASE and leaves *value when no point is above *value. */
int64_t hull_best_in(const struct hull_chunk *c, const uint32_t *first, double price, double *value);

/* The best point of context i of the chunk at prices (D): its index among the chunk's points, or HULL_BASE. Ties go to
 * the base, then to the faster tier, then to fewer bytes. *value: its reduced value. */
int64_t hull_best(const struct hull *h, const struct hull_chunk *c, int i, const double *price, double *value);

/* The candidate of a point in knapsack d. */
static inline struct candidate hull_point(const struct hull_chunk *c, int d, int64_t point)
{
    return (struct candidate){ (int64_t)c->bytes[point], c->utility[point], c->config[point], c->tier[point],
                               (int8_t)d };
}

/* The candidate of a context's point, which may be HULL_BASE. */
struct candidate hull_candidate(const struct hull *h, int context, int64_t point);

static inline const struct hull_chunk *hull_chunk_of(const struct hull *h, int context)
{
    return &h->chunk[context / HULL_CHUNK];
}

/* A context's entries in hull_chunk's `first`. */
static inline const uint32_t *hull_first(const struct hull *h, int context)
{
    return hull_chunk_of(h, context)->first + context % HULL_CHUNK * h->knapsack.n;
}

/* ---- one context at a time ---- */

/* A workspace. Use one for many contexts: the order of configs is kept, because contexts have similar ones. */
struct hull_work {
    struct knapsacks knapsack;
    int *order, *rising;  // (V) configs by rising bytes; indices in `order` of those with more utility than all before
    double *sorted_bytes; // (V) in that order; -1: not available
    int n_configs;        // length of `order`: up to the last config that a context has
    int stored;           // index in `order` of the first config with bytes > 0
    double *pooled;       // (V) highest utility of each config in a pool; NAN: none
    int8_t *pooled_tier;  // (V) the tier of that utility
    double *bytes, *utility; // (n) points of the last scanned knapsack, by rising bytes and utility
    uint16_t *config;        // (n)
    int8_t *tier;            // (n)
    int n;
};

int hull_work_init(struct hull_work *w, const struct plan_problem *p, struct err *err) MUST_CHECK;
void hull_work_release(struct hull_work *w);

/* Begins a context. Returns the best of its candidates that use no knapsack. */
struct candidate hull_base(struct hull_work *w, const struct plan_candidates *all, const struct plan_problem *p);

/* Puts the points of a knapsack's hull over (0, base) into w. base: utility of the base. */
void hull_scan(struct hull_work *w, const struct plan_candidates *all, const struct plan_problem *p, int knapsack,
               double base);

/* The configs of a context in one knapsack, each on the tier where it is worth most. */
struct hull_configs {
    const double *utility; // of config v: utility[v * stride]; NAN: not available
    int stride;
    const int8_t *tier; // (V) NULL: all on one_tier
    int8_t one_tier;
};

/* Borrows from *w and *all until the next call. */
struct hull_configs hull_configs_in(struct hull_work *w, const struct plan_candidates *all,
                                    const struct plan_problem *p, int knapsack);

#endif
