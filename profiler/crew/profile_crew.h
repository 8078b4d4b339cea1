/* profile_crew.h - evp-profile --devices: a process for each device, and the contexts dealt to them.
 *
 *     crew_start(&job, "0,1", &all, &err);        // forks; each opens its device
 *     crew_load(c, &watch, &all, &err);           // each reads the weights and measures its speed
 *     crew_run(c, &run, &watch, &err);            // as run_all()
 *     crew_end(c, &timing);
 *
 * A device that fails is reported and loses its context to the others (profiler/run/deal.h).
 */
#ifndef EVP_PROFILE_CREW_H
#define EVP_PROFILE_CREW_H

#include "profiler/crew/profile_worker.h"

struct crew;

/* devices: the value of --devices. The workers share the threads of job->want (0: all cores) to read the weights.
 * *all: kind, note and dtype. ERR_USAGE: devices of several kinds, or that are not there. Only when all devices fail,
 * so does this, with the first one's reason; the same holds for crew_load() and crew_run(). The job must outlive the
 * crew. NULL with an error. */
struct crew *crew_start(const struct worker_job *job, const char *devices, struct profile_device *all, struct err *err);

/* *all: the plan and the cost of the device that can do the most; the speed of all together. A context that fits no
 * device is told to watch->failed(). */
int crew_load(struct crew *c, const struct run_watch *watch, struct profile_device *all, struct err *err) MUST_CHECK;

/* run: grid, progress, pace. */
int crew_run(struct crew *c, const struct run *run, const struct run_watch *watch, struct err *err) MUST_CHECK;

/* The number of devices, and how many of them failed. */
int crew_size(const struct crew *c, int *n_failed);

/* Ends the workers, and adds their timing. NULL is fine. */
void crew_end(struct crew *c, struct timing *timing);

#endif
