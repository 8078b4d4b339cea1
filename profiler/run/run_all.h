/* run_all.h - every context of a grid that has something open, one after another: measured by run_work(), kept by
 * shards_put(). What one context's failure means to the others is decided here.
 */
#ifndef EVP_RUN_ALL_H
#define EVP_RUN_ALL_H

#include "profiler/run/run.h"

/* Whom to tell. */
struct run_watch {
    void (*begin)(void *arg, const struct work *w);
    void (*failed)(void *arg, const struct work *w, const struct err *why); // the others go on
    void *arg;
};

/* A context that fails is told to watch->failed() and left out. Some failures end the run, because every later context
 * would meet them too: ERR_LOST, ERR_DEVICE, and a result that cannot be kept. What is in the shards then stays there.
 */
int run_all(const struct run *run, struct shards *shards, const struct run_watch *watch, struct err *err) MUST_CHECK;

#endif
