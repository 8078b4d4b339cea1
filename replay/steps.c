/* steps.c - a list of running requests for each GPU. */
#include "replay/steps.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

static const double ns_per_s = 1e9;

int steps_open(struct steps *s, const struct steps_gpu *gpu, int n_gpus, struct err *err)
{
    *s = (struct steps){ .gpu = gpu, .n_gpus = n_gpus };
    s->running = calloc((size_t)n_gpus, sizeof(*s->running));
    s->ends = malloc((size_t)n_gpus * sizeof(*s->ends));
    if (!s->running || !s->ends) {
        steps_close(s);
        return err_nomem(err);
    }
    for (int g = 0; g < n_gpus; g++)
        s->ends[g] = INT64_MAX;
    return 0;
}

void steps_close(struct steps *s)
{
    for (int g = 0; g < s->n_gpus && s->running; g++)
        free(s->running[g].at);
    free(s->running);
    free(s->waiting.at);
    free(s->ends);
    *s = (struct steps){ 0 };
}

/* Bytes of a request at its end. */
static double final_bytes(const struct steps *s, const struct steps_job *job)
{
    int to_come = job->left ? job->left : job->output;

    return job->kv_bytes + to_come * s->gpu->kv_token_bytes;
}

static int admit(struct steps *s, int g, struct err *err)
{
    struct steps_queue *running = &s->running[g];
    double used = s->gpu->weights_bytes;

    for (int i = 0; i < running->n; i++)
        used += final_bytes(s, &running->at[i]);
    while (s->waiting.first < s->waiting.n && running->n < STEP_REQUESTS) {
        struct steps_job job = s->waiting.at[s->waiting.first];
        used += final_bytes(s, &job);
        if (used > s->gpu->memory_bytes && running->n > 0)
            return 0; // alone, a request runs anyway
        job.prefill_s = s->turn(s->turn_arg, job.request);
        if (ARRAY_PUSH(running, job))
            return err_nomem(err);
        s->waiting.first++;
    }
    if (s->waiting.first == s->waiting.n)
        s->waiting.first = s->waiting.n = 0;
    return 0;
}

static int begin(struct steps *s, int g, int64_t now, struct err *err)
{
    const struct steps_gpu *gpu = s->gpu;
    struct steps_queue *running = &s->running[g];
    double bytes = gpu->weights_bytes, work_s = 0, room_s = STEP_TOKENS * gpu->token_s;

    s->ends[g] = INT64_MAX;
    if (admit(s, g, err))
        return err->code;
    if (running->n == 0)
        return 0;
    for (int i = 0; i < running->n; i++) {
        struct steps_job *job = &running->at[i];
        job->part_s = 0;
        bytes += job->left ? job->kv_bytes : 0;
        work_s += job->left ? gpu->token_s : 0;
    }
    room_s = fmax(room_s - work_s, 0);
    for (int i = 0; i < running->n; i++) {
        struct steps_job *job = &running->at[i];
        job->part_s = job->left ? 0 : fmin(job->prefill_s, room_s);
        room_s -= job->part_s;
        work_s += job->part_s;
    }
    double seconds = fmax(work_s, bytes / gpu->bytes_per_s);
    s->busy_s += seconds;
    s->ends[g] = now + (int64_t)fmax(round(seconds * ns_per_s), 1);
    return 0;
}

/* The first idle GPU; -1: all have a step. */
static int idle_gpu(const struct steps *s)
{
    for (int g = 0; g < s->n_gpus; g++)
        if (s->ends[g] == INT64_MAX)
            return g;
    return -1;
}

bool steps_idle(const struct steps *s)
{
    return idle_gpu(s) >= 0;
}

int steps_add(struct steps *s, int64_t now, const struct steps_job *job, struct err *err)
{
    if (ARRAY_PUSH(&s->waiting, *job))
        return err_nomem(err);
    int idle = idle_gpu(s);
    return idle >= 0 ? begin(s, idle, now, err) : 0;
}

static int next_gpu(const struct steps *s)
{
    int next = 0;

    for (int g = 1; g < s->n_gpus; g++)
        if (s->ends[g] < s->ends[next])
            next = g;
    return next;
}

int64_t steps_next(const struct steps *s)
{
    return s->n_gpus ? s->ends[next_gpu(s)] : INT64_MAX;
}

/* Has a token come out of the step? */
static bool has_token(struct steps *s, struct steps_job *job)
{
    const double rounding = 1e-12;

    if (job->left)
        job->left--;
    else {
        job->prefill_s -= job->part_s;
        if (job->prefill_s > rounding || job->part_s == 0)
            return false;
        job->left = job->output - 1;
    }
    job->kv_bytes += s->gpu->kv_token_bytes;
    return true;
}

int steps_end(struct steps *s, steps_token *token, void *arg, struct err *err)
{
    int g = next_gpu(s), kept = 0;
    struct steps_queue *running = &s->running[g];

    for (int i = 0; i < running->n; i++) {
        struct steps_job job = running->at[i];
        bool first = job.left == 0, out = has_token(s, &job), last = out && job.left == 0;
        if ((out && first) || last)
            if (token(arg, job.request, first, last, err))
                return err->code;
        if (!last)
            running->at[kept++] = job;
    }
    running->n = kept;
    return begin(s, g, s->ends[g], err);
}
