/* A live plan that is saved while events go on: what is written is the plan as it was when the save began. */
#include "tests/unit/evp_world.h"

#include "base/file.h"
#include "loader/libevicpress/evicpress_plan.h"
#include "loader/libevicpress/live_plan.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(live_save, .init = world_open_files, .fini = world_remove_files);

/* A plan of 20 contexts that are all recomputed, on tiers with space for some. */
static void open_plan(struct world *w, struct rng *r, struct live_plan *l)
{
    struct plan_placement placement[CONTEXTS];
    struct plan plan = { .placement = placement, .n_contexts = 20 };
    struct err err;

    for (int i = 0; i < CONTEXTS; i++)
        placement[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    world_draw(w, r, 20);
    world_write(w, &plan);
    cr_assert_eq(live_plan_open(l, world_path, &err), 0, "%s", err.msg);
}

/* Admits, updates or removes a context. */
static void one_event(struct world *w, struct rng *r, struct live_plan *l)
{
    struct variant_info variant[VARIANTS];
    int i = (int)rng_below(r, CONTEXTS), number = live_plan_find(l, w->id[i]);
    struct err err;

    world_draw_context(w, r, i);
    for (int v = 0; v < VARIANTS; v++) /* so that a present variant comes under another number, or goes */
        variant[v] = w->variant[i][(v + i) % VARIANTS];
    struct live_context c = { .id = w->id[i],
                              .token_digest = world_digest(i),
                              .n_tokens = 7,
                              .frequency = w->frequency[i],
                              .variants = { .at = variant, .n = VARIANTS - 1, .prefill_s = w->prefill_s[i] } };
    struct live_update u = { w->frequency[i], rng_below(r, 2) ? variant : NULL, VARIANTS - 1 };
    int code = number < 0            ? live_plan_add(l, &c, &err)
               : rng_below(r, 3) > 0 ? live_plan_update(l, number, &u, &err)
                                     : live_plan_remove(l, number, &err);
    cr_assert_eq(code, 0, "%s", err.msg);
}

/* Saves the plan to a path, with so many events after the save has begun. */
static void save(struct world *w, struct rng *r, struct live_plan *l, const char *path, int n_events)
{
    struct live_save s;
    struct err err;

    cr_assert_eq(live_save_begin(l, &s, &err), 0);
    for (int i = 0; i < n_events; i++)
        one_event(w, r, l);
    while (live_save_go_on(l))
        ;
    for (int i = 0; i < n_events; i++)
        one_event(w, r, l);
    int code = live_save_write(l, &s, path, &err);
    cr_assert(code == 0 || strstr(err.msg, "has no contexts"), "%s", err.msg);
    live_save_end(l);
    live_save_release(&s);
}

Test(live_save, is_the_plan_of_one_moment)
{
    struct world w;
    struct live_plan l;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng r = rng_new(seed);
        open_plan(&w, &r, &l);
        for (int round = 0; round < 20; round++) {
            struct buf before = { 0 }, during = { 0 };
            struct err err;
            save(&w, &r, &l, world_other_path, 0);
            cr_assert_eq(file_read(&before, world_other_path, 1 << 24, &err), 0);
            save(&w, &r, &l, world_other_path, (int)rng_below(&r, 12));
            cr_assert_eq(file_read(&during, world_other_path, 1 << 24, &err), 0);
            cr_assert_str_eq(buf_str(&before), buf_str(&during), "seed %d, round %d", (int)seed, round);
            buf_release(&before);
            buf_release(&during);
        }
        live_plan_close(&l);
    }
}

/* The doubt about a quality goes on as long as the context stays as it is; another variant's is not known. */
Test(live_save, doubt_about_a_quality_is_carried_on)
{
    struct plan_placement placement[CONTEXTS];
    struct plan plan = { .placement = placement, .n_contexts = 20 };
    struct rng r = rng_new(5);
    struct manifest m;
    struct live_plan l;
    struct world w;
    struct err err;

    for (int i = 0; i < CONTEXTS; i++)
        placement[i] = (struct plan_placement){ 0, i < 2 ? 0 : PLAN_RECOMPUTE };
    world_draw(&w, &r, 20);
    world_write(&w, &plan);
    cr_assert_eq(live_plan_open(&l, world_path, &err), 0, "%s", err.msg);
    save(&w, &r, &l, world_other_path, 0);
    cr_assert_eq(manifest_read(&m, world_other_path, &err), 0, "%s", err.msg);
    const struct placement *even = manifest_find(&m, w.id[0]), *odd = manifest_find(&m, w.id[1]);
    cr_assert(even->tier == 0 && even->quality_sd == 0.125 && even->unmeasured);
    cr_assert(odd->tier == 0 && odd->quality_sd == 0.125 && !odd->unmeasured);
    const struct placement *recomputed = manifest_find(&m, w.id[2]);
    cr_assert(recomputed->tier < 0 && recomputed->quality_sd == 0 && !recomputed->unmeasured);
    manifest_release(&m);
    struct live_update without = { w.frequency[0], w.variant[0] + 1, VARIANTS - 1 };
    cr_assert_eq(live_plan_update(&l, live_plan_find(&l, w.id[0]), &without, &err), 0, "%s", err.msg);
    save(&w, &r, &l, world_other_path, 0);
    cr_assert_eq(manifest_read(&m, world_other_path, &err), 0, "%s", err.msg);
    even = manifest_find(&m, w.id[0]);
    cr_assert(even->quality_sd == 0 && !even->unmeasured, "its variant is gone");
    manifest_release(&m);
    live_plan_close(&l);
}

/* ---- forks ----------------------------------------------------------------- */

static atomic_bool stop;

static void *save_on(void *plan)
{
    while (!stop)
        (void)!evp_plan_save(plan, world_other_path, NULL);
    return NULL;
}

static void *update_on(void *plan)
{
    for (double f = 0; !stop; f++)
        (void)!evp_plan_update(plan, &(struct evp_update){ .id = "context/0", .frequency = f }, NULL, NULL);
    return NULL;
}

/* A child goes on with its own copy of the plan, whatever its parent's threads were at. */
Test(live_save, a_plan_goes_on_in_forked_processes, .timeout = 120)
{
    struct world w;
    struct live_plan l;
    struct rng r = rng_new(3);
    struct evp_plan *plan;
    pthread_t thread[2];
    int status, failed = 0;

#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("the address sanitizer's malloc() may hang in the child of a process with threads");
#endif
    open_plan(&w, &r, &l);
    live_plan_close(&l);
    cr_assert_eq(evp_plan_open(&plan, world_path, NULL), EVICPRESS_OK);
    stop = false;
    cr_assert(!pthread_create(&thread[0], NULL, save_on, plan) && !pthread_create(&thread[1], NULL, update_on, plan));
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30); /* a lock that nobody gives back would end here */
            struct evp_update u = { .id = "context/1", .frequency = 2 };
            _exit(evp_plan_update(plan, &u, NULL, NULL) || evp_plan_save(plan, "/dev/null", NULL) ||
                  evp_plan_remove(plan, "context/0", NULL, NULL));
        }
        cr_assert(child > 0 && waitpid(child, &status, 0) == child);
        failed += status != 0;
    }
    stop = true;
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    cr_assert_eq(failed, 0, "%d children", failed);
    evp_plan_close(plan);
}
