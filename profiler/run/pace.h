/* pace.h - the remaining time of a profile, from the time of the finished work.
 *
 * A token takes different times in a prefill, in an answer, and over a long cache. So work is counted in operations,
 * prefills apart from answers, and the rest of each is expected at its own rate. Each rate starts from the other one,
 * or from a guess before either is known; that start counts as PACE_PRIOR of the work. Without it the first answers,
 * which include work done once per context, would predict hours.
 */
#ifndef EVP_PACE_H
#define EVP_PACE_H

#define PACE_PRIOR 0.05

enum pace_kind { PACE_PREFILL, PACE_ANSWERS, PACE_KINDS };

struct pace {
    struct {
        double total, done; // operations
        double seconds;     // for the done ones
    } of[PACE_KINDS];
    double guess; // operations per second
    double last;  // clock_now() at the last event
};

/* Starts the clock. The caller has set the totals in `of`. */
void pace_begin(struct pace *p, double guess);

/* `flop` operations were done since the last call. */
void pace_add(struct pace *p, enum pace_kind kind, double flop);

/* Does not count the time since the last call. */
void pace_skip(struct pace *p);

/* Seconds for the rest. */
double pace_left(const struct pace *p);

#endif
