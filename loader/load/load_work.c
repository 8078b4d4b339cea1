/* load_work.c - base/parallel.h for work that may fail: keeps the first failure. */
#include "loader/load/load_work.h"

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

struct sharing {
    const struct load_work *work;
    atomic_int code;
    pthread_mutex_t lock; // protects err
    struct err *err;
};

static void work(void *arg, int i)
{
    struct sharing *s = arg;
    struct err err;

    if (s->code || !s->work->each(s->work->arg, i, &err))
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->code)
        *s->err = err;
    s->code = err.code;
    pthread_mutex_unlock(&s->lock);
}

int load_share(const struct load_work *w, struct err *err)
{
    struct sharing s = { .work = w, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err };

    parallel_do(w->jobs, w->n, work, &s);
    return s.code;
}
