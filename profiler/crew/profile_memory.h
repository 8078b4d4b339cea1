/* profile_memory.h - plans the memory of a profile. */
#ifndef EVP_PROFILE_MEMORY_H
#define EVP_PROFILE_MEMORY_H

#include "engine/transformer/engine.h"
#include "profiler/run/groups.h"
#include "profiler/run/run_all.h"

/* Plans memory within plan->limit for all contexts with open answers. A context that cannot fit is told to
 * watch->failed() and gets nothing open. ERR_NOMEM: none fits. */
int profile_memory(struct grid *g, struct engine *e, struct engine_plan *plan, const struct run_watch *watch,
                   struct err *err) MUST_CHECK;

#endif
