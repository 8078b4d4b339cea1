/* load_steps.c - works in rounds: remove files wherever goals wait, place every goal that fits; when none fits, stage
 * one file. The rounds end: each places or stages a goal, and once every waiting goal is in the payload folder only
 * goals must stay in the tiers, which fit.
 */
#include "loader/load/load_steps.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FROM_PAYLOADS = -1, NO_SOURCE = -2 };

struct ordering {
    const struct steps_given *given;
    struct steps *out;
    int64_t *used; // (n_tiers)
    bool *gone;    // (n_files) removed already
    bool *needed;  // (n_files) the only source of a waiting goal
    bool *keep;    // (n_files) a goal's file in its place
    bool *placed;  // (n_goals)
    int *source;   // (n_goals) a file, FROM_PAYLOADS or NO_SOURCE
};

/* a + b, at most INT64_MAX. */
static int64_t add_capped(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int add_step(struct steps *s, struct step step, struct err *err)
{
    return ARRAY_PUSH(s, step) ? err_nomem(err) : 0;
}

static int check_goals(const struct steps_given *given, struct steps *out, struct err *err)
{
    for (int t = 0; t < given->n_tiers; t++) {
        int64_t sum = 0;
        for (int g = 0; g < given->n_goals; g++)
            if (given->goal[g].tier == t)
                sum = add_capped(sum, given->goal[g].bytes);
        out->over_tier = t;
        if (sum > given->capacity[t])
            return err_set(err, ERR_FAIL, "tier %d: its goals exceed its capacity", t);
    }
    return 0;
}

/* Finds the files that are goals in their place, and where every other goal comes from. */
static int find_sources(struct ordering *w, struct err *err)
{
    const struct steps_given *given = w->given;

    for (int g = 0; g < given->n_goals; g++)
        w->source[g] = given->goal[g].packed ? FROM_PAYLOADS : NO_SOURCE;
    for (int f = 0; f < given->n_files; f++) {
        const struct steps_file *file = &given->file[f];
        int g = file->goal;
        w->used[file->tier] = add_capped(w->used[file->tier], file->bytes);
        if (g < 0 || w->placed[g])
            continue;
        if (file->tier == given->goal[g].tier)
            w->keep[f] = w->placed[g] = true;
        else if (w->source[g] == NO_SOURCE ||
                 (w->source[g] >= 0 && given->file[w->source[g]].tier > file->tier)) /* a faster tier */
            w->source[g] = f;
    }
    for (int g = 0; g < given->n_goals; g++) {
        if (w->placed[g] || w->source[g] == FROM_PAYLOADS)
            continue;
        w->out->lost_goal = g;
        if (w->source[g] == NO_SOURCE)
            return err_set(err, ERR_FORMAT, "goal %d has no source", g);
        w->needed[w->source[g]] = true;
    }
    return 0;
}

static int remove_file(struct ordering *w, int f, struct err *err)
{
    w->gone[f] = true;
    w->used[w->given->file[f].tier] -= w->given->file[f].bytes;
    return add_step(w->out, (struct step){ STEP_REMOVE, f, -1 }, err);
}

static bool may_go(const struct ordering *w, int f)
{
    return !w->gone[f] && !w->needed[f] && !w->keep[f];
}

/* What an earlier load kept for its rollback has no more use, unless this load wants it. */
static int remove_spares(struct ordering *w, struct err *err)
{
    for (int f = 0; f < w->given->n_files; f++)
        if (w->given->file[f].spare && may_go(w, f) && remove_file(w, f, err))
            return err->code;
    return 0;
}

/* Removes files of a tier that may go until n more bytes fit, or none is left: first those that are packed too, so that
 * a rollback finds as many as possible. */
static int free_bytes(struct ordering *w, int tier, int64_t n, struct err *err)
{
    const struct steps_given *given = w->given;

    for (int packed = 1; packed >= 0; packed--) {
        for (int f = 0; f < given->n_files; f++) {
            if (add_capped(w->used[tier], n) <= given->capacity[tier])
                return 0;
            if (given->file[f].tier == tier && given->file[f].packed == packed && may_go(w, f) &&
                remove_file(w, f, err))
                return err->code;
        }
    }
    return 0;
}

static int free_for_goals(struct ordering *w, struct err *err)
{
    const struct steps_given *given = w->given;

    for (int t = 0; t < given->n_tiers; t++) {
        int64_t waits = 0;
        for (int g = 0; g < given->n_goals; g++)
            if (!w->placed[g] && given->goal[g].tier == t)
                waits = add_capped(waits, given->goal[g].bytes);
        if (free_bytes(w, t, waits, err))
            return err->code;
    }
    return 0;
}

/* Places every goal that fits now. */
static int place_all(struct ordering *w, int *n_placed, int *n_waiting, struct err *err)
{
    const struct steps_given *given = w->given;

    *n_placed = *n_waiting = 0;
    for (int g = 0; g < given->n_goals; g++) {
        int64_t *used = &w->used[given->goal[g].tier];
        if (w->placed[g])
            continue;
        if (add_capped(*used, given->goal[g].bytes) > given->capacity[given->goal[g].tier]) {
            ++*n_waiting;
            continue;
        }
        if (add_step(w->out, (struct step){ STEP_PLACE, w->source[g], g }, err))
            return err->code;
        *used = add_capped(*used, given->goal[g].bytes);
        w->placed[g] = true;
        if (w->source[g] >= 0)
            w->needed[w->source[g]] = false;
        ++*n_placed;
    }
    return 0;
}

static bool goal_waits_for(const struct ordering *w, int tier)
{
    for (int g = 0; g < w->given->n_goals; g++)
        if (!w->placed[g] && w->given->goal[g].tier == tier)
            return true;
    return false;
}

/* Copies the file of a waiting goal to the payload folder, so that the file may go. Prefers a file that takes up the
 * bytes another goal waits for. */
static int stage_one(struct ordering *w, struct err *err)
{
    int best = -1;

    for (int g = 0; g < w->given->n_goals; g++) {
        if (w->placed[g] || w->source[g] < 0)
            continue;
        best = g;
        if (goal_waits_for(w, w->given->file[w->source[g]].tier))
            break;
    }
    if (best < 0)
        return err_set(err, ERR_FAIL, "no order of steps was found");
    int f = w->source[best];
    w->source[best] = FROM_PAYLOADS;
    w->needed[f] = false;
    return add_step(w->out, (struct step){ STEP_STAGE, f, best }, err);
}

static int remove_rest(struct ordering *w, struct err *err)
{
    const struct steps_given *given = w->given;

    for (int t = 0; t < given->n_tiers; t++)
        if (free_bytes(w, t, 0, err)) /* a tier may have shrunk */
            return err->code;
    for (int f = 0; given->remove_all && f < given->n_files; f++)
        if (may_go(w, f) && remove_file(w, f, err))
            return err->code;
    return 0;
}

static int order_steps(struct ordering *w, struct err *err)
{
    int n_placed, n_waiting;

    if (remove_spares(w, err))
        return err->code;
    do {
        if (free_for_goals(w, err) || place_all(w, &n_placed, &n_waiting, err))
            return err->code;
        if (n_waiting && !n_placed && stage_one(w, err))
            return err->code;
    } while (n_waiting);
    return remove_rest(w, err);
}

int steps_plan(struct steps *s, const struct steps_given *given, struct err *err)
{
    size_t files = (size_t)given->n_files + 1, goals = (size_t)given->n_goals + 1; /* never an empty allocation */
    struct ordering w = {
        .given = given,
        .out = s,
        .used = calloc((size_t)given->n_tiers + 1, sizeof(*w.used)),
        .gone = calloc(files, sizeof(*w.gone)),
        .needed = calloc(files, sizeof(*w.needed)),
        .keep = calloc(files, sizeof(*w.keep)),
        .placed = calloc(goals, sizeof(*w.placed)),
        .source = calloc(goals, sizeof(*w.source)),
    };

    *s = (struct steps){ 0 };
    int code = check_goals(given, s, err);
    if (!code && !(w.used && w.gone && w.needed && w.keep && w.placed && w.source))
        code = err_nomem(err);
    if (!code)
        code = find_sources(&w, err);
    if (!code)
        code = order_steps(&w, err);
    free(w.used);
    free(w.gone);
    free(w.needed);
    free(w.keep);
    free(w.placed);
    free(w.source);
    return code;
}

void steps_release(struct steps *s)
{
    free(s->at);
    *s = (struct steps){ 0 };
}
