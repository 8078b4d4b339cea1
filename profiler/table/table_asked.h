/* table_asked.h - what follows from the times at which a table's questions were asked last. Ages count back from the
 * newest question, not from a clock, so the same inputs give the same table. A question without a time is as new as the
 * newest.
 */
#ifndef EVP_TABLE_ASKED_H
#define EVP_TABLE_ASKED_H

#include "formats/context.h"
#include "profiler/table/table.h"

/* The weight of each question (Q), which halves for every `half_life` seconds; 0: all are 1. One too small to matter is
 * 0. NULL with an error; freed by the caller. */
double *table_asked_weights(const struct table *t, double half_life, struct err *err) MUST_CHECK;

/* Leaves out questions asked more than `seconds` before the newest. Their contexts stay. */
int table_asked_since(struct table *t, double seconds, struct err *err) MUST_CHECK;

/* What a run knows. */
struct table_asked_run {
    const struct questions *questions;
    const struct map *contexts; // ids that stay
    double forget;              // seconds; 0: for ever
};

/* Brings newer times of the run's questions into the table. Leaves out contexts whose newest question was asked more
 * than `forget` before the newest of all, but none without any time, and not all. Returns 1 if the table changed, 0, or
 * an error. *n_forgotten: contexts. */
int table_asked_renew(struct table *t, const struct table_asked_run *a, int *n_forgotten, struct err *err) MUST_CHECK;

#endif
