/* Tiers of few kinds: which tiers are alike, and plans made by way of the kinds: what each tier holds, pins, contexts
 * that stay, pools, and the proof. The table is that of placement_night.h.
 */
#include "tests/unit/placement_night.h"

#include "placement/placement_internal.h"
#include "planner/spread.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

TestSuite(placement_kinds, .init = night_open, .fini = night_close);

/* ---- what is alike --------------------------------------------------------------- */

static char none_name[] = "none", kivi_name[] = "kivi", *one_config[] = { none_name }, *other_config[] = { kivi_name };
static const struct tier plain = {
    .name = "a", .capacity = 1000, .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9, .latency_s = 0.001
};

/* Do so many contexts, on `plain` and another tier, have kinds? */
static bool has_kinds(struct tier other, int n_contexts)
{
    struct tier tier[] = { plain, other };
    struct placement_input in = { .tiers = { tier, 2 }, .max_move = INT64_MAX };

    in.table.n_contexts = n_contexts;
    return placement_has_kinds(&in);
}

Test(placement_kinds, are_tiers_that_are_read_alike)
{
    struct tier t = plain;

    cr_assert(has_kinds(t, SPREAD_MIN));
    cr_assert_not(has_kinds(t, SPREAD_MIN - 1), "kinds are for many contexts");
    t.capacity = 7;
    t.write_bytes_per_s = 1;
    cr_assert(has_kinds(t, SPREAD_MIN), "a kind has tiers of several sizes");
    struct tier not_alike[9];
    for (int i = 0; i < 9; i++)
        not_alike[i] = plain;
    not_alike[0].read_bytes_per_s = 2e9;
    not_alike[1].latency_s = 0.002;
    not_alike[2].device_bytes_per_s = 1e8;
    not_alike[3].read_spread = 0.1;
    not_alike[4].part_bytes_per_s = 1e8;
    not_alike[5].part_spread = 0.1;
    not_alike[6].capacity = INT64_MAX;
    not_alike[7].config = one_config;
    not_alike[7].n_configs = 1;
    memcpy(not_alike[8].pool, "disk", 5);
    for (int i = 0; i < 9; i++)
        cr_assert_not(has_kinds(not_alike[i], SPREAD_MIN), "%d", i);
}

Test(placement_kinds, need_the_same_configs_and_no_cap_on_moves)
{
    struct tier tier[] = { plain, plain };
    struct placement_input in = { .tiers = { tier, 2 }, .max_move = INT64_MAX };

    in.table.n_contexts = SPREAD_MIN;
    tier[0].config = one_config;
    tier[1].config = other_config;
    tier[0].n_configs = tier[1].n_configs = 1;
    cr_assert_not(placement_has_kinds(&in));
    tier[1].config = one_config;
    cr_assert(placement_has_kinds(&in));
    in.max_move = 1;
    cr_assert_not(placement_has_kinds(&in));
}

/* ---- plans -------------------------------------------------------------------------- */

#define FAST "\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0.001}"
#define SLOW "\"read_bytes_per_s\":1e8,\"write_bytes_per_s\":1e8,\"latency_s\":0.01}"

enum { FAST_0, SLOW_0, FAST_1, SLOW_1, NODE_TIERS };

/* Two nodes: a fast and a slow tier each. slow: of each slow tier, its capacity and whatever else. */
static void two_nodes(struct placement_input *in, const char *slow, const char *rules)
{
    struct placement_files f = night_files();
    struct buf text = { 0 };

    buf_printf(&text,
               "{\"evp\":\"tiers\",\"version\":1,\"tiers\":["
               "{\"name\":\"f0\",\"kind\":\"dram\",\"uri\":\"/f0\",\"capacity_bytes\":100000," FAST
               ",{\"name\":\"s0\",\"kind\":\"file\",\"uri\":\"/s0\",%s," SLOW
               ",{\"name\":\"f1\",\"kind\":\"dram\",\"uri\":\"/f1\",\"capacity_bytes\":50000," FAST
               ",{\"name\":\"s1\",\"kind\":\"file\",\"uri\":\"/s1\",%s," SLOW "]}",
               slow, slow);
    night_write(tiers_path, buf_str(&text));
    buf_release(&text);
    if (!rules) {
        night_read(in, &f);
        return;
    }
    night_read_rules(in, rules);
}

static void solve(struct placement_plan *p, struct placement_input *in, const struct plan_effort *effort)
{
    struct err err;

    *p = (struct placement_plan){ .in = in, .solver = PLAN_OPTIMAL };
    cr_assert_eq(placement_solve_kinds(p, effort, &err), 0, "%s", err.msg);
}

