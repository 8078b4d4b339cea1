/* Live plans that learn from uses: capacities hold after every operation, only the used context is stored anew, what is
 * popular now ends where the planner would put it, and contexts that came once are forgotten. */
#include "tests/unit/evp_world.h"

#include "base/rng.h"
#include "placement/placement.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(evp_used, .init = world_open_files, .fini = world_remove_files);

static int use(struct evp_plan *plan, const char *id, int64_t n_tokens, struct evp_operations *ops)
{
    struct evp_use u = { .id = id, .token_digest = world_digest(1), .n_tokens = n_tokens };

    struct evp_error error = { 0 };
    int code = evp_plan_used(plan, &u, ops, &error);

    cr_expect_eq(code, EVICPRESS_OK, "%s", error.text);
    return code;
}

/* ---- random uses ------------------------------------------------------------------------- */

static void check_state(const struct world *w, struct evp_plan *plan)
{
    struct evp_plan_state state;

    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
    cr_assert_geq(state.upper_bound, state.objective - 1e-9 * fabs(state.objective));
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert(w->capacity[t] == INT64_MAX || state.tier[t].free_bytes == w->capacity[t] - w->fill[t]);
}

/* Saves the plan, checks what was saved, and goes on with it as it was opened again. */
static struct evp_plan *save_and_open(struct evp_plan *plan)
{
    struct manifest m;
    struct placement_proof proof;
    struct evp_plan *again;
    struct evp_error error;
    struct err err;

