/* seen.h - what users would have seen: a line of evp-replay's table. docs/formats/replay.md describes it. */
#ifndef EVP_SEEN_H
#define EVP_SEEN_H

#include "replay/policy.h"

/* How much of its prompt or context a request found, and where most of it was. */
struct seen_at {
    float found;
    int16_t config;
    int8_t tier; // PLAN_RECOMPUTE: nowhere
};

struct seen {
    double *ttft_s;         // (n)
    double *e2e_s;          // (n), or NULL: to the last token
    float *quality;         // (n)
    struct seen_at *at;     // (n)
    double found[TIER_MAX]; // sums of shares over the requests that count
};

struct seen_row {
    int n;                                    // requests that count
    double ttft_mean_s, ttft_s[3], ttft_ci_s; // percentiles 50, 95, 99; half of the 95 % interval
    double quality, quality_p5, below_floor, quality_ci;
    double e2e_s;                      // mean; NAN: nothing decodes
    double hits[TIER_MAX], recomputed; // mean shares of what requests find, and do not
    double token_hits;                 // share of all tokens that were found
};

/* Of the requests from world->warm on. quality_floor: of below_floor. */
int seen_row_of(struct seen_row *o, const struct replay_world *w, const struct seen *seen, double quality_floor,
                struct err *err) MUST_CHECK;

#endif
