/* seen.h - what users would have seen: a line of evp-replay's table. docs/formats/replay.md describes it. */
#ifndef EVP_SEEN_H
#define EVP_SEEN_H

#include "replay/policy.h"

struct seen {
    double *ttft_s;        // (n)
    double *e2e_s;         // (n), or NULL: to the last token
    const int32_t *output; // (n) borrowed: tokens of the answers
    float *quality;        // (n)
    double *share;         // (n, T): of its prompt or context, found in each tier
    double *in_memory;     // (n): found in the memory of the GPUs
    int16_t *config;       // (n): of what was found
};

struct seen_row {
    int n;                                    // requests that count
    double ttft_mean_s, ttft_s[3], ttft_ci_s; // percentiles 50, 95, 99; half of the 95 % interval
    double quality, quality_p5, below_floor, quality_ci;
    double e2e_s, itl_s;                // means; NAN: nothing decodes
    double hits[TIER_MAX], recomputed;  // mean shares of what requests find, and do not
    double token_hits[TIER_MAX];        // shares of all tokens
    double in_memory, tokens_in_memory; // the same of the memory of the GPUs
};

/* The share of request i's prompt or context that was found in some tier or in memory. */
double seen_found(const struct seen *seen, int n_tiers, int64_t i);

/* Of the requests from world->warm on. quality_floor: of below_floor. */
int seen_row_of(struct seen_row *o, const struct replay_world *w, const struct seen *seen, double quality_floor,
                struct err *err) MUST_CHECK;

#endif
