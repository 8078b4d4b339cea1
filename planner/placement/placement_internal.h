/* placement_internal.h - what the files of planner/placement share. */
#ifndef EVP_PLACEMENT_INTERNAL_H
#define EVP_PLACEMENT_INTERNAL_H

#include "planner/placement/placement.h"

#include <math.h>

/* The lowest quality that a row may have. */
static inline double placement_floor(const struct placement_input *in, int row)
{
    return fmax(in->rule[row].min_quality, in->min_quality);
}

/* Was a cell measured, and is it good enough? Its quality may be NAN. */
static inline bool placement_allowed(int64_t bytes, double quality, double min)
{
    return bytes >= 0 && quality >= min;
}

/* Recomputing is as good as the uncompressed cache. */
static inline double placement_quality(const struct placement_input *in, int row, struct plan_placement c)
{
    return c.tier == PLAN_RECOMPUTE ? 1 : in->table.quality_train[table_cell(&in->table, row, c.config)];
}

/* The same on the test questions; NAN: the config has no such answers. */
static inline double placement_quality_test(const struct placement_input *in, int row, struct plan_placement c)
{
    double quality = in->table.quality_test[table_cell(&in->table, row, c.config)];

    return c.tier == PLAN_RECOMPUTE && !isnan(quality) ? 1 : quality;
}

/* ERR_FAIL when a plan has a pinned context elsewhere than on its tier. */
int placement_check_pins(const struct placement_plan *p, struct err *err) MUST_CHECK;

#endif
