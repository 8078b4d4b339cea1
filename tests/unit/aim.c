/* aim.c - planner/aim.c and planner/evpi.c: what follows by hand and at the edges; tests/golden/aim has NumPy. */
#include "planner/aim.h"
#include "planner/evpi.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* ---- evpi ---- */

/* E max(0, X) of a standard normal is 1 / sqrt(2 pi); of two, 1 / sqrt(pi). */
Test(evpi, closed_forms)
{
    const struct evpi_candidate one[] = { { 0, 1, -HUGE_VAL, HUGE_VAL } };
    const struct evpi_candidate two[] = { { 0, 1, -HUGE_VAL, HUGE_VAL }, { 0, 1, -HUGE_VAL, HUGE_VAL } };
    const struct evpi_candidate sure[] = { { 3, 0, -HUGE_VAL, HUGE_VAL }, { 1, 0.1, -HUGE_VAL, HUGE_VAL } };

    cr_assert_float_eq(expected_best(0, one, 1), 1 / sqrt(2 * M_PI), 1e-13);
    cr_assert_float_eq(expected_best(-100, two, 2), 1 / sqrt(M_PI), 1e-10);
    cr_assert_eq(expected_best(2, NULL, 0), 2);
    cr_assert_eq(expected_best(2, sure, 1), 3, "nothing is in doubt");
    cr_assert_float_eq(expected_best(2, sure, 2), 3, 1e-12);
}

/* A candidate below its floor is worth nothing, not its value. */
Test(evpi, floors_bar)
{
    const struct evpi_candidate half = { 0, 1, 0, HUGE_VAL }, never = { 0, 1, 20, HUGE_VAL },
                                barred = { 5, 0, 6, HUGE_VAL };

    cr_assert_float_eq(expected_best(-1, &half, 1), -0.5 + 1 / sqrt(2 * M_PI), 1e-3, "half of the time -1");
    cr_assert_float_eq(expected_best(-1, &never, 1), -1, 1e-12);
    cr_assert_eq(expected_best(-1, &barred, 1), -1);
}

/* ---- requests ---- */

enum { V = 3, T = 1, CONTEXTS = 200 };

struct world {
    struct plan_problem plan;
    struct aim_problem aim;
    struct belief belief;
    double mean[V], between[V], within[V];
    double quality[CONTEXTS * V], recompute[CONTEXTS];
    float sd[CONTEXTS * V];
    int32_t asked[CONTEXTS * V];
    int n_questions;
    double floor;
    int64_t capacity[T];
    double price[T];
};

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct world *w = arg;

    for (int v = 0; v < V; v++) {
        bytes[v] = 100 - 30 * v;
        utility[v] = 10 * w->quality[context * V + v];
    }
    return w->recompute[context];
}

static struct aim_context context_of(const void *arg, int context)
{
    const struct world *w = arg;

    return (struct aim_context){ (size_t)context * V, 10, w->floor, 100 + context, 5, w->n_questions };
}

/* Config 1 is believed to be 0.8 good, config 2 0.6 good and smaller; nothing was asked. */
static struct world *world_new(void)
{
    static struct world w;
    static const double mean[V] = { 1, 0.8, 0.6 };

    w = (struct world){ .n_questions = 16, .capacity = { 5000 }, .price = { 0.06 } };
    for (int v = 0; v < V; v++) {
        w.mean[v] = mean[v];
        w.between[v] = v ? 0.01 : 0;
        w.within[v] = v ? 0.05 : 0;
    }
    for (int i = 0; i < CONTEXTS * V; i++) {
        w.quality[i] = mean[i % V];
        w.sd[i] = i % V ? 0.1F : 0;
    }
    w.belief = (struct belief){ V, w.mean, w.between, w.within, NULL };
    w.plan = (struct plan_problem){ CONTEXTS, V, T, w.capacity, candidates, &w, NULL };
    w.aim = (struct aim_problem){ .plan = &w.plan,
                                  .price = w.price,
                                  .belief = &w.belief,
                                  .quality = w.quality,
                                  .sd = w.sd,
                                  .asked = w.asked,
                                  .sure_z = 0.67,
                                  .context = context_of,
                                  .arg = &w };
    return &w;
}

static struct aim_list list_of(const struct world *w, double cost)
{
    struct aim_list list;
    struct err err;

    cr_assert_eq(aim_list_make(&list, &w->aim, &(struct aim_budget){ cost, 1e-9 }, &err), 0);
    return list;
}

