/* The installed library's plans: the same as the planner's own arithmetic, capacities after every single operation, a
 * saved plan that goes on where it was, several threads, and arguments that lie. */
#include "base/file.h"
#include "base/rng.h"
#include "loader/evp.h"
#include "loader/manifest.h"
#include "planner/manage.h"
#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { MOST = 32, FORMS = 5, TIERS = 3, THREADS = 4, ROUNDS = 150 };

static const char *const config[FORMS] = { "none", "keydiff:drop=0.5", "kivi:bits=4", "kivi:bits=2", "knorm:drop=0.9" };

struct world {
    struct tiers tiers;
    struct tier tier[TIERS];
    int64_t capacity[TIERS];
    double alpha;
    int there[MOST], number[MOST]; // number: the planner's
    char id[MOST][24];
    struct form form[MOST][FORMS];
    double frequency[MOST], prefill_s[MOST];
    /* as the operations say */
    struct plan_choice at[MOST];
    int64_t fill[TIERS];
};

static char path[] = "/tmp/evp-plan-XXXXXX", other_path[] = "/tmp/evp-plan-XXXXXX";

static void open_files(void)
{
    close(mkstemp(path));
    close(mkstemp(other_path));
}

static void remove_files(void)
{
    unlink(path);
    unlink(other_path);
}

TestSuite(evp_plan, .init = open_files, .fini = remove_files);

/* ---- worlds ------------------------------------------------------------------ */

static void draw_context(struct world *w, struct rng *r, int i)
{
    w->frequency[i] = (double)rng_below(r, 6);
    w->prefill_s[i] = 3 * rng_unit(r);
    for (int v = 0; v < FORMS; v++)
        w->form[i][v] = (struct form){ config[v], (int64_t)rng_below(r, 100), rng_unit(r), rng_unit(r) };
}

static void draw_world(struct world *w, struct rng *r, int n)
{
    static char uri[TIERS][16] = { "/dev/shm/a", "/var/tmp/a", "/mnt/a" };

    *w = (struct world){ .alpha = 2 * rng_unit(r), .tiers = { w->tier, 1 + (int)rng_below(r, TIERS) } };
    for (int t = 0; t < w->tiers.n; t++) {
        w->capacity[t] = rng_below(r, 8) == 0 ? INT64_MAX : (int64_t)rng_below(r, 300);
        w->tier[t] = (struct tier){ "t", TIER_FILE, uri[t], w->capacity[t], 100 * rng_unit(r) + 1, 1, rng_unit(r) };
        w->tier[t].name[1] = (char)('0' + t);
    }
    for (int i = 0; i < MOST; i++) {
        snprintf(w->id[i], sizeof(w->id[i]), "context/%d", i);
        w->there[i] = i < n;
        w->number[i] = i < n ? i : -1;
        w->at[i] = (struct plan_choice){ 0, PLAN_RECOMPUTE };
        draw_context(w, r, i);
    }
}

static double options_of(const struct world *w, int i, int64_t *bytes, double *out)
{
    for (int v = 0; v < FORMS; v++) {
        const struct form *f = &w->form[i][v];
        bytes[v] = f->bytes;
        for (int t = 0; t < w->tiers.n; t++) {
            struct tier_speed speed = { w->tier[t].latency_s, w->tier[t].read_bytes_per_s };
            out[v * w->tiers.n + t] =
                utility(w->alpha, f->quality, ttft_stored(speed, f->bytes, f->decompress_s, 0.25), w->frequency[i]);
        }
    }
    return utility(w->alpha, 1, ttft_recompute(w->prefill_s[i], 0.25), w->frequency[i]);
}

static double options(const void *arg, int context, int64_t *bytes, double *out)
{
    return options_of(arg, context, bytes, out); // contexts that are there come first
}

static const char *digest_of(int i)
{
    static _Thread_local char hex[DIGEST_HEX];

    snprintf(hex, sizeof(hex), "%064x", i);
    return hex;
}

