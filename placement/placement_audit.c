/* placement_audit.c - compares a plan's predicted qualities with those of contexts that were profiled in full. Uses no
 * predictions of its own: the interval is Student's, of the differences. */
#include "placement/placement_internal.h"

#include <stdlib.h>
#include <string.h>

/* Student's t with 95 % of draws in -t .. t, by the expansion of Fisher and Cornish (1960); to .01 from 3 degrees on.
 * */
static double student(int freedom)
{
    const double z = 1.959963984540054, v = freedom, z2 = z * z;

    return z * (1 + (z2 + 1) / (4 * v) + ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
                (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v));
}

/* Has every config answers to all train questions of a context? */
static bool is_full(const struct table *t, int row, int n_train)
{
    for (int v = 0; v < t->n_configs; v++)
        if (t->quality_train_n[table_cell(t, row, v)] != n_train)
            return false;
    return n_train > 0;
}

/* The measured quality of a placement. */
static double measured_quality(const struct table *t, int row, const struct placement *p)
{
    int config = table_find_config(t, p->config);

    return p->tier < 0 ? 1 : config < 0 ? (double)NAN : t->quality_train[table_cell(t, row, config)];
}

static void add(struct placement_audit *a, double predicted, double measured, double *squares)
{
    double off = measured - predicted, before = a->difference;

    a->n++;
    a->predicted += (predicted - a->predicted) / a->n;
    a->measured += (measured - a->measured) / a->n;
    a->difference += (off - before) / a->n;
    *squares += (off - before) * (off - a->difference);
}

int placement_audit(struct placement_audit *a, const struct table *t, const struct manifest *m, struct err *err)
{
    int *n_train = calloc((size_t)t->n_contexts + 1, sizeof(*n_train));
    double squares = 0;

    *a = (struct placement_audit){ 0 };
    if (!n_train)
        return err_nomem(err);
    for (int q = 0; q < t->n_questions; q++)
        n_train[t->question_context[q]] += strcmp(t->question_split[q], "train") == 0;
    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        int row = map_find(&t->ids, p->id, strlen(p->id));
        double measured = row >= 0 && is_full(t, row, n_train[row]) ? measured_quality(t, row, p) : (double)NAN;
        if (!isnan(measured))
            add(a, p->quality, measured, &squares);
    }
    free(n_train);
    if (a->n < 4)
        return err_set(
            err, ERR_FORMAT,
            "only %d contexts of the plan were profiled in full, too few for an audit: list more with evp-aim --audit",
            a->n);
    a->half_width = student(a->n - 1) * sqrt(squares / (a->n - 1) / a->n);
    return 0;
}
