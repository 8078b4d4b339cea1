/* policy_greedy.c - the papers' own caches: a context that was prefilled is inserted, and Algorithm 1 makes space for
 * it (planner/greedy.c). Frequencies are the uses so far.
 *
 * EvicPress: Adaptive KV Cache Compression and Eviction, Algorithm 1 and section 4.4; AdaptCache.
 */
#include "replay/policy.h"

#include <stdlib.h>
#include <string.h>

struct greedy_state {
    struct plan plan;
    struct plan_placement *before; // (C by the planner's numbers)
    int *context;                  // (C by row): the planner's number
    enum plan_solver solver;
};

static int open_greedy(struct policy *p, enum plan_solver solver, struct err *err)
{
    size_t n = (size_t)p->in->table.n_contexts + 1;
    struct greedy_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    s->solver = solver;
    s->plan.n_contexts = p->in->table.n_contexts;
    s->plan.placement = malloc(n * sizeof(*s->plan.placement));
    s->before = malloc(n * sizeof(*s->before));
    s->context = malloc(n * sizeof(*s->context));
    if (!s->plan.placement || !s->before || !s->context)
        return err_nomem(err);
    for (int i = 0; i < s->plan.n_contexts; i++) {
        s->plan.placement[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        s->context[p->in->row[i]] = i;
        p->in->frequency[i] = 0;
    }
    return 0;
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

    return world_all(p->world, row, s->plan.placement[s->context[row]]);
}

static int insert(struct policy *p, int context, struct sim_bytes *written, struct err *err)
{
    struct greedy_state *s = p->state;
    const struct table *t = &p->in->table;
    const struct plan_problem problem = placement_problem(p->in);

    memcpy(s->before, s->plan.placement, (size_t)s->plan.n_contexts * sizeof(*s->before));
    if (plan_greedy_insert(&s->plan, &problem, s->solver, context, err))
        return err->code;
    for (int i = 0; i < s->plan.n_contexts; i++) {
        struct plan_placement to = s->plan.placement[i];
        if (to.tier == PLAN_RECOMPUTE || (to.tier == s->before[i].tier && to.config == s->before[i].config))
            continue;
        written->at[to.tier] += (double)t->cell_bytes[table_cell(t, p->in->row[i], to.config)];
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
        int context = s->context[row[k]];
        p->in->frequency[row[k]]++;
        if (s->plan.placement[context].tier != PLAN_RECOMPUTE)
            continue;
        if (!sim_has_room(written, p->in->tiers.n))
            written->dropped += (double)p->in->table.kv_bytes[row[k]];
        else if (insert(p, context, written, err))
            return err->code;
    }
    return 0;
}

static void close_greedy(struct policy *p)
{
    struct greedy_state *s = p->state;

    if (!s)
        return;
    plan_release(&s->plan);
    free(s->before);
    free(s->context);
    free(s);
}

const struct policy_kind policy_evicpress = { "evicpress", "", open_evicpress, find, finish, close_greedy };
const struct policy_kind policy_adaptcache = { "adaptcache", "", open_adaptcache, find, finish, close_greedy };
