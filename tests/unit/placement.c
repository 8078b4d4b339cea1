/* From table to manifest: the problem that is posed, floors, pins, the cap on moves, totals. The table is that of
 * placement_night.h. What --verify sees: placement_verified.c.
 */
#include "tests/unit/placement_night.h"

#include "base/file.h"
#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

static const int64_t full[] = { 100000, 200000, 400000 }; // bytes of c0, c1, c2

TestSuite(placement, .init = night_open, .fini = night_close);

/* ---- reading ---------------------------------------------------------------------------- */

Test(placement, counts_what_it_leaves_out)
{
    struct placement_input in;
    struct placement_files f = night_files();
    const char *log = extra_path;
    struct err err;

    night_write(extra_path, "{\"context\":\"c2\",\"count\":50}\n{\"context\":\"c9\"}\n{\"context\":\"c2\"}\n");
    f.access = &log;
    f.n_access = 1;
    night_read(&in, &f);
    cr_assert(in.left_out.accesses == 3 && in.left_out.accesses_unknown == 1);
    cr_assert(in.frequency[0] == 0 && in.frequency[1] == 0 && in.frequency[2] == 51);
    placement_input_release(&in);
    night_write(extra_path, "{\"context\":\"c9\",\"min_quality\":1}\n{\"context\":\"c1\",\"tier\":\"tape\"}\n");
    f.n_access = 0;
    f.rules = extra_path;
    in = (struct placement_input){ 0 };
    cr_assert_eq(placement_input_read(&in, &f, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "context 'c1' is pinned to unknown tier 'tape'"), "%s", err.msg);
    cr_assert_eq(in.left_out.rules_unknown, 1);
    placement_input_release(&in);
}

Test(placement, plans_with_raw_means_without_predictions)
{
    struct placement_input in;
    struct placement_files f = night_files();
    struct table t;
    struct err err;

    night_read(&in, &f);
    cr_assert(in.kind == QUALITY_PREDICTED && in.quality == in.table.predicted_quality && !in.left_out.predictions);
    placement_input_release(&in);
    cr_assert_eq(table_read(&t, f.table, TABLE_ALL, &err), 0, "%s", err.msg);
    t.predicted_quality = t.belief_mean = t.belief_between = t.belief_within = NULL; // the file is mapped: none to free
    t.predicted_sd = t.predicted_facts = t.predicted_facts_sd = NULL;
    t.cell_asked = NULL;
    cr_assert_eq(table_write(&t, next_path, &err), 0, "%s", err.msg);
    table_release(&t);
    f.table = next_path;
    night_read(&in, &f);
    cr_assert(in.kind == QUALITY_RAW && in.quality == in.table.quality_train && in.left_out.predictions);
    placement_input_release(&in);
}

Test(placement, plans_in_the_order_of_ids)
{
    struct placement_input in;
    struct placement_files f = night_files();

    f.table = "tests/data/table-reversed.h5";
    night_read(&in, &f);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(in.row[i], 2 - i);
    placement_input_release(&in);
}

/* ---- the problem -------------------------------------------------------------------------- */

static double ask(const struct placement_input *in, int context, int64_t *bytes, double *out)
{
    struct plan_problem p = placement_problem(in);

    return p.candidates(p.arg, context, bytes, out);
}

static const double quality[] = { 1, 0.9, 0.6 }, part[] = { 1, 0.5, 0.2 };

static double expected(const struct placement_input *in, int context, int config, int tier)
{
    static const double latency[] = { 0.001, 0.01 }, speed[] = { 1e9, 1e8 };
    double bytes = part[config] * (double)full[context];
    double ttft_s = tier < 0 ? (double)full[context] / 1e5 + 0.01 : latency[tier] + bytes / speed[tier] + 0.01;

    return (in->alpha * (tier < 0 ? 1 : quality[config]) - ttft_s) * in->frequency[context];
}

