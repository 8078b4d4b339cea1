/* lane.h - one policy at one rate: the requests through policy, tiers and GPUs.
 *
 *     struct lane lane = { .world = &world, .alpha = 1, .at = arrivals, .n_gpus = 1 };
 *     lane_run(&lane, "lru+kivi:bits=4", &err);
 *     ... lane.outcome, lane.sim ...
 *     lane_close(&lane);
 *
 * Lanes may run at the same time: they share the world, and nothing else.
 */
#ifndef EVP_LANE_H
#define EVP_LANE_H

#include "base/buf.h"
#include "replay/seen.h"
#include "replay/object_cache.h"
#include "replay/policy.h"
#include "replay/simulate.h"

struct lane {
    const struct replay_world *world;
    double alpha;
    const int64_t *at;       // (n) ns, rising; not read if `alone`
    const int64_t *capacity; // (T) borrowed; NULL: the world's
    int n_gpus;
    const struct steps_gpu *gpu; // borrowed; NULL: one request at a time, nothing decodes
    const int32_t *output;       // (n) borrowed, with `gpu`: tokens of the answers
    bool alone;                  // each request after the one before
    int64_t engine_bytes;        // of the GPUs, in which engines keep KV before any policy; 0: they keep none
    double quality_floor;        // of the share below it
    bool validate;               // adds up what is held after every request
    /* set */
    struct placement_input in; // the world's, with alpha and frequencies of its own
    struct simulation sim;
    struct seen seen;
    struct seen_row outcome;
    double written, dropped;                  // bytes, for the requests that count; dropped: no room to write them
    int64_t operations;                       // writes of a variant, for the same
    double promised_ttft_s, promised_quality; // of the policy
    int64_t profiled;                         // of the policy
    double profiling_s;
    double over;   // with `validate`: bytes above a tier's capacity after any request, 0 or less
    double little; // the same, relative error of Little's law: requests in the system, and the sum of their times
    struct policy policy; // while it runs
    struct object_cache engine;
    int16_t *engine_config; // (C) what the rows there were loaded in; 0: computed
};

int lane_run(struct lane *l, const char *policy, struct err *err) MUST_CHECK;
void lane_close(struct lane *l); // zeroed is fine

/* What worked for the largest share of the time to the last event: "gpu", or a tier. */
const char *lane_busiest(const struct lane *l, double *share);

/* Adds a sentence about what was busy for more than 95 % of the time. False: nothing was, or nobody waits. */
bool lane_saturated(const struct lane *l, struct buf *out);

#endif
