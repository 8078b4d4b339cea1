/* profile_memory.h - plans the memory of a profile. Prints messages. */
#ifndef EVP_PROFILE_MEMORY_H
#define EVP_PROFILE_MEMORY_H

#include "engine/transformer/engine.h"
#include "profiler/run/groups.h"

/* Plans memory within plan->limit for all contexts with open answers. A context that cannot fit gets nothing open, and
 * counts in *n_failed. */
int profile_memory(struct grid *g, struct engine *e, struct engine_plan *plan, int *n_failed,
                   struct err *err) MUST_CHECK;

#endif
