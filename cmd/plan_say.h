/* plan_say.h - what evp-plan tells a person on stderr. */
#ifndef EVP_PLAN_SAY_H
#define EVP_PLAN_SAY_H

#include "placement/placement.h"

/* Warns of what was read but not used. */
void plan_say_left_out(const struct placement_left_out *left_out);

/* An element of the summary's list of plans. */
void plan_say_json(const struct placement_plan *p, const struct manifest *m);

/* The plan beside the baselines, each tier's fill and price, what is written, and how far the plan is from the best. */
void plan_say(const struct placement_plan *p, const struct manifest *m);

/* What planning with raw means would have come to. */
void plan_say_raw(const struct placement_plan *p, const struct placement_raw *raw);

/* A plan's predicted qualities against measured ones. */
void plan_say_audit(const struct placement_audit *a);

#endif
