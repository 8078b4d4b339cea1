/* From counts to expected uses, by hand; what a plan brings later. */
#include "tests/unit/placement_night.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(placement_rates, .init = night_open, .fini = night_close);

/* Before 4, 1 and no uses, then 2, none and 6. Of 5 uses before 2 came again: .4. Counts: 2 + .4 * 4 = 3.6, in the
 * class of 4, of which 2 of 4 came again; .4, in the class of 1, of which none of 1; 6, in a class without uses. 10
 * uses of all are added to each class; then all are scaled so that 2 uses are expected.
 *
 * Of 10 uses now 6 and 2 were of contexts without uses before. Then one of 5 uses was the only one of its context, with
 * these it is one of 13: 5 / 13 of 8 / 10 are expected to be of contexts that nobody knows. */
Test(placement_rates, uses_that_follow_are_learned)
{
    const double before[] = { 4, 1, 0 }, raw[] = { 3.6 * (2 + 4) / 14, 0.4 * 4 / 11, 6 * 0.4 };
    struct placement_files f = night_files();
    struct placement_input in;

    night_read(&in, &f);
    in.frequency[0] = 2;
    in.frequency[1] = 0;
    in.frequency[2] = 6;
    placement_learn_rates(&in, before, 2);
    const double share = 0.8 * 5 / 13, all_s = in.table.prefill_s[2] + in.table.question_s[2];
    for (int i = 0; i < 3; i++)
        cr_expect_float_eq(in.frequency[i], raw[i] * 2 / (raw[0] + raw[1] + raw[2]), 1e-12);
    cr_expect_float_eq(in.newcomers.uses, 2 * share / (1 - share), 1e-12);
    cr_expect_float_eq(in.newcomers.gpu_s, all_s, 1e-12);
    cr_expect_float_eq(in.newcomers.gpu_square, all_s * all_s, 1e-12);
    cr_expect_float_eq(placement_mean_of_all(&in, 2, 5), 2 + 3 * share, 1e-12);
    placement_input_release(&in);
}

Test(placement_rates, a_period_without_uses_teaches_nothing)
{
    const double before[] = { 0, 0, 0 };
    struct placement_files f = night_files();
    struct placement_input in;

    night_read(&in, &f);
    in.frequency[1] = 7;
    placement_learn_rates(&in, before, 3);
    cr_expect_eq(in.newcomers.uses, 0);
    cr_expect_float_eq(in.frequency[0], 1, 1e-12);
    cr_expect_float_eq(in.frequency[1], 7, 1e-12);
    placement_input_release(&in);
}

Test(placement_rates, the_same_uses_bring_what_was_promised)
{
    struct placement_files f = night_files();
    struct placement_input in;
    struct placement_plan p;
    struct placement_brought b;
    double later[3];
    struct err err;

    night_read(&in, &f);
    night_solve(&p, &in);
    for (int i = 0; i < 3; i++)
        later[i] = 2 * in.frequency[i];
    cr_assert_eq(placement_bring(&p, later, &b, &err), 0);
    cr_expect(b.uses == 6 && b.promised > 0);
    cr_expect_float_eq(b.brought, 2 * b.promised, 1e-12);
    plan_release(&p.plan);
    placement_input_release(&in);
}
