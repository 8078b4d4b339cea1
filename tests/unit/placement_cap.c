/* The cap on what a plan writes, with more contexts than the sample that its price is looked for on: the cap is kept
 * and used, the proof holds, and it takes few plans.
 */
#include "placement/placement.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { C = 9000, V = 4, T = 2, ID = 16 };

static char text[C][ID], name[V][32] = { "none", "keydiff:drop=0.25", "keydiff:drop=0.5", "keydiff:drop=0.75" };
static char tier_uri[T][8] = { "/a", "/b" };

/* A table in memory: contexts of 1000 to 100000 bytes, qualities that fall with the bytes. */
static void make_table(struct table *t, struct rng *r)
{
    struct err err;

    *t = (struct table){ 0 };
    cr_assert(!table_alloc(t, C, V, 0, &err) && !table_alloc_scores(t, 0, &err), "%s", err.msg);
    for (int v = 0; v < V; v++)
        t->config_name[v] = name[v];
    for (int i = 0; i < C; i++) {
        double bytes = 1000 * pow(100, rng_unit(r));
        snprintf(text[i], ID, "c%05d", i);
        t->context_id[i] = text[i];
        t->context_token_digest[i] = "";
        t->n_tokens[i] = t->kv_bytes[i] = (int64_t)bytes;
        t->prefill_s[i] = bytes / 1e4;
        t->question_s[i] = 0.01;
        cr_assert_neq(map_add(&t->ids, text[i], strlen(text[i]), NULL), MAP_NOMEM);
        for (int v = 0; v < V; v++) {
            size_t cell = table_cell(t, i, v);
            t->cell_bytes[cell] = (int64_t)(bytes * (1 - 0.25 * v));
            t->decompress_s[cell] = 0;
            t->quality_train[cell] = v ? fmin(1, 1 - 0.3 * v * v / 9.0 * rng_unit(r) * 2) : 1;
        }
    }
}

static double written(const struct placement_plan *p)
{
    double bytes = 0;

    for (int i = 0; i < C; i++)
        bytes += (double)placement_written(p->in, p->in->row[i], p->plan.placement[i]);
    return bytes;
}

/* The plan of one night becomes what is there in the next one, when other contexts are used. */
static void next_night(struct placement_input *in, struct rng *r)
{
    struct placement_plan p;
    struct err err;

    cr_assert_eq(placement_solve(&p, in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
    for (int i = 0; i < C; i++) {
        bool stored = p.plan.placement[i].tier != PLAN_RECOMPUTE;
        in->before[in->row[i]] = stored ? p.plan.placement[i] : (struct plan_placement){ -1, 0 };
    }
    for (int i = 0; i < C; i++)
        in->frequency[i] *= 0.2 + 2 * rng_unit(r);
    plan_release(&p.plan);
}

Test(placement_cap, is_kept_and_used)
{
    static const double share[] = { 1.01, 0.5, 0.1, 0 };
    struct placement_files f = { .table = "made up" };
    struct placement_input in = { .alpha = 1, .kind = QUALITY_RAW, .max_move = INT64_MAX };
    struct placement_plan p;
    struct table t;
    struct rng r = rng_new(3);
    struct err err;

    in.tiers = (struct tiers){ calloc(T, sizeof(struct tier)), T };
    for (int k = 0; k < T; k++) {
        in.tiers.at[k] = (struct tier){ .kind = TIER_FILE,
                                        .capacity = (k + 1) * 10000000,
                                        .latency_s = 0.001,
                                        .read_bytes_per_s = k ? 1e6 : 1e7,
                                        .write_bytes_per_s = 1 };
        cr_assert(!tier_set_name(&in.tiers.at[k], k ? "b" : "a", &err) &&
                  !tier_set_uri(&in.tiers.at[k], tier_uri[k], &err));
    }
    make_table(&t, &r);
    cr_assert_eq(placement_input_take(&in, &t, &f, &err), 0, "%s", err.msg);
    for (int i = 0; i < C; i++)
        in.frequency[i] = 5 * rng_unit(&r);
    next_night(&in, &r);
    cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0);
    double all = written(&p), best = p.plan.objective;
    plan_release(&p.plan);
    cr_assert_gt(all, 1e6);
    for (size_t k = 0; k < sizeof(share) / sizeof(*share); k++) {
        double cap = floor(share[k] * all);
        in.max_move = (int64_t)cap;
        cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        double bytes = written(&p), gap = p.plan.upper_bound - p.plan.objective;
        cr_assert_leq(bytes, cap, "%g", share[k]);
        cr_assert(share[k] > 1 ? in.move_price <= 0 : in.move_price > 0);
        cr_assert(share[k] > 1 || bytes >= 0.85 * cap, "%g: %g of %g", share[k], bytes, cap);
        cr_assert(gap >= 0 && gap <= 1e-2 * fabs(p.plan.upper_bound), "%g: %g of %g", share[k], gap,
                  p.plan.upper_bound);
        cr_assert_leq(p.plan.objective, best + 1e-9 * fabs(best));
        best = p.plan.objective; /* a lower cap never brings more, but for what a plan leaves of it */
        best += gap;
        plan_release(&p.plan);
    }
    placement_input_release(&in);
}