/* What `evp-plan --online` would write. */
static void write_manifest(struct world *w, const struct plan *plan)
{
    struct manifest m = { .alpha = w->alpha,
                          .solver = "test",
                          .upper_bound = plan->upper_bound,
                          .gap = (double)NAN,
                          .max_move = INT64_MAX,
                          .tiers = w->tiers };
    struct err err;

    memset(m.model_digest, 'a', DIGEST_HEX - 1);
    memcpy(m.price, plan->price, sizeof(m.price));
    for (int i = 0; i < plan->n_contexts; i++) {
        struct plan_choice c = w->at[i] = plan->choice[i];
        struct forms forms = { w->form[i], FORMS, w->prefill_s[i], 0.25, 0, NULL };
        struct placement p = { .id = w->id[i],
                               .token_digest = digest_of(i),
                               .config = "none",
                               .tier = c.tier,
                               .n_tokens = 7,
                               .quality = 1,
                               .quality_test = 0.5,
                               .ttft_s = 1,
                               .frequency = w->frequency[i],
                               .operation = OP_NONE,
                               .forms = &forms };
        if (c.tier >= 0) {
            p.config = config[c.config];
            p.bytes = w->form[i][c.config].bytes;
            p.quality = w->form[i][c.config].quality;
            p.operation = OP_INSERT;
            p.payload = w->id[i] + 8;
            w->fill[c.tier] += p.bytes;
        }
        cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    }
    cr_assert_eq(manifest_write(&m, path, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    m.tiers = (struct tiers){ 0 };
    manifest_release(&m);
}

/* A world of n contexts, planned, and its manifest opened; *direct: the planner's own, or NULL. */
static struct evp_plan *begin(struct world *w, struct rng *r, int n, struct manage **direct)
{
    struct evp_plan *plan;
    struct evp_error error;
    struct plan solved;
    struct err err;

    draw_world(w, r, n);
    struct plan_problem p = { n, FORMS, w->tiers.n, w->capacity, options, w };
    cr_assert_eq(plan_solve(&solved, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0);
    write_manifest(w, &solved);
    if (direct)
        cr_assert_not_null(*direct = manage_new(&p, &solved, &err));
    plan_release(&solved);
    cr_assert_eq(evp_plan_open(&plan, path, &error), EVP_OK, "%s", error.text);
    return plan;
}

static int tier_of(const struct world *w, const char *name)
{
    return strcmp(name, "recompute") == 0 ? -1 : tiers_find(&w->tiers, name);
}

static int world_index(const struct evp_operation *op)
{
    return (int)strtol(op->id + 8, NULL, 10);
}

/* Carries an operation out: it begins where the context is, and no tier holds more than it can. */
static void follow(struct world *w, const struct evp_operation *op)
{
    int i = world_index(op), from = tier_of(w, op->from_tier), to = tier_of(w, op->to_tier), v = 0;

    cr_assert_eq(w->at[i].tier, from, "%s", op->id);
    if (from >= 0)
        cr_assert_str_eq(config[w->at[i].config], op->from_config);
    while (to >= 0 && strcmp(config[v], op->to_config) != 0)
        v++;
    if (from >= 0)
        w->fill[from] -= op->from_bytes;
    if (to >= 0)
        w->fill[to] += op->to_bytes;
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert(w->fill[t] >= 0 && w->fill[t] <= w->capacity[t], "tier %d holds %lld", t, (long long)w->fill[t]);
    w->at[i] = (struct plan_choice){ v, to };
    cr_assert_eq(op->kind, to < 0     ? EVP_EVICT
                           : from < 0 ? EVP_INSERT
                           : strcmp(op->from_config, op->to_config) != 0 || op->from_bytes != op->to_bytes
                               ? EVP_RECOMPRESS
                               : EVP_MOVE);
}

static struct evp_form *forms_of(const struct world *w, int i, struct evp_form *form)
{
    for (int v = 0; v < FORMS; v++)
        form[v] = (struct evp_form){
            config[v], w->form[i][v].bytes, w->form[i][v].quality, w->form[i][v].decompress_s, { 0 }
        };
    return form;
}

static int admit(struct evp_plan *plan, const struct world *w, int i, struct evp_operations *ops)
{
    struct evp_form form[FORMS];
    struct evp_context c = { .id = w->id[i],
                             .token_digest = digest_of(i),
                             .n_tokens = 7,
                             .frequency = w->frequency[i],
                             .prefill_s = w->prefill_s[i],
                             .question_s = 0.25,
                             .form = forms_of(w, i, form),
                             .n_forms = FORMS };

    return evp_plan_admit(plan, &c, ops, NULL);
}

static int update(struct evp_plan *plan, const struct world *w, int i, bool with_forms, struct evp_operations *ops)
{
    struct evp_form form[FORMS];
    struct evp_update u = {
        w->id[i], w->frequency[i], with_forms ? forms_of(w, i, form) : NULL, with_forms ? FORMS : 0, { 0 }
    };

    return evp_plan_update(plan, &u, ops, NULL);
}

/* ---- beside the planner ---------------------------------------------------------- */

/* One event to both. */
static void one_event(struct world *w, struct rng *r, struct evp_plan *plan, struct manage *m,
                      struct evp_operations *ops)
{
    int i = (int)rng_below(r, MOST), added = !w->there[i], code;
    int64_t bytes[FORMS];
    double out[FORMS * TIERS];
    struct plan_options o = { bytes, out, 0 };
    struct err err;

    if (!added && rng_below(r, 2)) {
        code = evp_plan_remove(plan, w->id[i], ops, NULL);
        cr_assert(!code && !manage_remove(m, w->number[i], &err));
        w->there[i] = 0;
        return;
    }
    bool forms = added || rng_below(r, 2);
    if (forms) {
        double prefill_s = w->prefill_s[i];
        draw_context(w, r, i);
        w->prefill_s[i] = added ? w->prefill_s[i] : prefill_s;
    } else
        w->frequency[i] = (double)rng_below(r, 6);
    o.recompute = options_of(w, i, bytes, out);
    code = added ? admit(plan, w, i, ops) : update(plan, w, i, forms, ops);
    cr_assert(!code && !(added ? manage_add(m, &o, &w->number[i], &err) : manage_update(m, w->number[i], &o, &err)));
    w->there[i] = 1;
}

static void compare(const struct world *w, struct evp_plan *plan, const struct manage *m,
                    const struct evp_operations *ops)
{
    const struct manage_state *s = manage_state(m);
    struct evp_plan_state state;

    cr_assert_eq(ops->n, (size_t)s->n_ops);
    for (size_t k = 0; k < ops->n; k++) {
        const struct manage_op *op = &s->op[k];
        cr_assert_eq(w->number[world_index(&ops->at[k])], op->context);
        cr_assert(ops->at[k].from_bytes == op->from_bytes && ops->at[k].to_bytes == op->to_bytes);
        cr_assert(tier_of(w, ops->at[k].from_tier) == op->from.tier && tier_of(w, ops->at[k].to_tier) == op->to.tier);
        cr_assert_str_eq(ops->at[k].to_config, config[op->to.config]);
    }
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVP_OK);
    cr_assert(state.n_contexts == s->n_contexts && state.n_tiers == (size_t)w->tiers.n);
    cr_assert(state.objective == s->objective && state.upper_bound == s->upper_bound);
    cr_assert(state.gap >= 0 || state.upper_bound >= state.objective - 1e-9);
    for (int t = 0; t < w->tiers.n; t++) {
        cr_assert(state.tier[t].room == s->room[t] && state.tier[t].capacity == w->capacity[t]);
        cr_assert(w->capacity[t] == INT64_MAX || state.tier[t].room == w->capacity[t] - w->fill[t]);
    }
}

/* The saved plan says what the operations said, sums up, and goes on where it was. */
static void check_saved(const struct world *w, struct evp_plan *plan)
{
    struct manifest before, m;
    struct evp_plan_state state, again;
    struct evp_plan *reopened;
    struct evp_error error;
    struct err err;
    double sum = 0;
    int n = 0;

    if (evp_plan_save(plan, other_path, &error)) {
        cr_assert_eq(error.code, EVP_ARGUMENT); // nothing is left of it
        return;
    }
    cr_assert(!manifest_read(&before, path, &err) && !manifest_read(&m, other_path, &err), "%s", err.msg);
    cr_assert_str_eq(m.previous, before.digest);
    for (int k = 0; k < m.n; k++) {
        const struct placement *p = &m.at[k], *b = manifest_find(&before, p->id);
        int i = (int)strtol(p->id + 8, NULL, 10);
        cr_assert_eq(p->operation, manifest_operation(b, &before.tiers, p, &m.tiers));
        cr_assert_eq(p->tier, w->there[i] ? w->at[i].tier : -1);
        cr_assert_eq(p->forms != NULL, w->there[i]);
        if (p->tier >= 0)
            cr_assert_str_eq(p->config, config[w->at[i].config]);
        sum += p->utility;
        n += w->there[i];
    }
    for (int i = 0; i < MOST; i++) {
        const struct placement *b = manifest_find(&before, w->id[i]), *p = manifest_find(&m, w->id[i]);
        bool left = !w->there[i] && b && b->tier >= 0;
        cr_assert_eq(p != NULL, w->there[i] || left, "%s", w->id[i]);
        cr_assert(!left || p->operation == OP_EVICT);
    }
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVP_OK);
    cr_assert_eq(n, (int)state.n_contexts);
    cr_assert_float_eq(sum, m.objective, 1e-9);
    cr_assert_eq(evp_plan_open(&reopened, other_path, &error), EVP_OK, "%s", error.text);
    cr_assert_eq(evp_plan_status(reopened, &again, NULL), EVP_OK);
    cr_assert_float_eq(again.objective, state.objective, 1e-9);
    cr_assert_float_eq(again.upper_bound, state.upper_bound, 1e-9);
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert_eq(again.tier[t].room, state.tier[t].room);
    evp_plan_close(reopened);
    manifest_release(&before);
    manifest_release(&m);
}

Test(evp_plan, does_what_the_planner_does_and_keeps_capacities)
{
    struct rng r = rng_new(5);

    for (int k = 0; k < 60; k++) {
        struct world w;
        struct manage *m;
        struct evp_operations ops;
        struct evp_plan *plan = begin(&w, &r, 1 + (int)rng_below(&r, MOST), &m);
        for (uint64_t event = 1; event <= 80; event++) {
            one_event(&w, &r, plan, m, &ops);
            cr_assert_eq(ops.event, event);
            for (size_t i = 0; i < ops.n; i++)
                follow(&w, &ops.at[i]);
            compare(&w, plan, m, &ops);
            evp_operations_release(&ops);
            if (event % 20 == 0)
                check_saved(&w, plan);
        }
        evp_plan_close(plan);
        manage_free(m);
    }
}

/* ---- threads --------------------------------------------------------------------- */

struct worker {
    struct evp_plan *plan;
    struct world world; // a copy: each draws its own contexts
    int first;          // of the contexts that are its own
    struct evp_operations got[ROUNDS];
    int there[MOST];
};

static void *work(void *arg)
{
    struct worker *me = arg;
    struct rng r = rng_new((uint64_t)me->first);
    struct evp_plan_state state;

    for (int k = 0; k < ROUNDS; k++) {
        int i = me->first + (int)rng_below(&r, MOST / THREADS), code;
        if (!me->there[i])
            draw_context(&me->world, &r, i);
        if (!me->there[i])
            code = admit(me->plan, &me->world, i, &me->got[k]);
        else if (k % 3)
            code = evp_plan_remove(me->plan, me->world.id[i], &me->got[k], NULL);
        else
            code = update(me->plan, &me->world, i, false, &me->got[k]);
        me->there[i] = !me->there[i] || k % 3 == 0;
        if (code || evp_plan_status(me->plan, &state, NULL) ||
            (k % 50 == 0 && evp_plan_save(me->plan, other_path, NULL)))
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
    struct evp_plan *plan = begin(&w, &r, MOST, NULL);
    void *failed;

    for (int t = 0; t < THREADS; t++) {
        worker[t] = (struct worker){ .plan = plan, .world = w, .first = t * (MOST / THREADS) };
        memcpy(worker[t].there, w.there, sizeof(w.there));
        cr_assert_eq(pthread_create(&thread[t], NULL, work, &worker[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        cr_assert_eq(pthread_join(thread[t], &failed), 0);
        cr_assert_null(failed);
        memcpy(w.there + worker[t].first, worker[t].there + worker[t].first, MOST / THREADS * sizeof(int));
        for (int k = 0; k < ROUNDS; k++)
            in_order[worker[t].got[k].event] = &worker[t].got[k];
    }
    for (int event = 1; event <= THREADS * ROUNDS; event++) {
        cr_assert_not_null(in_order[event], "event %d", event);
        for (size_t i = 0; i < in_order[event]->n; i++)
            follow(&w, &in_order[event]->at[i]);
    }
    check_saved(&w, plan);
    for (int t = 0; t < THREADS; t++)
        for (int k = 0; k < ROUNDS; k++)
            evp_operations_release(&worker[t].got[k]);
    evp_plan_close(plan);
}

/* ---- single questions ---------------------------------------------------------------- */

/* A plan of one context on a tier of 100 bytes, where it takes 80. */
static struct evp_plan *small(struct world *w)
{
    struct plan_choice choice = { 0, 0 };
    struct plan plan = { .choice = &choice, .n_contexts = 1 };
    struct evp_plan *opened;
    struct rng r = rng_new(1);

    draw_world(w, &r, 1);
    w->tiers.n = 1;
    w->tier[0] = (struct tier){ "ram", TIER_DRAM, w->tier[0].uri, 100, 1e9, 1e9, 0 };
    w->alpha = 1;
    w->frequency[0] = 1;
    w->form[0][0] = (struct form){ "none", 80, 1, (double)NAN };
    write_manifest(w, &plan);
    cr_assert_eq(evp_plan_open(&opened, path, NULL), EVP_OK);
    return opened;
}

/* The present form keeps its number among the new ones; without it the context must go elsewhere. */
Test(evp_plan, other_forms_of_a_context_that_is_placed)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_operations ops;
    struct evp_form form[3] = { { .config = "kivi:bits=2", .bytes = 10, .quality = 0.1 },
                                { .config = "kivi:bits=4", .bytes = 20, .quality = 0.2 },
                                { .config = "none", .bytes = 80, .quality = 1 } };
    struct evp_update u = { "context/0", 2, form, 3, { 0 } };

    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVP_OK);
    cr_assert_eq(ops.n, 0);
    form[2].bytes = 90;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVP_OK);
    cr_assert(ops.n == 1 && ops.at[0].kind == EVP_RECOMPRESS && ops.at[0].from_bytes == 80 && ops.at[0].to_bytes == 90);
    evp_operations_release(&ops);
    u.n_forms = 2;
    w.prefill_s[0] = 0;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVP_OK);
    cr_assert_eq(ops.n, 1);
    cr_assert_str_eq(ops.at[0].from_config, "none");
    cr_assert_str_neq(ops.at[0].to_config, ops.at[0].to_bytes ? "none" : "kivi:bits=2");
    evp_operations_release(&ops);
    u.n_forms = 0;
    cr_assert_eq(evp_plan_update(plan, &u, NULL, NULL), EVP_OK);
    cr_assert_eq(evp_plan_remove(plan, "context/0", &ops, NULL), EVP_OK);
    cr_assert_eq(ops.n, 0);
    evp_operations_release(&ops);
    evp_plan_close(plan);
}

Test(evp_plan, ids_come_and_go_by_the_thousand)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_plan_state state;
    char id[32];
    struct evp_context c = { .id = id, .token_digest = digest_of(1), .n_tokens = 1, .prefill_s = 1 };

    for (int i = 0; i < 20000; i++) {
        if (i % 5000 == 0) {
            snprintf(id, sizeof(id), "regular/%d", i);
            cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVP_OK);
        }
        snprintf(id, sizeof(id), "passer-by/%d", i);
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVP_OK);
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVP_EXISTS);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVP_OK);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVP_UNKNOWN);
    }
    for (int i = 15000; i >= 0; i -= 5000) {
        snprintf(id, sizeof(id), "regular/%d", i);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVP_OK, "%s", id);
    }
    cr_assert_eq(evp_plan_remove(plan, "context/0", NULL, NULL), EVP_OK);
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVP_OK);
    cr_assert(state.n_contexts == 0 && state.tier[0].room == 100 && state.tier[0].capacity == 100);
    cr_assert_str_eq(state.tier[0].name, "ram");
    evp_plan_close(plan);
}