/* Utilities are the documented formula's, and the same as one placement's. */
Test(placement, candidates_have_the_documented_utility)
{
    struct placement_input in;
    struct placement_files f = night_files();
    int64_t bytes[CONFIGS];
    double out[CONFIGS * TIERS];

    night_read(&in, &f);
    in.frequency[1] = 3;
    for (int i = 0; i < 3; i++) {
        struct plan_placement nowhere = { 0, PLAN_RECOMPUTE };
        cr_assert_float_eq(ask(&in, i, bytes, out), expected(&in, i, 0, -1), 1e-12);
        cr_assert_eq(placement_utility(&in, i, nowhere), ask(&in, i, bytes, out));
        for (int v = 0; v < CONFIGS; v++) {
            cr_assert_eq(bytes[v], (int64_t)(part[v] * (double)full[i]));
            for (int t = 0; t < TIERS; t++) {
                cr_assert_float_eq(out[v * TIERS + t], expected(&in, i, v, t), 1e-12);
                cr_assert_eq(out[v * TIERS + t], placement_utility(&in, i, (struct plan_placement){ v, t }));
            }
        }
    }
    placement_input_release(&in);
}

/* A floor of 0.9 leaves what has exactly 0.9. */
Test(placement, floors_leave_what_is_good_enough)
{
    struct placement_input in;
    int64_t bytes[CONFIGS];
    double out[CONFIGS * TIERS];

    night_read_rules(&in, "{\"context\":\"c1\",\"min_quality\":0.9}\n{\"context\":\"c2\",\"min_quality\":0.91}\n");
    ask(&in, 0, bytes, out);
    cr_assert(bytes[NONE] > 0 && bytes[KEYDIFF] > 0 && bytes[KIVI] > 0);
    ask(&in, 1, bytes, out);
    cr_assert(bytes[NONE] > 0 && bytes[KEYDIFF] > 0 && bytes[KIVI] == -1);
    ask(&in, 2, bytes, out);
    cr_assert(bytes[NONE] > 0 && bytes[KEYDIFF] == -1 && bytes[KIVI] == -1);
    in.min_quality = 0.95; // the higher one of both floors counts
    ask(&in, 1, bytes, out);
    cr_assert(bytes[NONE] > 0 && bytes[KEYDIFF] == -1);
    in.table.predicted_quality[table_cell(&in.table, 1, NONE)] = (double)NAN;
    in.table.cell_bytes[table_cell(&in.table, 0, NONE)] = -1;
    ask(&in, 1, bytes, out);
    cr_assert_eq(bytes[NONE], -1, "a quality that is not known is not good enough");
    ask(&in, 0, bytes, out);
    cr_assert_eq(bytes[NONE], -1, "a cell that was not measured is no candidate");
    placement_input_release(&in);
}

Test(placement, pins_close_all_other_tiers)
{
    struct placement_input in;
    int64_t bytes[CONFIGS];
    double out[CONFIGS * TIERS];

    night_read_rules(&in, "{\"context\":\"c0\",\"tier\":\"ssd\"}\n{\"context\":\"c1\",\"tier\":\"recompute\"}\n");
    double recomputed = ask(&in, 0, bytes, out);
    for (int v = 0; v < CONFIGS; v++)
        cr_assert(isnan(out[v * TIERS + DRAM]) && !isnan(out[v * TIERS + SSD]));
    cr_assert_eq(recomputed, utility_unpinned(placement_utility(&in, 0, (struct plan_placement){ 0, -1 })));
    recomputed = ask(&in, 1, bytes, out);
    for (int i = 0; i < CONFIGS * TIERS; i++)
        cr_assert(isnan(out[i]));
    cr_assert_eq(recomputed, placement_utility(&in, 1, (struct plan_placement){ 0, -1 }));
    ask(&in, 2, bytes, out);
    for (int i = 0; i < CONFIGS * TIERS; i++)
        cr_assert(!isnan(out[i]));
    placement_input_release(&in);
}

/* A context that keeps its place is not written; every other one costs by the byte. */
Test(placement, moves_cost_by_the_byte)
{
    struct placement_input in;
    struct placement_files f = night_files();
    int64_t bytes[CONFIGS];
    double free_of_cost[CONFIGS * TIERS], out[CONFIGS * TIERS];

    night_read(&in, &f);
    ask(&in, 2, bytes, free_of_cost);
    in.before[2] = (struct plan_placement){ KIVI, SSD };
    in.move_cost = 1e-6;
    in.move_price = 2e-6;
    ask(&in, 2, bytes, out);
    for (int v = 0; v < CONFIGS; v++)
        for (int t = 0; t < TIERS; t++) {
            double cost = v == KIVI && t == SSD ? 0 : 3e-6 * (double)bytes[v];
            cr_assert_float_eq(out[v * TIERS + t], free_of_cost[v * TIERS + t] - cost, 1e-12);
            cr_assert_eq(placement_written(&in, 2, (struct plan_placement){ v, t }), cost > 0 ? bytes[v] : 0);
        }
    cr_assert_eq(placement_written(&in, 2, (struct plan_placement){ 0, PLAN_RECOMPUTE }), 0);
    placement_input_release(&in);
}

