/* policy_greedy.c - the papers' own caches: a context that was prefilled is inserted, and Algorithm 1 makes space for
 * it (planner/greedy.c). Frequencies are the uses so far.
 *
 * EvicPress: Adaptive KV Cache Compression and Eviction, Algorithm 1 and section 4.4; AdaptCache.
 */
#include "replay/policy.h"

#include <stdlib.h>

struct greedy_state {
    struct plan_problem problem;
    struct plan_greedy *plan;
    int *context; // (C by row): the planner's number
};

static int open_greedy(struct policy *p, enum plan_solver solver, struct err *err)
{
    int n = p->in->table.n_contexts;
    struct greedy_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    s->context = malloc(((size_t)n + 1) * sizeof(*s->context));
    if (!s->context)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        s->context[p->in->row[i]] = i;
        p->in->frequency[i] = 0;
    }
    s->problem = placement_problem(p->in);
    s->plan = plan_greedy_open(&s->problem, solver, err);
    return s->plan ? 0 : err->code;
}

static int open_evicpress(struct policy *p, const char *options, struct err *err)
{
    (void)options;
    return open_greedy(p, PLAN_EVICPRESS, err);
}

static int open_adaptcache(struct policy *p, const char *options, struct err *err)
{
    (void)options;
    return open_greedy(p, PLAN_ADAPTCACHE, err);
}

static struct held find(const struct policy *p, int row)
{
    const struct greedy_state *s = p->state;

    return world_all(p->world, row, plan_greedy_at(s->plan, s->context[row]));
}

static int use(struct policy *p, int32_t row, struct sim_bytes *written, struct err *err)
{
    struct greedy_state *s = p->state;
    const struct plan_greedy_moves *moves;

    if (plan_greedy_used(s->plan, s->context[row], &moves, err))
        return err->code;
    for (int k = 0; k < moves->n; k++) {
        const struct plan_placement from = moves->at[k].from, to = plan_greedy_at(s->plan, moves->at[k].context);
        if (to.tier == PLAN_RECOMPUTE || (to.tier == from.tier && to.config == from.config))
            continue;
        int moved = p->in->row[moves->at[k].context];
        written->at[to.tier] += (double)p->in->table.cell_bytes[table_cell(&p->in->table, moved, to.config)];
        written->n++;
    }
    return 0;
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    const struct greedy_state *s = p->state;
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    for (int k = 0; k < n; k++) {
        bool stored = plan_greedy_at(s->plan, s->context[row[k]]).tier != PLAN_RECOMPUTE;
        p->in->frequency[row[k]]++;
        if (!stored && !sim_has_room(written, p->in->tiers.n))
            written->dropped += (double)p->in->table.kv_bytes[row[k]];
        else if (use(p, row[k], written, err))
            return err->code;
    }
    return 0;
}

static void close_greedy(struct policy *p)
{
    struct greedy_state *s = p->state;

    if (!s)
        return;
    plan_greedy_close(s->plan);
    free(s->context);
    free(s);
}

const struct policy_kind policy_evicpress = { "evicpress", "", open_evicpress, find, finish, close_greedy };
const struct policy_kind policy_adaptcache = { "adaptcache", "", open_adaptcache, find, finish, close_greedy };
