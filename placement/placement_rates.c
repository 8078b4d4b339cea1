/* placement_rates.c - from counts to expected uses, and what a plan brings in a log that planning has not seen.
 *
 * A count is not a rate: of contexts that came once few come again, and of those that came a hundred times most. How
 * many uses follow n is learned from two periods (H. Robbins, An empirical Bayes approach to statistics, 1956): over
 * the contexts whose count before was in n's class, the uses that came after, divided by those before. Classes double:
 * 1, 2, 3-4, 5-8, ...; one with few uses is drawn towards the ratio of all. n is the count now, and of the one before
 * as much as that ratio. In all as many uses are expected of the known contexts as that ratio says: the others are new
 * ones.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>

enum { CLASSES = 54, PRIOR_USES = 10 };

/* 0: no uses. Counts may decay, so they need not be whole. */
static int class_of(double count)
{
    int k = count > 0 ? 1 + (int)fmax(ceil(log2(fmax(count, 1))), 0) : 0;

    return k < CLASSES ? k : CLASSES - 1;
}

void placement_learn_rates(struct placement_input *in, const double *before)
{
    double uses[CLASSES] = { 0 }, next[CLASSES] = { 0 }, all = 0, all_next = 0;

    for (int row = 0; row < in->table.n_contexts; row++) {
        int k = class_of(before[row]);
        uses[k] += before[row];
        next[k] += in->frequency[row];
        all += before[row];
        all_next += k ? in->frequency[row] : 0;
    }
    double ratio = all > 0 ? all_next / all : 1, now = 0, expected = 0;

    for (int row = 0; row < in->table.n_contexts; row++) {
        double count = in->frequency[row] + ratio * before[row];
        int k = class_of(count);
        now += in->frequency[row];
        in->frequency[row] = count * (next[k] + PRIOR_USES * ratio) / (uses[k] + PRIOR_USES);
        expected += in->frequency[row];
    }
    for (int row = 0; row < in->table.n_contexts && expected > 0; row++)
        in->frequency[row] *= ratio * now / expected;
}

int placement_bring(const struct placement_plan *p, double *later, struct placement_brought *b, struct err *err)
{
    const struct placement_input *in = p->in;
    const struct plan_placement none = { 0, PLAN_RECOMPUTE };
    struct placement_input then = *in;

    struct placement_use *use;
    then.frequency = later;
    *b = (struct placement_brought){ 0 };
    if (placement_uses(&use, in, p->plan.placement, err))
        return err->code;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i];
        const struct plan_placement at = p->plan.placement[i];
        b->uses += later[row];
        b->promised +=
            placement_utility(in, row, at) - placement_utility(in, row, none) + in->frequency[row] * use_gain(use, i);
        b->brought +=
            placement_utility(&then, row, at) - placement_utility(&then, row, none) + later[row] * use_gain(use, i);
    }
    free(use);
    return 0;
}
