/* placement_load.c - what requests cost each other: prices of a GPU's and a tier's time at a rate of requests.
 *
 * The GPUs are modelled as one server, n times as fast (M/G/1: a request waits A / (2 (1 - rho)), with rho =
 * rate * E s and A = rate * E s^2; L. Kleinrock, Queueing Systems 1, 5.6). A tier's reads share its bandwidth (M/G/1
 * processor sharing: a read of s seconds takes s / (1 - rho)). The price of a request is what it adds to the time of
 * all, its own service left out: the derivative of the sum of waits by its rate,
 *
 *     GPU    rate (s^2 / (2 (1 - rho)) + A s / (2 (1 - rho)^2))
 *     tier   s / (1 - rho)^2 - s
 *
 * For given prices the planner's problem is the old one, with its bound. The prices are those of the load that the plan
 * itself makes: found by successive averages (Y. Sheffi, Urban Transportation Networks, 1985, 5.2), as the system
 * optimum of traffic. Of all rounds the plan counts that is best with its own waits. Newcomers are computed under every
 * plan. Contexts that begin with each other share what a use costs, which these prices cannot express: there the load
 * is only counted.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>
#include <string.h>

/* How busy a plan keeps GPUs and tiers: shares of their time. */
struct use {
    double gpu, tier[TIER_MAX];
    double gpu_square; // rate * E s^2 of all GPUs as one server, in seconds
};

enum { ROUNDS = 16 };
static const double full = 0.98; // the load beyond which prices do not rise

/* The most bytes per second that reads together get. */
static double rate_of(const struct tier *t)
{
    double rate = t->read_bytes_per_s, device = t->device_bytes_per_s;

    for (int i = 0; i < t->n_loads; i++)
        rate = fmax(rate, t->load[i].bytes_per_s);
    return device > 0 && device < rate ? device : rate;
}

/* Adds up the load of placements (C by context). served: what serves those that are not stored, or NULL. */
static void add_up(const struct placement_input *in, const struct plan_placement *placement,
                   const struct placement_use *served, struct use *use)
{
    const struct placement_newcomers *n = &in->newcomers;
    double all = n->uses, gpus = (double)in->load.gpus;

    for (int i = 0; i < in->table.n_contexts; i++)
        all += in->frequency[i];
    double new_rate = all > 0 ? in->load.rate * n->uses / all : 0;
    *use = (struct use){ .gpu = new_rate * n->gpu_s / gpus, .gpu_square = new_rate * n->gpu_square / gpus / gpus };
    for (int i = 0; i < in->table.n_contexts && all > 0; i++) {
        int row = in->row[i];
        const struct plan_placement c = placement[i];
        double rate = in->load.rate * in->frequency[row] / all;
        double s = (placement_gpu_s(in, row, c) - use_saved_s(served, i)) / gpus;
        use->gpu += rate * s;
        use->gpu_square += rate * s * s;
        if (c.tier != PLAN_RECOMPUTE)
            use->tier[c.tier] += rate * (double)table_bytes_read(&in->table, table_cell(&in->table, row, c.config));
    }
    for (int t = 0; t < in->tiers.n; t++)
        use->tier[t] /= rate_of(&in->tiers.at[t]);
}

static void set_prices(struct placement_input *in, const struct use *use)
{
    struct manifest_load *l = &in->load;
    double left = 1 - fmin(use->gpu, full), gpus = (double)l->gpus;

    l->gpu_linear = l->rate * use->gpu_square / (2 * left * left) / gpus;
    l->gpu_square = l->rate / (2 * left) / gpus / gpus;
    for (int t = 0; t < in->tiers.n; t++) {
        double idle = 1 - fmin(use->tier[t], full);
        l->byte[t] = (1 / idle / idle - 1) / rate_of(&in->tiers.at[t]);
    }
}

