/* Work that several threads share is done once, whatever their number. */
#include "base/parallel.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

struct counting {
    atomic_int calls[1000], in_others, open_to_signals;
    pthread_t caller;
};

static void count(void *arg, int i)
{
    struct counting *c = arg;

    c->calls[i]++;
    if (pthread_equal(pthread_self(), c->caller))
        return;
    sigset_t shut;
    pthread_sigmask(SIG_BLOCK, NULL, &shut);
    c->in_others++;
    c->open_to_signals += !sigismember(&shut, SIGUSR1);
}

/* And leaves signals to the caller. */
Test(parallel, does_each_once)
{
    static struct counting c;

    cr_assert(parallel_threads() >= 1 && parallel_threads() <= 8);
    for (int n_threads = 0; n_threads <= 20; n_threads++)
        for (int n = 0; n <= 1000; n = 3 * n + 1) {
            c = (struct counting){ .caller = pthread_self() };
            parallel_do(n_threads, n, count, &c);
            for (int i = 0; i < 1000; i++)
                cr_assert_eq(c.calls[i], i < n, "%d of %d by %d threads", i, n, n_threads);
            cr_assert(n_threads > 1 || c.in_others == 0);
            cr_assert_eq(c.open_to_signals, 0);
        }
}

/* Counts after both sides have come here: only a thread beside the caller gets on. */
struct meeting {
    pthread_barrier_t both;
    struct counting c;
};

static void *meet(void *arg)
{
    struct meeting *m = arg;

    pthread_barrier_wait(&m->both);
    count(&m->c, 0);
    return NULL;
}

Test(parallel, works_beside_the_caller)
{
    static struct meeting m;

    m.c.caller = pthread_self();
    pthread_barrier_init(&m.both, NULL, 2);
    struct parallel_task *task = parallel_begin(meet, &m);
    cr_assert_not_null(task);
    pthread_barrier_wait(&m.both);
    parallel_end(task);
    cr_assert(m.c.calls[0] == 1 && m.c.in_others == 1 && m.c.open_to_signals == 0);
    pthread_barrier_destroy(&m.both);
}
