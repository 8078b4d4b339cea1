/* Any bytes as a request log, plain or compressed: found contexts begin requests, questions follow them, ids come once.
 */
#include "logs/requests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void drop_sentence(void *arg, const char *sentence)
{
    (void)arg, (void)sentence;
}

static void drop_bytes(void *arg, int64_t bytes)
{
    (void)arg, (void)bytes;
}

static void drop_log(void *arg, const char *label, const struct request_log *log)
{
    (void)arg, (void)label;
    if (request_log_lack(log) > N_REQUEST_LACKS || log->n_timeless > log->n_requests ||
        log->n_requests > log->n_prompts)
        abort();
}

static int check_context(void *arg, struct context *c, struct err *err)
{
    struct map *ids = arg;
    size_t n = 0;
    bool added;

    (void)err;
    for (int i = 0; i < c->turns.n; i++)
        n += c->turns.at[i].n;
    if (!c->turns.n || n != strlen(c->text) || n == 0 || !strstr(c->ask, "{question}"))
        abort();
    if (map_add(ids, c->id, strlen(c->id), &added) < 0 || !added)
        abort();
    return c->chars % 7 == 1; /* some are not wanted */
}

static int check_access(void *arg, const char *context, double uses, double uses_before, struct err *err)
{
    (void)err;
    if (map_find(arg, context, strlen(context)) < 0 || !(uses >= 0) || isinf(uses) || !(uses_before >= 0) ||
        isinf(uses_before))
        abort();
    return 0;
}

static int check_question(void *arg, const struct question *q, struct err *err)
{
    bool added;

    (void)err;
    if (map_find(arg, q->context, strlen(q->context)) < 0 || !*q->text || q->split != question_split(q->id))
        abort();
    if (map_add(arg, q->id, strlen(q->id), &added) < 0 || !added)
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct map ids = { 0 };
    const struct requests_sink sink = {
        .context = check_context, .question = check_question, .access = check_access, .arg = &ids
    };
    struct requests rq = { .choice = { .min_uses = 2 },
                           .per_context = 2,
                           .halves = n % 2,
                           .partial = true,
                           .half_life = (double)(n % 2),
                           .damaged = drop_sentence,
                           .reading = drop_bytes,
                           .read = drop_log };
    struct err err;
    char path[32];
    int fd = memfd_create("log", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (requests_open(&rq, path, &err) == 0 && requests_find(&rq, &err) == 0 && requests_write(&rq, &sink, &err))
        abort(); /* what was read twice is there a third time */
    int64_t flawed = 0;
    for (int i = 0; i < REQUEST_ASIDE; i++)
        flawed += rq.line.flaws[i];
    if (flawed != rq.line.n_flawed || rq.n_unknown > rq.n_left_out)
        abort();
    requests_close(&rq);
    map_release(&ids);
    close(fd);
    return 0;
}
