/* load_work.c - threads that take the next piece until there is none; they are joined before load_share() returns. */
#include "loader/load/load_work.h"

#include <pthread.h>
#include <stdatomic.h>

enum { JOBS_MAX = 64 };

struct sharing {
    const struct load_work *work;
    atomic_int next, code;
    pthread_mutex_t lock; // for err
    struct err *err;
};

static void *work(void *arg)
{
    struct sharing *s = arg;
    struct err err;

    for (int i; !s->code && (i = atomic_fetch_add(&s->next, 1)) < s->work->n;) {
        if (!s->work->piece(s->work->arg, i, &err))
            continue;
        pthread_mutex_lock(&s->lock);
        if (!s->code)
            *s->err = err;
        s->code = err.code;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

int load_share(const struct load_work *w, struct err *err)
{
    struct sharing s = { .work = w, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err };
    pthread_t thread[JOBS_MAX];
    int n = 0, jobs = w->jobs < w->n ? w->jobs : w->n;

    while (n < jobs - 1 && n < JOBS_MAX && !pthread_create(&thread[n], NULL, work, &s))
        n++;
    work(&s);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return s.code;
}
