/* groups.h - groups the configs of one context that have the same open questions, and computes the cost of their work.
 * A group is answered in one batch. If the reference answers twice, it is in its group twice; the second, sampled entry
 * is the last.
 */
#ifndef EVP_GROUPS_H
#define EVP_GROUPS_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"

struct work_groups {
    int n;
    int *member;                  // (n): the configs' numbers in the grid
    const struct config **config; // (n): the same configs
    int sampled;                  // the entry whose answers are sampled; -1: none
};

int work_groups_make(struct work_groups *groups, const struct grid *g, const struct work *w,
                     struct err *err) MUST_CHECK;
void work_groups_release(struct work_groups *groups); // zeroed is fine

/* The end of the group that begins at entry `first`. */
int work_group_end(const struct work_groups *groups, const struct work *w, int first);

/* The engine's work for entries first .. end - 1 of one group. Borrows from `groups`. */
struct engine_work work_of_group(const struct grid *g, const struct work *w, const struct work_groups *groups,
                                 int first, int end);

/* All configs of the grid (*n), as one group would list them. The caller frees; NULL with an error. */
const struct config **grid_configs(const struct grid *g, int *n, struct err *err);

/* The largest possible work of a context: all questions over the n configs. Memory is planned for it. */
struct engine_work work_at_most(const struct grid *g, const struct work *w, const struct config *const *config, int n);

/* Floating-point operations of all open work. */
int grid_cost(const struct grid *g, const struct engine *e, struct engine_cost *total, struct err *err) MUST_CHECK;

#endif
