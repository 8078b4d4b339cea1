/* load_order.h - the order of removing files from tiers and placing files in them.
 *
 * Pure arithmetic: nothing here touches a disk. The input is a list of files (the current state) and a list of goals
 * (the wanted placement). Rules:
 *   - a goal in place needs no step;
 *   - a file whose context has a waiting goal is removed only once that goal is placed, so that the context can be
 *     found all the time. Files without a goal are removed when a goal needs their bytes, otherwise at the end;
 *   - a file that may stay is removed only if a goal needs its bytes;
 *   - no tier exceeds its capacity, with one exception: if goals wait for each other in a circle (two full tiers that
 *     exchange contexts), a tier exceeds it by up to 1/ORDER_OVER, or by one payload, until its own files have gone.
 *     So the number of rounds to exchange n contexts does not grow with n.
 * Removals come in series, so that a tier's index is written once per series.
 */
#ifndef EVP_LOAD_ORDER_H
#define EVP_LOAD_ORDER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { ORDER_PAYLOADS = -1, ORDER_OVER = 64 };

struct order_file {
    int tier;
    int64_t bytes;
    int goal;  // of its context, not in place; -1: none
    bool keep; // a goal in place; at most one file per goal
    bool stay; // removed only if its bytes are needed
};

struct order_goal {
    int tier;
    int64_t bytes;
    int source;  // a file in another tier, or ORDER_PAYLOADS
    bool placed; // or left out: no step
};

struct order_given {
    const int64_t *capacity; // (n_tiers); INT64_MAX: unlimited
    int n_tiers;
    const struct order_file *file;
    int n_files;
    const struct order_goal *goal;
    int n_goals;
};

enum step_kind { STEP_REMOVE, STEP_PLACE };

struct step {
    int file; // the file to remove, or the source of the goal; ORDER_PAYLOADS: the payload folder
    int goal; // the goal to place; -1: a removal
};

static inline enum step_kind step_kind(const struct step *s)
{
    return s->goal < 0 ? STEP_REMOVE : STEP_PLACE;
}

struct order {
    struct step *at;
    int n, cap;
    int over_tier; // after ERR_FAIL: the tier whose goals do not fit
};

/* ERR_FAIL: the goals of a tier exceed its capacity. The message has numbers only: the caller knows the names. Call
 * order_release() in every case. */
int order_steps(struct order *order, const struct order_given *given, struct err *err) MUST_CHECK;
void order_release(struct order *order);

#endif
