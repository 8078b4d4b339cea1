/* gain_log.h - from request logs to what is replayed: a request's time, size and last block, and a sample of prompts to
 * measure tokens. Texts are cut into blocks of PREFIX_CHUNK bytes, known by their digests, and not kept; of traces
 * without texts the blocks are those of the trace.
 */
#ifndef EVP_GAIN_LOG_H
#define EVP_GAIN_LOG_H

#include "base/rng.h"
#include "logs/requests.h"
#include "replay/stamp.h"

/* A request of a log. */
struct gain_request {
    double at;      // arrival in seconds
    int64_t units;  // its prompt
    int32_t block;  // the last block of its prompt; -1: it has none
    int32_t number; // its place in the log
    int32_t output; // tokens of its answer; 0: not known
};

enum { GAIN_SAMPLE = 256, GAIN_SAMPLE_BYTES = 16 << 10 }; // prompts of the sample, and bytes of each

/* What would come again if nothing changed near the beginning of prompts. */
struct gain_stamps {
    int64_t n;                       // prompts that are alike but for a few bytes; 0: the rest is not set
    const struct prompt_stamp *best; // most of them are like this
    double share, share_now;         // of the bytes of all prompts: comes again without what changes, and with it
};

struct gain_log {
    struct {
        struct gain_request *at;
        int n, cap;
    } requests;      // in the order of the logs
    int32_t *parent; // (n_blocks)
    int n_blocks;
    bool traces;         // units are tokens; false: bytes
    int32_t block_units; // of a block: of the traces, or PREFIX_CHUNK
    int64_t units;       // of all prompts
    int64_t n_timeless;
    struct buf sample[GAIN_SAMPLE];
    struct stamps stamps; // of texts
    struct gain_stamps stamped;
    struct trace_facts facts; // of the first rows of traces
    /* while reading */
    struct prefix_tree tree;
    struct rng rng;
};

/* Reads the logs, which are open. A request without a time gets that of the one before it; if none has a time, all stay
 * NaN. ERR_FORMAT: no requests, or both texts and traces. */
int gain_log_read(struct gain_log *g, struct requests *rq, struct err *err) MUST_CHECK;
/* Sets `stamped`, after gain_log_read(). Reads the logs again, if prompts are alike but for a few bytes. */
int gain_log_stamps(struct gain_log *g, struct requests *rq, struct err *err) MUST_CHECK;
void gain_log_release(struct gain_log *g); // zeroed is fine

#endif
