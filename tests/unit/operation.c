/* Operations between two placements, and the means and gaps of a plan. */
#include "formats/operation.h"
#include "formats/outcome.h"
#include "planner/plan.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

static char uri[][16] = { "/dev/shm/evp", "/var/tmp/evp", "/dev/shm/evp", "/dev/shm/evp" };
static const struct tier dram = { .name = "dram", .kind = TIER_DRAM, .uri = uri[0] };
static const struct tier ssd = { .name = "ssd", .kind = TIER_FILE, .uri = uri[1] };
static const struct tier other_name = { .name = "ram", .kind = TIER_DRAM, .uri = uri[2] };
static const struct tier other_kind = { .name = "dram", .kind = TIER_FILE, .uri = uri[3] };

static const struct cached nowhere, on_dram = { "a", "kivi:bits=2", "m", 10, &dram };

static enum operation from_dram(struct cached after)
{
    return operation_between(&on_dram, &after);
}

Test(operation, comes_and_goes)
{
    cr_assert_eq(operation_between(&nowhere, &nowhere), OP_NONE);
    cr_assert_eq(operation_between(&nowhere, &on_dram), OP_INSERT);
    cr_assert_eq(operation_between(&on_dram, &nowhere), OP_EVICT);
    cr_assert_eq(operation_between(&on_dram, &on_dram), OP_KEEP);
}

/* A place is kind and uri; the name of a tier does not count. */
Test(operation, knows_a_place_by_kind_and_uri)
{
    struct cached after = on_dram;

    after.tier = &ssd;
    cr_assert_eq(from_dram(after), OP_MOVE);
    after.tier = &other_name;
    cr_assert_eq(from_dram(after), OP_KEEP);
    after.tier = &other_kind;
    cr_assert_eq(from_dram(after), OP_MOVE);
}

/* Tokens and config always count; model and size where both sides give them. On every tier. */
Test(operation, knows_a_cache_by_tokens_config_model_and_size)
{
    const struct tier *const tier[] = { &dram, &ssd };

    for (int t = 0; t < 2; t++) {
        struct cached same = on_dram, other;
        same.tier = tier[t];
        enum operation kept = t ? OP_MOVE : OP_KEEP;
        other = same, other.token_digest = "b";
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.config = "none";
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.model_digest = "n";
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.model_digest = "";
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.model_digest = NULL;
        cr_assert_eq(from_dram(other), kept);
        other = same, other.bytes = 11;
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.bytes = 0;
        cr_assert_eq(from_dram(other), OP_RECOMPRESS);
        other = same, other.bytes = -1;
        cr_assert_eq(from_dram(other), kept);
    }
}

Test(operation, has_names_that_are_found)
{
    enum operation op;
    struct err err;

    for (int i = 0; i < N_OPERATIONS; i++)
        cr_assert(operation_parse(&op, operation_name((enum operation)i), &err) == 0 && op == (enum operation)i);
    cr_assert_eq(operation_parse(&op, "burn", &err), ERR_FORMAT);
    cr_assert_eq(operation_parse(&op, "", &err), ERR_FORMAT);
}

/* ---- outcomes ---------------------------------------------------------------- */

/* Utilities are summed as they are, the rest counts as often as it is accessed. */
Test(outcome, means_are_over_accesses)
{
    struct outcome_sums s = { 0 };
    const struct outcome plain = { .utility = 3, .ttft_s = 0.5, .quality = 1 };
    const struct outcome tested = { .utility = 4,
                                    .ttft_s = 0.1,
                                    .quality = 0.5,
                                    .quality_sd = 0.25,
                                    .common_sd = 0.5,
                                    .compressed = true,
                                    .quality_test = 0.75,
                                    .quality_se = 0.125 };

    outcome_add(&s, &plain, 1);
    outcome_add(&s, &tested, 3);
    struct manifest_total t = outcome_total(&s, "this plan");
    cr_assert_str_eq(t.name, "this plan");
    cr_assert_eq(t.utility, 7);
    cr_assert_float_eq(t.ttft_s, 0.2, 1e-12);
    cr_assert_float_eq(t.quality, 0.625, 1e-12);
    cr_assert_float_eq(t.quality_error, hypot(0.25, 0.5) * 0.75, 1e-12);
    cr_assert_float_eq(t.quality_test, (1 + 3 * 0.75) / 4, 1e-12);
    cr_assert_float_eq(t.quality_test_error, 0.125 * 0.75, 1e-12);
    cr_assert(t.n_compressed == 1 && t.n_tested == 1);
}

