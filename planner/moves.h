/* moves.h - lists of moves, for repair and the searches. */
#ifndef EVP_MOVES_H
#define EVP_MOVES_H

#include "planner/incumbent.h"

struct moves {
    struct move *at; // owned
    int n, cap;
};

/* Sorts by loss, then context, tier and config, so that the order is unique; keeps the first `max`. */
void moves_sort(struct moves *l, int max);
void moves_release(struct moves *l);

/* Applies every move that fits and gains, in the order of the list. Returns whether there was one. */
bool moves_apply_gains(const struct moves *l, struct incumbent *x);

/* Selects moves. All candidates of all contexts are considered, not only the points of their hulls. */
struct moves_filter {
    bool undominated;                                  // only candidates with more utility than all smaller ones
    bool (*price)(const void *arg, struct move *move); // sets the move's loss and says whether it is listed
    const void *arg;
};

/* The longest list; moves of least loss are kept. */
enum { MOVES_MAX = 8000 };

/* Replaces the list with the selected moves, sorted. */
int moves_find(struct moves *l, const struct incumbent *x, const struct plan_problem *problem,
               const struct moves_filter *filter, struct err *err) MUST_CHECK;

#endif
