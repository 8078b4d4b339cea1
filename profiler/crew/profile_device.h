/* profile_device.h - one device of evp-profile: opened, with the model's weights, and its speed.
 *
 *     profile_device_open(&d, &want, &err);                  // backend; header and tokenizer of the model
 *     profile_device_plan(&d, &want, &grid, &watch, &err);   // memory
 *     profile_device_load(&d, &err);                         // reads the weights
 *     profile_device_speed(&d, &run, &err);                  // run has d.engine and d.session
 *     profile_device_close(&d);
 *
 * From open to close no process may be forked.
 */
#ifndef EVP_PROFILE_DEVICE_H
#define EVP_PROFILE_DEVICE_H

#include "engine/transformer/engine.h"
#include "profiler/run/run_all.h"

struct profile_want {
    const char *model; // as --model names it, or NULL
    const char *backend, *dtype;
    int device, n_threads;
    bool timed;
    uint64_t memory; // --memory
};

struct profile_device {
    struct engine *engine;
    struct session *session;
    char kind[32];  // of the backend
    char note[128]; // how it chose the dtype; "": it was given
    enum dtype dtype;
    struct engine_plan plan;
    struct engine_cost cost; // of all open work
    double speed;            // operations per second
};

int profile_device_open(struct profile_device *d, const struct profile_want *want, struct err *err) MUST_CHECK;

/* A context that does not fit in memory is told to watch->failed() and has nothing open afterwards. ERR_NOMEM: none
 * fits. */
int profile_device_plan(struct profile_device *d, const struct profile_want *want, struct grid *grid,
                        const struct run_watch *watch, struct err *err) MUST_CHECK;

int profile_device_load(struct profile_device *d, struct err *err) MUST_CHECK;

/* Sets cost and speed. */
int profile_device_speed(struct profile_device *d, const struct run *run, struct err *err) MUST_CHECK;

/* Writes the device into *made and gives it to the shards. ERR_FORMAT: they are of another device. */
int profile_device_made(const struct profile_device *d, struct table_made *made, struct shards *shards,
                        struct err *err) MUST_CHECK;

/* Zeroed is fine. kind, note and dtype stay. */
void profile_device_close(struct profile_device *d);

#endif
