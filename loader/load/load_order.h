/* load_order.h - the order in which files are removed from tiers and placed in them.
 *
 * Pure arithmetic: nothing here touches a disk. The input is a list of files (what is in the tiers) and a list of goals
 * (what shall be there). The order follows these rules:
 *   - a goal that is placed already needs no step;
 *   - files kept by an earlier load go first; other files without a goal are removed only where a goal needs their
 *     bytes, those whose payload is still in the payload folder before the rest. A rollback can use at once what is
 * left;
 *   - a file is never removed while it is the source of a waiting goal;
 *   - no tier exceeds its capacity, with one exception: when the waiting goals wait for each other in a circle (two
 * full tiers that exchange contexts), a tier takes up to 1/ORDER_OVER of its capacity too much, or one payload, until
 * its own files have gone. So n contexts are exchanged in a number of rounds that does not grow with n. Removals come
 * in runs, so that a tier's index is written once per run.
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
    bool keep;   // it is a goal in its place; of one goal only one file is
    bool spare;  // kept by an earlier load for its rollback: the first to go
    bool packed; // its payload is in the payload folder too
};

struct order_goal {
    int tier;
    int64_t bytes;
    int source; // a file in another tier, or ORDER_PAYLOADS
    bool placed;
};

struct order_given {
    const int64_t *capacity; // (n_tiers); INT64_MAX: unlimited
    int n_tiers;
    const struct order_file *file;
    int n_files;
    const struct order_goal *goal;
    int n_goals;
    bool remove_all; // files without a goal are removed at the end; nothing is kept for a rollback
};

enum step_kind { STEP_REMOVE, STEP_PLACE };

struct step {
    int file; // removed, or the source of a goal: ORDER_PAYLOADS for the payload folder
    int goal; // -1: the file is removed
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

/* ERR_FAIL: the goals of a tier exceed its capacity. The sentence has numbers only: the caller knows the names. Free
 * with order_release() in every case. */
int order_steps(struct order *order, const struct order_given *given, struct err *err) MUST_CHECK;
void order_release(struct order *order);

#endif
