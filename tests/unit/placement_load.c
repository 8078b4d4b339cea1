/* Plans at a rate of requests, against every plan that there is: small tables, where all can be tried. What a plan is
 * worth with its waits is written again here, from the formulas of docs/planning.md. */
#include "placement/placement.h"

#include "base/rng.h"
#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { C = 5, V = 3, T = 2, CHOICES = V * T + 1, TABLES = 200 };

static char name[V][32] = { "none", "keydiff:drop=0.5", "kivi:bits=2" }, text[C][16];

static void make_table(struct table *t, struct rng *r)
{
    struct err err;

    *t = (struct table){ 0 };
    cr_assert(!table_alloc(t, C, V, 0, &err) && !table_alloc_scores(t, 0, &err), "%s", err.msg);
    for (int v = 0; v < V; v++)
        t->config_name[v] = name[v];
    for (int i = 0; i < C; i++) {
        double bytes = 1000 * pow(30, rng_unit(r)), quality = 1;
        snprintf(text[i], sizeof(text[i]), "c%d", i);
        t->context_id[i] = text[i];
        t->context_token_digest[i] = "";
        t->n_tokens[i] = t->kv_bytes[i] = (int64_t)bytes;
        t->prefill_s[i] = bytes / 1e4;
        t->question_s[i] = 0.02;
        cr_assert_neq(map_add(&t->ids, text[i], strlen(text[i]), NULL), MAP_NOMEM);
        for (int v = 0; v < V; v++) {
            size_t cell = table_cell(t, i, v);
            t->cell_bytes[cell] = (int64_t)(bytes / (v ? v == 1 ? 2 : 6 : 1));
            t->decompress_s[cell] = v == 2 ? 0.01 : 0;
            t->quality_train[cell] = quality;
            quality -= 0.2 * rng_unit(r);
        }
    }
}

static void make_input(struct placement_input *in, struct rng *r)
{
    const struct placement_files files = { .table = "t" };
    struct table t;
    struct err err;

    make_table(&t, r);
    *in = (struct placement_input){ .alpha = 3, .max_move = INT64_MAX, .kind = QUALITY_RAW };
    in->tiers = (struct tiers){ calloc(T, sizeof(struct tier)), T };
    for (int k = 0; k < T; k++)
        in->tiers.at[k] = (struct tier){
            .kind = TIER_FILE, .capacity = k ? 20000 : 6000, .read_bytes_per_s = k ? 5e4 : 1e6, .write_bytes_per_s = 1e6
        };
    for (int k = 0; k < T; k++)
        snprintf(in->tiers.at[k].name, TIER_NAME, "t%d", k);
    cr_assert_eq(placement_input_take(in, &t, &files, &err), 0, "%s", err.msg);
    for (int i = 0; i < C; i++)
        in->frequency[i] = 1 + floor(20 * rng_unit(r));
}

/* -INFINITY: a tier is too full, or there is not enough time. */
static double worth(const struct placement_input *in, const struct plan_placement *at, double *busiest)
{
    double fill[T] = { 0 }, rho = 0, square = 0, tier[T] = { 0 }, all = 0, sum = 0;

    for (int i = 0; i < C; i++)
        all += in->frequency[i];
    for (int i = 0; i < C; i++) {
        const struct table *t = &in->table;
        size_t cell = table_cell(t, i, at[i].config);
        bool stored = at[i].tier != PLAN_RECOMPUTE;
        double rate = in->load.rate * in->frequency[i] / all, read_s = 0;
        double gpu_s = t->question_s[i] + (stored ? t->decompress_s[cell] : t->prefill_s[i]);
        if (stored) {
            fill[at[i].tier] += (double)t->cell_bytes[cell];
            bool fewer = t->cell_bytes_read && t->cell_bytes_read[cell] >= 0;
            int64_t read = fewer ? t->cell_bytes_read[cell] : t->cell_bytes[cell];
            read_s = (double)read / in->tiers.at[at[i].tier].read_bytes_per_s;
            tier[at[i].tier] += rate * read_s;
        }
        rho += rate * gpu_s / (double)in->load.gpus;
        square += rate * pow(gpu_s / (double)in->load.gpus, 2);
        sum += in->frequency[i] * (in->alpha * (stored ? t->quality_train[cell] : 1) - read_s - gpu_s);
    }
    *busiest = fmax(rho, fmax(tier[0], tier[1]));
    if (*busiest >= 1 || fill[0] > 6000 || fill[1] > 20000)
        return -(double)INFINITY;
    sum -= all * square / 2 / (1 - rho);
    for (int k = 0; k < T; k++) /* a read of s seconds takes s / (1 - tier) */
        sum -= all / in->load.rate * tier[k] * tier[k] / (1 - tier[k]);
    return sum;
}

