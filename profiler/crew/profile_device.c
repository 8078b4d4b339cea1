/* profile_device.c - opens a device, loads the model, measures the speed. */
#include "profiler/crew/profile_device.h"

#include "profiler/crew/profile_memory.h"

#include <stdio.h>
#include <stdlib.h>

int profile_device_open(struct profile_device *d, const struct profile_want *want, struct err *err)
{
    struct engine_options options = { .backend = want->backend,
                                      .dtype = want->dtype,
                                      .n_threads = want->n_threads,
                                      .device = want->device,
                                      .timed = want->timed };
    char *path = model_path(want->model, err);

    options.model = path;
    d->engine = path ? engine_open(&options, err) : NULL;
    free(path);
    if (!d->engine)
        return err->code;
    const struct backend *be = engine_backend(d->engine);
    snprintf(d->kind, sizeof(d->kind), "%s", be->kind);
    snprintf(d->note, sizeof(d->note), "%s", be->note ? be->note : "");
    d->dtype = be->dtype;
    return 0;
}

int profile_device_plan(struct profile_device *d, const struct profile_want *want, struct grid *grid,
                        const struct run_watch *watch, struct err *err)
{
    d->plan = (struct engine_plan){ .limit = want->memory };
    return profile_memory(grid, d->engine, &d->plan, watch, err);
}

int profile_device_load(struct profile_device *d, struct err *err)
{
    if (engine_load(d->engine, &d->plan, err))
        return err->code;
    d->session = session_new(d->engine, err);
    return d->session ? 0 : err->code;
}

/* The first context with open answers. */
static const struct work *first_open(const struct grid *g)
{
    const struct work *w = g->work;

    while (w->n_open == 0)
        w++;
    return w;
}

int profile_device_speed(struct profile_device *d, const struct run *run, struct err *err)
{
    if (grid_cost(run->grid, d->engine, &d->cost, err))
        return err->code;
    return run_speed(run, first_open(run->grid), &d->speed, err);
}

int profile_device_made(const struct profile_device *d, struct table_made *made, struct shards *shards, struct err *err)
{
    made->backend = d->kind;
    made->dtype = dtype_name(d->dtype);
    return shards_set_made(shards, made, err);
}

void profile_device_close(struct profile_device *d)
{
    session_free(d->session);
    engine_close(d->engine);
    d->session = NULL;
    d->engine = NULL;
}
