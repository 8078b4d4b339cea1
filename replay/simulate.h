/* simulate.h - requests through storage tiers and GPUs, event by event: when the first tokens come.
 *
 *     arrival -> reads from the tiers, all at the same time -> decompression and prefill on a GPU -> first token
 *
 * With `gpu`, GPUs compute in steps for many requests at once, and decode (replay/steps.h). Without, one computes for
 * one request at a time, the one that is ready first comes first, and what follows the first token takes no time.
 *
 * A read waits for its tier's latency, then shares the tier's bandwidth (replay/reading.h). What is written to a tier
 * waits in a queue of at most WRITE_QUEUE_S seconds of writing, from which one write at a time shares the bandwidth
 * with the reads, in the background. What is read and computed, and what is then stored, the policy says; it stores
 * nothing for which a queue has no room.
 *
 * A request that has waited for a GPU looks again when its turn comes: what others have computed by then is still in
 * the GPU's memory, so that it is not read. A GPU for which nothing waits may work for the policy, a piece at a time: a
 * request that comes meanwhile waits until the piece is done, or, with steps, is computed along with it.
 *
 * Times are whole nanoseconds. Of events at the same time, the ends of reads come first, then those of steps, then the
 * end of the policy's work, then first tokens, then arrivals, each by the requests' numbers; so the results are the
 * same everywhere.
 */
#ifndef EVP_SIMULATE_H
#define EVP_SIMULATE_H

#include "base/err.h"
#include "formats/tiers.h"
#include "replay/steps.h"

enum { WRITE_QUEUE_S = 1 };

/* Per tier, for one request, and how many pieces it is in. */
struct sim_bytes {
    double at[TIER_MAX];
    int n;
    double kept; // of a request's context on the GPU; for steps
    /* of what is written */
    double room[TIER_MAX]; // bytes for which the queues have room, at the beginning
    double dropped;        // bytes for which they had none
};

/* Is there room to write to every tier? */
static inline bool sim_has_room(const struct sim_bytes *written, int n_tiers)
{
    for (int t = 0; t < n_tiers; t++)
        if (written->at[t] >= written->room[t])
            return false;
    return true;
}

struct sim_policy {
    /* What request i needs, which arrives now: *read is zeroed. Returns seconds of a GPU. */
    double (*arrive)(void *arg, int i, struct sim_bytes *read);
    /* Its turn has come, after it waited for a GPU, of which it needed gpu_s. Returns what it needs now. NULL: the
     * same. */
    double (*turn)(void *arg, int i, double gpu_s);
    /* Its first token is out. What is written now: *written is zeroed but for the room. */
    int (*finish)(void *arg, int i, struct sim_bytes *written, struct err *err);
    /* A GPU is idle. Returns the seconds of the policy's next piece of work; below 0: it has none. NULL: never. */
    double (*idle)(void *arg);
    /* That piece is done. What is written now: as for finish. */
    int (*worked)(void *arg, struct sim_bytes *written, struct err *err);
    void *arg;
};

struct simulation {
    const int64_t *at; // (n) ns, rising: when the requests arrive
    int n;
    const struct tiers *tiers;
    int n_gpus;
    bool alone; // each request comes when the one before has its first token, and nothing is being written
    struct sim_policy policy;
    const struct steps_gpu *gpu; // borrowed; NULL: one request at a time
    const int32_t *output;       // (n) borrowed, with `gpu`: tokens of the answers, at least 1
    double *ttft_s;              // (n) set
    double *e2e_s;               // (n) set with `gpu`, else NULL: to the last token
    /* for the shares and for checking; set */
    double gpu_busy_s, tier_busy_s[TIER_MAX], end_s;
    double tier_read_s[TIER_MAX]; // what the reads alone take, at the tier's highest bandwidth
    double in_system_s;           // integral of the requests in the system over time; by Little's law the sum of ttft_s
};

int simulate(struct simulation *s, struct err *err) MUST_CHECK;

#endif
