/* steps.h - in which order files are removed from tiers and placed in them, so that no tier ever holds more than it
 * may.
 *
 * Pure arithmetic; nothing here touches a disk. What lies in the tiers is a list of files, what shall lie there a list
 * of goals. The order:
 *   - a goal whose file lies in its tier already costs nothing;
 *   - every other goal is placed from the payload folder where it is, else from a file in another tier (a move);
 *   - spare files that are no goal go first of all; other files that are no goal are removed only where a goal needs
 *     their room, those whose payload is still in the payload folder before the rest. What is left of them is what a
 *     rollback can go back to at once;
 *   - a file is never removed while it is the only source of a goal that waits. When all that waits, waits in a circle
 *     (two full tiers that exchange contexts), one such file is staged: copied to the payload folder.
 * Removals come in runs, so that a tier's index is rewritten once per run.
 */
#ifndef EVP_STEPS_H
#define EVP_STEPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct steps_file {
    int tier;
    int64_t bytes;
    int goal;    // whose content it is; -1: nobody's
    bool spare;  // left over from an earlier load: the first to go
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
    bool remove_all; // what is no goal goes at the end, nothing is kept for a rollback
};

enum step_kind { STEP_REMOVE, STEP_STAGE, STEP_PLACE };

struct step {
    enum step_kind kind;
    int file; // removed or staged; for STEP_PLACE the source, -1: the payload folder
    int goal; // placed or staged for; -1 for STEP_REMOVE
};

struct steps {
    struct step *at;
    int n, room;
    int over_tier; // after ERR_FAIL: the tier whose goals do not fit
    int lost_goal; // after ERR_FORMAT: the goal that has no source
};

/* ERR_FAIL: the goals of a tier exceed its capacity; ERR_FORMAT: a goal has no source; the caller says it with names.
 * Free with steps_release() in every case. */
int steps_plan(struct steps *s, const struct steps_given *given, struct err *err) MUST_CHECK;
void steps_release(struct steps *s);

#endif
