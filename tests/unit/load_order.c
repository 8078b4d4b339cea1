/* The order of removals and placements, over thousands of random plans whose tiers are nearly full. */
#include "base/rng.h"
#include "loader/load/load_order.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { TIERS = 4, FILES = 60, GOALS = 40, BYTES = 100 };

struct plan {
    int64_t capacity[TIERS];
    struct order_file file[FILES];
    struct order_goal goal[GOALS];
    struct order_given given;
};

static int pick(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

static void add_file(struct plan *p, struct rng *r, int tier, int64_t bytes, int goal)
{
    struct order_goal *g = goal < 0 ? NULL : &p->goal[goal];
    int n = p->given.n_files;

    if (n == FILES)
        return;
    p->file[n] =
        (struct order_file){ tier, bytes, goal, g && g->tier == tier && !g->placed, goal < 0 && pick(r, 8) == 0 };
    p->given.n_files++;
    if (!g)
        return;
    g->placed |= g->tier == tier;
    if (g->tier != tier && pick(r, 2))
        g->source = n;
}

/* Goals with a file in their tier, in another tier, or in the payload folder only; files of no goal; and capacities
 * that just fit the larger of before and after. Every other plan gives a tier less capacity than it holds. */
static void make_plan(struct plan *p, struct rng *r)
{
    int64_t before[TIERS] = { 0 }, after[TIERS] = { 0 };
    bool shrinks = pick(r, 2);
    int n_tiers = 1 + pick(r, TIERS);

    *p = (struct plan){ .given = { .n_tiers = n_tiers, .n_goals = pick(r, GOALS) } };
    for (int g = 0; g < p->given.n_goals; g++) {
        p->goal[g] = (struct order_goal){ pick(r, n_tiers), pick(r, BYTES), ORDER_PAYLOADS, false };
        after[p->goal[g].tier] += p->goal[g].bytes;
        if (pick(r, 3))
            add_file(p, r, pick(r, n_tiers), p->goal[g].bytes, g);
        if (pick(r, 10) == 0)
            add_file(p, r, pick(r, n_tiers), p->goal[g].bytes, g);
    }
    for (int i = pick(r, 15); i > 0; i--)
        add_file(p, r, pick(r, n_tiers), pick(r, BYTES), -1);
    for (int f = 0; f < p->given.n_files; f++) {
        before[p->file[f].tier] += p->file[f].bytes;
        if (p->file[f].goal >= 0 && p->goal[p->file[f].goal].placed)
            p->file[f].goal = -1;
    }
    for (int t = 0; t < n_tiers; t++)
        p->capacity[t] = (shrinks || after[t] > before[t] ? after[t] : before[t]) + pick(r, 3) * pick(r, 10);
}

/* What a disk would do. */
struct world {
    int64_t used[TIERS];
    bool gone[FILES];
    int placed[GOALS];  // how often
    int over;           // placements above a capacity
    bool shrunk[TIERS]; // the tier began above its capacity
};

static void start(struct world *w, const struct plan *p)
{
    *w = (struct world){ 0 };
    for (int f = 0; f < p->given.n_files; f++)
        w->used[p->file[f].tier] += p->file[f].bytes;
    for (int g = 0; g < p->given.n_goals; g++)
        w->placed[g] = p->goal[g].placed;
    for (int t = 0; t < p->given.n_tiers; t++)
        w->shrunk[t] = w->used[t] > p->capacity[t];
}

static void do_step(struct world *w, const struct plan *p, const struct step *s)
{
    if (step_kind(s) == STEP_REMOVE) {
        cr_assert(!w->gone[s->file], "removed twice");
        cr_assert(!p->file[s->file].keep, "a goal was removed from its place");
        cr_assert(p->file[s->file].goal < 0 || w->placed[p->file[s->file].goal], "a context was nowhere");
        w->gone[s->file] = true;
        w->used[p->file[s->file].tier] -= p->file[s->file].bytes;
        return;
    }
    const struct order_goal *g = &p->goal[s->goal];
    cr_assert_eq(s->file, g->source);
    cr_assert(s->file < 0 || !w->gone[s->file], "the source is gone");
    cr_assert_eq(w->placed[s->goal]++, 0, "placed twice");
    w->used[g->tier] += g->bytes;
    if (w->used[g->tier] <= p->capacity[g->tier])
        return;
    w->over++;
    bool has_file = false;
    for (int f = 0; f < p->given.n_files; f++)
        has_file |= p->file[f].goal == s->goal;
    cr_assert(has_file, "what is nowhere yet can wait");
    int64_t too_much = w->used[g->tier] - p->capacity[g->tier];
    cr_assert(too_much <= p->capacity[g->tier] / ORDER_OVER || g->bytes > 0 || w->shrunk[g->tier], "too much");
}

static void check_end(const struct world *w, const struct plan *p)
{
    for (int t = 0; t < p->given.n_tiers; t++)
        cr_assert_leq(w->used[t], p->capacity[t]);
    for (int g = 0; g < p->given.n_goals; g++)
        cr_assert_eq(w->placed[g], 1);
    int left = 0;
    for (int f = 0; f < p->given.n_files; f++)
        left += !w->gone[f] && !p->file[f].keep && !p->file[f].stay;
    cr_assert(left == 0, "something was left");
}

Test(load_order, reaches_every_goal_and_exceeds_a_capacity_only_in_circles)
{
    struct rng r = rng_new(20);
    int circles = 0;

    for (int i = 0; i < 20000; i++) {
        struct plan p;
        struct order s;
        struct world w;
        struct err err;
        make_plan(&p, &r);
        p.given.capacity = p.capacity;
        p.given.file = p.file;
        p.given.goal = p.goal;
        cr_assert_eq(order_steps(&s, &p.given, &err), 0, "%s", err.msg);
        start(&w, &p);
        for (int k = 0; k < s.n; k++)
            do_step(&w, &p, &s.at[k]);
        check_end(&w, &p);
        bool moves = false;
        for (int f = 0; f < p.given.n_files; f++)
            moves |= p.file[f].goal >= 0;
        cr_assert(moves || !w.over, "nothing moves, and a capacity is exceeded");
        circles += w.over > 0;
        order_release(&s);
    }
    cr_assert_gt(circles, 100, "only %d plans went round in circles: the test is too easy", circles);
}

Test(load_order, two_full_tiers_exchange_their_files)
{
    int64_t capacity[2] = { 10, 10 };
    struct order_file file[2] = { { 0, 10, 0, false, false }, { 1, 10, 1, false, false } };
    struct order_goal goal[2] = { { 1, 10, 0, false }, { 0, 10, 1, false } };
    struct order_given given = { capacity, 2, file, 2, goal, 2 };
    struct order s;
    struct err err;

    cr_assert_eq(order_steps(&s, &given, &err), 0);
    static const enum step_kind want[] = { STEP_PLACE, STEP_REMOVE, STEP_PLACE, STEP_REMOVE };
    cr_assert_eq(s.n, 4);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(step_kind(&s.at[i]), want[i], "step %d", i);
    cr_assert_eq(s.at[0].goal, 0, "the slower tier takes too much");
    order_release(&s);
}

/* n contexts change places between two full tiers: the number of runs of removals, each costing the writing of
 * the indexes, does not grow with n, and no tier ever has more than 1/ORDER_OVER too much. */
Test(load_order, exchanges_in_a_bounded_number_of_rounds)
{
    for (int n = 1000; n <= 16000; n *= 4) {
        struct order_file *file = calloc((size_t)n, sizeof(*file));
        struct order_goal *goal = calloc((size_t)n, sizeof(*goal));
        int64_t capacity[2] = { n / 2 * 7, n / 2 * 7 }, used[2] = { capacity[0], capacity[1] };
        struct order s;
        struct err err;
        int runs = 0;
        for (int i = 0; i < n; i++) {
            file[i] = (struct order_file){ i % 2, 7, i, false, false };
            goal[i] = (struct order_goal){ 1 - i % 2, 7, i, false };
        }
        cr_assert_eq(order_steps(&s, &(struct order_given){ capacity, 2, file, n, goal, n }, &err), 0);
        for (int k = 0; k < s.n; k++) {
            bool remove = step_kind(&s.at[k]) == STEP_REMOVE;
            int tier = remove ? file[s.at[k].file].tier : goal[s.at[k].goal].tier;
            runs += remove && (k == 0 || step_kind(&s.at[k - 1]) != STEP_REMOVE);
            used[tier] += remove ? -7 : 7;
            cr_assert_leq(used[tier], capacity[tier] + capacity[tier] / ORDER_OVER);
        }
        cr_assert_leq(runs, 3 * ORDER_OVER, "%d runs for %d contexts", runs, n);
        order_release(&s);
        free(file);
        free(goal);
    }
}

Test(load_order, refuses_what_cannot_be)
{
    int64_t capacity[1] = { 10 };
    struct order_goal goal[2] = { { 0, 6, ORDER_PAYLOADS, false }, { 0, 5, ORDER_PAYLOADS, false } };
    struct order_given given = { capacity, 1, NULL, 0, goal, 2 };
    struct order s;
    struct err err;

    cr_assert_eq(order_steps(&s, &given, &err), ERR_FAIL);
    cr_assert_eq(s.over_tier, 0);
    order_release(&s);
    goal[0].bytes = goal[1].bytes = INT64_MAX; /* the sum must not wrap */
    cr_assert_eq(order_steps(&s, &given, &err), ERR_FAIL);
    order_release(&s);
}

/* A tier of 10 bytes with a file of 4 that may stay, and a goal that fits beside it to the byte, or does not. */
Test(load_order, fill_a_tier_to_the_byte)
{
    static const struct {
        int64_t goal;
        int n;    // steps; the last one places
        int code; // of order_steps
    } want[] = { { 5, 1, 0 }, { 6, 1, 0 }, { 7, 2, 0 }, { 9, 2, 0 }, { 10, 2, 0 }, { 11, 0, ERR_FAIL } };
    int64_t capacity[1] = { 10 };
    struct order_file file[1] = { { 0, 4, -1, false, true } };

    for (int i = 0; i < 6; i++) {
        struct order_goal goal[1] = { { 0, want[i].goal, ORDER_PAYLOADS, false } };
        struct order_given given = { capacity, 1, file, 1, goal, 1 };
        struct order s;
        struct err err;
        cr_assert_eq(order_steps(&s, &given, &err), want[i].code);
        cr_assert_eq(s.n, want[i].n, "%d steps for a goal of %d", s.n, (int)want[i].goal);
        cr_assert(s.n == 0 || step_kind(&s.at[s.n - 1]) == STEP_PLACE);
        cr_assert(s.n < 2 || step_kind(&s.at[0]) == STEP_REMOVE);
        order_release(&s);
    }
}

/* The sum of the goals counts, not each alone; a tier of unlimited capacity takes any sum. */
Test(load_order, sum_the_goals_of_a_tier)
{
    static const struct {
        int64_t capacity, a, b;
        int code;
    } want[] = { { 10, 6, 3, 0 },
                 { 10, 6, 4, 0 },
                 { 10, 6, 5, ERR_FAIL },
                 { INT64_MAX - 1, INT64_MAX - 2, 1, 0 },
                 { INT64_MAX - 1, INT64_MAX - 2, 2, ERR_FAIL },
                 { INT64_MAX, INT64_MAX - 2, 5, 0 } };

    for (int i = 0; i < 6; i++) {
        int64_t capacity[2] = { 1, want[i].capacity };
        struct order_goal goal[2] = { { 1, want[i].a, ORDER_PAYLOADS, false },
                                      { 1, want[i].b, ORDER_PAYLOADS, false } };
        struct order_given given = { capacity, 2, NULL, 0, goal, 2 };
        struct order s;
        struct err err;
        cr_assert_eq(order_steps(&s, &given, &err), want[i].code, "case %d", i);
        cr_assert(!want[i].code || s.over_tier == 1);
        order_release(&s);
    }
}

/* A tier that shrank gives up what may stay, exactly down to its capacity. */
Test(load_order, shrink_a_tier_to_its_capacity)
{
    struct order_file file[2] = { { 0, 6, -1, true, false }, { 0, 4, -1, false, true } };
    struct order_goal goal[1] = { { 0, 6, ORDER_PAYLOADS, true } };

    for (int64_t cap = 5; cap <= 11; cap++) {
        int64_t capacity[1] = { cap };
        struct order_given given = { capacity, 1, file, 2, goal, 1 };
        struct order s;
        struct err err;
        cr_assert_eq(order_steps(&s, &given, &err), cap < 6 ? ERR_FAIL : 0);
        cr_assert_eq(s.n, cap >= 6 && cap < 10, "capacity %d", (int)cap);
        order_release(&s);
    }
}
