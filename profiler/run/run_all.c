/* run_all.c - the loop over the contexts of a grid. */
#include "profiler/run/run_all.h"

#include "base/clock.h"

int run_context(const struct run *run, struct shards *shards, const struct run_watch *watch, const struct work *w,
                struct err *err)
{
    struct table result;

    watch->begin(watch->arg, w);
    int code = run_work(run, w, &result, err);
    if (code == ERR_LOST || code == ERR_DEVICE)
        return err_wrap(err, "context '%s'", w->context->id);
    if (code) {
        watch->failed(watch->arg, w, err);
        return 0;
    }
    code = shards_put(shards, &result, err);
    table_release(&result);
    return code;
}

bool run_time_is_up(const struct run_watch *watch)
{
    return watch->until > 0 && clock_now() > watch->until;
}

int run_all(const struct run *run, struct shards *shards, const struct run_watch *watch, struct err *err)
{
    bool begun = false;

    for (int i = 0; i < run->grid->n_work; i++) {
        const struct work *w = &run->grid->work[i];
        if (!w->n_open)
            continue;
        if (begun && run_time_is_up(watch))
            watch->left(watch->arg, w);
        else if (run_context(run, shards, watch, w, err))
            return err->code;
        begun = true;
    }
    return 0;
}
