/* seen.h - what users would have seen: a line of evp-replay's table. docs/formats/replay.md describes it. */
#ifndef EVP_SEEN_H
#define EVP_SEEN_H

#include "replay/policy.h"

/* Of each request, (n). */
struct seen {
    double *ttft_s;
    float *quality;
    struct plan_placement *at; // where its context was found
};

struct seen_row {
    int n;                                    // requests that count
    double ttft_mean_s, ttft_s[3], ttft_ci_s; // percentiles 50, 95, 99; half of the 95 % interval
    double quality, quality_p5, below_floor, quality_ci;
    double hits[TIER_MAX], recomputed; // shares of the requests
    double byte_hits;                  // share of the contexts' uncompressed bytes that were found
};

/* Of the requests from world->warm on. quality_floor: of below_floor. */
int seen_row_of(struct seen_row *o, const struct replay_world *w, const struct seen *seen, double quality_floor,
                struct err *err) MUST_CHECK;

#endif
