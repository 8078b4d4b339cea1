/* JSON Lines from anywhere: as contexts, questions, an access log, rules, and LongBench's rows. */
#include "datasets/import.h"
#include "logs/access.h"
#include "formats/context.h"
#include "formats/rules.h"

#include <math.h>
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

/* What evp-plan reads beside a table. */
static void read_access_and_rules(const char *path)
{
    struct map ids = { 0 };
    struct access_log log;
    struct rule rule = { 0 };
    double frequency = 0;
    int64_t unknown;
    struct err err;

    if (map_add(&ids, "a/1", 3, NULL) != 0)
        abort();
    if (!access_read(&log, path, &ids, &frequency, &err) &&
        (!isfinite(frequency) || frequency < 0 || log.unknown < 0 || log.unknown > log.rows))
        abort();
    if (!rules_read(&rule, path, &ids, &unknown, &err) &&
        (!(rule.min_quality >= 0 && rule.min_quality <= 1) || !memchr(rule.tier, 0, sizeof(rule.tier)) || unknown < 0))
        abort();
    map_release(&ids);
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
    read_access_and_rules(path);
    close(fd);
    import(data, n);
    return 0;
}