/* Packing takes a prefill and the write; what only moves is read instead. */
Test(placement, packing_costs_by_the_second)
{
    struct placement_input in;
    struct placement_files f = night_files();
    int64_t bytes[CONFIGS];
    double free_of_cost[CONFIGS * TIERS], out[CONFIGS * TIERS];

    night_read(&in, &f);
    ask(&in, 2, bytes, free_of_cost);
    in.before[2] = (struct plan_placement){ KIVI, SSD };
    in.tiers.at[DRAM].write_bytes_per_s = 0; /* another host writes there */
    in.pack_weight = 0.25;
    ask(&in, 2, bytes, out);
    for (int v = 0; v < CONFIGS; v++)
        for (int t = 0; t < TIERS; t++) {
            double write_s = t == SSD ? (double)bytes[v] / in.tiers.at[SSD].write_bytes_per_s : 0;
            double work_s = v != KIVI  ? in.table.prefill_s[2] + write_s
                            : t == SSD ? 0
                                       : tier_read_s(&in.tiers.at[SSD], bytes[v]);
            cr_assert_float_eq(out[v * TIERS + t], free_of_cost[v * TIERS + t] - 0.25 * work_s, 1e-12);
            cr_assert_float_eq(placement_write_cost(&in, 2, (struct plan_placement){ v, t }), 0.25 * work_s, 1e-12);
        }
    cr_assert_eq(placement_write_cost(&in, 2, (struct plan_placement){ 0, PLAN_RECOMPUTE }), 0);
    placement_input_release(&in);
}

/* Each token of an answer reads what is kept: all when recomputed, uncompressed or quantised. */
Test(placement, decoding_reads_what_is_kept)
{
    struct placement_input in = { .alpha = 2, .max_move = INT64_MAX, .decode_s_per_byte = 1 };
    struct placement_files f = night_files();
    int64_t bytes[CONFIGS];
    double free_of_cost[CONFIGS * TIERS], out[CONFIGS * TIERS];
    struct err err;

    cr_assert_eq(placement_input_read(&in, &f, &err), 0, "%s", err.msg);
    in.frequency[2] = 3;
    in.decode_s_per_byte = 0;
    double recomputed = ask(&in, 2, bytes, free_of_cost);
    in.decode_s_per_byte = 2e-4;
    in.table.keep_frac[table_cell(&in.table, 2, KIVI)] = 0.25;
    double one = 3 * 2e-4 * (double)in.table.kv_bytes[2];
    cr_assert_float_eq(ask(&in, 2, bytes, out), recomputed - one, 1e-9);
    for (int v = 0; v < CONFIGS; v++)
        for (int t = 0; t < TIERS; t++) {
            double kept = in.table.keep_frac[table_cell(&in.table, 2, v)];
            cr_assert_float_eq(out[v * TIERS + t], free_of_cost[v * TIERS + t] - kept * one, 1e-9);
            struct plan_placement at = { v, t };
            cr_assert_float_eq(placement_utility(&in, 2, at), out[v * TIERS + t], 1e-9);
        }
    placement_input_release(&in);
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* c2 on dram: 80000 bytes as kivi, quality 0.6. At, below and above what fits and what is good enough. */
Test(placement, refuses_rules_that_no_placement_respects)
{
    static const struct {
        int64_t dram;
        const char *min_quality, *says;
    } at[] = {
        { 80000, "0", NULL },
        { 80001, "0.6", NULL },
        { 80000, "0.61", "context 'c2' cannot have quality 0.61 on tier 'dram': the best there is 0.6" },
        { 79999, "0", "context 'c2' is pinned to tier 'dram', where no variant fits" },
        { 199999, "0.9", "context 'c2' cannot have quality 0.9 on tier 'dram': the best there is 0.6" },
        { 200000, "0.9", NULL },
        { 400000, "1", NULL },
    };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct placement_input in;
        struct buf rules = { 0 };
        struct err err;
        night_tiers(at[i].dram, SSD_FREE);
        buf_printf(&rules, "{\"context\":\"c2\",\"tier\":\"dram\",\"min_quality\":%s}\n", at[i].min_quality);
        night_read_rules(&in, buf_str(&rules));
        int code = placement_check_rules(&in, &err);
        cr_assert_eq(code, at[i].says ? ERR_FAIL : 0, "%zu", i);
        if (code)
            cr_assert_str_eq(err.msg, at[i].says);
        placement_input_release(&in);
        buf_release(&rules);
    }
}

