/* load_order.h - the order of removing files from tiers and placing files in them.
 *
 * Pure arithmetic: nothing here touches a disk. The input is a list of files (the current state) and a list of goals
 * (the wanted placement). Rules:
 *   - a goal in place needs no step;
 *   - a file without a goal is removed only if a goal needs its bytes: first the spares of earlier loads, then files
 *     whose payload is still in the payload folder, then the rest. The remaining files serve a rollback;
 *   - the source of a waiting goal is never removed;
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
    bool keep;   // a goal in place; at most one file per goal
    bool spare;  // kept by an earlier load for its rollback: removed first
    bool packed; // the payload is also in the payload folder
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
    bool remove_all; // remove all files without a goal at the end; keep nothing for a rollback
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
