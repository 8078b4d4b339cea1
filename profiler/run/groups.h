/* groups.h - the configs of one context that have something to answer, those that lack the same questions together; and
 * what their work costs. Configs of a group are answered in one batch. Where the reference is to answer twice it is in
 * its group twice, and the second time, which is sampled, is the last.
 */
#ifndef EVP_GROUPS_H
#define EVP_GROUPS_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"

struct work_groups {
    int n;
    int *member;                  // (n): numbers of the configs in the grid
    const struct config **config; // (n): the same configs
    int sampled;                  // the entry whose answers are sampled; -1: none
};

int work_groups_make(struct work_groups *groups, const struct grid *g, const struct work *w,
                     struct err *err) MUST_CHECK;
void work_groups_release(struct work_groups *groups); // zeroed is fine

/* Where the group ends whose first config is `first`. */
int work_group_end(const struct work_groups *groups, const struct work *w, int first);

/* The work of configs first .. end - 1, which are of one group, for the engine. Borrows from `groups`. */
struct engine_work work_of_group(const struct grid *g, const struct work *w, const struct work_groups *groups,
                                 int first, int end);

/* All configs of the grid as a group would have them, *n of them. Freed by the caller; NULL with an error. */
const struct config **grid_configs(const struct grid *g, int *n, struct err *err);

/* The most that a context's work can be: all questions over n configs, which `config` lists. What memory is planned
 * for. */
struct engine_work work_at_most(const struct grid *g, const struct work *w, const struct config *const *config, int n);

/* Floating-point operations of all that is open. */
int grid_cost(const struct grid *g, const struct engine *e, struct engine_cost *total, struct err *err) MUST_CHECK;

#endif
