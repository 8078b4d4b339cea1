/* load_steps.h - the order in which files are removed from tiers and placed in them, so that no tier ever exceeds its
 * capacity.
 *
 * Pure arithmetic: nothing here touches a disk. The input is a list of files (what is in the tiers) and a list of goals
 * (what shall be there). The order follows four rules:
 *   - a goal whose file is in its tier already needs no step;
 *   - every other goal is placed from the payload folder when it is there, else from a file in another tier (a move);
 *   - spare files without a goal go first; other files without a goal are removed only where a goal needs their
 *     bytes, those whose payload is still in the payload folder before the rest. A rollback can use at once what
 *     is left of them;
 *   - a file is never removed while it is the only source of a waiting goal. When the waiting goals wait for each other
 *     in a circle (two full tiers that exchange contexts), one of their files is staged: copied to the payload folder.
 * Removals come in runs, so that a tier's index is rewritten once per run.
 */
#ifndef EVP_LOAD_STEPS_H
#define EVP_LOAD_STEPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct steps_file {
    int tier;
    int64_t bytes;
    int goal;    // the goal it has the content of; -1: of none
    bool spare;  // kept by an earlier load for its rollback: the first to go
    bool packed; // its payload is in the payload folder too
};

struct steps_goal {
    int tier;
    int64_t bytes;
    bool packed; // its payload is in the payload folder
};

struct steps_given {
    const int64_t *capacity; // (n_tiers); INT64_MAX: unlimited
    int n_tiers;
    const struct steps_file *file;
    int n_files;
    const struct steps_goal *goal;
    int n_goals;
    bool remove_all; // files without a goal are removed at the end; nothing is kept for a rollback
};

enum step_kind { STEP_REMOVE, STEP_STAGE, STEP_PLACE };

struct step {
    enum step_kind kind;
    int file; // removed or staged; for STEP_PLACE the source, -1: the payload folder
    int goal; // placed or staged for; -1 for STEP_REMOVE
};

struct steps {
    struct step *at;
    int n, cap;
    int over_tier; // after ERR_FAIL: the tier whose goals do not fit
    int lost_goal; // after ERR_FORMAT: the goal that has no source
};

/* ERR_FAIL: the goals of a tier exceed its capacity. ERR_FORMAT: a goal has no source. The sentences have numbers only:
 * the caller knows the names. Free with steps_release() in every case. */
int steps_plan(struct steps *s, const struct steps_given *given, struct err *err) MUST_CHECK;
void steps_release(struct steps *s);

#endif