Test(placement, refuses_pins_that_do_not_fit_together)
{
    static const char pins[] = "{\"context\":\"c1\",\"tier\":\"dram\"}\n{\"context\":\"c2\",\"tier\":\"dram\"}\n";
    struct placement_input in;
    struct placement_plan p;
    struct err err;

    night_tiers(40000 + 80000, SSD_FREE);
    night_read_rules(&in, pins);
    night_solve(&p, &in);
    cr_assert(p.plan.placement[1].tier == DRAM && p.plan.placement[2].tier == DRAM && p.plan.fill[DRAM] == 120000);
    plan_release(&p.plan);
    placement_input_release(&in);
    night_tiers(40000 + 80000 - 1, SSD_FREE);
    night_read_rules(&in, pins);
    cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), ERR_FAIL);
    cr_assert(strstr(err.msg, "the contexts pinned to tier 'dram' do not fit there together"), "%s", err.msg);
    cr_assert_null(p.plan.placement);
    placement_input_release(&in);
}

/* ---- moves ------------------------------------------------------------------------------------ */

static double written(const struct placement_plan *p)
{
    double bytes = 0;

    for (int i = 0; i < p->plan.n_contexts; i++)
        bytes += (double)placement_written(p->in, p->in->row[i], p->plan.placement[i]);
    return bytes;
}

/* The plan of before, for tiers that have become larger; what it would write is what a cap can forbid. */
static void read_next_night(struct placement_input *in)
{
    struct placement_files f = night_files();
    struct placement_plan p;

    night_read(in, &f);
    night_solve(&p, in);
    night_manifest(&p, manifest_path);
    plan_release(&p.plan);
    placement_input_release(in);
    night_tiers(DRAM_FREE, 600000);
    f.previous = manifest_path;
    night_read(in, &f);
}

Test(placement, keeps_to_the_cap_on_moves)
{
    struct placement_input in;
    struct placement_plan p;
    struct placement_moves moves;

    read_next_night(&in);
    night_solve(&p, &in);
    double free_bytes = written(&p), free_objective = p.plan.objective;
    cr_assert(free_bytes > 0);
    placement_moves(&p, &moves);
    double sum = 0;
    int n = 0;
    for (int from = 0; from <= TIERS; from++)
        for (int to = 0; to < TIERS; to++) {
            sum += moves.at[from][to].bytes;
            n += moves.at[from][to].n;
        }
    cr_assert(sum == free_bytes && n >= 1 && moves.at[0][DRAM].n == 0, "nothing is new");
    plan_release(&p.plan);

    const int64_t cap[] = { (int64_t)free_bytes + 1, (int64_t)free_bytes, (int64_t)free_bytes - 1, 1, 0 };
    for (int k = 0; k < 5; k++) {
        in.max_move = cap[k];
        night_solve(&p, &in);
        cr_assert(written(&p) <= (double)cap[k], "%g of %lld", written(&p), (long long)cap[k]);
        cr_assert(p.plan.objective <= free_objective + 1e-9 && p.plan.upper_bound >= p.plan.objective - 1e-9);
        cr_assert_eq(in.move_price > 0, k > 1, "a price only when the cap is in the way");
        cr_assert(k > 1 || p.plan.objective == free_objective);
        struct manifest m;
        struct placement_proof proof;
        struct err err;
        night_manifest(&p, next_path);
        cr_assert_eq(manifest_read(&m, next_path, &err), 0, "%s", err.msg);
        cr_assert_eq(m.max_move, cap[k]);
        cr_assert_eq(placement_verify(&in, &m, &proof, &err), 0, "%s", err.msg);
        manifest_release(&m);
        plan_release(&p.plan);
    }
    placement_input_release(&in);
}

