/* utility.h - what a placement is worth. The one place where TTFT and utility are computed. */
#ifndef EVP_UTILITY_H
#define EVP_UTILITY_H

#include <stdint.h>

/* What planning must know of a storage tier. */
struct tier_speed {
    double latency_s, read_bytes_per_s;
};

/* Seconds to the first token: latency + bytes / bandwidth + decompress + question prefill. decompress_s NAN counts as
 * 0. */
double ttft_stored(struct tier_speed tier, int64_t bytes, double decompress_s, double question_s);

/* On `recompute`: the whole prefill, then the question. */
double ttft_recompute(double prefill_s, double question_s);

/* (alpha * quality - ttft) * frequency */
double utility(double alpha, double quality, double ttft_s, double frequency);

#endif
