/* lane.h - one policy at one rate: the requests through policy, tiers and GPUs.
 *
 *     struct lane lane = { .world = &world, .in = &input, .at = arrivals, .n_gpus = 1 };
 *     lane_run(&lane, "lru+kivi:bits=4", &err);
 *     ... lane.outcome, lane.sim ...
 *     lane_close(&lane);
 */
#ifndef EVP_LANE_H
#define EVP_LANE_H

#include "replay/seen.h"
#include "replay/policy.h"
#include "replay/simulate.h"

struct lane {
    const struct replay_world *world;
    struct placement_input *in;
    const int64_t *at; // (n) ns, rising
    int n_gpus;
    bool alone;           // each request after the one before
    double quality_floor; // of the share below it
    /* set */
    struct simulation sim;
    struct seen seen;
    struct seen_row outcome;
    double written, promised_ttft_s, promised_quality; // bytes; of the policy
    struct policy policy;                              // while it runs
};

int lane_run(struct lane *l, const char *policy, struct err *err) MUST_CHECK;
void lane_close(struct lane *l); // zeroed is fine

#endif
