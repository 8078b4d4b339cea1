/* policy_live.c - a plan that follows the requests (planner/incremental.h). "live:500": the weight of a use falls by a
 * factor of e with every 500 requests after it; 1,000 without a number.
 *
 * How often a context is used is the sum of its weights. After each request its own is brought up to date, and it is
 * stored where the plan wants it. A sweep, five times while a weight falls by e, updates all others and the prices. What
 * is not stored cannot come back before it is computed again, so it counts as unused until then. To change what is
 * stored into another variant costs its writing only.
 */
#include "base/parse.h"
#include "planner/incremental.h"
#include "replay/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 5 };
static const double tau_usual = 1000;

struct live_state {
    struct incremental *plan;
    struct plan_candidates all; // of the context at hand
    int *context;               // (C by row): the planner's number
    double *weight, *at;        // (C by row): of the uses, as of a request
    double tau, now;            // requests
    int *dropped;               // (C) by the last event, the planner's numbers
};

static double weight_of(const struct live_state *s, int row)
{
    return s->weight[row] > 0 ? s->weight[row] * exp((s->at[row] - s->now) / s->tau) : 0;
}

/* Prices of a new solution, placements as they are. */
static int sweep(struct policy *p, struct err *err)
{
    struct live_state *s = p->state;
    const struct plan_problem problem = placement_problem(p->in);
    struct placement_plan solved;
    int n = problem.n_contexts;

    for (int row = 0; row < n; row++)
        p->in->frequency[row] = weight_of(s, row);
    if (placement_solve(&solved, p->in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err->code;
    for (int c = 0; c < n; c++) {
        struct plan_placement *at = &solved.plan.placement[c];
        *at = s->plan ? incremental_placement(s->plan, c) : (struct plan_placement){ 0, PLAN_RECOMPUTE };
        if (at->tier == PLAN_RECOMPUTE)
            p->in->frequency[p->in->row[c]] = 0;
    }
    incremental_free(s->plan);
    s->plan = incremental_new(&problem, &solved.plan, p->in->move_cost, err);
    plan_release(&solved.plan);
    return s->plan ? 0 : err->code;
}

static int open_live(struct policy *p, const char *options, struct err *err)
{
    size_t n = (size_t)p->in->table.n_contexts + 1;
    struct live_state *s = calloc(1, sizeof(*s));
    const struct plan_problem problem = placement_problem(p->in);

    p->state = s;
    if (!s)
        return err_nomem(err);
    s->tau = tau_usual;
    if (*options && (*options != ':' || !parse_real(options + 1, &s->tau) || !(s->tau >= 1 && s->tau <= 1e9)))
        return err_set(err, ERR_USAGE, "is live:TAU, in requests, at least 1");
    s->context = malloc(n * sizeof(*s->context));
    s->weight = calloc(n, sizeof(*s->weight));
    s->at = calloc(n, sizeof(*s->at));
    s->dropped = malloc(n * sizeof(*s->dropped));
    if (!s->context || !s->weight || !s->at || !s->dropped)
        return err_nomem(err);
    for (int i = 0; i < problem.n_contexts; i++)
        s->context[p->in->row[i]] = i;
    return plan_candidates_init(&s->all, &problem, err) ? err->code : sweep(p, err);
}

static struct held find(const struct policy *p, int row)
{
    const struct live_state *s = p->state;

    return world_all(p->world, row, incremental_placement(s->plan, s->context[row]));
}

static int set_frequency(struct policy *p, int row, double frequency, struct err *err)
{
    struct live_state *s = p->state;
    const struct plan_problem problem = placement_problem(p->in);

    p->in->frequency[row] = frequency;
    plan_candidates_get(&s->all, &problem, s->context[row]);
    return incremental_update(s->plan, s->context[row], &s->all, err);
}

/* Notes what the last event wrote, and who is no longer stored. */
static int take_operations(struct live_state *s, struct sim_bytes *written)
{
    const struct incremental_state *state = incremental_state(s->plan);
    int n_dropped = 0;

    for (int k = 0; k < state->n_ops; k++) {
        const struct incremental_op *op = &state->op[k];
        if (op->to.tier == PLAN_RECOMPUTE) {
            s->dropped[n_dropped++] = op->context;
            continue;
        }
        written->at[op->to.tier] += (double)op->to_bytes;
        written->n++;
    }
    return n_dropped;
}

static int use(struct policy *p, int row, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;

    s->weight[row] = weight_of(s, row) + 1;
    s->at[row] = s->now;
    if (set_frequency(p, row, s->weight[row], err))
        return err->code;
    for (int n = take_operations(s, written), k = 0; k < n; k++)
        if (incremental_placement(s->plan, s->dropped[k]).tier == PLAN_RECOMPUTE &&
            set_frequency(p, p->in->row[s->dropped[k]], 0, err))
            return err->code;
    return 0;
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    if (fmod(s->now++, ceil(s->tau / SWEEPS)) == 0 && sweep(p, err))
        return err->code;
    for (int k = 0; k < n; k++)
        if (use(p, row[k], written, err))
            return err->code;
    return 0;
}

static void close_live(struct policy *p)
{
    struct live_state *s = p->state;

    if (!s)
        return;
    incremental_free(s->plan);
    plan_candidates_release(&s->all);
    free(s->context);
    free(s->weight);
    free(s->at);
    free(s->dropped);
    free(s);
}

const struct policy_kind policy_live = { "live", "[:TAU]", open_live, find, finish, close_live };
