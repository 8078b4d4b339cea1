/* pace.c - three rates, and the remaining time at these rates. */
#include "profiler/run/pace.h"

#include "base/clock.h"

void pace_begin(struct pace *p, double guess)
{
    for (int k = 0; k < PACE_KINDS; k++)
        p->of[k].done = p->of[k].seconds = 0;
    p->guess = guess;
    p->last = clock_now();
}

void pace_add(struct pace *p, enum pace_kind kind, double amount)
{
    double now = clock_now();

    p->of[kind].done += amount;
    p->of[kind].seconds += now - p->last;
    p->last = now;
}

void pace_skip(struct pace *p)
{
    p->last = clock_now();
}

/* The starting rate of a kind. */
static double prior_of(const struct pace *p, enum pace_kind kind)
{
    if (kind == PACE_DERIVING)
        return 0;
    enum pace_kind other = kind == PACE_PREFILL ? PACE_ANSWERS : PACE_PREFILL;

    return p->of[other].done > 0 && p->of[other].seconds > 0 ? p->of[other].done / p->of[other].seconds : p->guess;
}

static double rate_of(const struct pace *p, enum pace_kind kind)
{
    double prior = prior_of(p, kind), as_if = prior > 0 ? PACE_PRIOR * p->of[kind].total : 0;
    double seconds = p->of[kind].seconds + (prior > 0 ? as_if / prior : 0);

    return seconds > 0 ? (p->of[kind].done + as_if) / seconds : prior;
}

double pace_left(const struct pace *p)
{
    double left = 0;

    for (int k = 0; k < PACE_KINDS; k++) {
        double rest = p->of[k].total - p->of[k].done, rate = rate_of(p, (enum pace_kind)k);
        left += rest > 0 && rate > 0 ? rest / rate : 0;
    }
    return left;
}
