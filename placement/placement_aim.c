/* placement_aim.c - the problem for planner/aim.h, which gets utilities without floors and applies the floors itself.
 * */
#include "placement/placement_internal.h"

static struct aim_context context_of(const void *arg, int context)
{
    const struct placement_aim *a = arg;
    const struct placement_input *in = &a->free;
    int row = in->row[context];

    return (struct aim_context){ .first = table_cell(&in->table, row, 0),
                                 .scale = in->alpha * in->frequency[row],
                                 .floor = fmax(in->rule[row].min_quality, in->min_quality),
                                 .visit = a->visit ? a->visit[row] : 0,
                                 .answer = a->answer,
                                 .n_questions = a->n_questions ? a->n_questions[row] : 0 };
}

void placement_aim_init(struct placement_aim *a, const struct placement_input *in, const double *price)
{
    *a = (struct placement_aim){ .free = *in };
    a->free.no_floors = true;
    a->problem = placement_problem(&a->free);
    a->aim = (struct aim_problem){ .plan = &a->problem,
                                   .price = price,
                                   .quality = in->quality,
                                   .sd = in->sd,
                                   .asked = in->table.cell_asked,
                                   .sure_z = in->sure_z,
                                   .context = context_of,
                                   .arg = a };
}

int placement_loss(const struct placement_input *in, const struct placement_bound *bound, double *loss, struct err *err)
{
    struct placement_aim a;

    *loss = (double)NAN;
    if (!in->sd)
        return 0;
    placement_aim_init(&a, in, bound->price);
    if (aim_expected_loss(&a.aim, loss, err))
        return err->code;
    *loss += fmax(0, bound->upper_bound - bound->objective);
    return 0;
}
