/* belief.c - planner/belief.c by numbers worked out by hand; tests/golden/belief compares it with NumPy. normal.h. */
#include "planner/belief.h"
#include "planner/normal.h"

#include <criterion/criterion.h>
#include <math.h>

/* Two contexts, each with four questions: means 0.4 and 0.8. */
static const double two_means[] = { 1, 0.4, 1, 0.8 };
static const int32_t four[] = { 4, 4, 4, 4 };

static struct belief fit(const double *mean, const double *std, const int32_t *n, int n_contexts)
{
    struct belief b;
    struct err err;

    cr_assert_eq(belief_fit(&b, &(struct belief_cells){ n_contexts, 2, mean, std, n }, &err), 0);
    return b;
}

/* A cell moves to its config's mean by the part of the variance that is noise. */
Test(belief, a_cell_moves_towards_its_config)
{
    double mean = 0.6, between = 0.03, within = 0.08;
    struct belief b = { 1, &mean, &between, &within, NULL };

    struct believed is = belief_of(&b, 0, 0.8, 4); // 0.03 / (0.03 + 0.08 / 4) = 0.6
    cr_assert_float_eq(is.quality, 0.72, 1e-15);
    cr_assert_float_eq(is.sd, sqrt(0.012), 1e-15);
    is = belief_of(&b, 0, (double)NAN, 0);
    cr_assert(is.quality == mean && is.sd == sqrt(between), "not asked");
    is = belief_of(&b, 0, 0.8, 1000000000);
    cr_assert_float_eq(is.quality, 0.8, 1e-8);
    cr_assert_lt(is.sd, 1e-4);
    mean = 1.2;
    cr_assert_eq(belief_of(&b, 0, 1, 1).quality, 1, "no quality is above 1");
    between = within = 0;
    mean = 0.5;
    is = belief_of(&b, 0, 0.5, 1);
    cr_assert(is.quality == 0.5 && is.sd == 0, "nothing varies");
}

Test(belief, the_reference_is_never_in_doubt)
{
    const double std[] = { 0, 0.2, 0, 0.2 };
    struct belief b = fit(two_means, std, four, 2);
    struct believed is = belief_of(&b, 0, 1, 4);

    cr_assert(is.quality == 1 && is.sd == 0);
    cr_assert(b.mean[0] == 1 && b.between[0] == 0 && b.within[0] == 0);
    belief_release(&b);
}

/* Variance of the means 0.08. 0.04 / 4 of it is noise: so 0.07 is between contexts, before EM. */
Test(belief, moments_and_then_em)
{
    const double std[] = { 0, 0.2, 0, 0.2 };
    struct belief b = fit(two_means, std, four, 2);

    cr_assert_float_eq(b.mean[1], 0.6, 1e-15);
    cr_assert_float_eq(b.within[1], 0.04, 1e-15);
    double between = 0.07;
    for (int i = 0; i < 4; i++) {
        double w = between / (between + 0.01);
        between = between * (1 - w) + w * w * 0.04; // each mean is 0.2 off
    }
    between = (5 * 0.1 * 0.04 + 2 * between) / 7; // pooling changes nothing; a tenth of within counts as five contexts
    cr_assert_float_eq(b.between[1], between, 1e-15);
    cr_assert_float_eq(b.doubt[1], (between + 0.01) / 2, 1e-15); // of the mean of two contexts
    struct believed is = belief_of(&b, 1, 0.8, 4);
    double w = between / (between + 0.01);
    cr_assert_float_eq(is.sd, sqrt(between * (1 - w) + (1 - w) * (1 - w) * b.doubt[1]), 1e-15);
    cr_assert_float_eq(belief_of(&b, 1, (double)NAN, 0).sd, sqrt(between + b.doubt[1]), 1e-15);
    belief_release(&b);
}

/* Without a second question noise and spread cannot be told apart. */
Test(belief, single_questions_say_nothing_of_contexts)
{
    const double std[] = { (double)NAN, (double)NAN, (double)NAN, (double)NAN };
    const int32_t one[] = { 1, 1, 1, 1 };
    struct belief b = fit(two_means, std, one, 2);

    cr_assert_float_eq(b.within[1], 0.08, 1e-15);
    cr_assert_float_eq(b.between[1], 5 * 0.1 * 0.08 / 7, 1e-15);
    double w = b.between[1] / (b.between[1] + 0.08);
    cr_assert_float_eq(belief_of(&b, 1, 0.8, 1).quality, 0.6 + w * 0.2, 1e-15);
    belief_release(&b);
}

Test(belief, one_context_keeps_its_mean)
{
    const double std[] = { 0, 0.2 };
    struct belief b = fit(two_means, std, four, 1);

    struct believed is = belief_of(&b, 1, 0.4, 4);
    cr_assert_float_eq(is.quality, 0.4, 1e-15);
    cr_assert_gt(is.sd, 0.05, "four answers are not certain");
    belief_release(&b);
}

Test(belief, configs_that_were_never_asked_have_none)
{
    const int32_t none[] = { 4, 0, 4, 0 };
    struct belief b = fit(two_means, two_means, none, 2);

    cr_assert(isnan(b.mean[1]) && isnan(b.between[1]) && isnan(b.within[1]));
    belief_release(&b);
}

Test(normal, quantiles)
{
    cr_assert_float_eq(normal_quantile(0.5), 0, 1e-15);
    cr_assert_float_eq(normal_quantile(0.75), 0.67448975019608171, 1e-15); // Abramowitz and Stegun, table 26.5
    cr_assert_float_eq(normal_quantile(0.9), 1.2815515655446004, 1e-14);
    cr_assert_float_eq(normal_quantile(0.0001), -3.7190164854556804, 1e-12);
    cr_assert_float_eq(normal_cdf(1.2815515655446004), 0.9, 1e-15);
}