    cr_assert_eq(evp_plan_save(plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert(!manifest_read(&m, world_other_path, &err) && !placement_verify_online(&m, &proof, &err), "%s", err.msg);
    manifest_release(&m);
    cr_assert_eq(evp_plan_open(&again, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    evp_plan_close(plan);
    return again;
}

Test(evp_used, keeps_capacities_and_stores_only_what_is_used)
{
    struct rng r = rng_new(31);

    for (int k = 0; k < 40; k++) {
        struct world w;
        int n = 1 + (int)rng_below(&r, CONTEXTS);
        struct evp_plan *plan = world_begin(&w, &r, n);
        for (uint64_t event = 1; event <= 400; event++) {
            struct evp_operations ops;
            int i = (int)rng_below(&r, 1 + rng_below(&r, CONTEXTS));
            cr_assert_eq(use(plan, w.id[i], 7, &ops), EVICPRESS_OK);
            for (size_t o = 0; o < ops.n; o++) {
                /* in the hand's first round contexts that the manifest does not store may still be inserted */
                if (event > CONTEXTS && ops.at[o].kind == EVICPRESS_INSERT)
                    cr_assert_eq(world_index(&ops.at[o]), i, "%s", ops.at[o].id);
                world_follow(&w, &ops.at[o]);
            }
            evp_operations_release(&ops);
            check_state(&w, plan);
            if (event % 100 == 0)
                plan = save_and_open(plan);
        }
        evp_plan_close(plan);
    }
}

/* ---- what they lead to ------------------------------------------------------------------------ */

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    return world_candidates(arg, context, bytes, out);
}

/* Utility of the world's places, and of recomputing everything, at its frequencies. */
static double worth(const struct world *w, double *recomputed)
{
    int64_t bytes[VARIANTS];
    double out[VARIANTS * TIERS], sum = 0;

    *recomputed = 0;
    for (int i = 0; i < CONTEXTS; i++) {
        double none = world_candidates(w, i, bytes, out);
        sum += w->at[i].tier < 0 ? none : out[w->at[i].config * w->tiers.n + w->at[i].tier];
        *recomputed += none;
    }
    return sum;
}

/* Contexts are used in proportion to new frequencies, which the plan does not know. Returns the part of the best plan's
 * gain that the plan's places then have. */
static double gain_after_change(struct world *w, struct rng *r)
{
    struct evp_plan *plan = world_begin(w, r, CONTEXTS);
    struct plan_problem p = { CONTEXTS, VARIANTS, w->tiers.n, w->capacity, candidates, w, NULL };
    struct evp_operations ops;
    struct plan best;
    struct err err;
    double recomputed;

    for (int i = 0; i < CONTEXTS; i++)
        w->frequency[i] = 100. / (1 + (int)rng_below(r, CONTEXTS));
    for (int event = 0; event < 4000; event++) {
        int i = (int)rng_below(r, CONTEXTS);
        if (100 * rng_unit(r) >= w->frequency[i])
            continue;
        cr_assert_eq(use(plan, w->id[i], 7, &ops), EVICPRESS_OK);
        for (size_t o = 0; o < ops.n; o++)
            world_follow(w, &ops.at[o]);
        evp_operations_release(&ops);
    }
    evp_plan_close(plan);
    cr_assert_eq(plan_solve(&best, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0);
    double now = worth(w, &recomputed), gain = best.objective - recomputed;
    plan_release(&best);
    return gain > 0 ? (now - recomputed) / gain : 1;
}

Test(evp_used, follows_what_is_popular)
{
    struct rng r = rng_new(8);
    double sum = 0;
    enum { WORLDS = 60 };

    for (int k = 0; k < WORLDS; k++) {
        struct world w;
        sum += gain_after_change(&w, &r);
    }
    cr_assert_geq(sum / WORLDS, .9, "%.3f of the gain", sum / WORLDS);
}

Test(evp_used, forgets_what_came_once)
{
    struct rng r = rng_new(2);
    struct world w;
    struct evp_plan *plan = world_begin(&w, &r, CONTEXTS);
    struct evp_plan_state state;
    int64_t most = 0;

    for (int k = 0; k < 20000; k++) {
        char id[32];
        snprintf(id, sizeof(id), "once/%d", k);
        cr_assert_eq(use(plan, id, 7, NULL), EVICPRESS_OK);
        if (k == 0)
            cr_assert_eq(evp_plan_update(plan, &(struct evp_update){ .id = id }, NULL, NULL), EVICPRESS_OK);
        if (k % 100 == 0) {
            cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
            most = state.n_contexts > most ? state.n_contexts : most;
        }
    }
    cr_assert_lt(most, 1000, "%lld contexts at most", (long long)most);
    cr_assert_eq(evp_plan_remove(plan, "once/1", NULL, NULL), EVICPRESS_UNKNOWN);
    cr_assert_eq(evp_plan_remove(plan, "once/0", NULL, NULL), EVICPRESS_OK); /* it was updated, so it stays */
    evp_plan_close(plan);
}

/* What was counted is kept: saved again at once, rows and header say the same. */
Test(evp_used, a_restart_keeps_the_counts)
{
    struct rng r = rng_new(6);
    struct manifest m, again;
    struct world w;
    struct err err;
    struct evp_plan *plan = world_begin(&w, &r, CONTEXTS);

    for (int k = 0; k < 500; k++)
        cr_assert_eq(use(plan, w.id[rng_below(&r, 1 + rng_below(&r, CONTEXTS))], 7, NULL), EVICPRESS_OK);
    plan = save_and_open(plan);
    cr_assert_eq(manifest_read(&m, world_other_path, &err), 0, "%s", err.msg);
    plan = save_and_open(plan);
    cr_assert_eq(manifest_read(&again, world_other_path, &err), 0, "%s", err.msg);
    cr_assert(m.uses == 500 && again.uses == 500 && m.n == CONTEXTS);
    for (int j = 0; j < VARIANTS_USES; j++)
        cr_assert_float_eq(m.uses_weight[j], again.uses_weight[j], 1e-15);
    for (int i = 0; i < m.n; i++) {
        const struct placement *a = &m.at[i], *b = manifest_find(&again, a->id);
        cr_assert(a->variants->uses[0] > 0 && a->frequency == b->frequency && a->frequency > 0);
        cr_assert_eq(memcmp(a->variants->uses, b->variants->uses, sizeof(a->variants->uses)), 0);
    }
    manifest_release(&m);
    manifest_release(&again);
    evp_plan_close(plan);
}

/* ---- contexts that nobody has profiled -------------------------------------------------------------- */

/* Two contexts of 10 and 20 tokens with the variants none and kivi:bits=4, on one tier of any size. */
static struct evp_plan *open_two(double min_quality, double sure_z, bool measured_only)
{
    static char uri[] = "/mnt/a";
    struct tier tier = { .name = "t0",
                         .kind = TIER_FILE,
                         .uri = uri,
                         .capacity = INT64_MAX,
                         .read_bytes_per_s = 1e9,
                         .write_bytes_per_s = 1e9 };
    struct manifest m = { .alpha = 1,
                          .solver = "test",
                          .gap = (double)NAN,
                          .max_move = INT64_MAX,
                          .tiers = { &tier, 1 },
                          .min_quality = min_quality,
                          .sure_z = sure_z,
                          .measured_only = measured_only,
                          .borrows = true };
    struct evp_plan *plan;
    struct evp_error error;
    struct err err;

    memset(m.model_digest, 'a', DIGEST_HEX - 1);
    for (int i = 0; i < 2; i++) {
        double n = 10 * (i + 1);
        struct variant_info variant[] = { { "kivi:bits=4", (int64_t)(30 * n), i ? .9 : .8, n / 1000 },
                                          { "none", (int64_t)(100 * n), 1, 0 } };
        struct variants variants = { .at = variant, .n = 2, .prefill_s = n + n * n / 100, .question_s = .5 };
        struct placement p = { .id = i ? "b" : "a",
                               .token_digest = world_digest(i),
                               .config = "none",
                               .tier = -1,
                               .n_tokens = (int64_t)n,
                               .quality = 1,
                               .quality_test = (double)NAN,
                               .ttft_s = 1,
                               .frequency = 1,
                               .operation = OP_NONE,
                               .variants = &variants };
        cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    }
    cr_assert_eq(manifest_write(&m, world_path, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
    cr_assert_eq(evp_plan_open(&plan, world_path, &error), EVICPRESS_OK, "%s", error.text);
    return plan;
}

/* Variants of a context of 40 tokens that comes by its use, as the plan saves them. */
static struct variants saved_variants(double min_quality, double sure_z, bool measured_only, struct manifest *m)
{
    struct evp_plan *plan = open_two(min_quality, sure_z, measured_only);
    struct evp_operations ops;
    struct err err;

    cr_assert_eq(use(plan, "new", 40, &ops), EVICPRESS_OK);
    cr_assert(ops.n == 1 && ops.at[0].kind == EVICPRESS_INSERT);
    evp_operations_release(&ops);
    cr_assert_eq(evp_plan_save(plan, world_other_path, NULL), EVICPRESS_OK);
    evp_plan_close(plan);
    cr_assert_eq(manifest_read(m, world_other_path, &err), 0, "%s", err.msg);
    return *manifest_find(m, "new")->variants;
}

Test(evp_used, unprofiled_contexts_are_typical)
{
    struct manifest m;
    struct variants v = saved_variants(0, 0, false, &m);

    cr_assert_eq(v.n, 2);
    const struct variant_info *kivi = variants_find(&v, "kivi:bits=4"), *none = variants_find(&v, "none");
    cr_assert(kivi->bytes == 1200 && none->bytes == 4000);
    cr_assert_float_eq(kivi->quality, .85, 1e-12);
    cr_assert_float_eq(kivi->decompress_s, .04, 1e-12);
    cr_assert_float_eq(v.prefill_s, 40 + 16, 1e-9);
    cr_assert_float_eq(v.question_s, .5, 1e-12);
    manifest_release(&m);
}

Test(evp_used, unprofiled_contexts_keep_the_floors)
{
    static const struct {
        double min_quality, sure_z;
        bool measured_only;
        int n;
    } at[] = {
        { .85, 0, false, 2 }, { .86, 0, false, 1 }, { .84, .5, false, 1 }, { .82, .5, false, 2 }, { 0, 0, true, 1 }
    };

    for (size_t k = 0; k < sizeof(at) / sizeof(*at); k++) {
        struct manifest m;
        struct variants v = saved_variants(at[k].min_quality, at[k].sure_z, at[k].measured_only, &m);
        cr_assert_eq(v.n, at[k].n, "floor %g, z %g: %d", at[k].min_quality, at[k].sure_z, v.n);
        manifest_release(&m);
    }
}

Test(evp_used, refuses_what_it_cannot_know)
{
    struct evp_plan *plan = open_two(0, 0, false);
    struct evp_plan_state state;
    struct evp_use u = { .id = "new", .n_tokens = 40 };
    static const int32_t tokens[] = { 1, 2, 3 };

    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_ARGUMENT);
    u.token_digest = world_digest(1);
    u.n_tokens = -1;
    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_ARGUMENT);
    u = (struct evp_use){ .token_digest = world_digest(1), .n_tokens = 3 };
    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_ARGUMENT);
    u = (struct evp_use){ .id = "new", .tokens = tokens, .n_tokens = 3, .reserved = { 1 } };
    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_ARGUMENT);
    cr_assert(!evp_plan_status(plan, &state, NULL) && state.n_contexts == 2);
    *u.reserved = 0;
    static const double never[] = { -1, 1e13, (double)NAN, HUGE_VAL };
    for (size_t k = 0; k < sizeof(never) / sizeof(*never); k++) {
        u.at_s = never[k];
        cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_ARGUMENT);
    }
    u.at_s = 1e12;
    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_OK);
    u.at_s = 5;      /* clocks go back, too */
    u.tokens = NULL; /* it is there now */
    cr_assert_eq(evp_plan_used(plan, &u, NULL, NULL), EVICPRESS_OK);
    cr_assert(!evp_plan_status(plan, &state, NULL) && state.n_contexts == 3);
    evp_plan_close(plan);
}
