/* uses.h - how uses become frequencies, for a plan that follows the requests (planner/incremental.h).
 *
 * A use weighs e times less after `life` further uses. How often a context is used is the sum of its weights: forward
 * decay (Cormode et al., ICDE 2009), one exponential per use. What is not stored counts as unused, because it must be
 * computed before it can be stored: at its next use. A hand brings a few contexts up to date at each use, all of them
 * twice in a life; after a round the life is the number of contexts that are stored, at least 100.
 *
 *     uses_age(&u);                                   // of each use
 *     uses_count(&u, number, err);                    // the event of the used context
 *     uses_refresh(&u, err);                          // those of the hand
 *
 * A context that enters the plan with a use has its own event: uses_ended() instead of uses_count().
 */
#ifndef EVP_USES_H
#define EVP_USES_H

#include "planner/incremental.h"

#include <stdbool.h>

/* Of a context's uses, as of the age `at`. */
struct use_weight {
    double weight, at;
};

/* What a plan with contexts is to this file; numbers are those of the planner. */
struct uses_plan {
    struct use_weight *(*weight)(void *arg, int number);                  // NULL: no context has this number
    double (*frequency)(void *arg, int number);                           // that the planner knows
    int (*set)(void *arg, int number, double frequency, struct err *err); // makes it known: an event
    void *arg;
    int (*took)(void *arg, struct err *err); // after an event, while its operations are there; nonzero ends the use
    void *took_arg;
};

struct uses {
    /* set by the caller */
    const struct incremental *plan;
    struct uses_plan of;
    int n;      // numbers that contexts may have
    bool fixed; // `life` stays as it is
    /* after uses_begin() */
    double age;         // uses weigh exp(-age) of what they weighed at age 0
    double life;        // uses in which that falls by a factor of e
    double unit;        // frequency that a use adds, so that the sum of all stays near that at the beginning
    int hand, n_stored; // the number that is brought up to date next; those stored among the ones before it
    int *evicted, cap;  // by the last event
};

/* Sets life, unless it is fixed, and unit from the frequencies and placements there are. */
void uses_begin(struct uses *u);
void uses_release(struct uses *u); // zeroed is fine

bool uses_stored(const struct uses *u, int number);
double uses_weight(const struct uses *u, int number); // now

void uses_age(struct uses *u);
int uses_count(struct uses *u, int number, struct err *err) MUST_CHECK;
int uses_ended(struct uses *u, int number, struct err *err) MUST_CHECK;
int uses_refresh(struct uses *u, struct err *err) MUST_CHECK;

/* How many numbers, from the hand on, uses_refresh() will pass. */
int uses_steps(const struct uses *u);

#endif
