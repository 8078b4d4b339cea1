/* Any bytes as a trace, and as libCacheSim's records: what is read is in the order of its arrivals, and can be
 * stretched and given contexts. */
#include "replay/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { CONTEXTS = 7 };

static void check(struct trace *t)
{
    struct err err;

    for (int i = 0; i < t->n; i++) {
        const struct trace_request *q = &t->request[i];
        if (q->at < (i ? q[-1].at : 0) || q->context < -1 || q->context >= t->contexts.n)
            abort();
    }
    trace_stretch(t, 0.5);
    if (t->request[0].at != 0 || trace_draw(t, "zipf:1,drift:1,churn:9", CONTEXTS, 1, &err))
        abort();
    for (int i = 0; i < t->n; i++)
        if (t->request[i].at < (i ? t->request[i - 1].at : 0) || t->request[i].context < 0 ||
            t->request[i].context >= CONTEXTS)
            abort();
}

static void read_as(char *path)
{
    struct trace t;
    struct err err;

    if (trace_read(&t, &path, 1, 1, &err))
        return;
    if (t.n <= 0)
        abort();
    check(&t);
    trace_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64], records[64];
    int fd = memfd_create("trace", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(records, sizeof(records), "/tmp/evp-fuzz-%d.oracleGeneral", (int)getpid());
    read_as(path);
    if (symlink(path, records) == 0)
        read_as(records);
    unlink(records);
    close(fd);
    return 0;
}
