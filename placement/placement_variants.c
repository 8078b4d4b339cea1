/* placement_variants.c - the variants in the rows of evp-plan --online: those that a live plan can need until the next
 * plan.
 *
 * At any prices the best variant is a point of a hull. A frequency scales all utilities of a context equally, so the
 * hulls are those of frequency 1.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>

int placement_variants_init(struct placement_variants *f, const struct placement_input *in, double *ones,
                            struct err *err)
{
    *f = (struct placement_variants){ .unit = *in };
    f->unit.move_cost = f->unit.move_price = f->unit.pack_weight = 0;
    f->unit.frequency = ones;
    f->wanted = calloc((size_t)in->table.n_configs + 1, sizeof(*f->wanted));
    if (!f->wanted)
        return err_nomem(err);
    f->problem = placement_problem(&f->unit);
    if (plan_candidates_init(&f->candidates, &f->problem, err) || hull_work_init(&f->work, &f->problem, err))
        return err->code;
    return 0;
}

void placement_variants_release(struct placement_variants *f)
{
    free(f->wanted);
    plan_candidates_release(&f->candidates);
    hull_work_release(&f->work);
    *f = (struct placement_variants){ 0 };
}

static void want_points(struct placement_variants *f, struct plan_placement chosen)
{
    struct candidate base = hull_base(&f->work, &f->candidates, &f->problem);

    for (int v = 0; v < f->problem.n_configs; v++)
        f->wanted[v] =
            (base.tier != PLAN_RECOMPUTE && v == base.config) || (chosen.tier != PLAN_RECOMPUTE && v == chosen.config);
    for (int d = 0; d < f->work.knapsack.n; d++) {
        hull_scan(&f->work, &f->candidates, &f->problem, d, base.utility);
        for (int k = 0; k < f->work.n; k++)
            f->wanted[f->work.config[k]] = true;
    }
}

int placement_variants_find(struct placement_variants *f, int context, struct plan_placement chosen, struct err *err)
{
    const struct placement_input *in = &f->unit;
    const struct table *t = &in->table;
    int row = in->row[context], pin = in->pin[row];

    plan_candidates_get(&f->candidates, &f->problem, context);
    want_points(f, chosen);
    f->variants = (struct variants){ .at = f->variant,
                                     .prefill_s = t->prefill_s[row],
                                     .question_s = t->question_s[row],
                                     .min_quality = placement_floor(in, row) };
    if (in->slo_weight > 0) {
        f->variants.prefill_sd_s = placement_prefill_sd(in, row);
        f->variants.question_sd_s = placement_question_sd(in, row);
    }
    if (pin != PIN_NONE)
        f->variants.pin = pin == PLAN_RECOMPUTE ? "recompute" : in->tiers.at[pin].name;
    for (int k = 0; k < f->work.n_configs; k++) {
        int v = f->work.order[k];
        size_t cell = table_cell(t, row, v);
        if (!f->wanted[v])
            continue;
        if (f->variants.n == VARIANTS_MAX)
            return err_set(err, ERR_FAIL, "context '%s' has more than %d variants that a live plan can need",
                           t->context_id[row], VARIANTS_MAX);
        f->variant[f->variants.n++] =
            (struct variant_info){ t->config_name[v], t->cell_bytes[cell], in->quality[cell], t->decompress_s[cell] };
    }
    return 0;
}