/* A context that is pinned stays, whoever comes. */
Test(evp_plan, pins_and_floors_hold)
{
    struct world w;
    struct buf text = { 0 }, pinned = { 0 };
    struct evp_plan *plan = small(&w);
    struct evp_form form[2] = { { .config = "none", .bytes = 100, .quality = 1 },
                                { .config = "kivi:bits=2", .bytes = 5, .quality = 0.5 } };
    struct evp_context c = { .id = "x",
                             .token_digest = digest_of(1),
                             .n_tokens = 1,
                             .frequency = 100,
                             .prefill_s = 99,
                             .form = form,
                             .n_forms = 1 };
    struct evp_operations ops;
    struct evp_error error;
    struct err err;

    cr_assert_eq(evp_plan_admit(plan, &c, &ops, NULL), EVP_OK);
    cr_assert(ops.n == 2 && ops.at[0].kind != EVP_INSERT && ops.at[1].kind == EVP_INSERT);
    evp_operations_release(&ops);
    evp_plan_close(plan);
    cr_assert_eq(file_read(&text, path, 1 << 20, &err), 0);
    char *at = strstr(text.at, "\"forms\"");
    buf_printf(&pinned, "%.*s\"pin\":\"ram\",%s", (int)(at - text.at), text.at, at);
    at = strstr(pinned.at, "\"previous\"");
    buf_clear(&text);
    buf_printf(&text, "%.*s\"min_quality\":0.75,%s", (int)(at - pinned.at), pinned.at, at);
    cr_assert_eq(file_write(path, text.at, text.n, &err), 0);
    cr_assert_eq(evp_plan_open(&plan, path, &error), EVP_OK, "%s", error.text);
    cr_assert_eq(evp_plan_admit(plan, &c, &ops, NULL), EVP_OK);
    cr_assert_eq(ops.n, 0);
    evp_operations_release(&ops);
    c.id = "y";
    c.n_forms = 2;
    cr_assert_eq(evp_plan_admit(plan, &c, &ops, &error), EVP_ARGUMENT);
    cr_assert(strstr(error.text, "form 2: field 'quality' is below min_quality"), "%s", error.text);
    form[0].bytes = 101;
    form[1].quality = 0.8;
    struct evp_update u = { .id = "context/0", .frequency = 1, .form = form, .n_forms = 1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVP_ARGUMENT);
    cr_assert(strstr(error.text, "no form fits tier 'ram', which it is pinned to"), "%s", error.text);
    form[0].bytes = 100;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVP_OK);
    cr_assert(ops.n == 1 && ops.at[0].to_bytes == 100);
    evp_operations_release(&ops);
    cr_assert_eq(evp_plan_save(plan, other_path, &error), EVP_OK);
    buf_clear(&text);
    cr_assert_eq(file_read(&text, other_path, 1 << 20, &err), 0);
    cr_assert(strstr(text.at, "\"pin\":\"ram\"") && strstr(text.at, "\"min_quality\":0.75"));
    evp_plan_close(plan);
    buf_release(&text);
    buf_release(&pinned);
}

