/* plan_say.h - evp-plan's messages on stderr. */
#ifndef EVP_PLAN_SAY_H
#define EVP_PLAN_SAY_H

#include "logs/access.h"
#include "placement/placement.h"

/* Warns about input that was read but not used. */
void plan_say_left_out(const struct placement_left_out *left_out);

/* An element of the summary's list of plans. */
void plan_say_json(const struct placement_plan *p, const struct manifest *m, const struct placement_bill *bill);

/* The plan and the baselines, each tier's fill and price, the writes, and the gap to the best plan. */
void plan_say(const struct placement_plan *p, const struct manifest *m, const struct placement_bill *bill);

/* What the plan brings in a later log. */
void plan_say_brought(const struct placement_brought *b, const struct access_log *log);

/* A plan from raw means, compared with this one. */
void plan_say_raw(const struct placement_plan *p, const struct placement_raw *raw);

#endif
