/* score_say.h - what evp-score tells a person on stderr, and in the summary, about qualities. */
#ifndef EVP_SCORE_SAY_H
#define EVP_SCORE_SAY_H

#include "profiler/table/table.h"

/* Means per config, each quality with how far it is above unrelated answers; standard errors of the held-out ones; the
 * scores by the datasets' own answers where there are any; and a warning when the questions are too few to tell the
 * configs apart (profiler/score/score.h says by which rule). */
void score_say(const struct table *t);

/* Warns when times of the profile were measured several times and lie far apart. */
void score_say_noise(const struct table *t);

#endif