/* ---- what is refused -------------------------------------------------------------------- */

Test(evp_plan, refuses_arguments_that_lie)
{
    static const int32_t tokens[] = { 1, 2, 3 };
    struct world w;
    struct evp_plan *plan = small(&w);
    const struct evp_form good = { .config = "none", .bytes = 10, .quality = 1 };
    struct {
        struct evp_form form;
        struct evp_context context;
        const char *says;
    } bad[32];
    int n = 0;
    struct evp_operations ops;
    struct evp_error error;
    struct evp_plan_state before, after;
#define BAD(field, value, text)                                                                                        \
    bad[n].form = good,                                                                                                \
    bad[n].context =                                                                                                   \
        (struct evp_context){                                                                                          \
            .id = "x", .tokens = tokens, .n_tokens = 3, .frequency = 1, .prefill_s = 1, .n_forms = 1                   \
        },                                                                                                             \
    bad[n].field = value, bad[n++].says = text
    BAD(context.id, NULL, "id is NULL");
    BAD(context.id, "", "field 'id' is empty");
    BAD(context.id, "a\nb", "field 'id' has a control character");
    BAD(context.token_digest, "abc", "field 'token_digest' is not");
    BAD(context.tokens, NULL, "tokens and token_digest are NULL");
    BAD(context.n_tokens, 0, "n_tokens is out of range");
    BAD(context.n_tokens, (int64_t)1 << 40, "n_tokens is out of range");
    BAD(context.kv_bytes, -1, "field 'kv_bytes' is below zero");
    BAD(context.frequency, -1, "field 'frequency' is below zero");
    BAD(context.frequency, (double)NAN, "field 'frequency' is not a number");
    BAD(context.frequency, 1e250, "utility is out of range");
    BAD(context.prefill_s, HUGE_VAL, "field 'prefill_s' is not a number");
    BAD(context.question_s, -1, "field 'question_s' is below zero");
    BAD(context.n_forms, 128, "n_forms is above 127");
    BAD(context.reserved[7], 1, "reserved is not zero");
    BAD(form.reserved[3], 1, "form 1: reserved is not zero");
    BAD(form.config, NULL, "form 1: field 'config' is empty");
    BAD(form.bytes, -1, "form 1: field 'bytes' is below zero");
    BAD(form.bytes, INT64_MAX, "form 1: field 'bytes' is above 2^53");
    BAD(form.quality, 1.1, "form 1: field 'quality' is above one");
    BAD(form.quality, (double)NAN, "form 1: field 'quality' is not a number");
    BAD(form.decompress_s, -1, "form 1: field 'decompress_s' is below zero");
#undef BAD
    cr_assert_eq(evp_plan_status(plan, &before, NULL), EVP_OK);
    for (int i = 0; i < n; i++) {
        bad[i].context.form = &bad[i].form;
        cr_assert_eq(evp_plan_admit(plan, &bad[i].context, &ops, &error), EVP_ARGUMENT, "%s", bad[i].says);
        cr_assert(strstr(error.text, bad[i].says), "'%s' does not say '%s'", error.text, bad[i].says);
        cr_assert(ops.n == 0 && ops.at == NULL && error.code == EVP_ARGUMENT);
    }
    struct evp_update u = { .id = "context/0", .frequency = -1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVP_ARGUMENT);
    u = (struct evp_update){ .id = "context/0", .n_forms = 1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVP_ARGUMENT);
    u = (struct evp_update){ .id = "nobody" };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVP_UNKNOWN);
    cr_assert_str_eq(error.text, "context 'nobody' is not there");
    cr_assert_eq(evp_plan_remove(plan, NULL, &ops, &error), EVP_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, NULL, &error), EVP_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, "-", &error), EVP_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, "/nowhere/at/all", &error), EVP_IO);
    cr_assert_eq(evp_plan_status(plan, &after, NULL), EVP_OK);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
    evp_plan_close(plan);
    evp_plan_close(NULL);
    evp_operations_release(NULL);
}

