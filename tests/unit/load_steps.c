/* The order of removals and placements, over thousands of random plans whose tiers are nearly full. */
#include "base/rng.h"
#include "loader/load/load_steps.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TIERS = 4, FILES = 60, GOALS = 40 };

struct plan {
    int64_t capacity[TIERS];
    struct steps_file file[FILES];
    struct steps_goal goal[GOALS];
    struct steps_given given;
};

static int pick(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

static void add_file(struct plan *p, struct rng *r, int tier, int64_t bytes, int goal)
{
    if (p->given.n_files == FILES)
        return;
    p->file[p->given.n_files++] = (struct steps_file){ tier, bytes, goal, pick(r, 8) == 0, pick(r, 2) == 0 };
}

/* Goals with a file in their tier, in another tier, or in the payload folder only; files of no goal; and capacities
 * that just fit the larger of before and after. Every other plan gives a tier less capacity than it holds. */
static void make_plan(struct plan *p, struct rng *r)
{
    int64_t before[TIERS] = { 0 }, after[TIERS] = { 0 };
    bool shrinks = pick(r, 2);
    int n_tiers = 1 + pick(r, TIERS);

    *p = (struct plan){ .given = { .n_tiers = n_tiers, .n_goals = pick(r, GOALS), .remove_all = pick(r, 4) == 0 } };
    p->given.capacity = p->capacity;
    p->given.file = p->file;
    p->given.goal = p->goal;
    for (int g = 0; g < p->given.n_goals; g++) {
        p->goal[g] = (struct steps_goal){ pick(r, n_tiers), pick(r, 100), pick(r, 2) == 0 };
        after[p->goal[g].tier] += p->goal[g].bytes;
        int n = p->given.n_files;
        if (pick(r, 3))
            add_file(p, r, pick(r, n_tiers), p->goal[g].bytes, g);
        if (pick(r, 10) == 0)
            add_file(p, r, pick(r, n_tiers), p->goal[g].bytes, g);
        p->goal[g].packed |= p->given.n_files == n;
    }
    for (int i = pick(r, 15); i > 0; i--)
        add_file(p, r, pick(r, n_tiers), pick(r, 100), -1);
    for (int f = 0; f < p->given.n_files; f++)
        before[p->file[f].tier] += p->file[f].bytes;
    for (int t = 0; t < n_tiers; t++)
        p->capacity[t] = (shrinks || after[t] > before[t] ? after[t] : before[t]) + pick(r, 3) * pick(r, 10);
}

/* What a disk would do. */
struct world {
    int64_t used[TIERS];
    bool gone[FILES], staged[GOALS];
    int placed[GOALS]; // how often
};

static void start(struct world *w, const struct plan *p)
{
    *w = (struct world){ 0 };
    for (int f = 0; f < p->given.n_files; f++) {
        const struct steps_file *file = &p->file[f];
        w->used[file->tier] += file->bytes;
        if (file->goal >= 0 && p->goal[file->goal].tier == file->tier)
            w->placed[file->goal] = 1;
    }
}

static void do_step(struct world *w, const struct plan *p, const struct step *s)
{
    if (s->kind == STEP_REMOVE) {
        cr_assert(!w->gone[s->file], "removed twice");
        w->gone[s->file] = true;
        w->used[p->file[s->file].tier] -= p->file[s->file].bytes;
        return;
    }
    if (s->kind == STEP_STAGE || s->file >= 0) {
        cr_assert(!w->gone[s->file], "the source is gone");
        cr_assert_eq(p->file[s->file].goal, s->goal);
    } else
        cr_assert(p->goal[s->goal].packed || w->staged[s->goal], "not in the payload folder");
    if (s->kind == STEP_STAGE) {
        w->staged[s->goal] = true;
        return;
    }
    const struct steps_goal *g = &p->goal[s->goal];
    cr_assert_eq(w->placed[s->goal]++, 0, "placed twice");
    w->used[g->tier] += g->bytes;
    cr_assert_leq(w->used[g->tier], p->capacity[g->tier], "over capacity");
}

/* Every goal has exactly one file in its tier: one that stayed or one that was placed. */
static void check_end(const struct world *w, const struct plan *p)
{
    for (int t = 0; t < p->given.n_tiers; t++)
        cr_assert_leq(w->used[t], p->capacity[t]);
    for (int g = 0; g < p->given.n_goals; g++)
        cr_assert_eq(w->placed[g], 1);
    for (int g = 0; g < p->given.n_goals; g++) {
        int here = 0, here_before = 0;
        for (int f = 0; f < p->given.n_files; f++) {
            bool mine = p->file[f].goal == g && p->file[f].tier == p->goal[g].tier;
            here_before += mine;
            here += mine && !w->gone[f];
        }
        cr_assert(here_before == 0 || here > 0, "a goal was removed from its place");
    }
    int left = 0;
    for (int f = 0; f < p->given.n_files; f++) {
        bool stays = p->file[f].goal >= 0 && p->goal[p->file[f].goal].tier == p->file[f].tier;
        left += !w->gone[f] && !stays;
    }
    cr_assert(!p->given.remove_all || left == 0, "something was left");
}

Test(load_steps, never_exceed_a_capacity_and_reach_every_goal)
{
    struct rng r = rng_new(20);
    int staged = 0;

    for (int i = 0; i < 20000; i++) {
        struct plan p;
        struct steps s;
        struct world w;
        struct err err;
        make_plan(&p, &r);
        p.given.capacity = p.capacity;
        p.given.file = p.file;
        p.given.goal = p.goal;
        cr_assert_eq(steps_plan(&s, &p.given, &err), 0, "%s", err.msg);
        start(&w, &p);
        for (int k = 0; k < s.n; k++) {
            staged += s.at[k].kind == STEP_STAGE;
            do_step(&w, &p, &s.at[k]);
        }
        check_end(&w, &p);
        steps_release(&s);
    }
    cr_assert_gt(staged, 100, "only %d plans went round in circles: the test is too easy", staged);
}

Test(load_steps, two_full_tiers_exchange_what_is_not_packed)
{
    int64_t capacity[2] = { 10, 10 };
    struct steps_file file[2] = { { 0, 10, 0, false, false }, { 1, 10, 1, false, false } };
    struct steps_goal goal[2] = { { 1, 10, false }, { 0, 10, false } };
    struct steps_given given = { capacity, 2, file, 2, goal, 2, false };
    struct steps s;
    struct err err;

    cr_assert_eq(steps_plan(&s, &given, &err), 0);
    static const enum step_kind want[] = { STEP_STAGE, STEP_REMOVE, STEP_PLACE, STEP_REMOVE, STEP_PLACE };
    cr_assert_eq(s.n, 5);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(s.at[i].kind, want[i], "step %d", i);
    steps_release(&s);
}

Test(load_steps, refuse_what_cannot_be)
{
    int64_t capacity[1] = { 10 };
    struct steps_goal goal[2] = { { 0, 6, true }, { 0, 5, true } };
    struct steps_given given = { capacity, 1, NULL, 0, goal, 2, false };
    struct steps s;
    struct err err;

    cr_assert_eq(steps_plan(&s, &given, &err), ERR_FAIL);
    cr_assert_eq(s.over_tier, 0);
    steps_release(&s);
    goal[1] = (struct steps_goal){ 0, 4, false };
    cr_assert_eq(steps_plan(&s, &given, &err), ERR_FORMAT);
    cr_assert_eq(s.lost_goal, 1);
    steps_release(&s);
    goal[0].bytes = goal[1].bytes = INT64_MAX; /* the sum must not wrap */
    cr_assert_eq(steps_plan(&s, &given, &err), ERR_FAIL);
    steps_release(&s);
}

/* A tier of 10 bytes with a file of 4 that is no goal, and a goal that fits beside it to the byte, or does not. */
Test(load_steps, fill_a_tier_to_the_byte)
{
    static const struct {
        int64_t goal;
        int n;    // steps; the last one places
        int code; // of steps_plan
    } want[] = { { 5, 1, 0 }, { 6, 1, 0 }, { 7, 2, 0 }, { 9, 2, 0 }, { 10, 2, 0 }, { 11, 0, ERR_FAIL } };
    int64_t capacity[1] = { 10 };
    struct steps_file file[1] = { { 0, 4, -1, false, false } };

    for (int i = 0; i < 6; i++) {
        struct steps_goal goal[1] = { { 0, want[i].goal, true } };
        struct steps_given given = { capacity, 1, file, 1, goal, 1, false };
        struct steps s;
        struct err err;
        cr_assert_eq(steps_plan(&s, &given, &err), want[i].code);
        cr_assert_eq(s.n, want[i].n, "%d steps for a goal of %d", s.n, (int)want[i].goal);
        cr_assert(s.n == 0 || s.at[s.n - 1].kind == STEP_PLACE);
        cr_assert(s.n < 2 || s.at[0].kind == STEP_REMOVE);
        steps_release(&s);
    }
}

/* The sum of the goals counts, not each alone; a tier of unlimited capacity takes any sum. */
Test(load_steps, sum_the_goals_of_a_tier)
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
        struct steps_goal goal[2] = { { 1, want[i].a, true }, { 1, want[i].b, true } };
        struct steps_given given = { capacity, 2, NULL, 0, goal, 2, false };
        struct steps s;
        struct err err;
        cr_assert_eq(steps_plan(&s, &given, &err), want[i].code, "case %d", i);
        cr_assert(!want[i].code || s.over_tier == 1);
        steps_release(&s);
    }
}

/* A tier that shrank gives up what is no goal, exactly down to its capacity. */
Test(load_steps, shrink_a_tier_to_its_capacity)
{
    struct steps_file file[2] = { { 0, 6, 0, false, false }, { 0, 4, -1, false, false } };
    struct steps_goal goal[1] = { { 0, 6, false } };

    for (int64_t cap = 5; cap <= 11; cap++) {
        int64_t capacity[1] = { cap };
        struct steps_given given = { capacity, 1, file, 2, goal, 1, false };
        struct steps s;
        struct err err;
        cr_assert_eq(steps_plan(&s, &given, &err), cap < 6 ? ERR_FAIL : 0);
        cr_assert_eq(s.n, cap >= 6 && cap < 10, "capacity %d", (int)cap);
        steps_release(&s);
    }
}