Test(aim, the_pair_by_hand)
{
    cr_assert_float_eq(aim_pair_gradient(2, 0), 2 / sqrt(2 * M_PI), 1e-15);
    cr_assert_float_eq(aim_pair_gradient(1, -1), 0.0833154705876863, 1e-12);
    cr_assert_eq(aim_pair_gradient(0, -1), 0);
    cr_assert_eq(aim_pair_gradient(0, 0), 0);
    cr_assert_eq(aim_pair_gradient(1, -100), 0);
}

Test(aim, a_budget_is_kept_and_used)
{
    struct world *w = world_new();
    double before = 0;

    for (double budget = 200; budget < 100000; budget *= 2) {
        struct aim_list list = list_of(w, budget);
        double sum = 0;
        for (int i = 0; i < list.n; i++) {
            sum += list.at[i].cost;
            cr_assert(i == 0 || list.at[i].context > list.at[i - 1].context);
            cr_assert(list.at[i].n >= 1 && list.at[i].n <= 16 && list.at[i].n_configs >= 1);
        }
        cr_assert_leq(sum, budget);
        cr_assert_geq(sum, before, "more money, more answers");
        cr_assert(list.n == CONTEXTS || budget - sum < 500, "the next row would not fit: %g of %g", sum, budget);
        before = sum;
        aim_list_release(&list);
    }
}

/* Many contexts alike to the last digit: one tau would take all or none. */
Test(aim, ties_are_filled_up)
{
    struct world *w = world_new();
    struct aim_list all = list_of(w, 1e9), some;

    cr_assert_eq(all.n, CONTEXTS);
    some = list_of(w, 5000);
    cr_assert_gt(some.n, 10);
    aim_list_release(&all);
    aim_list_release(&some);
}

Test(aim, nothing_to_ask)
{
    struct world *w = world_new();

    for (int i = 0; i < CONTEXTS * V; i++)
        w->asked[i] = 16;
    struct aim_list list = list_of(w, 1e9);
    cr_assert_eq(list.n, 0, "every question was asked");
    aim_list_release(&list);
    w = world_new();
    memset(w->sd, 0, sizeof(w->sd));
    list = list_of(w, 1e9);
    cr_assert_eq(list.n, 0, "nothing is in doubt");
    aim_list_release(&list);
    w = world_new();
    for (int c = 0; c < CONTEXTS; c++)
        w->recompute[c] = 1000;
    list = list_of(w, 1e9);
    cr_assert_eq(list.n, 0, "nothing can beat recomputing");
    aim_list_release(&list);
}

/* A config that has no questions left is not asked, one that has fewer is asked those. */
Test(aim, questions_left)
{
    struct world *w = world_new();

    for (int c = 0; c < CONTEXTS; c++)
        w->asked[c * V + 1] = 15;
    struct aim_list list = list_of(w, 1e9);
    for (int i = 0; i < list.n; i++)
        cr_assert_leq(list.at[i].cost, 100 + list.at[i].context + 5 * (16 + 16 + 1));
    aim_list_release(&list);
}

/* What is barred now is asked where the answers could let it in, and not where they cannot. */
Test(aim, floors)
{
    struct world *w = world_new();

    w->price[0] = 0.2; // the smaller one is better, if it may
    for (int c = 0; c < CONTEXTS; c++)
        w->recompute[c] = -100;
    w->floor = 0.65;
    struct aim_list list = list_of(w, 1e9);
    cr_assert_gt(list.n, 0);
    cr_assert(memchr(list.configs.at, 2, list.configs.n * sizeof(uint16_t)) != NULL);
    aim_list_release(&list);
    w->floor = 0.999;
    for (int i = 0; i < CONTEXTS * V; i++)
        w->sd[i] /= 10;
    list = list_of(w, 1e9);
    cr_assert_eq(list.n, 0, "no doubt is that large");
    aim_list_release(&list);
}

Test(aim, the_loss_falls_as_doubts_do)
{
    struct world *w = world_new();
    struct err err;
    double before = HUGE_VAL, loss;

    for (int k = 0; k < 4; k++) {
        cr_assert_eq(aim_expected_loss(&w->aim, &loss, &err), 0);
        cr_assert(loss >= 0 && loss < before);
        before = loss;
        for (int i = 0; i < CONTEXTS * V; i++)
            w->sd[i] /= 2;
    }
    memset(w->sd, 0, sizeof(w->sd));
    cr_assert_eq(aim_expected_loss(&w->aim, &loss, &err), 0);
    cr_assert_eq(loss, 0);
}
