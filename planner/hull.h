/* hull.h - what of a context's candidates can be part of a best plan at some prices.
 *
 * Options that take no room on a finite tier - recomputing, tiers without limit, variants of no bytes - collapse to the
 * best of them, the base. On each finite tier only the points of the upper concave hull over (0, base) can win at a
 * price per byte (Sinha and Zoltners 1979). Of 240 candidates about 15 remain.
 *
 * Contexts are held in chunks of fixed size, so that sums are taken in the same order whatever the number of threads.
 */
#ifndef EVP_HULL_H
#define EVP_HULL_H

#include "planner/plan.h"

#include <stdint.h>

enum { HULL_CHUNK = 4096, HULL_BASE = -1 };

struct hull_chunk {
    int n;                  // contexts
    uint32_t *first;        // (n * n_tiers + 1): context i, tier d owns points first[i * n_tiers + d] up to the next
    double *size, *utility; // points, by rising size and utility
    uint16_t *config;       // of each point
    double *base_size;      // (n) bytes of the base on its unlimited tier
    double *base;           // (n) utility of the base
    struct plan_placement *placement; // (n) what the base is
};

struct hull {
    int n_contexts, n_chunks, n_tiers; // n_tiers: finite ones
    int tier[PLAN_TIERS];              // their indices in the problem
    double capacity[PLAN_TIERS];       // of the finite tiers
    struct hull_chunk *chunk;
};

int hull_build(struct hull *h, const struct plan_problem *problem, struct err *err) MUST_CHECK;
void hull_release(struct hull *h);

/* The best point of one tier, whose points first[0] to first[1] are, at a price, if it is worth more than *value, which
 * it then becomes; HULL_BASE otherwise. */
int64_t hull_tier_best(const struct hull_chunk *c, const uint32_t *first, double price, double *value);

/* A context's best point at prices (n_tiers): its index among the chunk's points, or HULL_BASE. Ties go to the base,
 * then the faster tier, then the smaller size. *value: utility less what its bytes cost. */
int64_t hull_best(const struct hull *h, const struct hull_chunk *c, int i, const double *price, double *value);

/* Index among the hull's tiers of a tier of the problem; -1: it is unlimited. */
int hull_tier(const struct hull *h, int tier);

/* The finite tier that owns a point of context i. */
int hull_point_tier(const struct hull *h, const struct hull_chunk *c, int i, int64_t point);

static inline const struct hull_chunk *hull_chunk_of(const struct hull *h, int context)
{
    return &h->chunk[context / HULL_CHUNK];
}

/* ---- one context at a time ---- */

/* A workspace, kept from context to context: their candidates are alike. */
struct hull_work {
    int *order, *rising;    // (V) configs by rising bytes, and which of those have the most utility so far
    double *bytes;          // (V) in that order, -1: not available
    int stored;             // place in the order of the first config that takes room
    double *size, *utility; // (n) points of the tier scanned last, by rising size and utility
    uint16_t *config;       // (n)
    int n, n_rising;
};

int hull_work_init(struct hull_work *w, const struct plan_problem *p, struct err *err) MUST_CHECK;
void hull_work_release(struct hull_work *w);

/* Begins with a context: the best of its candidates that take no room on a finite tier. */
double hull_base(struct hull_work *w, const struct plan_candidates *o, const struct plan_problem *p,
                 struct plan_placement *placement);

/* Then, for a finite tier, the points of the hull over (0, base), into w. */
void hull_scan(struct hull_work *w, const struct plan_candidates *o, const struct plan_problem *p, int tier,
               double base);

#endif