/* The best of all plans, and the least time that any needs. */
static double best_of_all(const struct placement_input *in, double *least)
{
    struct plan_placement at[C];
    double best = -(double)INFINITY, busiest;
    int n = 1;

    *least = (double)INFINITY;
    for (int i = 0; i < C; i++)
        n *= CHOICES;
    for (int k = 0; k < n; k++) {
        for (int i = 0, rest = k; i < C; i++, rest /= CHOICES) {
            int choice = rest % CHOICES;
            at[i] = choice == V * T ? (struct plan_placement){ 0, PLAN_RECOMPUTE }
                                    : (struct plan_placement){ choice % V, choice / V };
        }
        double is = worth(in, at, &busiest);
        best = fmax(best, is);
        *least = isfinite(is) ? fmin(*least, busiest) : *least;
    }
    return best;
}

Test(placement_load, plans_are_nearly_the_best_with_their_waits)
{
    struct rng r = rng_new(7);
    double lost = 0, gained = 0, unpriced = 0;
    int grows = 0, hopeless = 0, over = 0;

    for (int k = 0; k < TABLES; k++) {
        struct placement_input in;
        struct placement_plan p;
        struct err err;
        double least, busiest;
        make_input(&in, &r);
        cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        in.load = (struct manifest_load){ .rate = 0.2 * pow(300, rng_unit(&r)), .gpus = 1 + k % 2 };
        double without = worth(&in, p.plan.placement, &busiest), best = best_of_all(&in, &least);
        plan_release(&p.plan);
        cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        hopeless += !isfinite(best);
        if (!isfinite(in.load.wait_s)) {
            grows++;
            cr_expect(!isfinite(best), "the queue grows, but there is a plan that needs only %g", least);
        } else {
            double is = worth(&in, p.plan.placement, &busiest), none = 0;
            for (int i = 0; i < C; i++)
                none += in.frequency[i] * in.alpha;
            cr_assert(isfinite(is));
            cr_expect_float_eq(busiest, fmax(in.load.gpu_use, fmax(in.load.tier_use[0], in.load.tier_use[1])), 1e-9);
            lost += (best - is) / none;
            gained += isfinite(without) ? (is - without) / none : 0;
            unpriced += isfinite(without) ? (best - without) / none : 0;
            over += !isfinite(without);
        }
        plan_release(&p.plan);
        placement_input_release(&in);
    }
    cr_expect_eq(grows, hopeless);
    cr_expect(hopeless > 5 && over > 20, "the rates are too low: %d, %d", hopeless, over);
    cr_expect(lost < 0.003 * TABLES, "%g of the answers' worth is lost", lost / TABLES);
    cr_expect(gained > 0.95 * unpriced);
}

/* Half as large, and a fifth of that is read: it fills a tier as before, and its reads take a fifth of the time. */
Test(placement_load, what_is_kept_and_not_read_takes_no_bandwidth)
{
    struct rng r = rng_new(9);
    double lost = 0;
    int n = 0;

    for (int k = 0; k < 40; k++) {
        struct placement_input in;
        struct placement_plan p;
        struct err err;
        double least, busiest, none = 0;
        make_input(&in, &r);
        cr_assert_eq(table_alloc_read(&in.table, &err), 0);
        for (int i = 0; i < C; i++) {
            in.table.cell_bytes_read[table_cell(&in.table, i, 1)] =
                in.table.cell_bytes[table_cell(&in.table, i, 1)] / 5;
            none += in.frequency[i] * in.alpha;
        }
        in.load = (struct manifest_load){ .rate = 0.2 * pow(30, rng_unit(&r)), .gpus = 1 };
        if (placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err) == 0) {
            double is = worth(&in, p.plan.placement, &busiest);
            cr_assert(isfinite(is));
            cr_expect_float_eq(busiest, fmax(in.load.gpu_use, fmax(in.load.tier_use[0], in.load.tier_use[1])), 1e-9);
            lost += (best_of_all(&in, &least) - is) / none;
            n++;
            plan_release(&p.plan);
        }
        placement_input_release(&in);
    }
    cr_expect(n > 20 && lost < 0.003 * n, "%d plans lose %g", n, lost / n);
}

Test(placement_load, few_requests_change_nothing)
{
    struct rng r = rng_new(8);

    for (int k = 0; k < 20; k++) {
        struct placement_input in;
        struct placement_plan p, q;
        struct err err;
        make_input(&in, &r);
        cr_assert_eq(placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        in.load = (struct manifest_load){ .rate = 1e-6, .gpus = 1 };
        cr_assert_eq(placement_solve(&q, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
        for (int i = 0; i < C; i++)
            cr_expect(p.plan.placement[i].tier == q.plan.placement[i].tier &&
                      p.plan.placement[i].config == q.plan.placement[i].config);
        plan_release(&p.plan);
        plan_release(&q.plan);
        placement_input_release(&in);
    }
}
