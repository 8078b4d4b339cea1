/* policy_live.c - a plan that follows the requests (planner/density.h), as a serving process does with evp_plan_used().
 * It begins with nothing stored, or with what a manifest stores: "live=FILE". What is read can only stay as it is, or
 * move; what is computed may be stored as any variant. While the queue of a tier has no room for writes, nothing
 * changes, and uses do not count.
 */
#include "planner/density.h"
#include "replay/policy.h"

#include <stdlib.h>

struct live_state {
    struct density *plan;
    struct density_form *form; // (V) of the context at hand
};

static struct density_setup setup_of(const struct policy *p)
{
    const struct placement_input *in = p->in;
    struct density_setup s = { .n_tiers = in->tiers.n,
                               .n_gpus = p->load.gpus > 0 ? (int)p->load.gpus : 1,
                               .goal = { in->alpha, in->slo_ttft_s, in->slo_weight },
                               .move_cost = in->move_cost };

    for (int t = 0; t < in->tiers.n; t++) {
        const struct tier *tier = &in->tiers.at[t];
        s.tier[t] = (struct density_tier){ in->capacity[t],
                                           in->pool[t],
                                           tier->latency_s,
                                           tier_read_s_per_byte(tier),
                                           tier_write_s_per_byte(tier),
                                           tier_read_sd_s(tier, 1) };
    }
    return s;
}

/* What the table knows of a row, as far as the rules allow it. */
static void take_row(const struct policy *p, struct plan_candidates *all, int row, struct density_form *form)
{
    const struct placement_input *in = p->in;

    for (int v = 0; v < in->table.n_configs; v++) {
        size_t cell = table_cell(&in->table, row, v);
        form[v] = (struct density_form){ all->bytes[v], in->quality[cell], in->table.decompress_s[cell], 0 };
        for (int t = 0; t < in->tiers.n && all->bytes[v] >= 0; t++)
            form[v].tiers |= (uint64_t)!isnan(all->utility[v * in->tiers.n + t]) << t;
    }
}

/* Adds the contexts, which are where `at` (C by row) has them; their frequencies are in p->in. */
static int begin(struct policy *p, const struct plan_placement *at, struct err *err)
{
    struct live_state *s = p->state;
    const struct plan_problem problem = placement_problem(p->in);
    const struct table *t = &p->in->table;
    struct plan_candidates all;
    double uses = 0;
    int number, code = 0;

    for (int row = 0; row < t->n_contexts; row++)
        uses += p->in->frequency[row];
    if (plan_candidates_init(&all, &problem, err))
        return err->code;
    int *context = calloc((size_t)t->n_contexts + 1, sizeof(*context)); // of a row
    for (int c = 0; c < problem.n_contexts && context; c++)
        context[p->in->row[c]] = c;
    for (int row = 0; row < t->n_contexts && !code; row++) {
        plan_candidates_get(&all, &problem, context[row]);
        take_row(p, &all, row, s->form);
        const struct density_context c = {
            t->prefill_s[row], t->question_s[row], 0, 0, s->form, t->n_configs, 0, false
        };
        code = density_add(s->plan, &c, &number, err);
        if (!code && uses > 0)
            uses_set(density_uses(s->plan), density_counts(s->plan, number), p->in->frequency[row], uses);
        code = code ? code : density_put(s->plan, number, at[row], err);
    }
    free(context);
    plan_candidates_release(&all);
    return code;
}

static int open_live(struct policy *p, const char *options, struct err *err)
{
    size_t n = (size_t)p->in->table.n_contexts + 1;
    struct live_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    if (*options && (*options != '=' || !options[1]))
        return err_set(err, ERR_USAGE, "is live[=FILE]");
    p->in->table.cell_bytes_read = NULL; // a live plan knows only the bytes that are kept
    const struct density_setup setup = setup_of(p);
    s->plan = density_new(&setup, err);
    if (!s->plan)
        return err->code;
    s->form = malloc((size_t)p->in->table.n_configs * sizeof(*s->form));
    struct plan_placement *at = malloc(n * sizeof(*at));
    int code = s->form && at ? policy_begin(p, *options ? options + 1 : NULL, at, err) : err_nomem(err);
    if (!code)
        code = begin(p, at, err);
    free(at);
    return code;
}

static struct held find(const struct policy *p, int row)
{
    const struct live_state *s = p->state;

    return world_all(p->world, row, density_placement(s->plan, row));
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct live_state *s = p->state;
    const struct density_state *state = density_state(s->plan);
    double at_s = p->load.rate > 0 ? (double)p->at[request] / 1e9 : (double)NAN;
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    for (int k = 0; k < n; k++) {
        bool stored = density_placement(s->plan, row[k]).tier != PLAN_RECOMPUTE;
        if (!sim_has_room(written, p->in->tiers.n)) {
            written->dropped += stored ? 0 : (double)p->in->table.kv_bytes[row[k]];
            continue;
        }
        if (density_used(s->plan, row[k], &(struct density_use){ at_s, !stored }, err))
            return err->code;
        for (int o = 0; o < state->n_ops; o++) {
            if (state->op[o].to.tier == PLAN_RECOMPUTE)
                continue;
            written->at[state->op[o].to.tier] += (double)state->op[o].to_bytes;
            written->n++;
        }
    }
    return 0;
}

static void close_live(struct policy *p)
{
    struct live_state *s = p->state;

    if (!s)
        return;
    density_free(s->plan);
    free(s->form);
    free(s);
}

const struct policy_kind policy_live = { "live", "[=FILE]", open_live, find, finish, close_live };