/* The mean time that a request waits; INFINITY: there is not enough time. */
static double wait_of(const struct placement_input *in, const struct use *use)
{
    double sum = use->gpu < 1 ? use->gpu_square / (2 * (1 - use->gpu)) : (double)INFINITY;

    for (int t = 0; t < in->tiers.n; t++)
        sum += use->tier[t] < 1 ? use->tier[t] / in->load.rate * (1 / (1 - use->tier[t]) - 1) : (double)INFINITY;
    return sum;
}

/* What a plan is worth with its waits. */
static double worth(const struct placement_input *in, const struct plan *plan, double wait_s)
{
    struct placement_input free = *in;
    double sum = 0, all = in->newcomers.uses;

    free.load.rate = 0;
    for (int i = 0; i < plan->n_contexts; i++) {
        int row = in->row[i];
        sum += placement_utility(&free, row, plan->placement[i]) - placement_write_cost(in, row, plan->placement[i]);
        all += in->frequency[row];
    }
    return sum - all * wait_s;
}

static void step_to(struct use *at, const struct use *to, double share, int n_tiers)
{
    at->gpu += share * (to->gpu - at->gpu);
    at->gpu_square += share * (to->gpu_square - at->gpu_square);
    for (int t = 0; t < n_tiers; t++)
        at->tier[t] += share * (to->tier[t] - at->tier[t]);
}

/* Notes the load of the plan at hand. */
static void note(struct placement_input *in, const struct use *use)
{
    in->load.gpu_use = use->gpu;
    memcpy(in->load.tier_use, use->tier, sizeof(use->tier));
    in->load.wait_s = wait_of(in, use);
}

/* Is a plan better than another one? Where there is not enough time for either, the one that needs less is. */
static bool is_better(double worth, const struct manifest_load *load, double best, const struct manifest_load *of_best)
{
    if (isfinite(worth) || isfinite(best))
        return worth > best;
    double need = load->gpu_use, least = of_best->gpu_use;
    for (int t = 0; t < TIER_MAX; t++) {
        need = fmax(need, load->tier_use[t]);
        least = fmax(least, of_best->tier_use[t]);
    }
    return need < least;
}

/* Without prices. */
static int solve_counted(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                         const struct plan_effort *effort, struct err *err)
{
    struct placement_use *served;
    struct use use;

    if (placement_solve_once(p, in, solver, effort, err))
        return err->code;
    if (placement_uses(&served, in, p->plan.placement, err)) {
        plan_release(&p->plan);
        return err->code;
    }
    add_up(in, p->plan.placement, served, &use);
    note(in, &use);
    free(served);
    return 0;
}

int placement_solve_load(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                         const struct plan_effort *effort, struct err *err)
{
    struct manifest_load load = in->load;
    struct use average = { 0 }, use;
    struct plan best = { 0 };
    double best_worth = -(double)INFINITY, move_price = 0;

    if (in->prefixes.n > 0)
        return solve_counted(p, in, solver, effort, err);
    for (int k = 0; k < ROUNDS; k++) {
        set_prices(in, &average);
        if (placement_solve_once(p, in, solver, effort, err)) {
            plan_release(&best);
            return err->code;
        }
        add_up(in, p->plan.placement, NULL, &use);
        note(in, &use);
        double is = worth(in, &p->plan, in->load.wait_s);
        bool better = k == 0 || is_better(is, &in->load, best_worth, &load);
        plan_release(better ? &best : &p->plan);
        if (better) {
            best = p->plan;
            best_worth = is;
            load = in->load;
            move_price = in->move_price;
        }
        step_to(&average, &use, 1.0 / (k + 1), in->tiers.n);
    }
    in->load = load;
    in->move_price = move_price;
    p->plan = best;
    return 0;
}

int placement_wait(const struct placement_input *in, const struct plan_placement *placement, double *wait_s,
                   struct err *err)
{
    struct placement_use *served;
    struct use use;

    if (placement_uses(&served, in, placement, err))
        return err->code;
    add_up(in, placement, served, &use);
    *wait_s = wait_of(in, &use);
    free(served);
    return 0;
}
