/* timing.h - how often a prefill is measured, and how far the measurements lie apart.
 *
 * On a machine with other work a time can be several times what it should be, and whoever compares it with others plans
 * nonsense. So prefills are measured again: the first one of a run always, later ones while that takes at most
 * TIMING_SHARE of the run, and twice as readily where a context was slower than the others by its operations. The
 * fastest counts, because other work only ever adds time.
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

enum { TIMES_MAX = 3, QUESTION_TIMES = 3 }; // of one prefill, at most; of one question

#define TIMING_SHARE 0.05 // of the run's time, for measuring again
#define TIMING_NOISY 0.2  // a spread above it is worth a word,
#define TIMING_FELT  0.05 // when it is more than so many seconds: of milliseconds some always are
#define TIMING_SLOW  0.8  // of the best rate so far: below it a context is measured again first

/* Measurements of one thing. */
struct timed {
    int n;
    double fastest, slowest;
};

void timed_add(struct timed *t, double seconds);

/* (slowest - fastest) / fastest; NAN below two measurements. */
double timed_spread(const struct timed *t);

/* The standard deviation of a time whose n measurements spread so far: n draws of a normal distribution lie 1.128 (two)
 * or 1.693 (three) deviations apart in the mean (Tippett 1925). n -1, unknown, counts as two. 0: one measurement, or
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
    double start;      // clock_now() at its beginning
    double repeated_s; // that measuring again took
    double best_rate;  // operations per second
    int n_contexts, n_repeated, n_noisy;
    struct timed worst; // of the context whose times lie furthest apart, in seconds
    char worst_id[64];
};

/* Is one more measurement of a prefill of so many operations worth its time now? */
bool timing_again(const struct timing *timing, const struct timed *t, double flop);

/* A context is done. */
void timing_add(struct timing *timing, const char *id, const struct timed *t, double flop);

#endif
