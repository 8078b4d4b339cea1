/* placement_moves.c - solving, and the cap on what a plan writes.
 *
 * The cap is one more price: for a price m per byte written, bound(m) + m * max_move bounds every plan that writes no
 * more. Bisection finds the lowest price at which the plan is within the cap.
 */
#include "planner/placement/placement_internal.h"

enum { PRICE_STEPS = 40 };

static double written_by(const struct placement_input *in, const struct plan *plan)
{
    double bytes = 0;

    for (int i = 0; i < plan->n_contexts; i++)
        bytes += (double)placement_written(in, in->row[i], plan->placement[i]);
    return bytes;
}

/* Finds the lowest price at which the plan is within the cap. The bound is that of the problem as asked, with the cap.
 */
static int solve_within(struct placement_plan *p, struct placement_input *in, const struct plan_effort *effort,
                        struct err *err)
{
    double low = 0, high = 0, max = (double)in->max_move;
    struct plan best = { 0 };

    for (int k = 0; k < PRICE_STEPS && (high == 0 || high - low > 1e-3 * high); k++) {
        struct plan_problem problem = placement_problem(in);
        struct plan trial;
        if (plan_solve(&trial, &problem, p->solver, effort, err)) {
            plan_release(&best);
            return err->code;
        }
        if (written_by(in, &trial) <= max) {
            plan_release(&best);
            best = trial;
            high = in->move_price;
            if (k == 0)
                break;
        } else {
            plan_release(&trial);
            low = in->move_price;
        }
        in->move_price = high > 0 ? (low + high) / 2 : fmax(8 * low, 1e-12);
    }
    if (!best.placement)
        return err_set(err, ERR_FAIL, "no plan writes as little as --max-move allows");
    in->move_price = high;
    best.upper_bound += high * max;
    best.objective += high * written_by(in, &best);
    p->plan = best;
    return 0;
}

int placement_solve(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                    const struct plan_effort *effort, struct err *err)
{
    *p = (struct placement_plan){ .in = in, .solver = solver };
    in->move_price = 0;
    struct plan_problem problem = placement_problem(in);
    if (in->max_move < INT64_MAX ? solve_within(p, in, effort, err)
                                 : plan_solve(&p->plan, &problem, solver, effort, err))
        return err->code;
    if (!placement_check_pins(p, err))
        return 0;
    plan_release(&p->plan);
    return err->code;
}

void placement_moves(const struct placement_plan *p, struct placement_moves *moves)
{
    const struct placement_input *in = p->in;

    *moves = (struct placement_moves){ 0 };
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i], to = p->plan.placement[i].tier;
        int from = in->before[row].config < 0 ? -1 : in->before[row].tier;
        int64_t bytes = placement_written(in, row, p->plan.placement[i]);
        if (bytes == 0)
            continue;
        moves->at[from + 1][to].n++;
        moves->at[from + 1][to].bytes += (double)bytes;
    }
}
