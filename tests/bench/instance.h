/* instance.h - placement problems made up for benchmarks and tests, the same on every machine for a seed.
 *
 *   real    contexts as long as LongBench's rows (lognormal per dataset), 128 KiB of KV per token, Zipf(0.8)
 *           frequencies, 4 methods x 15 drops on GPU, DRAM, SSD (2.5, 9, 15 % of all bytes) and an unlimited remote
 *           tier
 *   nodes   the contexts of `real` on 8 nodes, each with a GPU, DRAM and SSD, an eighth of those above, and a way to
 * one remote tier, 20 % of all bytes: 32 tiers, 8 of them in a pool. Solved by kinds (planner/spread.h) from 20,000
 * contexts on unc     utilities unrelated to sizes weak    utilities near the size strong  utility = size + constant:
 * mass ties
 *
 * The last three have four limited tiers of 5, 10, 15, 20 % of the mean total (a tenth of it for unc).
 */
#ifndef EVP_INSTANCE_H
#define EVP_INSTANCE_H

#include "planner/plan.h"

#include <stdint.h>

enum instance_kind { INSTANCE_REAL, INSTANCE_UNC, INSTANCE_WEAK, INSTANCE_STRONG, INSTANCE_NODES };
enum { INSTANCE_CONFIGS = 60, INSTANCE_NODES_N = 8, INSTANCE_TIERS = 4, INSTANCE_TIERS_MAX = 4 * INSTANCE_NODES_N };

struct instance {
    enum instance_kind kind;
    int n;
    uint64_t seed;
    int n_tiers;
    int64_t capacity[INSTANCE_TIERS_MAX];
    int pool[INSTANCE_TIERS_MAX], kind_of[INSTANCE_TIERS_MAX];
    double per_byte[INSTANCE_TIERS_MAX], latency[INSTANCE_TIERS_MAX]; // seconds
    int64_t *full;                                                    // (n) bytes of the uncompressed context
    float *frequency;                                                 // (n)
    float *quality;                                                   // (n, 60): quality (real) or utility (others)
    int32_t *size; // (n, 60): in 64-byte units (real) or bytes (others)
};

int instance_make(struct instance *in, enum instance_kind kind, int n, uint64_t seed, struct err *err) MUST_CHECK;
void instance_release(struct instance *in);
struct plan_problem instance_problem(const struct instance *in);

/* Of `nodes`, the instance whose tiers are the kinds; borrows from *in. */
struct instance instance_kinds(const struct instance *in);

#endif
