/* profile_crew.c - the parent of the workers: hears what they tell, and deals out contexts. */
#include "profiler/crew/profile_crew.h"

#include "base/parallel.h"
#include "profiler/crew/device_list.h"
#include "profiler/run/deal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum state { OPENING, OPEN, LOADING, READY, WORKS, GONE };

struct member {
    int device; // its number
    pid_t process;
    int socket; // -1: closed
    enum state state;
    int context;    // that it works on
    int64_t tokens; // of it, so far
    struct pace pace;
    struct timing timing;
    struct profile_device opened;
};

struct crew {
    struct worker_job job;
    const struct run *run; // NULL before crew_run()
    const struct run_watch *watch;
    struct member at[DEVICES_MAX];
    int n, n_failed;
    struct deal *deal;
    char **unfit;     // (n_work) why a context does not fit a device; NULL: it does
    struct err first; // the first device's failure
    struct err stop;  // a failure that ends the run; code 0: none
};

/* ---- what became of them -------------------------------------------------------- */

static int n_in(const struct crew *c, enum state state)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        n += c->at[i].state == state;
    return n;
}

static int n_alive(const struct crew *c)
{
    return c->n - n_in(c, GONE);
}

static const struct work *context_of(const struct crew *c, int context)
{
    return &c->job.grid->work[context];
}

static void gone(struct crew *c, struct member *m, const struct err *why)
{
    struct err reason = *why;

    close(m->socket);
    m->socket = -1;
    m->state = GONE;
    c->n_failed++;
    err_wrap(&reason, "device %d", m->device);
    if (c->first.code == 0)
        c->first = reason;
    if (c->n > 1)
        c->job.failed(reason.msg, n_alive(c) > 0);
    if (c->run && m->tokens)
        c->run->progress(c->run->arg, -m->tokens);
    int given_up = deal_lost(c->deal, (int)(m - c->at));
    if (given_up >= 0) {
        err_set(&reason, ERR_LOST, "two devices failed at it");
        c->watch->failed(c->watch->arg, context_of(c, given_up), &reason);
    }
}

/* Waits for the end of a process, but not for ever: a broken device can keep it from ending. false: it did not. */
static bool reap(struct member *m, int *status)
{
    enum { TRIES = 1000, TRY_MS = 10 };

    for (int i = 0; i < TRIES && m->process > 0; i++)
        if (waitpid(m->process, status, WNOHANG) != 0)
            m->process = 0;
        else
            poll(NULL, 0, TRY_MS);
    return m->process == 0;
}

