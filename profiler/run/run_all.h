/* run_all.h - takes every context of a grid with open work, one after another: run_work() measures it, shards_put()
 * keeps it. Decides which failures end the run.
 */
#ifndef EVP_RUN_ALL_H
#define EVP_RUN_ALL_H

#include "profiler/run/run.h"

/* Callbacks. */
struct run_watch {
    void (*begin)(void *arg, const struct work *w);
    void (*failed)(void *arg, const struct work *w, const struct err *why); // the others go on
    void *arg;
};

/* Reports a context that fails to watch->failed() and leaves it out. Failures that every later context would meet too
 * end the run: ERR_LOST, ERR_DEVICE, and a result that cannot be written. The shards keep their results.
 */
int run_all(const struct run *run, struct shards *shards, const struct run_watch *watch, struct err *err) MUST_CHECK;

#endif