/* A mean of some compressed contexts is not called the plan's. */
Test(outcome, some_compressed_contexts_without_test_answers)
{
    struct outcome_sums s = { 0 };
    const struct outcome plain = { .quality = 1 };
    struct outcome o = { .quality = 0.5, .quality_sd = 0.25, .compressed = true, .quality_test = (double)NAN };

    outcome_add(&s, &plain, 1);
    outcome_add(&s, &o, 0); // not used: not missed
    struct manifest_total t = outcome_total(&s, "x");
    cr_assert(t.quality_test == 1 && t.n_compressed == 0 && isnan(t.quality_tested));
    outcome_add(&s, &o, 2);
    o.quality_test = 0.75;
    o.quality_se = 0.125;
    outcome_add(&s, &o, 1);
    t = outcome_total(&s, "x");
    cr_assert(t.n_compressed == 2 && t.n_tested == 1 && isnan(t.quality_test));
    cr_assert_float_eq(t.quality_tested, 0.75, 1e-12);
    cr_assert_float_eq(t.quality_test_error, 0.125, 1e-12);
    cr_assert_float_eq(t.quality_error, sqrt(4 + 1) * 0.25 / 4, 1e-12);
    o.quality_sd = o.quality_se = (double)NAN;
    outcome_add(&s, &o, 1);
    t = outcome_total(&s, "x");
    cr_assert(isnan(t.quality_error) && isnan(t.quality_test_error) && t.n_tested == 2);
}

Test(outcome, of_no_accesses_has_no_means)
{
    struct outcome_sums s = { 0 };
    const struct outcome a = { .ttft_s = 0.5, .quality = 1, .compressed = true, .quality_test = 1 };

    outcome_add(&s, &a, 0);
    struct manifest_total t = outcome_total(&s, "x");
    cr_assert(t.utility == 0 && isnan(t.ttft_s) && isnan(t.quality) && isnan(t.quality_test));
}

/* Whatever the counts, means are finite and within what they are of, or known not to be known. */
Test(outcome, means_of_any_counts_are_means)
{
    static const double count[] = { 0, 5e-324, 1e-300, 1e-9, 1, 51, 1e15, 1e300, DBL_MAX };
    enum { COUNTS = sizeof(count) / sizeof(*count), EACH = 1000 };
    static const struct outcome a = { .utility = 1e300,
                                      .ttft_s = 1e30,
                                      .quality = 1,
                                      .compressed = true,
                                      .quality_sd = 0.5,
                                      .quality_test = 0.25,
                                      .quality_se = 0.5 },
                                b = { .utility = -DBL_MAX,
                                      .quality = 0.5,
                                      .compressed = true,
                                      .quality_sd = 0.5,
                                      .quality_test = (double)NAN };

    for (int i = 0; i < COUNTS; i++)
        for (int k = 0; k < COUNTS; k++) {
            struct outcome_sums s = { 0 };
            for (int n = 0; n < EACH; n++) {
                outcome_add(&s, &a, count[i]);
                outcome_add(&s, &b, count[k]);
            }
            struct manifest_total t = outcome_total(&s, "x");
            bool some = s.weight > 0, tested = s.n_tested > 0;
            cr_assert(isfinite(t.utility));
            cr_assert_eq(some, count[i] > 1e-9 || count[k] > 1e-9 || (some && (count[i] > 0 || count[k] > 0)));
            cr_assert(some ? t.ttft_s >= 0 && t.ttft_s <= 1.000001e30 : isnan(t.ttft_s), "%g %g: %g", count[i],
                      count[k], t.ttft_s);
            cr_assert(some ? t.quality >= 0.5 - 1e-9 && t.quality <= 1 + 1e-9 : isnan(t.quality));
            cr_assert(isnan(t.quality_error) || t.quality_error <= 0.5);
            cr_assert(tested ? fabs(t.quality_tested - 0.25) < 1e-9 : isnan(t.quality_tested));
            cr_assert(some && s.n_tested == s.n_compressed ? fabs(t.quality_test - 0.25) < 1e-9
                                                           : isnan(t.quality_test));
        }
    struct outcome_sums empty = { 0 };
    struct manifest_total t = outcome_total(&empty, "empty");
    cr_assert(t.utility == 0 && isnan(t.ttft_s) && isnan(t.quality) && isnan(t.quality_test));
}

Test(outcome, gaps_of_any_plans_are_numbers)
{
    static const double at[] = { 0, 5e-324, 1, -1, 1e300, -1e300, DBL_MAX, -DBL_MAX };
    enum { N = sizeof(at) / sizeof(*at) };

    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            struct plan plan = { .objective = at[i], .upper_bound = at[k] };
            double gap = plan_gap(&plan);
            cr_assert(isfinite(gap) || (fabs(at[k]) < 1e-9 && at[k] != 0) || fabs(at[i]) > 1e299, "%g %g", at[i],
                      at[k]);
            cr_assert_not(isnan(gap));
            for (int r = 0; r < N; r++)
                cr_assert_not(isnan(outcome_gain_gap(at[i], at[k], at[r])));
        }
}

Test(outcome, gain_gap_is_the_missed_part_of_what_can_be_gained)
{
    cr_assert_float_eq(outcome_gain_gap(3, 4, 2), 0.5, 1e-12);
    cr_assert_eq(outcome_gain_gap(4, 4, 2), 0);
    cr_assert_eq(outcome_gain_gap(2, 4, 2), 1);
    cr_assert_eq(outcome_gain_gap(2, 2, 2), 0, "nothing can be gained");
    cr_assert_eq(outcome_gain_gap(1, 2, 3), 0, "a bound below recomputing");
    cr_assert_eq(outcome_gain_gap(-1e6, -1e6 + 1e-4, -1e6), 0, "a sum of another order");
    cr_assert_float_eq(outcome_gain_gap(-1e6, -1e6 + 1e-2, -1e6), 1, 1e-12);
}
