/* policy_live.c - a plan that follows the requests (planner/uses.h), as a serving process does with evp_plan_used(). It
 * begins with nothing stored, or with what a manifest stores: "live=FILE". "live:500": the weight of a use falls by a
 * factor of e with every 500 uses after it; without a number, with as many as contexts are stored. To change what is
 * stored into another variant costs its writing only. While the queue of a tier has no room for writes, nothing
 * changes, and uses do not count.
 */
#include "base/parse.h"
#include "planner/uses.h"
#include "replay/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live_state {
    struct policy *policy;
    struct incremental *plan;
    struct uses uses;
    struct plan_candidates all; // of the context at hand
    int *context;               // (C by row): the planner's number
    struct use_weight *weight;  // (C by row)
    struct sim_bytes *written;  // of the request at hand
};

static struct use_weight *weight_of(void *arg, int number)
{
    struct live_state *s = arg;

    return &s->weight[s->policy->in->row[number]];
}

static double frequency_of(void *arg, int number)
{
    const struct live_state *s = arg;

    return s->policy->in->frequency[s->policy->in->row[number]];
}

static int set_frequency(void *arg, int number, double frequency, struct err *err)
{
    struct live_state *s = arg;
    const struct plan_problem problem = placement_problem(s->policy->in);

    s->policy->in->frequency[s->policy->in->row[number]] = frequency;
    plan_candidates_get(&s->all, &problem, number);
    return incremental_update(s->plan, number, &s->all, err);
}

/* Notes what the last event wrote. */
static int took(void *arg, struct err *err)
{
    struct live_state *s = arg;
    const struct incremental_state *state = incremental_state(s->plan);

    (void)err;
    for (int k = 0; k < state->n_ops; k++) {
        const struct incremental_op *op = &state->op[k];
        if (op->to.tier == PLAN_RECOMPUTE)
            continue;
        s->written->at[op->to.tier] += (double)op->to_bytes;
        s->written->n++;
    }
    return 0;
}

/* Begins where `at` (C by row) has the rows; their frequencies are in p->in. */
static int begin(struct policy *p, const struct plan_placement *at, struct err *err)
{
    struct live_state *s = p->state;
    const struct plan_problem problem = placement_problem(p->in);
    struct plan plan = { .placement = malloc(((size_t)problem.n_contexts + 1) * sizeof(*plan.placement)) };

    if (!plan.placement)
        return err_nomem(err);
    for (int c = 0; c < problem.n_contexts; c++) {
        int row = p->in->row[c];
        plan.placement[c] = at[row];
        s->context[row] = c;
        s->weight[row].weight = p->in->frequency[row];
    }
    s->plan = incremental_new(&problem, &plan, p->in->move_cost, err);
    plan_release(&plan);
    if (!s->plan || plan_candidates_init(&s->all, &problem, err))
        return err->code;
    s->uses.plan = s->plan;
    s->uses.of = (struct uses_plan){ weight_of, frequency_of, set_frequency, s, took, s };
    s->uses.n = problem.n_contexts;
    uses_begin(&s->uses);
    return 0;
}

/* ":TAU", "=FILE", both or none. *file: NULL without one. */
static int read_options(struct uses *u, const char *options, const char **file, struct err *err)
{
    const char *equals = strchr(options, '=');
    char number[32];
    size_t n = equals ? (size_t)(equals - options) : strlen(options);

    *file = equals ? equals + 1 : NULL;
    u->fixed = n > 0;
    snprintf(number, sizeof(number), "%.*s", n < sizeof(number) ? (int)n : 0, options);
    if ((n > 0 && (*number != ':' || !parse_real(number + 1, &u->life) || !(u->life >= 1 && u->life <= 1e9))) ||
        (equals && !equals[1]))
        return err_set(err, ERR_USAGE, "is live[:TAU][=FILE], TAU in requests, at least 1");
    return 0;
}

static int open_live(struct policy *p, const char *options, struct err *err)
{
    size_t n = (size_t)p->in->table.n_contexts + 1;
    struct live_state *s = calloc(1, sizeof(*s));
    const char *file;

    p->state = s;
    if (!s)
        return err_nomem(err);
    s->policy = p;
    p->in->table.cell_bytes_read = NULL; // a live plan knows only the bytes that are kept
    if (read_options(&s->uses, options, &file, err))
        return err->code;
    s->context = malloc(n * sizeof(*s->context));
    s->weight = calloc(n, sizeof(*s->weight));
    struct plan_placement *at = malloc(n * sizeof(*at));
    int code = s->context && s->weight && at ? policy_begin(p, file, at, err) : err_nomem(err);
    if (!code)
        code = begin(p, at, err);
    free(at);
    return code;
}

static struct held find(const struct policy *p, int row)
{
    const struct live_state *s = p->state;

    return world_all(p->world, row, incremental_placement(s->plan, s->context[row]));
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    s->written = written;
    for (int k = 0; k < n; k++) {
        uses_age(&s->uses);
        if (!sim_has_room(written, p->in->tiers.n)) {
            bool stored = incremental_placement(s->plan, s->context[row[k]]).tier != PLAN_RECOMPUTE;
            written->dropped += stored ? 0 : (double)p->in->table.kv_bytes[row[k]];
            continue;
        }
        if (uses_count(&s->uses, s->context[row[k]], err) || uses_refresh(&s->uses, err))
            return err->code;
    }
    return 0;
}

static void close_live(struct policy *p)
{
    struct live_state *s = p->state;

    if (!s)
        return;
    incremental_free(s->plan);
    uses_release(&s->uses);
    plan_candidates_release(&s->all);
    free(s->context);
    free(s->weight);
    free(s);
}

const struct policy_kind policy_live = { "live", "[:TAU][=FILE]", open_live, find, finish, close_live };
