/* policy_live.c - a plan that follows the requests (planner/incremental.h), as loader/libevicpress/live_uses.c does in a
 * serving process. "live:500": the weight of a use falls by a factor of e with every 500 uses after it; without a
 * number, with as many as contexts are stored.
 *
 * How often a context is used is the sum of its weights. After each request its own is brought up to date, and it is
 * stored where the plan wants it. A hand brings a few others up to date, all of them twice while a weight falls by
 * e. What is not stored cannot come back before it is computed again, so it counts as unused until then. To change what
 * is stored into another variant costs its writing only.
 */
#include "base/parse.h"
#include "planner/incremental.h"
#include "replay/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REFRESHES = 2, LIFE_MIN = 100 };

struct live_state {
    struct incremental *plan;
    struct plan_candidates all; // of the context at hand
    int *context;               // (C by row): the planner's number
    double *weight, *at;        // (C by row): of the uses, as of the age `at`
    double age;                 // uses weigh exp(-age) of what they weighed at age 0
    double life;                // uses in which that falls by e
    bool fixed;                 // life stays as it is
    int hand, n_stored;         // the next context to bring up to date; those stored among the ones before it
    int *dropped;               // (C) by the last event, the planner's numbers
};

static double weight_of(const struct live_state *s, int row)
{
    return s->weight[row] * exp(s->at[row] - s->age);
}

/* Begins with nothing stored. */
static int begin(struct policy *p, struct err *err)
{
    struct live_state *s = p->state;
    const struct plan_problem problem = placement_problem(p->in);
    struct plan plan = { .placement = malloc(((size_t)problem.n_contexts + 1) * sizeof(*plan.placement)) };

    if (!plan.placement)
        return err_nomem(err);
    for (int c = 0; c < problem.n_contexts; c++) {
        plan.placement[c] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        p->in->frequency[p->in->row[c]] = 0;
        s->context[p->in->row[c]] = c;
    }
    s->plan = incremental_new(&problem, &plan, p->in->move_cost, err);
    plan_release(&plan);
    return s->plan && !plan_candidates_init(&s->all, &problem, err) ? 0 : err->code;
}

static int open_live(struct policy *p, const char *options, struct err *err)
{
    size_t n = (size_t)p->in->table.n_contexts + 1;
    struct live_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    p->in->table.cell_bytes_read = NULL; // a live plan knows only the bytes that are kept
    s->fixed = *options;
    s->life = LIFE_MIN;
    if (s->fixed && (*options != ':' || !parse_real(options + 1, &s->life) || !(s->life >= 1 && s->life <= 1e9)))
        return err_set(err, ERR_USAGE, "is live:TAU, in requests, at least 1");
    s->context = malloc(n * sizeof(*s->context));
    s->weight = calloc(n, sizeof(*s->weight));
    s->at = calloc(n, sizeof(*s->at));
    s->dropped = malloc(n * sizeof(*s->dropped));
    if (!s->context || !s->weight || !s->at || !s->dropped)
        return err_nomem(err);
    return begin(p, err);
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

/* Sets the frequency of a context; what that drops, and the context where it is not stored, counts as unused. */
static int event(struct policy *p, int row, double frequency, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;

    if (set_frequency(p, row, frequency, err))
        return err->code;
    int n = take_operations(s, written);
    s->dropped[n++] = s->context[row];
    for (int k = 0; k < n; k++)
        if (incremental_placement(s->plan, s->dropped[k]).tier == PLAN_RECOMPUTE &&
            set_frequency(p, p->in->row[s->dropped[k]], 0, err))
            return err->code;
    return 0;
}

static int use(struct policy *p, int row, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;

    s->age += 1 / s->life;
    s->weight[row] = weight_of(s, row) + 1;
    s->at[row] = s->age;
    return event(p, row, s->weight[row], written, err);
}

/* Brings some contexts up to date. After a round the life is the number of those that are stored. */
static int refresh_some(struct policy *p, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;
    int n = placement_problem(p->in).n_contexts;

    for (int k = (int)fmin(ceil(REFRESHES * (n / s->life)), n); k > 0; k--) {
        bool stored = incremental_placement(s->plan, s->hand).tier != PLAN_RECOMPUTE;
        int row = p->in->row[s->hand];
        if (stored && event(p, row, weight_of(s, row), written, err))
            return err->code;
        s->n_stored += stored;
        if (++s->hand < n)
            continue;
        s->life = s->fixed ? s->life : fmax(s->n_stored, LIFE_MIN);
        s->hand = s->n_stored = 0;
    }
    return 0;
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    for (int k = 0; k < n; k++)
        if (use(p, row[k], written, err) || refresh_some(p, written, err))
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