/* Each is one change to the text of a good manifest. */
Test(evp_plan, refuses_manifests_that_cannot_be)
{
    static const char *const change[][3] = {
        { "\"forms\"", "\"smrof\"", "context 'context/0': no forms are carried" },
        { "\"capacity_bytes\":100", "\"capacity_bytes\":79", "tier 'ram' holds more than its capacity" },
        { "\"capacity_bytes\":100", "\"capacity_bytes\":0", "tier 'ram' holds more than its capacity" },
        { "\"forms\"", "\"pin\":\"recompute\",\"forms\"", "it is on tier 'ram', but pinned to 'recompute'" },
        { "\"alpha\":1", "\"alpha\":1e999", "field 'alpha' is not a number" },
        { "\"alpha\":1", "\"alpha\":1e300", "utility is out of range" },
        { "\"prices\":[0]", "\"prices\":[1e299]", "field 'prices': that of tier 'ram' is out of range" },
        { "\"frequency\":1", "\"frequency\":1e300", "utility is out of range" },
        { "\"read_bytes_per_s\":1000000000", "\"read_bytes_per_s\":1e-300", "utility is out of range" },
        { "{\"end\"", "{\"dne\"", "line 3: field 'id' is missing" },
    };
    struct world w;
    struct buf good = { 0 };
    struct evp_plan *plan = small(&w);
    struct evp_error error;
    struct err err;

    evp_plan_close(plan);
    cr_assert_eq(file_read(&good, path, 1 << 20, &err), 0);
    for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
        struct buf text = { 0 };
        const char *at = strstr(good.at, change[i][0]);
        cr_assert(at, "%s", change[i][0]);
        buf_add(&text, good.at, (size_t)(at - good.at));
        buf_adds(&text, change[i][1]);
        buf_adds(&text, at + strlen(change[i][0]));
        cr_assert_eq(file_write(path, text.at, text.n, &err), 0);
        cr_assert_eq(evp_plan_open(&plan, path, &error), EVP_DAMAGED, "%s", change[i][1]);
        cr_assert(strstr(error.text, change[i][2]), "'%s' does not say '%s'", error.text, change[i][2]);
        cr_assert_null(plan);
        buf_release(&text);
    }
    buf_release(&good);
    cr_assert_eq(evp_plan_open(&plan, "/nowhere", &error), EVP_IO);
    cr_assert_eq(evp_plan_open(&plan, "-", &error), EVP_ARGUMENT);
}