/* A pinned context must be written, but the cap on moves allows no write. */
Test(placement, refuses_a_cap_below_what_pins_need)
{
    struct placement_input in;
    struct placement_plan p;
    struct err err;

    night_read_rules(&in, "{\"context\":\"c2\",\"tier\":\"dram\"}\n");
    in.max_move = 80000;
    night_solve(&p, &in);
    cr_assert(written(&p) <= 80000 && p.plan.placement[2].tier == DRAM);
    plan_release(&p.plan);
    in.max_move = 79999;
    cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), ERR_FAIL);
    cr_assert_null(p.plan.placement);
    placement_input_release(&in);
}

/* What was written once is kept, and contexts that have left the table are evicted after the other rows. */
Test(placement, leads_from_the_previous_manifest)
{
    struct placement_input in;
    struct placement_plan p;
    struct manifest m;
    struct placement_files f = night_files();
    struct buf text = { 0 }, other = { 0 };
    struct err err;

    night_read(&in, &f);
    night_solve(&p, &in);
    night_manifest(&p, manifest_path);
    plan_release(&p.plan);
    placement_input_release(&in);
    cr_assert_eq(file_read(&text, manifest_path, 1 << 20, &err), 0);
    char *at = strstr(text.at, "\"id\":\"c0\"");
    buf_printf(&other, "%.*s\"id\":\"a0\"%s", (int)(at - text.at), text.at, at + 9);
    night_write(manifest_path, buf_str(&other));
    f.previous = manifest_path;
    night_read(&in, &f);
    cr_assert(in.before[0].config == -1 && in.before[1].config == KEYDIFF && in.before[1].tier == DRAM);
    night_solve(&p, &in);
    night_manifest(&p, next_path);
    cr_assert_eq(manifest_read(&m, next_path, &err), 0, "%s", err.msg);
    static const enum operation op[] = { OP_INSERT, OP_KEEP, OP_KEEP, OP_EVICT };
    static const char *const id[] = { "c0", "c1", "c2", "a0" };
    cr_assert_eq(m.n, 4);
    for (int i = 0; i < 4; i++) {
        cr_assert_str_eq(m.at[i].id, id[i]);
        cr_assert_eq(m.at[i].operation, op[i]);
    }
    cr_assert_str_eq(m.previous, in.previous.digest);
    manifest_release(&m);
    plan_release(&p.plan);
    placement_input_release(&in);
    buf_release(&text);
    buf_release(&other);
}

/* ---- the header --------------------------------------------------------------------------------- */

Test(placement, shares_are_of_the_accesses)
{
    struct placement_input in;
    struct placement_files f = night_files();
    struct plan_placement at[] = { { NONE, SSD }, { 0, PLAN_RECOMPUTE }, { KIVI, DRAM } };
    struct placement_plan p = { .in = &in, .plan = { .placement = at, .n_contexts = 3 } };
    double share[TIERS + 1];

    night_read(&in, &f);
    in.frequency[0] = 5;
    in.frequency[1] = 3;
    in.frequency[2] = 2;
    placement_shares(&p, share);
    cr_assert(share[DRAM] == 0.2 && share[SSD] == 0.5 && share[TIERS] == 0.3);
    placement_input_release(&in);
}

Test(placement, totals_compare_with_plans_made_without_a_planner)
{
    struct placement_input in;
    struct placement_files f = night_files();
    struct placement_plan p;
    struct manifest m;
    struct err err;

    night_read(&in, &f);
    night_solve(&p, &in);
    cr_assert_eq(placement_manifest(&m, &p, &err), 0);
    cr_assert_eq(m.n_totals, 4);
    cr_assert_str_eq(m.total[0].name, "this plan");
    cr_assert_str_eq(m.total[3].name, "one config for all: keydiff:drop=0.5");
    cr_assert_float_eq(m.total[0].utility, p.plan.objective, 1e-12);
    cr_assert_float_eq(m.total[1].utility, 6 - (1 + 2 + 4 + 0.03), 1e-12);
    cr_assert_float_eq(m.total[1].ttft_s, 7.03 / 3, 1e-12);
    cr_assert(m.total[1].quality == 1 && m.total[1].quality_test == 1);
    cr_assert_float_eq(m.total[0].quality, (1 + 0.9 + 0.9) / 3, 1e-12);
    cr_assert_float_eq(m.total[0].quality_test, (1 + 0.8 + 0.8) / 3, 1e-12);
    double gain = p.plan.upper_bound - m.total[1].utility;
    cr_assert_float_eq(m.gain_gap, (p.plan.upper_bound - p.plan.objective) / gain, 1e-12);
    cr_assert(m.gain_gap > 0 && m.borrows);
    manifest_release(&m);
    plan_release(&p.plan);
    placement_input_release(&in);
}

