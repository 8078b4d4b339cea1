#include "planner/utility.h"

#include <math.h>

double ttft_stored(struct tier_speed tier, int64_t bytes, double decompress_s, double question_s)
{
    return tier.latency_s + (double)bytes / tier.read_bytes_per_s + (isnan(decompress_s) ? 0 : decompress_s) +
           question_s;
}

double ttft_recompute(double prefill_s, double question_s)
{
    return prefill_s + question_s;
}

double utility(double alpha, double quality, double ttft_s, double frequency)
{
    return (alpha * quality - ttft_s) * frequency;
}
