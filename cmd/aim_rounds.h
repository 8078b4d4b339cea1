/* aim_rounds.h - evp-aim --run: lists, profiles and scores in turns; and evp-aim's messages about a list. */
#ifndef EVP_AIM_ROUNDS_H
#define EVP_AIM_ROUNDS_H

#include "aiming/aim_job.h"

/* Makes lists, profiles and scores in turns, in the folder --output. path: CONTEXTS, QUESTIONS, TABLE or NULL.
 * *partial: some contexts could not be profiled. */
int aim_rounds(const struct aim_options *opt, char *const *path, bool *partial, struct err *err) MUST_CHECK;

/* The answers of a list, their cost, and the expected loss of a plan without them. */
void aim_say(const struct aim_job *j, const struct aim_out *out);

#endif
