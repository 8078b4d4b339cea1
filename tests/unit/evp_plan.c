/* Live plans of the installed library: they respect capacities after every single operation, tell what they hold,
 * continue after being saved and opened again, and serve several threads. */
#include "tests/unit/evp_world.h"

#include "base/rng.h"
#include "formats/manifest.h"
#include "loader/libevicpress/evicpress_plan.h"
#include "placement/placement.h"

#include <criterion/criterion.h>
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 150 };

TestSuite(evp_plan, .init = world_open_files, .fini = world_remove_files);

/* ---- worlds ------------------------------------------------------------------ */

static struct evp_variant *variants_of(const struct world *w, int i, struct evp_variant *variant)
{
    for (int v = 0; v < VARIANTS; v++)
        variant[v] = (struct evp_variant){
            world_config[v], w->variant[i][v].bytes, w->variant[i][v].quality, w->variant[i][v].decompress_s, { 0 }
        };
    return variant;
}

static int admit(struct evp_plan *plan, const struct world *w, int i, struct evp_operations *ops)
{
    struct evp_variant variant[VARIANTS];
    struct evp_context c = { .id = w->id[i],
                             .token_digest = world_digest(i),
                             .n_tokens = 7,
                             .frequency = w->frequency[i],
                             .prefill_s = w->prefill_s[i],
                             .question_s = 0.25,
                             .variant = variants_of(w, i, variant),
                             .n_variants = VARIANTS };

    return evp_plan_admit(plan, &c, ops, NULL);
}

static int update(struct evp_plan *plan, const struct world *w, int i, bool with_variants, struct evp_operations *ops)
{
    struct evp_variant variant[VARIANTS];
    struct evp_update u = { w->id[i],
                            w->frequency[i],
                            with_variants ? variants_of(w, i, variant) : NULL,
                            with_variants ? VARIANTS : 0,
                            { 0 } };

    return evp_plan_update(plan, &u, ops, NULL);
}

/* ---- accounts ------------------------------------------------------------------------------ */

/* A context comes, changes or goes. */
static void one_event(struct world *w, struct rng *r, struct evp_plan *plan, struct evp_operations *ops)
{
    int i = (int)rng_below(r, CONTEXTS), added = !w->there[i];

    if (!added && rng_below(r, 2)) {
        cr_assert(!evp_plan_remove(plan, w->id[i], ops, NULL));
        w->there[i] = 0;
        return;
    }
    bool variants = added || rng_below(r, 2);
    if (variants) {
        double prefill_s = w->prefill_s[i];
        world_draw_context(w, r, i);
        w->prefill_s[i] = added ? w->prefill_s[i] : prefill_s;
        w->prefill_sd_s[i] *= !added; /* who admits a context does not say how far its times spread */
        w->question_sd_s[i] *= !added;
    } else
        w->frequency[i] = (double)rng_below(r, 6);
    cr_assert(!(added ? admit(plan, w, i, ops) : update(plan, w, i, variants, ops)));
    w->there[i] = 1;
}

/* The plan's status is that of the world after the operations so far. */
static void check_accounts(const struct world *w, struct evp_plan *plan)
{
    int64_t bytes[VARIANTS], n = 0;
    double out[VARIANTS * TIERS], objective = 0;
    struct evp_plan_state state;

    for (int i = 0; i < CONTEXTS; i++) {
        if (!w->there[i])
            continue;
        double recompute = world_candidates(w, i, bytes, out);
        objective += w->at[i].tier < 0 ? recompute : out[w->at[i].config * w->tiers.n + w->at[i].tier];
        n++;
    }
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
    cr_assert(state.n_contexts == n && state.n_tiers == (size_t)w->tiers.n);
    cr_assert_float_eq(state.objective, objective, 1e-9);
    cr_assert(state.gap >= 0 || state.upper_bound >= state.objective - 1e-9);
    for (int t = 0; t < w->tiers.n; t++) {
        cr_assert_eq(state.tier[t].capacity, w->capacity[t]);
        cr_assert(w->capacity[t] == INT64_MAX || state.tier[t].free_bytes == w->capacity[t] - w->fill[t]);
    }
}

