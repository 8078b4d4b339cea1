/* placement_input.c - reads what a plan is made from: tiers, table, accesses, rules, the previous manifest, in this
 * order, because each is looked up in those before it. */
#include "planner/placement/placement.h"

#include "datasets/access.h"

#include <stdlib.h>
#include <string.h>

static int allocate(struct placement_input *in, struct err *err)
{
    size_t n = (size_t)in->table.n_contexts + 1;

    in->row = calloc(n, sizeof(*in->row));
    in->frequency = calloc(n, sizeof(*in->frequency));
    in->rule = calloc(n, sizeof(*in->rule));
    in->pin = calloc(n, sizeof(*in->pin));
    in->before = calloc(n, sizeof(*in->before));
    if (!in->row || !in->frequency || !in->rule || !in->pin || !in->before)
        return err_nomem(err);
    for (int i = 0; i < in->table.n_contexts; i++) {
        in->pin[i] = PIN_NONE;
        in->before[i].config = -1;
    }
    return manifest_order(in->row, (const char *const *)in->table.context_id, in->table.n_contexts, err);
}

static int read_access(struct placement_input *in, const char *path, struct err *err)
{
    struct access_log log = { 0 };

    for (int i = 0; i < in->table.n_contexts; i++)
        in->frequency[i] = path ? 0 : 1;
    if (path && access_read(&log, path, &in->table.ids, in->frequency, err))
        return err->code;
    in->left_out.accesses = log.rows;
    in->left_out.accesses_unknown = log.unknown;
    return 0;
}

static int read_rules(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    if (files->rules && rules_read(in->rule, files->rules, &in->table.ids, &in->left_out.rules_unknown, err))
        return err->code;
    for (int i = 0; i < in->table.n_contexts; i++) {
        const char *tier = in->rule[i].tier;
        if (!*tier)
            continue;
        int pin = tiers_find(&in->tiers, tier); /* -1 is PLAN_RECOMPUTE */
        bool known = pin >= 0 || strcmp(tier, "recompute") == 0;
        if (!known && files->want != TABLE_PLAN_LENIENT)
            return err_set(err, ERR_FORMAT, "'%s': context '%s' is pinned to unknown tier '%s'", files->rules,
                           in->table.context_id[i], tier);
        in->pin[i] = known ? pin : PIN_NONE;
        in->left_out.pins_unknown += !known;
    }
    return 0;
}

/* A context can stay where the previous manifest has it when its tokens are the same, the table has the config, and
 * tiers.json has the tier. */
static void find_kept(struct placement_input *in)
{
    for (int i = 0; i < in->table.n_contexts; i++) {
        const struct placement *p = manifest_find(&in->previous, in->table.context_id[i]);
        struct cached was = manifest_cached(&in->previous.tiers, p), now = was;
        int config = was.tier ? table_find_config(&in->table, p->config) : -1;
        now.token_digest = in->table.context_token_digest[i];
        for (int t = 0; t < in->tiers.n && config >= 0; t++) {
            now.tier = &in->tiers.at[t];
            if (operation_between(&was, &now) == OP_KEEP)
                in->before[i] = (struct plan_placement){ config, t };
        }
    }
}

static int read_previous(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    if (!files->previous)
        return 0;
    if (manifest_read(&in->previous, files->previous, err))
        return err->code;
    if (strcmp(in->previous.model_digest, in->table.model_digest) != 0)
        return err_set(err, ERR_FORMAT, "'%s' was made for another model than '%s'", files->previous, files->table);
    find_kept(in);
    return 0;
}

int placement_input_read(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    if ((files->tiers && tiers_read(&in->tiers, files->tiers, err)) ||
        table_read(&in->table, files->table, files->want, err))
        return err->code;
    in->left_out.cells = in->table.n_dropped;
    if (!in->table.quality_train)
        return err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", files->table);
    for (int t = 0; t < in->tiers.n; t++)
        in->capacity[t] = in->tiers.at[t].capacity;
    if (allocate(in, err) || read_access(in, files->access, err) || read_rules(in, files, err))
        return err->code;
    return read_previous(in, files, err);
}

int placement_input_as(struct placement_input *in, struct manifest *m, const struct placement_files *files,
                       struct err *err)
{
    struct placement_files rest = *files;

    in->tiers = m->tiers;
    m->borrows = true;
    rest.tiers = NULL;
    if (placement_input_read(in, &rest, err))
        return err->code;
    for (int i = 0; i < m->n; i++) {
        int row = map_find(&in->table.ids, m->at[i].id, strlen(m->at[i].id));
        if (row != MAP_ABSENT)
            in->frequency[row] = m->at[i].frequency;
    }
    in->alpha = m->alpha;
    in->move_cost = m->move_cost;
    in->move_price = m->move_price;
    in->max_move = m->max_move;
    return 0;
}

void placement_input_release(struct placement_input *in)
{
    table_release(&in->table);
    tiers_release(&in->tiers);
    manifest_release(&in->previous);
    free(in->row);
    free(in->frequency);
    free(in->rule);
    free(in->pin);
    free(in->before);
    *in = (struct placement_input){ 0 };
}
