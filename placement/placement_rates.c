/* placement_rates.c - from counts to expected uses, and what a plan brings in a log that planning has not seen.
 *
 * A count is not a rate: of contexts that came once few come again, and of those that came a hundred times most. How
 * many uses follow n is learned from two periods (H. Robbins, An empirical Bayes approach to statistics, 1956): over
 * the contexts whose count before was in n's class, the uses that came after, divided by those before. Classes double:
 * 1, 2, 3-4, 5-8, ...; one with few uses is drawn towards the ratio of all. n is the count now, and of the one before
 * as much as that ratio. In all as many uses are expected of the known contexts as are now of those that the log
 * before had: the others are new ones.
 *
 * Their share is that of the uses now whose contexts the log before did not have, times what a longer log changes:
 * there are two now. I. J. Good's estimate (The population frequencies of species, Biometrika 1953) tells that: of the
 * uses that come, as many are of new contexts as were the first and only ones of theirs, in the log before and in both.
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

/* Contexts used once, per use. */
struct singles {
    double once, uses;
};

static void count_single(struct singles *s, double count)
{
    s->once += count > 0 && count <= 1;
    s->uses += count;
}

/* Notes a context that the log before did not have. */
static void add_newcomer(struct placement_newcomers *n, const struct table *t, int row, double uses)
{
    double s = ttft_recomputed(t->prefill_s[row], t->question_s[row]);

    n->uses += uses;
    n->gpu_s += uses * s;
    n->gpu_square += uses * s * s;
}

void placement_learn_rates(struct placement_input *in, const double *before, double unknown_uses)
{
    double uses[CLASSES] = { 0 }, next[CLASSES] = { 0 }, all = 0, all_next = 0;
    struct singles first = { 0 }, both = { 0 };
    struct placement_newcomers *n = &in->newcomers;

    for (int row = 0; row < in->table.n_contexts; row++) {
        int k = class_of(before[row]);
        uses[k] += before[row];
        next[k] += in->frequency[row];
        all += before[row];
        all_next += k ? in->frequency[row] : 0;
        if (k == 0 && in->frequency[row] > 0)
            add_newcomer(n, &in->table, row, in->frequency[row]);
        count_single(&first, before[row]);
        count_single(&both, before[row] + in->frequency[row]);
    }
    if (all <= 0) { // nothing is learned
        *n = (struct placement_newcomers){ 0 };
        return;
    }
    double ratio = all_next / all, now = 0, expected = 0, came = n->uses;

    for (int row = 0; row < in->table.n_contexts; row++) {
        double count = in->frequency[row] + ratio * before[row];
        int k = class_of(count);
        now += in->frequency[row];
        in->frequency[row] = count * (next[k] + PRIOR_USES * ratio) / (uses[k] + PRIOR_USES);
        expected += in->frequency[row];
    }
    for (int row = 0; row < in->table.n_contexts && expected > 0; row++)
        in->frequency[row] *= all_next / expected;
    double longer = first.once > 0 ? both.once / both.uses * first.uses / first.once : 1;
    double share = longer * (came + unknown_uses) / fmax(now + unknown_uses, 1e-300);
    share = fmin(share, 0.999); // some known use is always likely
    n->uses = share / (1 - share) * (all_next > 0 ? all_next : 1);
    n->gpu_s /= came > 0 ? came : 1;
    n->gpu_square /= came > 0 ? came : 1;
}

double placement_mean_of_all(const struct placement_input *in, double of_known, double of_newcomers)
{
    double uses = 0, new_uses = in->newcomers.uses;

    for (int row = 0; row < in->table.n_contexts; row++)
        uses += in->frequency[row];
    return ((uses > 0 ? uses * of_known : 0) + (new_uses > 0 ? new_uses * of_newcomers : 0)) / (uses + new_uses);
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
