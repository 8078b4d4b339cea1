/* parallel.c - each thread takes the next number until none is left. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS_GOOD = 8, THREADS_MAX = 64 };

struct job {
    void (*work)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next;
};

int parallel_cores(void)
{
    cpu_set_t usable;

    if (sched_getaffinity(0, sizeof(usable), &usable))
        return CPU_SETSIZE; /* more processors than the set holds */
    return CPU_COUNT(&usable);
}

int parallel_threads(void)
{
    int cores = parallel_cores();

    return cores < THREADS_GOOD ? cores : THREADS_GOOD;
}

static void *run(void *arg)
{
    struct job *job = arg;

    for (int i = job->next++; i < job->n; i = job->next++)
        job->work(job->arg, i);
    return NULL;
}

/* Starts up to n threads and returns how many. They block all signals, which are for the process's own threads. */
static int start(pthread_t *thread, int n, void *(*work)(void *arg), void *arg)
{
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    sigdelset(&all, SIGBUS); // blocked, it would end the process instead of calling its handler
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < n && !pthread_create(&thread[started], NULL, work, arg))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void parallel_do(int n_threads, int n, void (*work)(void *arg, int i), void *arg)
{
    struct job job = { .work = work, .arg = arg, .n = n };
    pthread_t thread[THREADS_MAX];
    int threads = n_threads < THREADS_MAX ? n_threads : THREADS_MAX, more = (threads < n ? threads : n) - 1;
    int started = more > 0 ? start(thread, more, run, &job) : 0;

    run(&job);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

struct parallel_task {
    pthread_t thread;
};

struct parallel_task *parallel_begin(void *(*work)(void *arg), void *arg)
{
    struct parallel_task *task = malloc(sizeof(*task));

    if (task && start(&task->thread, 1, work, arg) == 1)
        return task;
    free(task);
    return NULL;
}

void parallel_end(struct parallel_task *task)
{
    pthread_join(task->thread, NULL);
    free(task);
}
