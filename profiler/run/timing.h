/* timing.h - decides how often a prefill is measured, and says how much its times vary.
 *
 * On a shared machine a time can be several times too long and would make a plan wrong. So prefills are measured again:
 * the first one of a run always, later ones while repeating takes at most half of TIMING_SHARE of the run, or all of it
 * where a context was slower per operation than the others. The fastest time counts, because other work only adds time.
 *
 *     struct timed t = { 0 };
 *     do
 *         timed_add(&t, seconds of one more prefill);
 *     while (timing_again(&timing, &t, operations));
 *     timing_add(&timing, id, &t, operations);
 */
#ifndef EVP_TIMING_H
#define EVP_TIMING_H

#include <math.h>
#include <stdbool.h>

enum { TIMES_MAX = 3, QUESTION_TIMES = 3 }; // most measurements of one prefill; of one question

#define TIMING_SHARE 0.05 // share of the run's time for repeated measurements
#define TIMING_NOISY 0.2  // report a spread above this,
#define TIMING_FELT  0.05 // if it is also more than this many seconds: times of milliseconds often vary
#define TIMING_SLOW  0.8  // share of the best rate so far; slower contexts are repeated first

/* Measurements of one thing. */
struct timed {
    int n;
    double fastest, slowest;
};

void timed_add(struct timed *t, double seconds);

/* (slowest - fastest) / fastest; NAN with fewer than two measurements. */
double timed_spread(const struct timed *t);

/* The standard deviation of a time, from the spread of its n measurements: the mean range of n normal draws is 1.128 (n
 * = 2) or 1.693 (n = 3) standard deviations (Tippett 1925). n = -1, unknown, counts as 2. Returns 0 when the spread is
 * unknown. */
static inline double timed_sd(double fastest, double spread, int n)
{
    return isnan(spread) ? 0 : fastest * spread / (n > 2 ? 1.693 : 1.128);
}

static inline bool timing_is_noisy(double fastest, double spread)
{
    return spread > TIMING_NOISY && spread * fastest > TIMING_FELT;
}

/* A run, from context to context. */
struct timing {
    double start;      // clock_now() at the beginning
    double repeated_s; // seconds spent on repeated measurements
    double best_rate;  // operations per second
    int n_contexts, n_repeated, n_noisy;
    double side_s; // seconds that the model took to repeat n_side contexts, for methods that need it
    int n_side;
    struct timed worst; // the context with the largest difference in seconds
    char worst_id[64];
};

/* Is another measurement of this prefill (`flop` operations) worth its time? */
bool timing_again(const struct timing *timing, const struct timed *t, double flop);

/* Adds what another process of the same run noted. */
void timing_unite(struct timing *timing, const struct timing *other);

/* Notes that the model repeated a context. */
static inline void timing_side(struct timing *timing, double seconds)
{
    timing->side_s += seconds;
    timing->n_side++;
}

/* Notes a finished context. */
void timing_add(struct timing *timing, const char *id, const struct timed *t, double flop);

#endif
