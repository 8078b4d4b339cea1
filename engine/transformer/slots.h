/* slots.h - which slots of a store are free: ranges are taken and given back in any order. */
#ifndef EVP_SLOTS_H
#define EVP_SLOTS_H

#include "base/err.h"

struct slot_range {
    int first, n;
};

struct slots {
    struct slot_range *at; // free ranges in ascending order, with gaps between them
    int n, cap;
};

/* All of 0 .. n - 1 are free. */
int slots_init(struct slots *s, int n, struct err *err) MUST_CHECK;
void slots_release(struct slots *s); // zeroed is fine

/* The first of the lowest n consecutive free slots (n > 0); -1: not enough space. */
int slots_take(struct slots *s, int n);

/* Gives a range back. ERR_NOMEM leaves it taken. */
int slots_give(struct slots *s, struct slot_range range, struct err *err) MUST_CHECK;

#endif