/* Where nothing fits on any tier, recomputing is the best plan, and the plan misses no part of a gain. */
Test(placement, gain_gap_is_0_where_nothing_can_be_gained)
{
    struct placement_input in;
    struct placement_files f = night_files();
    struct placement_plan p;
    struct manifest m;
    struct err err;

    night_tiers(0, 0);
    night_read(&in, &f);
    night_solve(&p, &in);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(p.plan.placement[i].tier, PLAN_RECOMPUTE);
    night_manifest(&p, manifest_path);
    cr_assert_eq(manifest_read(&m, manifest_path, &err), 0, "%s", err.msg);
    cr_assert_eq(m.gain_gap, 0);
    cr_assert_float_eq(m.upper_bound, m.total[1].utility, 1e-12);
    manifest_release(&m);
    plan_release(&p.plan);
    placement_input_release(&in);
}

/* ---- variants ----------------------------------------------------------------------------------------- */

static char *text(struct table *t, const char *s)
{
    char *copy = strdup(s);
    struct err err;

    cr_assert_eq(table_own(t, copy, &err), 0);
    return copy;
}

/* A table of one context and n configs, each a little better and larger than the one before: all are on the hull. */
static void write_table_of_configs(const char *path, int n)
{
    struct table t;
    struct err err;
    char name[32];

    cr_assert_eq(table_alloc(&t, 1, n, 1, &err), 0);
    cr_assert_eq(table_set_text(&t.model_digest, "", &err), 0);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    t.context_id[0] = t.question_id[0] = text(&t, "c0");
    t.context_token_digest[0] = text(&t, "0000000000000000000000000000000000000000000000000000000000000000");
    t.question_split[0] = text(&t, "train");
    t.n_tokens[0] = 1000;
    t.kv_bytes[0] = 1000 * n;
    t.prefill_s[0] = 1e6; // recomputing is worth less than any of them
    t.question_s[0] = 0;
    t.question_context[0] = 0;
    for (int v = 0; v < n; v++) {
        snprintf(name, sizeof(name), "knorm:drop=0.%03d", v);
        t.config_name[v] = text(&t, v ? name : "none");
        int step = v ? v : n;
        t.cell_bytes[v] = 1000 * step;
        t.size_frac[v] = t.keep_frac[v] = (double)step / n;
        t.compress_s[v] = t.decompress_s[v] = 0;
        t.answer_n_tokens[v] = 1;
        t.quality_train[v] = sqrt((double)step / n);
    }
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    table_release(&t);
}

/* A row carries at most 127 variants; where a live plan could need more, none is left out in silence. */
Test(placement, as_many_variants_as_a_row_may_carry)
{
    for (int n = VARIANTS_MAX - 1; n <= VARIANTS_MAX + 1; n++) {
        struct placement_files f = night_files();
        struct placement_input in;
        struct placement_plan p;
        struct manifest m;
        struct err err;
        write_table_of_configs(extra_path, n);
        f.table = extra_path;
        night_read(&in, &f);
        in.alpha = 100;
        in.online = true;
        night_solve(&p, &in);
        cr_assert_eq(placement_manifest(&m, &p, &err), 0);
        int code = placement_write(&m, &p, manifest_path, (struct rows_made){ .tool = "test" }, &err);
        cr_assert_eq(code, n <= VARIANTS_MAX ? 0 : ERR_FAIL, "%d", n);
        cr_assert(!code || strstr(err.msg, "context 'c0' has more than 127 variants"), "%s", err.msg);
        manifest_release(&m);
        if (!code) {
            cr_assert_eq(manifest_read(&m, manifest_path, &err), 0, "%s", err.msg);
            cr_assert_eq(m.at[0].variants->n, n);
            manifest_release(&m);
        }
        plan_release(&p.plan);
        placement_input_release(&in);
    }
}
