/* What a plan may promise besides mean quality: a floor for the worst question, and a TTFT. The table is that of
 * placement_night.h.
 */
#include "tests/unit/placement_night.h"

#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t full[] = { 100000, 200000, 400000 }; // bytes of c0, c1, c2
static const double part[] = { 1, 0.5, 0.2 };             // of them, by config

TestSuite(placement_goals, .init = night_open, .fini = night_close);

static double ask(const struct placement_input *in, int context, int64_t *bytes, double *out)
{
    struct plan_problem p = placement_problem(in);

    return p.candidates(p.arg, context, bytes, out);
}

/* night's table, but for some similarities, at extra_path. */
static void write_answers(void)
{
    struct table t;
    struct err err;
    const int q = 2; /* per context: a train question, then a test question */

    cr_assert_eq(table_read(&t, "tests/data/table.h5", TABLE_ALL, &err), 0, "%s", err.msg);
    t.similarity[table_answer(&t, 0 * q + 1, KEYDIFF)] = 0.1F; /* of a test question: counts for nothing */
    t.similarity[table_answer(&t, 1 * q, KEYDIFF)] = 0.3F;
    t.similarity[table_answer(&t, 1 * q, KIVI)] = 0.9F;
    t.similarity[table_answer(&t, 2 * q, KEYDIFF)] = NAN;
    t.answer_n_tokens[table_answer(&t, 2 * q, KEYDIFF)] = -1;
    t.answer_text[table_answer(&t, 2 * q, KEYDIFF)] = "";
    cr_assert_eq(table_write(&t, extra_path, &err), 0, "%s", err.msg);
    table_release(&t);
}

/* What is available of each context under a floor for its worst question, as a text of 0 and 1. */
static void available(const struct placement_input *in, char text[16])
{
    int64_t bytes[CONFIGS];
    double out[CONFIGS * TIERS];

    for (int i = 0; i < 3; i++) {
        ask(in, i, bytes, out);
        for (int v = 0; v < CONFIGS; v++)
            text[4 * i + v] = bytes[v] >= 0 ? '1' : '0';
        text[4 * i + 3] = i < 2 ? ' ' : '\0';
    }
}

Test(placement_goals, a_floor_holds_for_the_worst_question)
{
    static const struct {
        double floor;
        const char *available; /* none, keydiff, kivi of c0, c1, c2 */
    } at[] = { { 0, "111 111 111" },    { 0.3, "111 111 101" }, { 0.31, "111 101 101" }, { 0.6, "111 101 101" },
               { 0.61, "110 101 100" }, { 0.9, "110 101 100" }, { 0.91, "100 100 100" } };
    struct placement_files f = night_files();
    struct placement_input in;
    struct err err;
    char text[16];

    write_answers();
    f.table = extra_path;
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        in = (struct placement_input){ .alpha = 2, .max_move = INT64_MAX, .min_quality_worst = at[i].floor };
        cr_assert_eq(placement_input_read(&in, &f, &err), 0, "%s", err.msg);
        available(&in, text);
        cr_assert_str_eq(text, at[i].available, "%g: %s", at[i].floor, text);
        placement_input_release(&in);
        struct table t;
        cr_assert_eq(table_read(&t, extra_path, TABLE_ALL, &err), 0, "%s", err.msg);
        in = (struct placement_input){ .alpha = 2, .max_move = INT64_MAX, .min_quality_worst = at[i].floor };
        cr_assert_eq(placement_input_take(&in, &t, &f, &err), 0, "%s", err.msg);
        available(&in, text);
        cr_assert_str_eq(text, at[i].available, "in memory, %g: %s", at[i].floor, text);
        placement_input_release(&in);
    }
}