/* A process that ended without a word. */
static void gone_silently(struct crew *c, struct member *m)
{
    struct err why;
    int status = 0;

    if (!reap(m, &status))
        err_set(&why, ERR_LOST, "its process fell silent");
    else if (WIFSIGNALED(status))
        err_set(&why, ERR_LOST, "its process was killed by signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else
        err_set(&why, ERR_LOST, "its process ended with status %d", WEXITSTATUS(status));
    gone(c, m, &why);
}

/* ---- what they tell ---------------------------------------------------------------- */

/* The rates of all that work together: a second is a second of each. */
static void add_tokens(struct crew *c, struct member *m, const struct worker_told *told)
{
    struct pace *all = c->run->pace;

    m->tokens += told->tokens;
    m->pace = told->pace;
    for (int k = 0; k < PACE_KINDS; k++) {
        all->of[k].done = all->of[k].seconds = 0;
        for (int i = 0; i < c->n; i++) {
            all->of[k].done += c->at[i].pace.of[k].done;
            all->of[k].seconds += c->at[i].pace.of[k].seconds / n_alive(c);
        }
    }
    c->run->progress(c->run->arg, told->tokens);
}

static void add_unfit(struct crew *c, struct member *m, const struct worker_told *told)
{
    deal_unfit(c->deal, (int)(m - c->at), told->context);
    if (!c->unfit[told->context])
        c->unfit[told->context] = strdup(told->why.msg);
}

static void end_context(struct crew *c, struct member *m, const struct worker_told *told)
{
    deal_done(c->deal, (int)(m - c->at));
    m->timing = told->timing;
    m->tokens = 0;
    m->state = READY;
    c->job.shards->fresh = true;
}

/* A device that fails in its work is one failure of several; a result that cannot be written ends the run. */
static void end_member(struct crew *c, struct member *m, const struct worker_told *told)
{
    bool device = told->why.code == ERR_LOST || told->why.code == ERR_DEVICE;

    if (m->state == WORKS && !device)
        c->stop = told->why;
    else
        gone(c, m, &told->why);
}

static void take(struct crew *c, struct member *m, const struct worker_told *told)
{
    switch (told->what) {
    case TOLD_OPEN:
    case TOLD_READY:
        m->opened = told->device;
        m->state = told->what == TOLD_OPEN ? OPEN : READY;
        break;
    case TOLD_UNFIT: add_unfit(c, m, told); break;
    case TOLD_TOKENS: add_tokens(c, m, told); break;
    case TOLD_FAILED: c->watch->failed(c->watch->arg, context_of(c, told->context), &told->why); break;
    case TOLD_DONE: end_context(c, m, told); break;
    case TOLD_END: end_member(c, m, told); break;
    }
}

/* Waits for the next messages and takes one of each member. */
static void hear(struct crew *c)
{
    struct pollfd from[DEVICES_MAX];

    for (int i = 0; i < c->n; i++)
        from[i] = (struct pollfd){ .fd = c->at[i].socket, .events = POLLIN };
    if (poll(from, (nfds_t)c->n, -1) <= 0)
        return;
    for (int i = 0; i < c->n; i++) {
        struct worker_told told;
        if (!from[i].revents)
            continue;
        if (recv(c->at[i].socket, &told, sizeof(told), 0) == (ssize_t)sizeof(told))
            take(c, &c->at[i], &told);
        else
            gone_silently(c, &c->at[i]);
    }
}

/* One that does not hear has ended, which its socket tells. */
static void say(struct member *m, int word, enum state next)
{
    m->state = next;
    (void)!send(m->socket, &word, sizeof(word), MSG_NOSIGNAL);
}

/* ERR_... with the first failure when none is alive. */
static int check_alive(const struct crew *c, struct err *err)
{
    if (n_alive(c))
        return 0;
    *err = c->first;
    return c->n > 1 ? err_wrap(err, "all devices failed") : err->code;
}

/* ---- start -------------------------------------------------------------------------- */

/* The child keeps only its own socket. */
static int start(struct crew *c, int device, struct err *err)
{
    struct member *m = &c->at[c->n];
    struct worker_job job = c->job;
    int ends[2], parent = (int)getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return err_set(err, ERR_FAIL, "cannot make a socket: %s", strerror(errno));
    *m = (struct member){ .device = device, .socket = ends[0], .process = fork(), .context = -1 };
    if (m->process == 0) {
        for (int i = 0; i <= c->n; i++)
            close(c->at[i].socket);
        job.want.device = device;
        worker_live(&job, ends[1], parent);
    }
    int why = errno;
    close(ends[1]);
    c->n++;
    return m->process < 0 ? err_set(err, ERR_FAIL, "cannot start a process: %s", strerror(why)) : 0;
}

/* Answers of devices of several kinds may differ in their last bits. */
static int check_kinds(const struct crew *c, struct profile_device *all, struct err *err)
{
    const struct member *first = NULL;

    for (int i = 0; i < c->n; i++) {
        const struct member *m = &c->at[i];
        if (m->state == GONE)
            continue;
        first = first ? first : m;
        if (strcmp(m->opened.kind, first->opened.kind) != 0)
            return err_set(err, ERR_USAGE,
                           "--devices: device %d is %s, device %d %s; each kind needs a file of its own", first->device,
                           first->opened.kind, m->device, m->opened.kind);
    }
    *all = first->opened;
    return 0;
}

static int start_all(struct crew *c, const struct device_list *devices, struct profile_device *all, struct err *err)
{
    for (int i = 0; i < devices->n; i++)
        if (start(c, devices->at[i], err))
            return err->code;
    while (n_in(c, OPENING))
        hear(c);
    return check_alive(c, err) ? err->code : check_kinds(c, all, err);
}

/* A worker's share of the threads. */
static int share_of(int n_threads, int n_devices)
{
    int share = (n_threads ? n_threads : parallel_cores()) / n_devices;

    return share < 1 ? 1 : share < parallel_threads() ? share : parallel_threads();
}

struct crew *crew_start(const struct worker_job *job, const char *devices, struct profile_device *all, struct err *err)
{
    struct device_list list;
    struct crew *c = calloc(1, sizeof(*c));
    int code = c ? device_list_read(&list, devices, err) : err_nomem(err);

    if (!code) {
        c->job = *job;
        c->job.want.n_threads = share_of(job->want.n_threads, list.n);
        c->unfit = calloc((size_t)job->grid->n_work + 1, sizeof(*c->unfit));
        c->deal = c->unfit ? deal_new(job->grid, list.n, err) : NULL;
        code = c->deal ? start_all(c, &list, all, err) : c->unfit ? err->code : err_nomem(err);
    }
    if (!code)
        return c;
    crew_end(c, NULL);
    return NULL;
}

/* ---- work ---------------------------------------------------------------------------- */

/* Contexts that no device can hold. */
static void give_up_unfit(struct crew *c)
{
    for (int i; (i = deal_stranded(c->deal)) >= 0;) {
        struct err why;
        err_set(&why, ERR_NOMEM, "%s", c->unfit[i] ? c->unfit[i] : "");
        c->job.grid->work[i].n_open = 0;
        if (c->unfit[i])
            c->watch->failed(c->watch->arg, context_of(c, i), &why);
    }
}

int crew_load(struct crew *c, const struct run_watch *watch, struct profile_device *all, struct err *err)
{
    double most = -1;

    c->watch = watch;
    for (int i = 0; i < c->n; i++)
        if (c->at[i].state == OPEN)
            say(&c->at[i], WORKER_LOAD, LOADING);
    while (n_in(c, LOADING))
        hear(c);
    give_up_unfit(c);
    for (int i = 0; i < c->n; i++) {
        const struct profile_device *d = &c->at[i].opened;
        double flop = d->cost.prefill_flop + d->cost.side_flop + d->cost.decode_flop;
        if (c->at[i].state != READY)
            continue;
        all->speed += d->speed;
        if (flop > most) {
            all->plan = d->plan;
            all->cost = d->cost;
            most = flop;
        }
    }
    return check_alive(c, err);
}

static void deal_out(struct crew *c)
{
    for (int i = 0; i < c->n; i++) {
        int context = c->at[i].state == READY ? deal_next(c->deal, i) : -1;
        if (context < 0)
            continue;
        c->watch->begin(c->watch->arg, context_of(c, context));
        say(&c->at[i], context, WORKS);
    }
}

int crew_run(struct crew *c, const struct run *run, const struct run_watch *watch, struct err *err)
{
    c->run = run;
    c->watch = watch;
    deal_out(c);
    while (!deal_is_over(c->deal) && n_alive(c) && !c->stop.code) {
        hear(c);
        if (n_alive(c))
            give_up_unfit(c);
        for (int i; run_time_is_up(watch) && (i = deal_drop(c->deal)) >= 0;)
            watch->left(watch->arg, context_of(c, i));
        deal_out(c);
    }
    if (c->stop.code)
        *err = c->stop;
    return c->stop.code ? err->code : check_alive(c, err);
}

int crew_size(const struct crew *c, int *n_failed)
{
    *n_failed = c->n_failed;
    return c->n;
}

/* ---- end ------------------------------------------------------------------------------ */

void crew_end(struct crew *c, struct timing *timing)
{
    int status;

    if (!c)
        return;
    for (int i = 0; i < c->n; i++) {
        struct member *m = &c->at[i];
        if (m->process > 0 && m->state != READY)
            kill(m->process, SIGKILL); // it failed, or is in the middle of something that nobody waits for
        if (m->socket >= 0)
            close(m->socket);
    }
    for (int i = 0; i < c->n; i++) {
        reap(&c->at[i], &status);
        if (timing)
            timing_unite(timing, &c->at[i].timing);
    }
    for (int i = 0; c->unfit && i < c->job.grid->n_work; i++)
        free(c->unfit[i]);
    free(c->unfit);
    deal_free(c->deal);
    free(c);
}
