/* policy_fixed.c - placements that stay: none, a manifest's, a plan's made from the requests before those that count,
 * or, as no one can, from those that count. */
#include "replay/policy.h"

#include <stdlib.h>
#include <string.h>

static int place(struct policy *p, struct err *err)
{
    int n = p->in->table.n_contexts;
    struct plan_placement *at = malloc(((size_t)n + 1) * sizeof(*at));

    p->state = at;
    if (!at)
        return err_nomem(err);
    for (int c = 0; c < n; c++)
        at[c] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    return 0;
}

static struct held find(const struct policy *p, int row)
{
    const struct plan_placement *at = p->state;

    return world_all(p->world, row, at[row]);
}

static void close_fixed(struct policy *p)
{
    free(p->state);
}

static int open_prefill(struct policy *p, const char *options, struct err *err)
{
    (void)options;
    return place(p, err);
}

const struct policy_kind policy_prefill = { "prefill", "", open_prefill, find, NULL, close_fixed };

/* ---- plans ------------------------------------------------------------------ */

/* What the plan expects, over all requests, waits included; unknown where a request needs several rows. */
static int promise(struct policy *p, const struct plan_placement *at, struct err *err)
{
    const struct placement_input *in = p->in;
    struct placement_input loaded = *in;
    double n = 0, ttft_s = 0, quality = 0, wait_s = 0;

    if (p->world->block_tokens)
        return 0;
    struct plan_placement *of = malloc(((size_t)in->table.n_contexts + 1) * sizeof(*of)); // (C) by context
    if (!of)
        return err_nomem(err);
    for (int i = 0; i < in->table.n_contexts; i++)
        of[i] = at[in->row[i]];
    loaded.load = p->load;
    int code = p->load.rate > 0 ? placement_wait(&loaded, of, &wait_s, err) : 0;
    free(of);
    for (int c = 0; c < in->table.n_contexts; c++) {
        double q = at[c].tier == PLAN_RECOMPUTE ? 1 : in->quality[table_cell(&in->table, c, at[c].config)];
        n += in->frequency[c];
        ttft_s += in->frequency[c] * placement_ttft(in, c, at[c]);
        quality += in->frequency[c] * q;
    }
    p->promised_ttft_s = placement_mean_of_all(in, ttft_s / n, in->newcomers.gpu_s) + wait_s;
    p->promised_quality = placement_mean_of_all(in, quality / n, 1);
    return code;
}

/* Plans with the frequencies of p->in, as evp-plan does. */
static int plan_for(struct policy *p, struct err *err)
{
    struct placement_plan plan;

    if (place(p, err) || placement_solve(&plan, p->in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err->code;
    struct plan_placement *at = p->state;
    for (int i = 0; i < plan.plan.n_contexts; i++)
        at[p->in->row[i]] = plan.plan.placement[i];
    plan_release(&plan.plan);
    return promise(p, at, err);
}

static int open_night(struct policy *p, const char *options, struct err *err)
{
    if (*options && strcmp(options, ":load") != 0)
        return err_set(err, ERR_USAGE, "is night or night:load");
    if (*options)
        p->in->load = p->load;
    if (*options && !(p->load.rate > 0))
        return err_set(err, ERR_USAGE, "needs a rate above 0");
    if (p->world->warm == 0)
        return err_set(err, ERR_USAGE, "there are no requests to plan for: they are those that --warm leaves out");
    return world_expect(p->world, 0, p->world->warm, p->in, err) ? err->code : plan_for(p, err);
}

const struct policy_kind policy_night = { "night", "[:load]", open_night, find, NULL, close_fixed };

static int open_clairvoyant(struct policy *p, const char *options, struct err *err)
{
    (void)options;
    world_count(p->world, p->world->warm, p->world->n, p->in->frequency);
    return plan_for(p, err);
}

const struct policy_kind policy_clairvoyant = { "static-clairvoyant", "", open_clairvoyant, find, NULL, close_fixed };

/* ---- a manifest ------------------------------------------------------------- */

/* Where a row of a manifest is, in the numbers of the table and the tiers; false: it names something else. */
static bool placed_at(const struct placement_input *in, const struct manifest *m, const struct placement *from,
                      struct plan_placement *to)
{
    const struct cached c = manifest_cached(&m->tiers, from);

    *to = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    if (!c.tier)
        return true;
    to->config = table_find_config(&in->table, from->config);
    to->tier = tiers_find(&in->tiers, c.tier->name);
    return to->config >= 0 && to->tier >= 0;
}

int policy_begin(struct policy *p, const char *path, struct plan_placement *at, struct err *err)
{
    const struct placement_input *in = p->in;
    struct manifest m = { 0 };
    int code = path ? manifest_read(&m, path, err) : 0;

    for (int c = 0; c < in->table.n_contexts && !code; c++) {
        const struct placement *from = path ? manifest_find(&m, in->table.context_id[c]) : NULL;
        at[c] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        in->frequency[c] = from ? from->frequency : 0;
        if (from && !placed_at(in, &m, from, &at[c]))
            code = err_set(err, ERR_FORMAT, "'%s': context '%s' has a config or tier that the table or --tiers lacks",
                           path, in->table.context_id[c]);
    }
    manifest_release(&m);
    return code;
}

static int open_manifest(struct policy *p, const char *options, struct err *err)
{
    if (*options != '=' || !options[1])
        return err_set(err, ERR_USAGE, "needs a file: manifest=FILE");
    if (place(p, err) || policy_begin(p, options + 1, p->state, err))
        return err->code;
    world_count(p->world, p->world->warm, p->world->n, p->in->frequency);
    return promise(p, p->state, err);
}

const struct policy_kind policy_manifest = { "manifest", "=FILE", open_manifest, find, NULL, close_fixed };
