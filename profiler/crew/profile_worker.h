/* profile_worker.h - a process of evp-profile --devices: it opens one device and measures the contexts that it is told.
 *
 * Its socket carries whole messages. What the parent sends is an int: WORKER_LOAD after TOLD_OPEN, then a number of a
 * context after TOLD_READY and each TOLD_DONE. Closing the socket ends the worker, and so does the parent's death.
 */
#ifndef EVP_PROFILE_WORKER_H
#define EVP_PROFILE_WORKER_H

#include "profiler/crew/profile_device.h"

enum { WORKER_LOAD = -1 };

enum told {
    TOLD_OPEN,   // device: kind, note, dtype
    TOLD_UNFIT,  // context, why: it does not fit in the device's memory
    TOLD_READY,  // device: plan, cost, speed
    TOLD_TOKENS, // tokens, pace: so much more of the context is done
    TOLD_FAILED, // context, why: it failed; TOLD_DONE follows
    TOLD_DONE,   // timing: the context is in a shard, or failed
    TOLD_END,    // why: the device failed, or a shard cannot be written; nothing follows
};

struct worker_told {
    enum told what;
    int context; // its number in the grid
    int64_t tokens;
    struct pace pace;
    struct timing timing;
    struct profile_device device; // without engine and session
    struct err why;
};

/* What a worker takes along from its parent. */
struct worker_job {
    struct profile_want want;
    struct grid *grid;
    struct shards *shards; // locked by the parent, whose lock the worker shares
    struct table_made *made;
    const char *lineage;
    void (*failed)(const char *why, bool go_on); // a device of several; go_on: others are left
};

/* The whole life of a worker. `parent`: its parent's process number. */
_Noreturn void worker_live(const struct worker_job *job, int socket, int parent);

#endif
