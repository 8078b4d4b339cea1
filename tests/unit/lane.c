/* Lanes: requests about tests/data/table.h5 through policies, compared with evp-plan's totals and with numbers worked
 * out by hand. */
#include "replay/lane.h"

#include "base/rng.h"
#include "planner/utility.h"
#include "replay/trace.h"
#include "tests/unit/placement_night.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

Test(lane, no_tier_is_ever_too_full_and_littles_law_holds)
{
    enum { N = 500 };
    static const char *const policies[] = { "lru",  "s3fifo",  "arc",       "slru",           "tlru:2",
                                            "live", "drift:0", "evicpress", "lru+kivi:bits=2" };
    static int32_t path[N], first[N + 1];
    static int64_t at[N];
    struct placement_input in;
    struct trace t;
    struct err err;

    read_all(&in);
    cr_assert_eq(trace_read(&t, (char *[]){ (char[]){ "poisson:0.1,500" } }, 1, 1, &err), 0, "%s", err.msg);
    cr_assert_eq(trace_draw(&t, "zipf:1,churn:9", in.table.n_contexts, 1, &err), 0, "%s", err.msg);
    for (int i = 0; i < N; i++) {
        path[i] = t.request[i].context;
        at[i] = t.request[i].at;
        first[i + 1] = i + 1;
    }
    struct replay_world w = { .in = &in, .path = path, .first = first, .n = N, .warm = N / 2 };
    cr_assert_eq(world_open(&w, 1, &err), 0);
    for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
        struct lane l = { .world = &w, .alpha = 1, .at = at, .n_gpus = 1, .validate = true };
        run(&l, policies[i]);
        cr_expect_leq(l.over, 0, "%s: a tier holds %g bytes too many", policies[i], l.over);
        cr_expect_lt(l.little, 1e-9, "%s: %g", policies[i], l.little);
        lane_close(&l);
    }
    world_close(&w);
    trace_release(&t);
    placement_input_release(&in);
}

/* ---- Figure 2 of EvicPress -------------------------------------------------- */

enum { GB = 1000000000, FIGURE_CONFIGS = 3, FIGURE_REQUESTS = 40 };

/* Two contexts of 4 and 8 GB; half of the first answers as well as all of it, and so does a twentieth; half of the
 * second answers half as well. A fast tier of 8 GB with 20 GB/s, and a slow one with 2 GB/s. */
static void read_figure(struct placement_input *in, int n_configs)
{
    static const char *const config[FIGURE_CONFIGS] = { "none", "half", "twentieth" };
    static const int64_t bytes[2][FIGURE_CONFIGS] = { { 4LL * GB, 2LL * GB, GB / 5 },
                                                      { 8LL * GB, 4LL * GB, GB / 5 * 2 } };
    static const double quality[2][FIGURE_CONFIGS] = { { 1, 1, 1 }, { 1, 0.5, 0.1 } };
    static struct tier tier[2] = { { .name = "fast", .capacity = 8LL * GB, .read_bytes_per_s = 20e9 },
                                   { .name = "slow", .capacity = 80LL * GB, .read_bytes_per_s = 2e9 } };
    const struct placement_files files = { .table = "figure" };
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 2, n_configs, 0, &err), 0);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    for (int c = 0; c < 2; c++) {
        t.context_id[c] = c ? "second" : "first";
        t.kv_bytes[c] = bytes[c][0];
        t.prefill_s[c] = 60;
        t.question_s[c] = 0;
        for (int v = 0; v < n_configs; v++) {
            t.config_name[v] = config[v];
            t.cell_bytes[table_cell(&t, c, v)] = bytes[c][v];
            t.decompress_s[table_cell(&t, c, v)] = 0;
            t.quality_train[table_cell(&t, c, v)] = quality[c][v];
        }
    }
    *in = (struct placement_input){ .max_move = INT64_MAX, .kind = QUALITY_RAW, .tiers = { tier, 2 } };
    cr_assert_eq(placement_input_take(in, &t, &files, &err), 0, "%s", err.msg);
}

/* The seconds and the mean quality that both contexts together see. */
static void expect_figure(const char *policy, int n_configs, double seconds, double quality)
{
    struct placement_input in;
    int32_t path[FIGURE_REQUESTS], first[FIGURE_REQUESTS + 1];
    struct err err;

    read_figure(&in, n_configs);
    for (int i = 0; i <= FIGURE_REQUESTS; i++)
        first[i] = i;
    for (int i = 0; i < FIGURE_REQUESTS; i++)
        path[i] = i % 2;
    struct replay_world w = {
        .in = &in, .path = path, .first = first, .n = FIGURE_REQUESTS, .warm = FIGURE_REQUESTS / 2
    };
    cr_assert_eq(world_open(&w, 1, &err), 0);
    struct lane l = { .world = &w, .alpha = 10, .n_gpus = 1, .alone = true };
    run(&l, policy);
    cr_expect_float_eq(2 * l.outcome.ttft_mean_s, seconds, 1e-9, "%s: %g s", policy, 2 * l.outcome.ttft_mean_s);
    cr_expect_float_eq(l.outcome.quality, quality, 1e-6, "%s: %g", policy, l.outcome.quality);
    lane_close(&l);
    world_close(&w);
    in.tiers = (struct tiers){ 0 };
    placement_input_release(&in);
}

