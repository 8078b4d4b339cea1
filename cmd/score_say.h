/* score_say.h - evp-score's messages on stderr, and its summary, about qualities. */
#ifndef EVP_SCORE_SAY_H
#define EVP_SCORE_SAY_H

#include "profiler/table/table.h"

enum score_detail { SCORE_BRIEF, SCORE_ALL }; // tokens per second at the largest batch, or at all

/* Per config: mean qualities and their place on the scale, standard errors of the held-out ones, the metric with the
 * datasets' own answers if there are any, and tokens per second if they were measured. A warning if the questions are
 * too few to tell the configs apart (the rule is in profiler/score/score.h). */
void score_say(const struct table *t, enum score_detail detail);

/* Warns if repeated measurements of a prefill lie far apart. */
void score_say_noise(const struct table *t);

#endif
