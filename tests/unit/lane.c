/* Lanes: requests about tests/data/table.h5 through policies, compared with evp-plan's totals and with numbers worked
 * out by hand. */
#include "replay/lane.h"

#include "base/rng.h"
#include "planner/utility.h"
#include "tests/unit/placement_night.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

TestSuite(lane, .init = night_open, .fini = night_close);

enum { EACH = 60, WARM = 3 * EACH, REQUESTS = 2 * WARM };

/* Requests for the three contexts in turn, context c `weight[c]` of six times. */
static int32_t *requests(const struct placement_input *in, const int *weight, int n)
{
    int32_t *row = malloc((size_t)n * sizeof(*row));
    int at = 0;

    while (at < n)
        for (int c = 0; c < in->table.n_contexts; c++)
            for (int k = 0; k < weight[c] && at < n; k++)
                row[at++] = c;
    return row;
}

/* The table whole, with answers as similar as its test qualities say. */
static void read_all(struct placement_input *in)
{
    struct placement_files f = night_files();
    struct table t;
    struct err err;

    cr_assert_eq(table_read(&t, f.table, TABLE_ALL, &err), 0, "%s", err.msg);
    for (int q = 0; q < t.n_questions; q++)
        for (int v = 0; v < t.n_configs; v++)
            t.similarity[table_answer(&t, q, v)] = (float)t.quality_test[table_cell(&t, (int)t.question_context[q], v)];
    *in = (struct placement_input){ .alpha = 1, .max_move = INT64_MAX };
    cr_assert_eq(placement_input_take(in, &t, &f, &err), 0, "%s", err.msg);
}

static void run(struct lane *l, const char *policy)
{
    struct err err;

    cr_assert_eq(lane_run(l, policy, &err), 0, "%s", err.msg);
}

Test(lane, one_after_the_other_is_what_the_plan_says)
{
    static const int weight[] = { 1, 2, 3 };
    struct placement_input in;
    struct placement_plan p;
    struct manifest m;
    struct replay_world w;
    struct err err;
    char policy[4200];
    static int32_t first[REQUESTS + 1];

    for (int i = 0; i <= REQUESTS; i++)
        first[i] = i;
    for (int alpha = 1; alpha <= 100; alpha *= 10) {
        read_all(&in);
        in.alpha = alpha / 100.0;
        int32_t *row = requests(&in, weight, REQUESTS);
        for (int c = 0; c < 3; c++)
            in.frequency[c] = weight[c] * WARM / 6.0;
        night_solve(&p, &in);
        night_manifest(&p, manifest_path);
        cr_assert_eq(manifest_read(&m, manifest_path, &err), 0);
        w = (struct replay_world){ .in = &in, .path = row, .first = first, .n = REQUESTS, .warm = WARM };
        cr_assert_eq(world_open(&w, 1, &err), 0);
        snprintf(policy, sizeof(policy), "manifest=%s", manifest_path);
        struct lane l = { .world = &w, .alpha = in.alpha, .n_gpus = 1, .alone = true };
        run(&l, policy);
        cr_expect_float_eq(l.outcome.ttft_mean_s, m.total[0].ttft_s, 1e-9); /* whole nanoseconds */
        cr_expect_float_eq(l.promised_ttft_s, m.total[0].ttft_s, 1e-12);
        cr_expect_float_eq(l.promised_quality, m.total[0].quality, 1e-12);
        cr_expect_float_eq(l.outcome.quality, m.total[0].quality_test, 1e-6); /* similarities are float */
        double hits = l.outcome.recomputed;
        for (int t = 0; t < TIERS; t++)
            hits += l.outcome.hits[t];
        cr_expect_float_eq(hits, 1, 1e-12);
        const double ttft_s = l.outcome.ttft_mean_s;
        lane_close(&l);
        l = (struct lane){ .world = &w, .alpha = in.alpha, .n_gpus = 1, .alone = true };
        run(&l, "night"); /* the half before has the same frequencies */
        cr_expect_float_eq(l.outcome.ttft_mean_s, ttft_s, 1e-12);
        lane_close(&l);
        plan_release(&p.plan);
        manifest_release(&m);
        world_close(&w);
        free(row);
        placement_input_release(&in);
    }
}
