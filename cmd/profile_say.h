/* profile_say.h - evp-profile's messages on stderr. */
#ifndef EVP_PROFILE_SAY_H
#define EVP_PROFILE_SAY_H

#include "base/parse.h"
#include "profiler/crew/profile_device.h"
#include "profiler/run/grid.h"
#include "profiler/run/timing.h"

/* Contexts left out or cut, the answers that `output` already has, the work. */
void profile_say_plan(const struct grid *g, const char *output);

/* What a plan has and the inputs lack. */
void profile_say_lacks(const struct cells *chosen);

/* The figures of --summary; contexts that left `output`. */
void profile_say_counts(const struct grid *g, int n_lost, int n_forgotten, const char *output);

/* What is left for another run, and what was left out: n_lost contexts. */
void profile_say_left_out(const struct grid *g, int n_lost);

/* A device of several failed. */
void profile_say_failed(const char *why, bool go_on);

void profile_say_memory(const struct engine_plan *plan);

/* The expected time of work that takes `seconds` on n devices together. */
void profile_say_cost(const struct profile_device *d, double seconds, int n_devices);

/* After a dry run that says hours: the same command, for one hour. */
void profile_say_hour(char **argv, double seconds, const char *output);

/* "2.4 hours", "0.031 GPU hours". */
const char *profile_hours(char out[TEXT_SHORT], double seconds, bool on_gpu);

/* Time per op of a backend opened with .timed. */
void profile_say_ops(const struct backend *be);

/* Cost and result of repeated prefills; a warning if the times of one lie far apart. */
void profile_say_timing(const struct timing *t);

/* A profile's lineage as text, with the SHA-256 of input[0], contexts, and input[1], questions; sets made->inputs. The
 * caller frees; NULL with an error. */
char *profile_lineage(struct rows_made *made, char *const *input, struct err *err);

/* Says that dtype auto goes on in FILE's, if a new FILE would get another. have: FILE's, or NULL. */
void profile_say_resumed(const struct profile_device *device, const struct model *model, const char *have,
                         const char *file);

#endif
