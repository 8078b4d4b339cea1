/* bound.c - prices per byte and tier, and the upper bound they prove.
 *
 * The bound is convex in the prices. With all others fixed, a tier's price is too low as long as the contexts that
 * would choose the tier at that price need more than its capacity; bisection on that finds the best price of one tier,
 * and a few rounds over all tiers come close to the least bound. Wherever the search ends, the bound is valid.
 */
#include "planner/plan.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 4, STEPS = 40 };

/* One pass over all contexts at the plan's prices: the bound, and what each tier would be asked to hold. */
static double evaluate(const struct plan *plan, const struct plan_problem *p, struct plan_options *o, double *demand)
{
    double bound = 0, lost = 0;

    for (int t = 0; t < p->n_tiers; t++) {
        demand[t] = 0;
        if (plan->price[t] > 0)
            bound += plan->price[t] * (double)p->capacity[t];
    }
    for (int i = 0; i < p->n_contexts; i++) {
        struct plan_choice best = { 0, PLAN_RECOMPUTE };
        plan_options_get(o, p, i);
        double value = o->recompute;
        for (int v = 0; v < p->n_configs; v++) {
            for (int t = 0; t < p->n_tiers; t++) {
                double worth = o->utility[v * p->n_tiers + t] - plan->price[t] * (double)o->bytes[v];
                if (worth > value && plan_option_ok(o, p, v, t)) {
                    value = worth;
                    best = (struct plan_choice){ v, t };
                }
            }
        }
        if (best.tier != PLAN_RECOMPUTE)
            demand[best.tier] += (double)o->bytes[best.config];
        double term = value - lost, next = bound + term;
        lost = (next - bound) - term;
        bound = next;
    }
    return bound;
}

/* The price at which no context wants the tier any more: its largest gain per byte. */
static double highest_price(const struct plan_problem *p, struct plan_options *o, int t)
{
    double most = 0;

    for (int i = 0; i < p->n_contexts; i++) {
        plan_options_get(o, p, i);
        for (int v = 0; v < p->n_configs; v++) {
            double gain = o->utility[v * p->n_tiers + t] - o->recompute;
            if (o->bytes[v] > 0 && plan_option_ok(o, p, v, t) && gain / (double)o->bytes[v] > most)
                most = gain / (double)o->bytes[v];
        }
    }
    return most;
}

static void settle_price(struct plan *plan, const struct plan_problem *p, struct plan_options *o, int t, double high)
{
    double demand[PLAN_TIERS], low = 0, was = plan->price[t], best_bound = evaluate(plan, p, o, demand), best = was;

    for (int step = 0; step < STEPS && high - low > 1e-12 * high; step++) {
        plan->price[t] = step == 0 ? 0 : (low + high) / 2; /* a tier with room to spare has price 0 */
        double bound = evaluate(plan, p, o, demand);
        if (bound < best_bound) {
            best_bound = bound;
            best = plan->price[t];
        }
        if (demand[t] > (double)p->capacity[t])
            low = plan->price[t];
        else if (step == 0)
            break;
        else
            high = plan->price[t];
    }
    plan->price[t] = best;
}

int plan_bound(struct plan *plan, const struct plan_problem *p, struct err *err)
{
    struct plan_options o;
    double high[PLAN_TIERS], demand[PLAN_TIERS], last = INFINITY;

    if (plan_options_init(&o, p, err))
        return err->code;
    for (int t = 0; t < p->n_tiers; t++) {
        plan->price[t] = 0;
        high[t] = p->capacity[t] == INT64_MAX ? 0 : highest_price(p, &o, t);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int t = 0; t < p->n_tiers; t++)
            if (high[t] > 0)
                settle_price(plan, p, &o, t, high[t]);
        plan->upper_bound = evaluate(plan, p, &o, demand);
        if (last - plan->upper_bound <= 1e-9 * fabs(last))
            break;
        last = plan->upper_bound;
    }
    plan_options_release(&o);
    return 0;
}
