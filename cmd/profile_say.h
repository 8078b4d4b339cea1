/* profile_say.h - what evp-profile says on stderr of its work. */
#ifndef EVP_PROFILE_SAY_H
#define EVP_PROFILE_SAY_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"
#include "profiler/run/timing.h"

/* Which contexts and questions cannot be profiled; evp-aim says it, too. */
void profile_say_refused(const struct grid *g);

/* What was left out or cut, what `output` holds already, what there is to do. */
void profile_say_plan(const struct grid *g, const char *output);

void profile_say_memory(const struct engine_plan *plan);

/* Where the time went, op by op, of a backend that was opened timed. */
void profile_say_ops(const struct backend *be);

/* What measuring prefills again took and found; a warning when the times of one lie far apart. */
void profile_say_timing(const struct timing *t);

/* The member "inputs" of a profile's lineage: the SHA-256 of contexts and questions, the two paths of `input`. */
int profile_put_inputs(struct buf *out, char *const *input, struct err *err) MUST_CHECK;

#endif
