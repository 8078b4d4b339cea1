/* score_say.h - evp-score's messages on stderr, and its summary, about qualities. */
#ifndef EVP_SCORE_SAY_H
#define EVP_SCORE_SAY_H

#include "profiler/table/table.h"

/* Per config: mean qualities and their place on the scale, standard errors of the held-out ones, and the metric with the
 * datasets' own answers if there are any. A warning if the questions are too few to tell the configs apart (the rule is
 * in profiler/score/score.h). */
void score_say(const struct table *t);

/* Warns if repeated measurements of a prefill lie far apart. */
void score_say_noise(const struct table *t);

#endif
