/* What is left, by what is done. Rates are set by hand: a clock would make it slow. */
#include "profiler/run/pace.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <unistd.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9 * b;
}

/* A twentieth of 1,000 and of 4,000 operations count as if done at the rate that was expected. */
Test(pace, at_first_it_is_a_guess_then_each_kind_has_its_rate)
{
    struct pace p = { .of = { { .total = 1000 }, { .total = 4000 } } };

    pace_begin(&p, 100);
    cr_assert(near(pace_left(&p), 50));
    p.of[PACE_PREFILL].done = 500;
    p.of[PACE_PREFILL].seconds = 10; // 50 a second, for answers too as long as none is there
    cr_assert(near(pace_left(&p), 500 / (550 / 10.5) + 80));
    p.of[PACE_ANSWERS].done = 10;
    p.of[PACE_ANSWERS].seconds = 12; // the first few took long
    double left = 500 / ((500 + 50) / (10 + 50 * 12 / 10.0)) + 3990 / ((10 + 200) / (12 + 200 / 50.0));
    cr_assert(near(pace_left(&p), left) && left < 400, "%g %g", pace_left(&p), left);
    p.of[PACE_ANSWERS].done = 3000;
    p.of[PACE_ANSWERS].seconds = 300; // 10 a second
    cr_assert(near(pace_left(&p), 500 / (550 / 15.0) + 1000 / (3200 / 304.0)));
    p.of[PACE_PREFILL].done = 1000;
    p.of[PACE_ANSWERS].done = 5000; // more than was expected
    cr_assert_eq(pace_left(&p), 0);
}

Test(pace, time_belongs_to_what_ends_with_it)
{
    struct pace p = { .of = { { .total = 10 }, { .total = 10 } } };

    pace_begin(&p, 1);
    usleep(20000);
    pace_skip(&p);
    usleep(30000);
    pace_add(&p, PACE_ANSWERS, 5);
    cr_assert(p.of[PACE_ANSWERS].seconds >= 0.03 && p.of[PACE_PREFILL].seconds == 0);
    cr_assert_eq(p.of[PACE_ANSWERS].done, 5);
    double before = p.of[PACE_ANSWERS].seconds;
    pace_add(&p, PACE_PREFILL, 5);
    cr_assert_eq(p.of[PACE_ANSWERS].seconds, before);
    pace_begin(&p, 1);
    cr_assert(p.of[PACE_ANSWERS].done == 0 && p.of[PACE_ANSWERS].total == 10);
}

Test(pace, nothing_is_known)
{
    struct pace p = { .of = { { .total = 10 }, { .total = 10 } } };

    pace_begin(&p, 0);
    cr_assert_eq(pace_left(&p), 0);
}

/* What precedes a context's answers takes 3 seconds for each quarter of it, and does not slow the answers' rate. */
Test(pace, deriving_is_apart)
{
    struct pace p = { .of = { [PACE_ANSWERS] = { .total = 1000 }, [PACE_DERIVING] = { .total = 100 } } };

    pace_begin(&p, 100);
    cr_assert(near(pace_left(&p), 10));
    p.of[PACE_DERIVING].done = 25;
    p.of[PACE_DERIVING].seconds = 3;
    cr_assert(near(pace_left(&p), 10 + 9));
}