/* The saved plan agrees with the operations and its own sums, and continues when it is opened again. */
static void check_saved(const struct world *w, struct evp_plan *plan)
{
    struct manifest before, m;
    struct evp_plan_state state, again;
    struct evp_plan *reopened;
    struct evp_error error;
    struct err err;
    double sum = 0;
    int n = 0;

    if (evp_plan_save(plan, world_other_path, &error)) {
        cr_assert_eq(error.code, EVICPRESS_ARGUMENT); // the plan has no contexts left
        return;
    }
    cr_assert(!manifest_read(&before, world_path, &err) && !manifest_read(&m, world_other_path, &err), "%s", err.msg);
    cr_assert_str_eq(m.previous, before.digest);
    struct placement_proof proof;
    cr_assert(!placement_verify_online(&m, &proof, &err), "%s", err.msg);
    m.objective += 0.5;
    cr_assert_eq(placement_verify_online(&m, &proof, &err), ERR_FORMAT);
    m.objective -= 0.5;
    for (int k = 0; k < m.n; k++) {
        const struct placement *p = &m.at[k], *b = manifest_find(&before, p->id);
        int i = (int)strtol(p->id + 8, NULL, 10);
        struct cached was = manifest_cached(&before.tiers, b), is = manifest_cached(&m.tiers, p);
        cr_assert_eq(p->operation, operation_between(&was, &is));
        cr_assert_eq(p->tier, w->there[i] ? w->at[i].tier : -1);
        cr_assert_eq(p->variants != NULL, w->there[i]);
        if (p->tier >= 0)
            cr_assert_str_eq(p->config, world_config[w->at[i].config]);
        sum += p->utility;
        n += w->there[i];
    }
    for (int i = 0; i < CONTEXTS; i++) {
        const struct placement *b = manifest_find(&before, w->id[i]), *p = manifest_find(&m, w->id[i]);
        bool left = !w->there[i] && b && b->tier >= 0;
        cr_assert_eq(p != NULL, w->there[i] || left, "%s", w->id[i]);
        cr_assert(!left || p->operation == OP_EVICT);
    }
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
    cr_assert_eq(n, (int)state.n_contexts);
    cr_assert_float_eq(sum, m.objective, 1e-9);
    cr_assert_eq(evp_plan_open(&reopened, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_plan_status(reopened, &again, NULL), EVICPRESS_OK);
    cr_assert(again.objective == state.objective && again.upper_bound == state.upper_bound);
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert_eq(again.tier[t].free_bytes, state.tier[t].free_bytes);
    evp_plan_close(reopened);
    manifest_release(&before);
    manifest_release(&m);
}

Test(evp_plan, events_keep_capacities_and_accounts)
{
    struct rng r = rng_new(5);

    for (int k = 0; k < 60; k++) {
        struct world w;
        struct evp_operations ops;
        struct evp_plan *plan = world_begin(&w, &r, 1 + (int)rng_below(&r, CONTEXTS));
        for (uint64_t event = 1; event <= 80; event++) {
            one_event(&w, &r, plan, &ops);
            cr_assert_eq(ops.event, event);
            for (size_t i = 0; i < ops.n; i++)
                world_follow(&w, &ops.at[i]);
            check_accounts(&w, plan);
            evp_operations_release(&ops);
            if (event % 20 == 0)
                check_saved(&w, plan);
        }
        evp_plan_close(plan);
    }
}

/* ---- a store that fails --------------------------------------------------------------- */

/* What is really stored. */
struct shelf {
    struct plan_placement at[CONTEXTS]; // tier PLAN_RECOMPUTE: nothing
    int64_t bytes[CONTEXTS], fill[TIERS];
    int n_full, n_busy, n_lost, n_again; // how often that happened
};

static void take_away(struct shelf *s, int i)
{
    if (s->at[i].tier >= 0)
        s->fill[s->at[i].tier] -= s->bytes[i];
    s->at[i].tier = PLAN_RECOMPUTE;
}

/* As evp_put() and evp_move(), to a tier, and evp_remove(), with faults. */
static int store(struct world *w, struct shelf *s, struct rng *r, const struct evp_operation *op)
{
    int i = world_index(op), to = world_tier(w, op->to_tier), v = 0;
    uint64_t fault = rng_below(r, 20);

    if (fault < 3) {
        s->n_busy++;
        return EVICPRESS_BUSY;
    }
    if (to >= 0 && fault < 6) {
        s->n_full++;
        return EVICPRESS_FULL;
    }
    if (to < 0 && s->at[i].tier < 0)
        return EVICPRESS_UNKNOWN;
    take_away(s, i);
    while (to >= 0 && strcmp(world_config[v], op->to_config) != 0)
        v++;
    s->at[i] = (struct plan_placement){ v, to };
    s->bytes[i] = op->to_bytes;
    if (to >= 0)
        s->fill[to] += op->to_bytes;
    cr_assert(to < 0 || s->fill[to] <= w->capacity[to], "the plan fills a tier beyond its capacity");
    return EVICPRESS_OK;
}

static int store_patiently(struct world *w, struct shelf *s, struct rng *r, const struct evp_operation *op)
{
    int code = store(w, s, r, op);

    for (int k = 0; code == EVICPRESS_BUSY && k < 50; k++)
        code = store(w, s, r, op);
    cr_assert_neq(code, EVICPRESS_BUSY);
    return code;
}

/* Carries the operations out as evicpress_plan.h says. */
static void carry_out(struct evp_plan *plan, struct world *w, struct shelf *s, struct rng *r,
                      const struct evp_operations *ops)
{
    bool lost[CONTEXTS] = { false };
    struct evp_error error;

    for (size_t k = 0; k < ops->n; k++) {
        struct evp_operation op = ops->at[k];
        int i = world_index(&op);
        if (lost[i])
            continue;
        s->n_again += op.kind == EVICPRESS_INSERT;
        int code = store_patiently(w, s, r, &op);
        if (op.kind == EVICPRESS_EVICT || code == EVICPRESS_OK)
            continue;
        op.to_tier = "recompute";
        (void)store_patiently(w, s, r, &op);
        cr_assert_eq(evp_plan_lost(plan, op.id, &error), EVICPRESS_OK, "%s", error.text);
        lost[i] = true;
    }
}

/* A payload is gone, or all of a tier. */
static void lose(struct evp_plan *plan, struct world *w, struct shelf *s, struct rng *r)
{
    int i = (int)rng_below(r, CONTEXTS), t = s->at[i].tier;
    struct evp_error error;

    if (!w->there[i] || t < 0)
        return;
    s->n_lost++;
    take_away(s, i);
    if (rng_below(r, 5)) {
        cr_assert_eq(evp_plan_lost(plan, w->id[i], &error), EVICPRESS_OK, "%s", error.text);
        return;
    }
    for (int k = 0; k < CONTEXTS; k++)
        if (s->at[k].tier == t)
            take_away(s, k);
    cr_assert_eq(evp_plan_tier_lost(plan, w->tier[t].name, &error), EVICPRESS_OK, "%s", error.text);
}

/* The saved plan places what is stored, and opened anew it has the same sums, to the last bit. */
static void compare_with_shelf(const struct world *w, const struct shelf *s, struct evp_plan *plan)
{
    struct evp_plan_state state, again;
    struct evp_plan *reopened;
    struct evp_error error;
    struct manifest m;
    struct err err;

    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert(w->capacity[t] == INT64_MAX || state.tier[t].free_bytes == w->capacity[t] - s->fill[t]);
    if (state.n_contexts == 0)
        return;
    cr_assert_eq(evp_plan_save(plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(manifest_read(&m, world_other_path, &err), 0, "%s", err.msg);
    struct placement_proof proof;
    cr_assert_eq(placement_verify_online(&m, &proof, &err), 0, "%s", err.msg);
    for (int i = 0; i < CONTEXTS; i++) {
        const struct placement *p = manifest_find(&m, w->id[i]);
        cr_assert(p || !w->there[i]);
        cr_assert_eq(s->at[i].tier, p ? p->tier : -1, "%s", w->id[i]);
        if (p && p->tier >= 0)
            cr_assert(strcmp(p->config, world_config[s->at[i].config]) == 0 && p->bytes == s->bytes[i]);
    }
    manifest_release(&m);
    cr_assert_eq(evp_plan_open(&reopened, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_plan_status(reopened, &again, NULL), EVICPRESS_OK);
    cr_assert(again.objective == state.objective && again.upper_bound == state.upper_bound, "%.17g %.17g, %.17g %.17g",
              again.objective, state.objective, again.upper_bound, state.upper_bound);
    cr_assert_eq(memcmp(again.tier, state.tier, sizeof(state.tier)), 0);
    evp_plan_close(reopened);
}

Test(evp_plan, follows_a_store_that_fails)
{
    struct rng r = rng_new(11);
    int n_full = 0, n_busy = 0, n_lost = 0, n_again = 0;

    for (int k = 0; k < 20; k++) {
        struct world w;
        struct evp_operations ops;
        struct evp_plan *plan = world_begin(&w, &r, 1 + (int)rng_below(&r, CONTEXTS));
        struct shelf s = { .n_full = 0 };
        memcpy(s.at, w.at, sizeof(s.at));
        memcpy(s.fill, w.fill, sizeof(s.fill));
        for (int i = 0; i < CONTEXTS; i++)
            s.bytes[i] = s.at[i].tier < 0 ? 0 : w.variant[i][s.at[i].config].bytes;
        for (int event = 1; event <= 500; event++) {
            if (rng_below(&r, 8) == 0)
                lose(plan, &w, &s, &r);
            else {
                one_event(&w, &r, plan, &ops);
                carry_out(plan, &w, &s, &r, &ops);
                evp_operations_release(&ops);
            }
            if (event % 10 == 0)
                compare_with_shelf(&w, &s, plan);
        }
        n_full += s.n_full;
        n_busy += s.n_busy;
        n_lost += s.n_lost;
        n_again += s.n_again;
        evp_plan_close(plan);
    }
    cr_assert(n_full > 300 && n_busy > 500 && n_lost > 200 && n_again > 1000, "%d %d %d %d", n_full, n_busy, n_lost,
              n_again);
}

/* ---- threads --------------------------------------------------------------------- */

struct worker {
    struct evp_plan *plan;
    struct world world; // a copy: each draws its own contexts
    int first;          // of the contexts that are its own
    struct evp_operations got[ROUNDS];
    int there[CONTEXTS];
};

static void *work(void *arg)
{
    struct worker *me = arg;
    struct rng r = rng_new((uint64_t)me->first);
    struct evp_plan_state state;

    for (int k = 0; k < ROUNDS; k++) {
        int i = me->first + (int)rng_below(&r, CONTEXTS / THREADS), code;
        if (!me->there[i])
            world_draw_context(&me->world, &r, i);
        if (!me->there[i])
            code = admit(me->plan, &me->world, i, &me->got[k]);
        else if (k % 3)
            code = evp_plan_remove(me->plan, me->world.id[i], &me->got[k], NULL);
        else
            code = update(me->plan, &me->world, i, false, &me->got[k]);
        me->there[i] = !me->there[i] || k % 3 == 0;
        if (code || evp_plan_status(me->plan, &state, NULL) ||
            (k % 50 == 0 && evp_plan_save(me->plan, world_other_path, NULL)))
            return me;
    }
    return NULL;
}

Test(evp_plan, several_threads_and_their_events_in_order)
{
    static struct worker worker[THREADS];
    static const struct evp_operations *in_order[THREADS * ROUNDS + 1];
    pthread_t thread[THREADS];
    struct world w;
    struct rng r = rng_new(9);
    struct evp_plan *plan = world_begin(&w, &r, CONTEXTS);
    void *failed;

    for (int t = 0; t < THREADS; t++) {
        worker[t] = (struct worker){ .plan = plan, .world = w, .first = t * (CONTEXTS / THREADS) };
        memcpy(worker[t].there, w.there, sizeof(w.there));
        cr_assert_eq(pthread_create(&thread[t], NULL, work, &worker[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        cr_assert_eq(pthread_join(thread[t], &failed), 0);
        cr_assert_null(failed);
        memcpy(w.there + worker[t].first, worker[t].there + worker[t].first, CONTEXTS / THREADS * sizeof(int));
        for (int k = 0; k < ROUNDS; k++)
            in_order[worker[t].got[k].event] = &worker[t].got[k];
    }
    for (int event = 1; event <= THREADS * ROUNDS; event++) {
        cr_assert_not_null(in_order[event], "event %d", event);
        for (size_t i = 0; i < in_order[event]->n; i++)
            world_follow(&w, &in_order[event]->at[i]);
    }
    check_saved(&w, plan);
    for (int t = 0; t < THREADS; t++)
        for (int k = 0; k < ROUNDS; k++)
            evp_operations_release(&worker[t].got[k]);
    evp_plan_close(plan);
}
