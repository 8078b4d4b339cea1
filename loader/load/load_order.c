/* load_order.c - works in rounds: removes files in tiers where goals wait, then places every goal that fits; if too
 * little fits, places some beyond the capacity. Every round places a goal, so the rounds end.
 *
 * Each tier has a list of removable files and a list of waiting goals, so the cost of a round is the files it moves
 * plus one pass over the waiting goals.
 */
#include "loader/load/load_order.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct list {
    int *at;
    int n, cap;
    int first; // of the remaining ones
};

struct tier_work {
    int64_t used, waits;     // bytes in the tier; bytes of its waiting goals
    struct list loose, stay; // removable files: at the end, or earlier; only if their bytes are needed
    struct list waiting;     // goals
};

struct ordering {
    const struct order_given *given;
    struct order *out;
    struct tier_work *tier; // (n_tiers)
    int *first, *next;      // (n_goals) the first file of a goal's context; (n_files) the next one of that context
};

/* a + b, at most INT64_MAX. */
static int64_t add_capped(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int add_step(struct ordering *w, struct step step, struct err *err)
{
    return ARRAY_PUSH(w->out, step) ? err_nomem(err) : 0;
}

static int check_goals(struct ordering *w, struct err *err)
{
    const struct order_given *given = w->given;
    int64_t *sum = calloc((size_t)given->n_tiers + 1, sizeof(*sum));

    if (!sum)
        return err_nomem(err);
    for (int g = 0; g < given->n_goals; g++)
        sum[given->goal[g].tier] = add_capped(sum[given->goal[g].tier], given->goal[g].bytes);
    int code = 0;
    for (int t = 0; t < given->n_tiers && !code; t++) {
        w->out->over_tier = t;
        if (sum[t] > given->capacity[t])
            code = err_set(err, ERR_FAIL, "tier %d: its goals exceed its capacity", t);
    }
    free(sum);
    return code;
}

/* ---- removable files --------------------------------------------------------------- */

static int remove_file(struct ordering *w, int f, struct err *err)
{
    w->tier[w->given->file[f].tier].used -= w->given->file[f].bytes;
    return add_step(w, (struct step){ f, -1 }, err);
}

/* A file that no goal needs any more. */
static int add_removable(struct ordering *w, int f, struct err *err)
{
    const struct order_file *file = &w->given->file[f];
    struct tier_work *t = &w->tier[file->tier];

    return ARRAY_PUSH(file->stay ? &t->stay : &t->loose, f) ? err_nomem(err) : 0;
}

static int list_files(struct ordering *w, struct err *err)
{
    for (int f = 0; f < w->given->n_files; f++) {
        const struct order_file *file = &w->given->file[f];
        struct tier_work *t = &w->tier[file->tier];
        t->used = add_capped(t->used, file->bytes);
        if (file->keep)
            continue;
        if (file->goal < 0) {
            if (add_removable(w, f, err))
                return err->code;
            continue;
        }
        w->next[f] = w->first[file->goal];
        w->first[file->goal] = f;
    }
    return 0;
}

static int list_goals(struct ordering *w, struct err *err)
{
    for (int g = 0; g < w->given->n_goals; g++) {
        const struct order_goal *goal = &w->given->goal[g];
        struct tier_work *t = &w->tier[goal->tier];
        w->first[g] = -1;
        if (goal->placed)
            continue;
        if (ARRAY_PUSH(&t->waiting, g))
            return err_nomem(err);
        t->waits = add_capped(t->waits, goal->bytes);
    }
    return 0;
}

/* Removes files from a tier until it has at most `limit` bytes, or no removable file is left. */
static int remove_down_to(struct ordering *w, int tier, int64_t limit, struct err *err)
{
    struct tier_work *t = &w->tier[tier];
    struct list *list[] = { &t->loose, &t->stay };

    for (int i = 0; i < 2; i++)
        while (list[i]->first < list[i]->n && t->used > limit)
            if (remove_file(w, list[i]->at[list[i]->first++], err))
                return err->code;
    return 0;
}

/* ---- goals ------------------------------------------------------------------------- */

/* Places a waiting goal; the caller removes it from its list. */
static int place(struct ordering *w, int g, struct err *err)
{
    const struct order_goal *goal = &w->given->goal[g];
    struct tier_work *t = &w->tier[goal->tier];

    t->used = add_capped(t->used, goal->bytes);
    t->waits -= goal->bytes;
    if (add_step(w, (struct step){ goal->source, g }, err))
        return err->code;
    for (int f = w->first[g]; f >= 0; f = w->next[f])
        if (add_removable(w, f, err))
            return err->code;
    return 0;
}

/* The placements of a round: goals that fit below `limit`. Beyond a tier's capacity, only goals whose placement makes
 * files removable, and the first of those regardless of `limit`. */
struct placing {
    int64_t limit;
    bool over, force;
    int64_t placed;
    int n;
};

static int place_waiting(struct ordering *w, int tier, struct placing *p, struct err *err)
{
    struct tier_work *t = &w->tier[tier];
    int left = 0;

    for (int i = 0; i < t->waiting.n; i++) {
        int g = t->waiting.at[i];
        int64_t bytes = w->given->goal[g].bytes;
        bool moves = w->first[g] >= 0, forced = p->force && moves;
        if (!forced && (add_capped(t->used, bytes) > p->limit || (p->over && !moves))) {
            t->waiting.at[left++] = g;
            continue;
        }
        p->force = p->force && !forced;
        p->placed = add_capped(p->placed, bytes);
        p->n++;
        if (place(w, g, err))
            return err->code;
    }
    t->waiting.n = left;
    return 0;
}

/* The slowest tier with a waiting goal whose placement makes files removable. */
static int tier_to_overfill(const struct ordering *w)
{
    for (int t = w->given->n_tiers - 1; t >= 0; t--)
        for (int i = 0; i < w->tier[t].waiting.n; i++)
            if (w->first[w->tier[t].waiting.at[i]] >= 0)
                return t;
    return -1;
}

static int overfill(struct ordering *w, struct placing *p, struct err *err)
{
    int tier = tier_to_overfill(w);

    if (tier < 0)
        return p->n ? 0 : err_set(err, ERR_FAIL, "no order of steps was found");
    int64_t capacity = w->given->capacity[tier];
    p->limit = add_capped(capacity, capacity / ORDER_OVER);
    p->over = true;
    p->force = p->n == 0;
    return place_waiting(w, tier, p, err);
}

static int64_t all_waits(const struct ordering *w)
{
    int64_t sum = 0;

    for (int t = 0; t < w->given->n_tiers; t++)
        sum = add_capped(sum, w->tier[t].waits);
    return sum;
}

static bool goals_wait(const struct ordering *w)
{
    for (int t = 0; t < w->given->n_tiers; t++)
        if (w->tier[t].waiting.n)
            return true;
    return false;
}

static int run_round(struct ordering *w, struct err *err)
{
    struct placing p = { 0 };

    for (int t = 0; t < w->given->n_tiers; t++) {
        int64_t capacity = w->given->capacity[t];
        if (capacity < INT64_MAX && remove_down_to(w, t, capacity - w->tier[t].waits, err))
            return err->code;
    }
    for (int t = 0; t < w->given->n_tiers; t++) {
        p.limit = w->given->capacity[t];
        if (place_waiting(w, t, &p, err))
            return err->code;
    }
    return goals_wait(w) && (!p.n || p.placed < all_waits(w) / ORDER_OVER) ? overfill(w, &p, err) : 0;
}

static int find_order(struct ordering *w, struct err *err)
{
    if (check_goals(w, err) || list_goals(w, err) || list_files(w, err))
        return err->code;
    while (goals_wait(w))
        if (run_round(w, err))
            return err->code;
    for (int t = 0; t < w->given->n_tiers; t++) {
        struct list *loose = &w->tier[t].loose;
        while (loose->first < loose->n)
            if (remove_file(w, loose->at[loose->first++], err))
                return err->code;
        if (remove_down_to(w, t, w->given->capacity[t], err)) /* the capacity may have shrunk */
            return err->code;
    }
    return 0;
}

int order_steps(struct order *order, const struct order_given *given, struct err *err)
{
    struct ordering w = { .given = given,
                          .out = order,
                          .tier = calloc((size_t)given->n_tiers + 1, sizeof(*w.tier)),
                          .first = calloc((size_t)given->n_goals + 1, sizeof(*w.first)),
                          .next = calloc((size_t)given->n_files + 1, sizeof(*w.next)) };

    *order = (struct order){ 0 };
    int code = w.tier && w.first && w.next ? find_order(&w, err) : err_nomem(err);
    for (int t = 0; w.tier && t < given->n_tiers; t++) {
        free(w.tier[t].loose.at);
        free(w.tier[t].stay.at);
        free(w.tier[t].waiting.at);
    }
    free(w.tier);
    free(w.first);
    free(w.next);
    return code;
}

void order_release(struct order *order)
{
    free(order->at);
    *order = (struct order){ 0 };
}
