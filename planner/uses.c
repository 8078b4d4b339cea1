/* uses.c - a use is several events of the planner: the used context gets its new frequency, the hand brings others up
 * to date, and what that evicts counts as unused from now on. */
#include "planner/uses.h"

#include <math.h>
#include <stdlib.h>

enum { REFRESHES = 2, LIFE_MIN = 100 };

bool uses_stored(const struct uses *u, int number)
{
    return incremental_placement(u->plan, number).tier != PLAN_RECOMPUTE;
}

void uses_begin(struct uses *u)
{
    double all = 0, stored = 0;

    for (int i = 0; i < u->n; i++)
        if (u->of.weight(u->of.arg, i)) {
            all += u->of.frequency(u->of.arg, i);
            stored += uses_stored(u, i);
        }
    if (!u->fixed)
        u->life = fmax(stored, LIFE_MIN);
    u->unit = fmax(all / u->life, 1);
}

void uses_release(struct uses *u)
{
    free(u->evicted);
    *u = (struct uses){ 0 };
}

double uses_weight(const struct uses *u, int number)
{
    const struct use_weight *w = u->of.weight(u->of.arg, number);

    return w->weight * exp(w->at - u->age);
}

void uses_age(struct uses *u)
{
    u->age += 1 / u->life;
}

/* Sets the frequency that the planner sees, and the weight. */
static int set(struct uses *u, int number, double frequency, double weight, struct err *err)
{
    if (frequency != u->of.frequency(u->of.arg, number) && u->of.set(u->of.arg, number, frequency, err))
        return err->code;
    *u->of.weight(u->of.arg, number) = (struct use_weight){ weight, u->age };
    return 0;
}

/* What is not stored counts as unused; that makes no operations. */
static int unuse(struct uses *u, int number, struct err *err)
{
    return uses_stored(u, number) ? 0 : set(u, number, 0, uses_weight(u, number), err);
}

/* Ends an event: its operations go to the caller, and what is not stored any more counts as unused. */
static int end_event(struct uses *u, struct err *err)
{
    const struct incremental_state *state = incremental_state(u->plan);
    int n = 0;

    if (state->n_ops > u->cap) {
        int *grown = realloc(u->evicted, (size_t)state->n_ops * sizeof(*grown));
        if (!grown)
            return err_nomem(err);
        u->evicted = grown;
        u->cap = state->n_ops;
    }
    for (int k = 0; k < state->n_ops; k++)
        if (state->op[k].to.tier == PLAN_RECOMPUTE)
            u->evicted[n++] = state->op[k].context;
    int code = u->of.took(u->of.took_arg, err);
    for (int k = 0; k < n && !code; k++)
        code = unuse(u, u->evicted[k], err);
    return code;
}

/* Sets the frequency of a context; if that is an event, ends it. */
static int change(struct uses *u, int number, double frequency, double weight, struct err *err)
{
    bool event = frequency != u->of.frequency(u->of.arg, number);

    if (set(u, number, frequency, weight, err))
        return err->code;
    return event ? end_event(u, err) : 0;
}

int uses_count(struct uses *u, int number, struct err *err)
{
    double weight = uses_weight(u, number) + u->unit;

    return change(u, number, weight, weight, err) ? err->code : unuse(u, number, err);
}

int uses_ended(struct uses *u, int number, struct err *err)
{
    return end_event(u, err) ? err->code : unuse(u, number, err);
}

int uses_steps(const struct uses *u)
{
    return (int)fmin(ceil(REFRESHES * (u->n / u->life)), u->n);
}

static int refresh(struct uses *u, int number, struct err *err)
{
    double weight = uses_weight(u, number);

    return change(u, number, uses_stored(u, number) ? weight : 0, weight, err);
}

int uses_refresh(struct uses *u, struct err *err)
{
    for (int k = 0, n = uses_steps(u); k < n; k++) {
        bool there = u->of.weight(u->of.arg, u->hand);
        if (there && refresh(u, u->hand, err))
            return err->code;
        u->n_stored += there && uses_stored(u, u->hand);
        if (++u->hand < u->n)
            continue;
        if (!u->fixed)
            u->life = fmax(u->n_stored, LIFE_MIN);
        u->hand = u->n_stored = 0;
    }
    return 0;
}
