/* JSON Lines from anywhere: as a stream of contexts, as one of questions, and as LongBench's rows. */
#include "base/context.h"
#include "datasets/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void drop_note(void *arg, enum import_note what, const char *sentence)
{
    (void)arg, (void)what, (void)sentence;
}

static void read_streams(const char *path)
{
    struct contexts contexts;
    struct questions questions;
    struct err err;

    if (!contexts_read(&contexts, path, &err)) {
        if (contexts.n < 1)
            abort(); /* an empty stream is refused */
        contexts_release(&contexts);
    }
    if (!questions_read(&questions, path, &err))
        questions_release(&questions);
}

static void import(const uint8_t *data, size_t n)
{
    struct import im = { .note = drop_note };
    struct err err;
    char *bytes = malloc(n + 1);

    if (!bytes)
        return;
    if (n)
        memcpy(bytes, data, n);
    bytes[n] = '\0';
    struct import_file file = { .label = "'f.jsonl'", .name = "f.jsonl", .bytes = bytes, .n = n };
    if (!import_bytes(&im, &file, &err))
        for (int i = 0; i < im.contexts.n; i++)
            if (!*im.contexts.at[i].text || !*im.contexts.at[i].id)
                abort();
    import_release(&im);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[32];
    int fd = memfd_create("rows", 0);

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    read_streams(path);
    close(fd);
    import(data, n);
    return 0;
}
