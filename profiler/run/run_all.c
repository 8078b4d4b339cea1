/* run_all.c - the loop over the contexts of a grid. */
#include "profiler/run/run_all.h"

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

int run_all(const struct run *run, struct shards *shards, const struct run_watch *watch, struct err *err)
{
    for (int i = 0; i < run->grid->n_work; i++)
        if (run->grid->work[i].n_open && run_context(run, shards, watch, &run->grid->work[i], err))
            return err->code;
    return 0;
}
