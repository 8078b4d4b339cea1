/* timing.c - decides when to measure again. */
#include "profiler/run/timing.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

void timed_add(struct timed *t, double seconds)
{
    t->fastest = t->n == 0 || seconds < t->fastest ? seconds : t->fastest;
    t->slowest = t->n == 0 || seconds > t->slowest ? seconds : t->slowest;
    t->n++;
}

double timed_spread(const struct timed *t)
{
    return t->n > 1 && t->fastest > 0 ? (t->slowest - t->fastest) / t->fastest : (double)NAN;
}

bool timing_again(const struct timing *timing, const struct timed *t, double flop)
{
    bool slow = flop / t->fastest < TIMING_SLOW * timing->best_rate;
    double budget = TIMING_SHARE * (clock_now() - timing->start) / (slow ? 1 : 2);

    if (t->n >= TIMES_MAX)
        return false;
    if (t->n == 1 && timing->n_contexts == 0)
        return true;
    // A third time only if the first two disagree.
    return (t->n == 1 || timing_is_noisy(t->fastest, timed_spread(t))) && timing->repeated_s + t->fastest <= budget;
}

static void note_worst(struct timing *timing, const struct timed *t, const char *id)
{
    if (t->n > 1 && (!timing->worst.n || t->slowest - t->fastest > timing->worst.slowest - timing->worst.fastest)) {
        timing->worst = *t;
        snprintf(timing->worst_id, sizeof(timing->worst_id), "%s", id);
    }
}

void timing_add(struct timing *timing, const char *id, const struct timed *t, double flop)
{
    double spread = timed_spread(t);

    timing->n_contexts++;
    timing->n_repeated += t->n > 1;
    timing->n_noisy += timing_is_noisy(t->fastest, spread);
    timing->best_rate = fmax(timing->best_rate, flop / t->fastest);
    note_worst(timing, t, id);
}

void timing_unite(struct timing *timing, const struct timing *other)
{
    timing->repeated_s += other->repeated_s;
    timing->side_s += other->side_s;
    timing->n_side += other->n_side;
    timing->n_contexts += other->n_contexts;
    timing->n_repeated += other->n_repeated;
    timing->n_noisy += other->n_noisy;
    timing->best_rate = fmax(timing->best_rate, other->best_rate);
    note_worst(timing, &other->worst, other->worst_id);
}
