/* When a prefill is measured again, and what its times say. */
#include "base/clock.h"
#include "profiler/run/timing.h"

#include <criterion/criterion.h>
#include <math.h>

static struct timed timed(double a, double b)
{
    struct timed t = { 0 };

    timed_add(&t, a);
    if (b > 0)
        timed_add(&t, b);
    return t;
}

Test(timing, the_fastest_counts_and_the_spread_is_a_part_of_it)
{
    struct timed t = timed(5, 10.9);

    cr_assert(t.n == 2 && t.fastest == 5 && t.slowest == 10.9);
    cr_assert_float_eq(timed_spread(&t), 5.9 / 5, 1e-12);
    t = timed(3, 0);
    cr_assert(isnan(timed_spread(&t)), "one time has no spread");
    timed_add(&t, 3);
    cr_assert_eq(timed_spread(&t), 0);
}

/* The mean range of two and three normal draws, by trapezoids over its distribution, is what makes the deviation 1. */
Test(timing, a_range_gives_a_deviation)
{
    for (int n = 2; n <= 3; n++) {
        double range = 0, step = 1e-3;
        for (double x = -8; x < 8; x += step) {
            double p = 0.5 * erfc(-x * M_SQRT1_2);
            range += (1 - pow(p, n) - pow(1 - p, n)) * step;
        }
        cr_assert_float_eq(timed_sd(5, range / 5, n), 1, 1e-3, "%d: %g", n, range);
    }
    cr_assert_eq(timed_sd(5, 0.5, -1), timed_sd(5, 0.5, 2), "of an unknown number of times");
    cr_assert_eq(timed_sd(5, (double)NAN, 1), 0);
}

Test(timing, the_first_context_is_measured_twice_whatever_it_takes)
{
    struct timing run = { .start = clock_now() };
    struct timed t = timed(5, 0);

    cr_assert(timing_again(&run, &t, 1e12));
    timed_add(&t, 10);
    cr_assert_not(timing_again(&run, &t, 1e12), "a third time is beyond a twentieth of the run");
    run.n_contexts = 1;
    t = timed(5, 0);
    cr_assert_not(timing_again(&run, &t, 1e12), "so is the second of a later one");
}

/* A hundred seconds have passed: 2.5 of them may be spent on what looks right, 5 on what looks slow. */
Test(timing, later_ones_while_it_is_cheap)
{
    struct timing run = { .start = clock_now() - 100, .n_contexts = 9, .best_rate = 1e12 };
    struct timed fast = timed(1, 0), slow = timed(2, 0);

    cr_assert(timing_again(&run, &fast, 1e12));
    run.repeated_s = 2;
    cr_assert_not(timing_again(&run, &fast, 1e12));
    cr_assert(timing_again(&run, &slow, 1e12), "half the rate of the best");
    cr_assert_not(timing_again(&run, &slow, 1.7e12), "not slow by its operations");
    run.repeated_s = 4;
    cr_assert_not(timing_again(&run, &slow, 1e12));
    run.repeated_s = 0;
    fast = timed(1, 1.1);
    cr_assert_not(timing_again(&run, &fast, 1e12), "two that agree are enough");
    fast = timed(1, 1.5);
    cr_assert(timing_again(&run, &fast, 1e12));
    timed_add(&fast, 3);
    cr_assert_not(timing_again(&run, &fast, 1e12), "three at most");
}

Test(timing, noise_is_what_somebody_could_feel)
{
    cr_assert(timing_is_noisy(5, 0.3));
    cr_assert_not(timing_is_noisy(5, 0.15));
    cr_assert_not(timing_is_noisy(0.004, 2), "milliseconds");
    cr_assert_not(timing_is_noisy(5, (double)NAN));
}

Test(timing, a_run_knows_its_worst)
{
    struct timing run = { 0 };
    struct timed a = timed(1, 0), b = timed(1, 1.1), c = timed(2, 3), d = timed(1, 1.3);

    timing_add(&run, "a", &a, 1e9);
    cr_assert(run.n_contexts == 1 && run.n_repeated == 0 && run.best_rate == 1e9);
    timing_add(&run, "b", &b, 2e9);
    cr_assert(run.n_repeated == 1 && run.n_noisy == 0);
    cr_assert_str_eq(run.worst_id, "b");
    timing_add(&run, "c", &c, 1e9);
    timing_add(&run, "d", &d, 1e9);
    cr_assert(run.n_noisy == 2 && run.best_rate == 2e9);
    cr_assert_str_eq(run.worst_id, "c");
    cr_assert_eq(run.worst.slowest, 3);
}

Test(timing, of_several_processes)
{
    struct timing one = { 0 }, other = { 0 }, all = { 0 };
    struct timed small = timed(1, 1.1), large = timed(2, 3), once = timed(1, 0);

    timing_add(&one, "a", &small, 10);
    timing_add(&one, "b", &once, 10);
    timing_add(&other, "c", &large, 30);
    one.repeated_s = 1;
    other.repeated_s = 2;
    timing_unite(&all, &one);
    timing_unite(&all, &other);
    timing_unite(&all, &(struct timing){ 0 });
    cr_assert(all.n_contexts == 3 && all.n_repeated == 2 && all.n_noisy == 1 && all.repeated_s == 3);
    cr_assert(all.best_rate == 15 && all.worst.slowest == 3);
    cr_assert_str_eq(all.worst_id, "c");
}
