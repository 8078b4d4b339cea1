/* pace.h - the remaining time of a profile, from the time of the finished work.
 *
 * A token takes different times in a prefill, in an answer, and over a long cache. So work is counted in operations,
 * prefills apart from answers, and the rest of each is expected at its own rate. Each of these rates starts from the
 * other one, or from a guess before either is known; that start counts as PACE_PRIOR of the work. What precedes the
 * answers to a context's variants, deriving them, is apart too, in tokens derived: it counts nothing until some are.
 */
#ifndef EVP_PACE_H
#define EVP_PACE_H

#define PACE_PRIOR 0.05

enum pace_kind { PACE_PREFILL, PACE_ANSWERS, PACE_DERIVING, PACE_KINDS };

struct pace {
    struct {
        double total, done; // operations; PACE_DERIVING: tokens
        double seconds;     // for the done ones
    } of[PACE_KINDS];
    double guess; // operations per second
    double last;  // clock_now() at the last event
};

/* Starts the clock. The caller has set the totals in `of`. */
void pace_begin(struct pace *p, double guess);

/* `amount` of this kind was done since the last call. */
void pace_add(struct pace *p, enum pace_kind kind, double amount);

/* Does not count the time since the last call. */
void pace_skip(struct pace *p);

/* Seconds for the rest. */
double pace_left(const struct pace *p);

#endif
