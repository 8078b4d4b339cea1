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
    void (*left)(void *arg, const struct work *w);                          // it is not begun, as its time is up
    void *arg;
    double until; // clock_now() after which none is begun, but for the first; 0: never
};
bool run_time_is_up(const struct run_watch *watch);

/* One context. One that fails is told to watch->failed(), and 0 is returned. Failures that every later context would
 * meet too are returned: ERR_LOST, ERR_DEVICE, and a result that cannot be written. */
int run_context(const struct run *run, struct shards *shards, const struct run_watch *watch, const struct work *w,
                struct err *err) MUST_CHECK;

/* All, up to such a failure. The shards keep their results. */
int run_all(const struct run *run, struct shards *shards, const struct run_watch *watch, struct err *err) MUST_CHECK;

#endif
