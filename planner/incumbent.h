/* incumbent.h - a plan being made: where every context is now, what each finite tier holds, and moves between places.
 *
 * A incumbent's distance from the bound is the sum of two things that are never negative: the losses of the contexts
 * (how much less a context's place is worth, at the prices, than its best one) and the price of the room that is left
 * over. Rounding and polishing make both small.
 */
#ifndef EVP_INCUMBENT_H
#define EVP_INCUMBENT_H

#include "planner/dual.h"
#include "planner/hull.h"

#include <stdbool.h>

/* A place for one context. tier: index among the finite tiers of the hull, -1: takes no room. */
struct spot {
    double size, utility;
    struct plan_placement placement;
    int tier;
};

struct incumbent {
    const struct hull *h;
    const struct dual *dual;
    struct spot *spot;       // (C)
    double room[PLAN_TIERS]; // capacity less what is placed; negative: overloaded
};

/* A change of one context's place. loss: of the new place at the dual's prices. */
struct move {
    int context;
    double loss;
    struct spot to;
};

struct moves {
    struct move *at; // owned
    int n, room;
};

int moves_add(struct moves *l, const struct move *m) MUST_CHECK; // -1 without memory

/* By loss, then context, tier and config, so that the order is the same everywhere; keeps the first `most`. */
void moves_sort(struct moves *l, int most);
void moves_release(struct moves *l);

int incumbent_init(struct incumbent *d, const struct hull *h, const struct dual *dual, struct err *err) MUST_CHECK;
void incumbent_release(struct incumbent *d);

struct spot incumbent_candidate(const struct hull *h, int context, int64_t point); // a hull point or HULL_BASE
void incumbent_put(struct incumbent *d, int context, struct spot to);              // moves it, keeps the room right
double incumbent_total(const struct incumbent *d);                                 // utility, compensated sum
double incumbent_value(const struct incumbent *d, const struct spot *at); // its utility less what its bytes cost
double incumbent_best(const struct incumbent *d, int context);            // what a context is worth at best
double incumbent_loss(const struct incumbent *d, int context, const struct spot *at);

/* Starts from the mix of the dual's plans: contexts on which they differ are dealt out so that each tier's fill stays
 * as close to the mix as it can (error diffusion). May overload tiers by a few contexts. */
void incumbent_round(struct incumbent *d);

/* Ends overloads at the least loss per byte, then fills what room is left with what loses least. */
int incumbent_repair(struct incumbent *d, struct err *err) MUST_CHECK;

/* Takes over a finished plan. */
int incumbent_from_plan(struct incumbent *d, const struct plan_problem *problem, const struct plan_placement *placement,
                        struct err *err) MUST_CHECK;

/* Is it so close to the bound that improving it is not worth the time? */
bool incumbent_is_close(const struct incumbent *d);

/* Improves by single moves and pairs of moves over all candidates whose loss could still pay. For up to POLISH_MOST
 * contexts, also below. */
enum { POLISH_MOST = 20000, POLISH_MOVES = 8000 }; // contexts; moves looked at, those of least loss
int incumbent_local_search(struct incumbent *d, const struct plan_problem *problem, struct err *err) MUST_CHECK;

/* Improves by sets of moves, until about `work` sets were looked at (planner/pair_search.c). */
int incumbent_pair_search(struct incumbent *d, const struct plan_problem *problem, int64_t work,
                          struct err *err) MUST_CHECK;

#endif
