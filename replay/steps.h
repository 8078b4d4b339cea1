/* steps.h - GPUs that compute for many requests at once, as vLLM and SGLang do: continuous batching (G. Yu et al.,
 * Orca, OSDI 2022) with prefills in pieces (A. Agrawal et al., Sarathi-Serve, OSDI 2024).
 *
 * A GPU works in steps. A step computes one token for every request that has its first one, and of prefills, in the
 * order in which they came, as much as STEP_TOKENS tokens of operations leave. It takes as long as its operations, or
 * as reading the weights and the KV of the requests that decode, whichever is longer. Between steps new requests join,
 * first come first served, while there are fewer than STEP_REQUESTS and memory holds the KV of all to their ends. So a
 * smaller variant makes steps shorter and lets more requests run.
 */
#ifndef EVP_STEPS_H
#define EVP_STEPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { STEP_TOKENS = 2048, STEP_REQUESTS = 256 }; // vLLM's max_num_batched_tokens and max_num_seqs

/* What a GPU is, with the model on it. */
struct steps_gpu {
    double token_s; // operations for a token
    double weights_bytes, kv_token_bytes, memory_bytes, bytes_per_s;
};

struct steps_job {
    int32_t request;
    int output;       // tokens of its answer, at least 1
    int left;         // of these to come; 0: the first one has not come
    double prefill_s; // operations before the first token, once it runs
    double part_s;    // of the step at hand
    double kv_bytes;  // now
};

/* A request begins to run: its operations before the first token. */
typedef double steps_turn(void *arg, int request);

/* Requests in the order of their coming. */
struct steps_queue {
    struct steps_job *at;
    int n, cap, first;
};

struct steps {
    const struct steps_gpu *gpu; // borrowed
    int n_gpus;
    struct steps_queue waiting, *running; // (n_gpus): running, of each GPU
    int64_t *ends;                        // (n_gpus) ns: of the step at hand; INT64_MAX: idle
    steps_turn *turn;                     // set by the caller after steps_open()
    void *turn_arg;
    double busy_s;
};

/* One of a request's tokens is out: its first, its last, or both. */
typedef int steps_token(void *arg, int request, bool first, bool last, struct err *err);

int steps_open(struct steps *s, const struct steps_gpu *gpu, int n_gpus, struct err *err) MUST_CHECK;
void steps_close(struct steps *s); // zeroed is fine

/* A request is ready. kv_bytes: of its context, on the GPU. */
int steps_add(struct steps *s, int64_t now, const struct steps_job *job, struct err *err) MUST_CHECK;

/* When the next step ends; INT64_MAX: all are idle. */
int64_t steps_next(const struct steps *s);

/* Is there a GPU without a step? Then nothing waits. */
bool steps_idle(const struct steps *s);

/* Ends the step that ends at steps_next(), and begins the GPU's next one. */
int steps_end(struct steps *s, steps_token *token, void *arg, struct err *err) MUST_CHECK;

#endif
