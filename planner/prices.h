/* prices.h - what a second of a GPU or of a tier costs while others wait for it, from what was measured.
 *
 * Exponential averages over the last PRICES_REQUESTS requests give the requests per second, how busy GPUs are and the
 * mean square of their jobs, and how busy tiers are with reads and writes. A job of a GPU costs its own time and what
 * others wait for it: the derivative of Pollaczek's and Khinchine's mean wait. A tier's bandwidth is shared equally
 * among the reads and writes in it (processor sharing): one more makes all others slower.
 *
 * Before the first request nobody waits, and a second is a use.
 */
#ifndef EVP_PRICES_H
#define EVP_PRICES_H

#include "planner/plan.h"

enum { PRICES_REQUESTS = 500 };

struct prices {
    int n_gpus, n_tiers; // set by the caller
    /* exponential sums; the caller adds to those of tiers, before the request they count for */
    double seconds, requests, gpu_s, gpu_s2;
    double read_s[PLAN_TIERS], write_s[PLAN_TIERS], written[PLAN_TIERS]; // written: bytes
    bool timed;                                                          // there was a request
    double first_s, last_s;                                              // of the requests
    /* derived at each request */
    double rate;                                // requests per second
    double gpu_linear, gpu_square;              // a job of s seconds costs gpu_linear * s + gpu_square * s^2
    double read[PLAN_TIERS], write[PLAN_TIERS]; // what a second of the tier costs
    double bytes_per_s[PLAN_TIERS];             // written
};

void prices_begin(struct prices *p); // the other fields are zero

/* A request at a time, in seconds; earlier than the last one counts as the same time. gpu_s: of its job. */
void prices_request(struct prices *p, double now_s, double gpu_s);

static inline double prices_gpu(const struct prices *p, double seconds)
{
    return (p->gpu_linear + p->gpu_square * seconds) * seconds;
}

#endif