/* Fills, objective and proof are those of the problem of all tiers. */
static void check_plan(const struct placement_plan *p)
{
    const struct placement_input *in = p->in;
    int64_t fill[NODE_TIERS] = { 0 }, pool[NODE_TIERS] = { 0 };
    double objective = 0, bound = 0;
    struct plan_problem problem = placement_problem(in);
    struct plan_candidates all;
    struct err err;

    cr_assert_eq(plan_candidates_init(&all, &problem, &err), 0);
    for (int i = 0; i < p->plan.n_contexts; i++) {
        struct plan_placement at = p->plan.placement[i];
        plan_candidates_get(&all, &problem, i);
        double best = all.recompute;
        for (int v = 0; v < problem.n_configs; v++)
            for (int t = 0; t < problem.n_tiers; t++)
                if (plan_candidate_ok(&all, &problem, v, t))
                    best = fmax(best, all.utility[plan_cell(&problem, v, t)] - p->plan.price[t] * (double)all.bytes[v]);
        bound += best;
        objective += plan_candidate_utility(&all, &problem, at);
        if (at.tier == PLAN_RECOMPUTE)
            continue;
        cr_assert(plan_candidate_ok(&all, &problem, at.config, at.tier));
        fill[at.tier] += all.bytes[at.config];
        pool[in->pool[at.tier]] += all.bytes[at.config];
    }
    for (int t = 0; t < NODE_TIERS; t++) {
        cr_assert_eq(p->plan.fill[t], fill[t], "%d", t);
        cr_assert_leq(pool[t], in->capacity[t], "%d", t);
        bound += in->pool[t] == t ? p->plan.price[t] * (double)in->capacity[t] : 0;
    }
    cr_assert(p->plan.price[FAST_0] == p->plan.price[FAST_1] && p->plan.price[SLOW_0] == p->plan.price[SLOW_1]);
    cr_assert_float_eq(p->plan.objective, objective, 1e-9);
    cr_assert_geq(p->plan.upper_bound, bound - 1e-9, "the prices prove the bound");
    cr_assert_leq(p->plan.objective, bound + 1e-9);
    cr_assert_not(p->plan.optimal);
    plan_candidates_release(&all);
}

/* c1 (100000 bytes as keydiff) fits the first fast tier alone; the sum of both would hold more. */
Test(placement_kinds, a_variant_fits_a_tier_not_a_kind)
{
    struct placement_input in;
    struct placement_plan p, again;

    two_nodes(&in, "\"capacity_bytes\":200000", NULL);
    solve(&p, &in, &(struct plan_effort){ 0 });
    check_plan(&p);
    for (int i = 0; i < 3; i++)
        cr_assert_neq(p.plan.placement[i].tier, PLAN_RECOMPUTE, "there is a place for everyone");
    solve(&again, &in, &(struct plan_effort){ .start = p.plan.price });
    check_plan(&again);
    cr_assert_float_eq(again.plan.objective, p.plan.objective, 1e-9);
    plan_release(&again.plan);
    plan_release(&p.plan);
    placement_input_release(&in);
}

Test(placement_kinds, a_pool_counts_once)
{
    struct placement_input in;
    struct placement_plan p;

    two_nodes(&in, "\"pool\":\"disk\",\"capacity_bytes\":100000", NULL);
    solve(&p, &in, &(struct plan_effort){ 0 });
    check_plan(&p);
    cr_assert_leq(p.plan.fill[SLOW_0] + p.plan.fill[SLOW_1], 100000);
    plan_release(&p.plan);
    placement_input_release(&in);
}

/* Either tier of a kind would do; a pin says which. */
Test(placement_kinds, pins_name_the_tier)
{
    struct placement_input in;

    for (int k = 0; k < 2; k++) {
        struct placement_plan p;
        two_nodes(&in, "\"capacity_bytes\":400000",
                  k ? "{\"context\":\"c0\",\"tier\":\"s1\"}\n{\"context\":\"c2\",\"tier\":\"recompute\"}\n"
                    : "{\"context\":\"c0\",\"tier\":\"s0\"}\n{\"context\":\"c2\",\"tier\":\"recompute\"}\n");
        solve(&p, &in, &(struct plan_effort){ 0 });
        check_plan(&p);
        cr_assert_eq(p.plan.placement[0].tier, k ? SLOW_1 : SLOW_0);
        cr_assert_eq(p.plan.placement[2].tier, PLAN_RECOMPUTE);
        plan_release(&p.plan);
        placement_input_release(&in);
    }
}

/* A context that keeps its config keeps its tier too: only another one would cost. */
Test(placement_kinds, what_stays_stays_on_its_tier)
{
    struct placement_input in;

    for (int k = 0; k < 2; k++) {
        struct placement_plan p;
        two_nodes(&in, "\"capacity_bytes\":400000", NULL);
        in.before[2] = (struct plan_placement){ NONE, k ? SLOW_1 : SLOW_0 };
        in.move_cost = 1e-4;
        solve(&p, &in, &(struct plan_effort){ 0 });
        check_plan(&p);
        cr_assert(p.plan.placement[2].tier == in.before[2].tier && p.plan.placement[2].config == NONE, "%d", k);
        plan_release(&p.plan);
        placement_input_release(&in);
    }
}
