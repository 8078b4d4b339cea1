/* pace.h - how long the rest of a profile takes, by how long what is done took.
 *
 * A token of a prefill, a token of an answer and one over a long cache take times of their own. So work is counted in
 * operations, prefills apart from answers, and the rest of each is expected at the rate that it had so far. That rate
 * begins as the other's, or as a guess before either is known, and counts as if PACE_PRIOR of the work had been done at
 * it: the first answers come after things that are done once for a context, and alone would promise hours.
 */
#ifndef EVP_PACE_H
#define EVP_PACE_H

#define PACE_PRIOR 0.05

enum pace_kind { PACE_PREFILL, PACE_ANSWERS, PACE_KINDS };

struct pace {
    struct {
        double total, done; // operations
        double seconds;     // that those done took
    } of[PACE_KINDS];
    double guess; // operations per second
    double last;  // clock_now() when something was done last
};

/* The clock starts; `of` is empty but for the totals. */
void pace_begin(struct pace *p, double guess);

/* So many operations more are done, in the time since the last call. */
void pace_add(struct pace *p, enum pace_kind kind, double flop);

/* What happened since the last call is no part of the work. */
void pace_skip(struct pace *p);

/* Seconds that the rest will take. */
double pace_left(const struct pace *p);

#endif
