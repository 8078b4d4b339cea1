/* aim_rounds.h - evp-aim --run: lists, profiles and scores in turns; and what evp-aim says of a list. */
#ifndef EVP_AIM_ROUNDS_H
#define EVP_AIM_ROUNDS_H

#include "aiming/aim_job.h"

/* Lists, profiles and scores, one after another, in the folder --output. path: CONTEXTS, QUESTIONS, TABLE or NULL.
 * *partial: some contexts could not be profiled. */
int aim_rounds(const struct aim_options *opt, char *const *path, bool *partial, struct err *err) MUST_CHECK;

/* What a list asks, what it costs, and what planning without it is expected to lose. */
void aim_say(const struct aim_job *j, const struct aim_out *out);

#endif
