/* profile_worker.c - one device, from opening it to the parent's last word. Prints nothing. */
#include "profiler/crew/profile_worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct worker {
    const struct worker_job *job;
    int socket;
    struct profile_device device;
    struct pace pace;
    struct timing timing;
    struct run run;
};

static void tell(const struct worker *w, const struct worker_told *told)
{
    if (send(w->socket, told, sizeof(*told), MSG_NOSIGNAL) != (ssize_t)sizeof(*told))
        _exit(1); // the parent is gone
}

/* false: there is nothing more to do. */
static bool hear(const struct worker *w, int *word)
{
    return recv(w->socket, word, sizeof(*word), 0) == (ssize_t)sizeof(*word);
}

static void tell_device(const struct worker *w, enum told what)
{
    struct worker_told told = { .what = what, .device = w->device };

    told.device.engine = NULL;
    told.device.session = NULL;
    tell(w, &told);
}

static void tell_why(const struct worker *w, enum told what, const struct work *context, const struct err *why)
{
    tell(w, &(struct worker_told){
                .what = what, .context = context ? (int)(context - w->job->grid->work) : -1, .why = *why });
}

static void on_unfit(void *arg, const struct work *context, const struct err *why)
{
    tell_why(arg, TOLD_UNFIT, context, why);
}

static void on_begin(void *arg, const struct work *context)
{
    struct worker *w = arg;

    (void)context;
    pace_skip(&w->pace);
}

static void on_failed(void *arg, const struct work *context, const struct err *why)
{
    tell_why(arg, TOLD_FAILED, context, why);
}

static void on_tokens(void *arg, int64_t tokens)
{
    struct worker *w = arg;

    tell(w, &(struct worker_told){ .what = TOLD_TOKENS, .tokens = tokens, .pace = w->pace });
}

/* Up to the first context. */
static int get_ready(struct worker *w, struct err *err)
{
    const struct worker_job *job = w->job;
    const struct run_watch watch = { .begin = on_begin, .failed = on_unfit, .arg = w };

    if (profile_device_plan(&w->device, &job->want, job->grid, &watch, err) || profile_device_load(&w->device, err))
        return err->code;
    w->run = (struct run){ .engine = w->device.engine,
                           .session = w->device.session,
                           .grid = job->grid,
                           .made = job->made,
                           .lineage = job->lineage,
                           .progress = on_tokens,
                           .arg = w,
                           .pace = &w->pace,
                           .timing = &w->timing };
    if (profile_device_made(&w->device, job->made, job->shards, err) || profile_device_speed(&w->device, &w->run, err))
        return err->code;
    tell_device(w, TOLD_READY);
    return 0;
}

static int work(struct worker *w, struct err *err)
{
    const struct run_watch watch = { .begin = on_begin, .failed = on_failed, .arg = w };
    int context;

    pace_begin(&w->pace, w->device.speed);
    w->timing.start = w->pace.last;
    while (hear(w, &context)) {
        if (run_context(&w->run, w->job->shards, &watch, &w->job->grid->work[context], err))
            return err->code;
        tell(w, &(struct worker_told){ .what = TOLD_DONE, .timing = w->timing });
    }
    return 0;
}

void worker_live(const struct worker_job *job, int socket, int parent)
{
    struct worker w = { .job = job, .socket = socket };
    struct err err;
    int word;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN); // they end the parent, and it the workers
    signal(SIGTERM, SIG_IGN);
    int code = profile_device_open(&w.device, &job->want, &err);
    if (!code)
        tell_device(&w, TOLD_OPEN);
    if (!code && !hear(&w, &word))
        code = 1;
    else if (!code)
        code = get_ready(&w, &err);
    if (!code)
        code = work(&w, &err);
    if (code < 0)
        tell_why(&w, TOLD_END, NULL, &err);
    profile_device_close(&w.device);
    _exit(code != 0);
}
