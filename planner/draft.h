/* draft.h - a plan being made: where every context is now, what each finite tier holds, and moves between places.
 *
 * A draft's distance from the bound is the sum of two things that are never negative: the losses of the contexts (how
 * much less a context's place is worth, at the prices, than its best one) and the price of the room that is left over.
 * Rounding and polishing make both small.
 */
#ifndef EVP_DRAFT_H
#define EVP_DRAFT_H

#include "planner/dual.h"
#include "planner/hull.h"

#include <stdbool.h>

/* A place for one context. tier: index among the finite tiers of the hull, -1: takes no room. */
struct spot {
    double size, utility;
    struct plan_choice choice;
    int tier;
};

struct draft {
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

int draft_init(struct draft *d, const struct hull *h, const struct dual *dual, struct err *err) MUST_CHECK;
void draft_release(struct draft *d);

struct spot draft_spot(const struct hull *h, int context, int64_t point); // a hull point or HULL_BASE
void draft_put(struct draft *d, int context, struct spot to);             // moves it, keeps the room right
double draft_total(const struct draft *d);                                // utility, compensated sum
double draft_worth(const struct draft *d, const struct spot *at);         // its utility less what its bytes cost
double draft_best(const struct draft *d, int context);                    // what a context is worth at best
double draft_loss(const struct draft *d, int context, const struct spot *at);

/* Starts from the mix of the dual's plans: contexts on which they differ are dealt out so that each tier's fill stays
 * as close to the mix as it can (error diffusion). May overload tiers by a few contexts. */
void draft_round(struct draft *d);

/* Ends overloads at the least loss per byte, then fills what room is left with what loses least. */
int draft_repair(struct draft *d, struct err *err) MUST_CHECK;

/* Takes over a finished plan. */
int draft_from_plan(struct draft *d, const struct plan_problem *problem, const struct plan_choice *choice,
                    struct err *err) MUST_CHECK;

/* Is it so close to the bound that improving it is not worth the time? */
bool draft_is_close(const struct draft *d);

/* Improves by single moves and pairs of moves over all options whose loss could still pay. For up to POLISH_MOST
 * contexts, also below. */
enum { POLISH_MOST = 20000, POLISH_MOVES = 8000 }; // contexts; moves looked at, those of least loss
int draft_polish(struct draft *d, const struct plan_problem *problem, struct err *err) MUST_CHECK;

/* Improves by sets of moves, until about `work` sets were looked at (planner/meet.c). */
int draft_meet(struct draft *d, const struct plan_problem *problem, int64_t work, struct err *err) MUST_CHECK;

#endif
