/* groups.h - the configs of one context that have something to answer, those that lack the same questions together; and
 * what their work costs. Configs of a group are answered in one batch.
 */
#ifndef EVP_GROUPS_H
#define EVP_GROUPS_H

#include "engine/engine.h"
#include "profiler/grid.h"

struct work_groups {
    int n;
    int *member;                  // (n): numbers of the configs in the grid
    const struct config **config; // (n): the same configs
};

int work_groups_make(struct work_groups *groups, const struct grid *g, const struct work *w,
                     struct err *err) MUST_CHECK;
void work_groups_release(struct work_groups *groups); // zeroed is fine

/* Where the group ends whose first config is `first`. */
int work_group_end(const struct work_groups *groups, const struct work *w, int first);

/* The work of configs first .. end - 1, which are of one group, for the engine. Borrows from `groups`. */
struct engine_work work_of_group(const struct grid *g, const struct work *w, const struct work_groups *groups,
                                 int first, int end);

/* The most that a context's work can be: all questions over all configs of the grid, which `config` lists. What memory
 * is planned for. */
struct engine_work work_at_most(const struct grid *g, const struct work *w, const struct config *const *config);

/* Floating-point operations of all that is open. */
int grid_cost(const struct grid *g, const struct engine *e, struct engine_cost *total, struct err *err) MUST_CHECK;

#endif