/* Of c1 only kivi fits dram, and its question is answered too badly. */
Test(placement_goals, refuses_a_pin_that_the_worst_question_forbids)
{
    struct placement_files f = night_files();
    char rules[] = "/tmp/evp-placement-rules-XXXXXX";
    struct placement_input in = { .alpha = 2, .max_move = INT64_MAX, .min_quality_worst = 0.95 };
    struct err err;

    close(mkstemp(rules));
    write_answers();
    night_tiers(40000, SSD_FREE);
    night_write(rules, "{\"context\":\"c1\",\"tier\":\"dram\"}\n");
    f.table = extra_path;
    f.rules = rules;
    cr_assert_eq(placement_input_read(&in, &f, &err), 0, "%s", err.msg);
    cr_assert_eq(placement_check_rules(&in, &err), ERR_FAIL);
    cr_assert_str_eq(
        err.msg,
        "context 'c1' is pinned to tier 'dram', where no variant has --min-quality-worst=0.95 in every question");
    placement_input_release(&in);
    unlink(rules);
}

/* Utilities with a promise are the documented formula's, the same as one placement's; a plan keeps them to its proof.
 */
Test(placement_goals, lateness_costs_what_it_says)
{
    struct placement_files f = night_files();
    struct placement_input in;
    struct placement_plan p;
    int64_t bytes[CONFIGS];
    double plain[CONFIGS * TIERS], out[CONFIGS * TIERS];

    night_read(&in, &f);
    in.frequency[2] = 5;
    for (int i = 0; i < 3; i++) {
        in.table.prefill_n[i] = i + 1;
        in.table.prefill_spread[i] = i ? 0.5 : (double)NAN;
        in.table.question_spread[i] = i == 1 ? (double)NAN : 0.8;
    }
    for (int i = 0; i < 3; i++) {
        in.slo_weight = 0;
        in.tiers.at[SSD].read_spread = 0.5;
        double recomputed = ask(&in, i, bytes, plain);
        in.slo_weight = 7;
        in.slo_ttft_s = 0.02;
        double promised = ask(&in, i, bytes, out);
        double recompute_s = (double)full[i] / 1e5 + 0.01;
        double prefill_sd_s = i ? 0.5 * (recompute_s - 0.01) / (i == 2 ? 1.693 : 1.128) : 0;
        double question_sd_s = i == 1 ? 0 : 0.8 * 0.01 / 1.693;
        double sd_s = sqrt(prefill_sd_s * prefill_sd_s + question_sd_s * question_sd_s);
        cr_assert_float_eq(promised, recomputed - 7 * lateness(recompute_s, sd_s, 0.02) * in.frequency[i], 1e-9);
        cr_assert_eq(promised, placement_utility(&in, i, (struct plan_placement){ 0, PLAN_RECOMPUTE }));
        for (int v = 0; v < CONFIGS; v++)
            for (int t = 0; t < TIERS; t++) {
                double read_s = (t == DRAM ? 0.001 : 0.01) + part[v] * (double)full[i] / (t == DRAM ? 1e9 : 1e8);
                double read_sd_s = t == SSD ? 0.5 * read_s : 0;
                sd_s = sqrt(read_sd_s * read_sd_s + question_sd_s * question_sd_s);
                double late = lateness(read_s + 0.01, sd_s, 0.02);
                double is = out[v * TIERS + t];
                cr_assert(t == DRAM || late > 0);
                cr_assert_float_eq(is, plain[v * TIERS + t] - 7 * late * in.frequency[i], 1e-12);
                cr_assert_eq(is, placement_utility(&in, i, (struct plan_placement){ v, t }));
            }
    }
    night_solve(&p, &in);
    double late = 0;
    for (int i = 0; i < 3; i++)
        late += in.frequency[i] * lateness(placement_ttft(&in, i, p.plan.placement[i]),
                                           placement_ttft_sd(&in, i, p.plan.placement[i]), 0.02);
    cr_assert_float_eq(placement_lateness(&p), late / 7, 1e-12);
    plan_release(&p.plan);
    placement_input_release(&in);
}