Test(lane, compression_and_eviction_together_as_in_figure_2_of_evicpress)
{
    expect_figure("lru+half", 2, 0.3, 0.75);        /* compress only */
    expect_figure("static-clairvoyant", 1, 2.4, 1); /* evict only */
    expect_figure("night", 3, 0.5, 1);
    expect_figure("evicpress", 3, 0.5, 1);
    expect_figure("live", 3, 0.5, 1);
}

/* ---- profiled again --------------------------------------------------------- */

enum { WATCHED = 20 };

/* One context. Its train question is answered by half of it with a quality of 0.9, its test questions with 0.4 and
 * 0.6. */
static void read_drifting(struct placement_input *in)
{
    static const char *const config[] = { "none", "half" }, *const split[] = { "train", "test", "test" };
    static const float similarity[] = { 1, 0.9F, 1, 0.4F, 1, 0.6F };
    static const double train[] = { 1, 0.9 };
    static struct tier tier = { .name = "slow", .capacity = 80LL * GB, .read_bytes_per_s = 1e9 };
    const struct placement_files files = { .table = "drifting" };
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 1, 2, 3, &err), 0);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    t.context_id[0] = "it";
    t.kv_bytes[0] = GB;
    t.prefill_s[0] = 60;
    t.question_s[0] = 0.25;
    for (int v = 0; v < 2; v++) {
        t.config_name[v] = config[v];
        t.cell_bytes[v] = GB / (v + 1);
        t.quality_train[v] = train[v];
    }
    for (int q = 0; q < 3; q++) {
        t.question_split[q] = split[q];
        t.question_context[q] = 0;
    }
    memcpy(t.similarity, similarity, sizeof(similarity));
    *in = (struct placement_input){ .max_move = INT64_MAX, .kind = QUALITY_RAW, .tiers = { &tier, 1 } };
    cr_assert_eq(placement_input_take(in, &t, &files, &err), 0, "%s", err.msg);
}

static void expect_drift(const char *policy, double quality, int profiled)
{
    struct placement_input in;
    int32_t path[WATCHED + 1] = { 0 }, first[WATCHED + 2];
    struct err err;

    read_drifting(&in);
    for (int i = 0; i < WATCHED + 2; i++)
        first[i] = i;
    struct replay_world w = { .in = &in, .path = path, .first = first, .n = WATCHED + 1, .warm = 1 };
    cr_assert_eq(world_open(&w, 1, &err), 0);
    struct lane l = { .world = &w, .alpha = 2, .n_gpus = 1, .alone = true };
    run(&l, policy);
    cr_expect_float_eq(l.outcome.quality, quality, 1e-6, "%s: %g", policy, l.outcome.quality);
    cr_expect_eq(l.profiled, profiled, "%s", policy);
    cr_expect_float_eq(l.profiling_s, profiled * (60 + 2 * 8 * 2 * 0.25), 1e-9);
    cr_expect_eq(l.operations, profiled);
    lane_close(&l);
    world_close(&w);
    in.tiers = (struct tiers){ 0 };
    placement_input_release(&in);
}

/* All of it costs half a second more than half of it: at alpha 2, half is better as long as it loses less than a
 * quarter. */
Test(lane, a_context_whose_answers_are_worse_than_predicted_is_profiled_again)
{
    const double eight = (8 * 0.5 + (WATCHED - 8)) / WATCHED; /* the mean of eight is 0.5, which is 0.4 less */

    expect_drift("night", 0.5, 0);
    expect_drift("drift", eight, 1);
    expect_drift("drift:0.39", eight, 1);
    expect_drift("drift:0.41", 0.5, 0);
}

Test(lane, topics_change)
{
    struct placement_input in;
    int32_t path[5] = { 0 }, first[6] = { 0, 1, 2, 3, 4, 5 };
    struct err err;

    read_drifting(&in);
    struct replay_world w = { .in = &in, .path = path, .first = first, .n = 5, .topics_change = true };
    cr_assert_eq(world_open(&w, 1, &err), 0);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(w.question[i], i < 3 ? 1 : 2);
    world_close(&w);
    in.tiers = (struct tiers){ 0 };
    placement_input_release(&in);
}
