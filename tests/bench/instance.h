/* instance.h - placement problems made up for benchmarks and tests, the same on every machine for a seed.
 *
 *   real    contexts as long as LongBench's rows (lognormal per dataset), 128 KiB of KV per token, Zipf(0.8)
 *           frequencies, 4 methods x 15 drops on GPU, DRAM, SSD (2.5, 9, 15 % of all bytes) and an unlimited remote
 *           tier
 *   unc     utilities unrelated to sizes
 *   weak    utilities near the size
 *   strong  utility = size + constant: mass ties
 *
 * The last three have four limited tiers of 5, 10, 15, 20 % of the mean total (a tenth of it for unc).
 */
#ifndef EVP_INSTANCE_H
#define EVP_INSTANCE_H

#include "planner/plan.h"

#include <stdint.h>

enum instance_kind { INSTANCE_REAL, INSTANCE_UNC, INSTANCE_WEAK, INSTANCE_STRONG };
enum { INSTANCE_CONFIGS = 60, INSTANCE_TIERS = 4 };

struct instance {
    enum instance_kind kind;
    int n;
    uint64_t seed;
    int64_t capacity[INSTANCE_TIERS];
    int64_t *full;    // (n) bytes of the uncompressed context
    float *frequency; // (n)
    float *quality;   // (n, 60): quality (real) or utility (others)
    int32_t *size;    // (n, 60): in 64-byte units (real) or bytes (others)
};

int instance_make(struct instance *in, enum instance_kind kind, int n, uint64_t seed, struct err *err) MUST_CHECK;
void instance_release(struct instance *in);
struct plan_problem instance_problem(const struct instance *in);

#endif
